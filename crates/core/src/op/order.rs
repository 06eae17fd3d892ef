//! Attributes of the ops that sort.

super::catalogue! {
    /// Which element comes first. NaN is above every number, and the sort is stable.
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
