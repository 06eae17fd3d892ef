//! Conversions between tensors and the types of other crates, one file for each crate. Each is a feature.

#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(feature = "serde")]
mod serde;
