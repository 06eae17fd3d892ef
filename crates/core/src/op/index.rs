//! Attributes of the ops that read and write at positions given by a tensor.

super::catalogue! {
    /// How an update changes an element.
    pub enum ScatterOp {
        /// The update is added; several updates of one element add up.
        IndexedAdd = "indexed_add",
        /// The update replaces the element; of several updates of one element the last one wins.
        IndexedPut = "indexed_put",
    }
}
