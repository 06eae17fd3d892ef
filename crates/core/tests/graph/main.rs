//! The tests of what is public, as one program: each program would be optimised and linked on its own.

mod builder;
mod by_elements;
mod common;
mod cost;
mod diff;
mod formats;
mod grad;
mod jvp;
mod mesh;
mod passes;
mod pictures;
mod print;
mod random_graphs;
mod random_stages;
mod stage_text;
mod stages;
