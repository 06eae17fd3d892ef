//! Functions of neural networks.
//!
//! They compute in f32 or f64. Where a formula overflows or loses its digits, it is written in another form, whose
//! derivatives are finite for all finite operands.

mod activation;
mod attention;
mod cell;
mod convolution;
mod initial;
mod layer;
mod loss;
mod normalize;
mod softmax;

pub use activation::{
    celu, elu, gelu, glu, hard_sigmoid, hard_silu, hard_tanh, leaky_relu, log_sigmoid, mish, relu, relu6,
    selu, silu, softplus, softsign,
};
pub use attention::{Attention, attention};
pub use cell::{Weights, gru_cell, gru_parameters, lstm_cell, lstm_parameters};
pub use convolution::{SpatialOptions, SpatialPadding, avg_pool, conv, conv_transpose, max_pool};
pub use initial::{Distribution, FanAxes, FanMode, glorot, he, lecun, orthogonal, variance_scaling};
pub use layer::{dropout, embedding};
pub(crate) use loss::classes_shape;
pub use loss::{
    absolute_error, binary_cross_entropy, cosine_similarity, cross_entropy, hinge, huber, kl_divergence,
    log_cosh, squared_error,
};
pub use normalize::{Learnt, batch_norm, group_norm, layer_norm, rms_norm, standardize};
pub use softmax::{log_softmax, one_hot, softmax};
