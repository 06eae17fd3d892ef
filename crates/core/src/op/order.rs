//! Attributes of the ops that put elements in order.

super::catalogue! {
    /// Which element comes first. NaN is above every number, and equal elements keep their order.
    ///
    /// ```
    /// use defn_core::op::Direction;
    /// assert_eq!(Direction::Desc.name(), "desc");
    /// ```
    pub enum Direction {
        /// The least.
        Asc = "asc",
        /// The greatest.
        Desc = "desc",
    }
}
