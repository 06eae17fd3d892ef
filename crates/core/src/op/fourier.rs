//! Discrete Fourier transforms.

super::catalogue! {
    /// The direction of a transform.
    pub enum FftOp {
        /// Into frequencies, unscaled.
        Fft = "fft",
        /// Back, divided by the length.
        Ifft = "ifft",
    }
}
