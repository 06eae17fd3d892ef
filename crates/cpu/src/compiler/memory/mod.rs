//! The memory of compiled programs: what generated code is in.

pub(crate) mod code;
