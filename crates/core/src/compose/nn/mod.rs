//! Functions of neural networks.
//!
//! They compute in f32 or f64. Where a formula overflows or loses its digits, it is written in another form, whose
//! derivatives are finite for all finite operands.

mod activation;

pub use activation::{
    celu, elu, gelu, glu, hard_sigmoid, hard_silu, hard_tanh, leaky_relu, log_sigmoid, mish, relu, relu6,
    selu, silu, softplus, softsign,
};
