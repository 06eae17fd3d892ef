//! Attributes of triangular systems and factorizations.

super::catalogue! {
    /// The transform that is applied first to the matrix of a triangular system.
    ///
    /// ```
    /// use defn_core::op::Transform;
    /// assert_eq!(Transform::Adjoint.name(), "adjoint");
    /// ```
    pub enum Transform {
        /// No transform.
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
    /// The size of the orthogonal factor.
    ///
    /// ```
    /// use defn_core::op::QrMode;
    /// assert_eq!(QrMode::Reduced.name(), "reduced");
    /// ```
    pub enum QrMode {
        /// A factor with as many columns as the smaller side of the matrix.
        Reduced = "reduced",
        /// A square factor.
        Complete = "complete",
    }
}
