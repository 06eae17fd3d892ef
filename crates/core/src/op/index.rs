//! Attributes of the ops that read and write at positions held in a tensor.

super::catalogue! {
    /// What becomes of the elements that an update meets.
    pub enum ScatterOp {
        /// The update is added; several updates of one element add up.
        IndexedAdd = "indexed_add",
        /// The update takes the element's place; of several updates of one element the last stays.
        IndexedPut = "indexed_put",
    }
}
