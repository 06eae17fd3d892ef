//! Attributes of the ops that sort.

super::catalogue! {
    /// Which element comes first. NaN is above every number, and the sort is stable.
    pub enum Direction {
        /// The least.
        Asc = "asc",
        /// The greatest.
        Desc = "desc",
    }
}
