//! The two text forms of a graph: Nx's display form, for reading, and the IR text, which parses back.

mod display;
mod parse;
mod text;

pub use display::display;
