//! Memory
