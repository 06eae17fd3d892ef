//! Attributes of triangular systems and factorizations.

super::catalogue! {
    /// What is done to the matrix of a triangular system first.
    ///
    /// ```
    /// use defn_core::op::Transform;
    /// assert_eq!(Transform::Adjoint.name(), "adjoint");
    /// ```
    pub enum Transform {
        /// Nothing.
        None = "none",
        /// Its axes are exchanged.
        Transpose = "transpose",
        /// Its elements are conjugated.
        Conjugate = "conjugate",
        /// Its axes are exchanged, and its elements conjugated.
        Adjoint = "adjoint",
    }
}

super::catalogue! {
    /// How much of the orthogonal factor is computed.
    ///
    /// ```
    /// use defn_core::op::QrMode;
    /// assert_eq!(QrMode::Reduced.name(), "reduced");
    /// ```
    pub enum QrMode {
        /// As many columns as the smaller side has.
        Reduced = "reduced",
        /// A square factor.
        Complete = "complete",
    }
}
