//! Text forms of tensors, and text forms and pictures of a graph: Nx's display form for reading, and the IR text, which parses back.

mod display;
mod dot;
mod elements;
mod mermaid;
mod parse;
mod picture;
mod stage;
mod text;

pub use display::display;
pub use dot::{dot, dot_of_stages};
pub use elements::{
    BoolText, SHOWN_ELEMENTS, ShownElements, element_text, elements, first_elements, is_live, is_number,
    tensor,
};
pub use mermaid::{mermaid, mermaid_of_stages};
pub(crate) use text::{line, type_text, value_text};
