//! The functions that the Rust facade and the Python extension take from the builder as they are.
//!
//! A row is one function: its Rust documentation, its name, its operands besides the first, its options with their
//! types, its errors and an example. The facade makes methods of `Tensor` and `Expr` from the rows, the extension
//! makes the functions of `defn._core` that Python's public functions call. Functions with another form in one of the
//! languages are declared there.

mod elementwise;
mod index;
mod missing;
mod reduce;
mod search;
mod sequence;
mod shape;
mod special;
