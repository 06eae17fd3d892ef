//! The key-value store of several processes, over TCP. The process of rank 0 serves it, and all processes use it.
//!
//! Plugins exchange what they know of their devices through it ([`KeyValues`](crate::api::KeyValues)). Every request
//! has a connection of its own, so that requests that wait do not hold up others. One more connection for each process
//! stays open as long as the process lives: the server learns by its end that a process went away.
//!
//! The protocol has no passwords and no encryption, so the address must be one that only the job's machines reach.

mod error;
mod frame;
mod member;
mod server;
#[cfg(test)]
mod tests;

pub(crate) use error::StoreError;
pub(crate) use member::Member;
