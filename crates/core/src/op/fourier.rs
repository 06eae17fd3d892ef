//! Discrete Fourier transforms.

super::catalogue! {
    /// The direction of a transform.
    pub enum FftOp {
        /// To frequencies, unscaled.
        Fft = "fft",
        /// From frequencies, divided by the length.
        Ifft = "ifft",
    }
}

super::catalogue! {
    /// The direction of a transform along two axes.
    pub enum Fft2Op {
        /// To frequencies, unscaled.
        Fft2 = "fft2",
        /// From frequencies, divided by both lengths.
        Ifft2 = "ifft2",
    }
}

impl Fft2Op {
    /// The transform along each axis.
    pub const fn each(self) -> FftOp {
        match self {
            Fft2Op::Fft2 => FftOp::Fft,
            Fft2Op::Ifft2 => FftOp::Ifft,
        }
    }
}
