//! Errors of the key-value store and of joining it.

use crate::error::Code;

/// The reason why processes were not joined, or why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StoreError {
    #[error(
        "initialize: rank 0 cannot listen on {address} ({why}), an address of its machine with a free port is required; choose another port, or, if another process has rank 0, give each process its own rank"
    )]
    Listen { address: String, why: String },
    #[error(
        "initialize: rank {rank} of {world} did not reach the coordinator {address} in {seconds} s ({why}), the process of rank 0 must run and listen there; start it, correct the address, or give a longer timeout"
    )]
    Unreachable { address: String, rank: usize, world: usize, seconds: u64, why: String },
    #[error(
        "initialize: what listens on {address} is not the coordinator of this version of defn ({why}), the process of rank 0 must listen there; correct the address, or install one version everywhere"
    )]
    Foreign { address: String, why: String },
    #[error(
        "initialize: rank {rank} is there already at the coordinator {address}, each of the {world} processes must have its own rank; give this process another one of 0..{world}, or start all processes again"
    )]
    RankTaken { address: String, rank: usize, world: usize },
    #[error(
        "initialize: world is {world} in the process of rank {rank} and {there} in that of rank 0 at {address}, it must be the same in all processes; correct one of them"
    )]
    World { address: String, rank: usize, world: usize, there: usize },
    #[error(
        "initialize: after {seconds} s rank {rank} of {world} still waits at the coordinator {address} for {missing}, all processes must call it within the timeout; start them, see why they ended, or give a longer timeout"
    )]
    Missing { address: String, rank: usize, world: usize, seconds: u64, missing: String },
    #[error(
        "initialize: this process has joined others before, as rank {rank} of {world} at {address}, one call in each process is required; leave out the second one"
    )]
    Twice { address: String, rank: usize, world: usize },
    #[error(
        "initialize: the client \"{client}\" was started before, processes must be joined before clients start; call it first, or describe that client as local"
    )]
    ClientRuns { client: String },
    #[error(
        "client: this process was forked from rank {rank} of {world}, which has joined others at {address}; start processes by \"spawn\", or call initialize in each process after the fork"
    )]
    Forked { address: String, rank: usize, world: usize },
    #[error(
        "rank {rank} of {world}: the coordinator {address} does not answer any more ({why}), the process of rank 0 must run as long as the others; see why it ended, and start all processes again"
    )]
    CoordinatorGone { address: String, rank: usize, world: usize, why: String },
    #[error(
        "rank {rank} of {world}: nobody has put \"{key}\" to the coordinator {address}, and {gone} went away; see why, and start all processes again"
    )]
    PeerGone { address: String, rank: usize, world: usize, key: String, gone: String },
    #[error(
        "rank {rank} of {world}: nobody has put \"{key}\" to the coordinator {address} in {seconds} s; each process must start the client of this name"
    )]
    Timeout { address: String, rank: usize, world: usize, key: String, seconds: u64 },
    #[error("there is no \"{key}\"")]
    NotFound { key: String },
    #[error("\"{key}\" is there already")]
    Exists { key: String },
}

impl StoreError {
    /// The error code of PJRT.
    pub fn code(&self) -> Code {
        match self {
            StoreError::NotFound { .. } => Code::NotFound,
            StoreError::Exists { .. } => Code::AlreadyExists,
            StoreError::Timeout { .. } => Code::DeadlineExceeded,
            StoreError::CoordinatorGone { .. }
            | StoreError::PeerGone { .. }
            | StoreError::Listen { .. }
            | StoreError::Unreachable { .. }
            | StoreError::Missing { .. } => Code::Unavailable,
            StoreError::Foreign { .. }
            | StoreError::RankTaken { .. }
            | StoreError::World { .. }
            | StoreError::Twice { .. }
            | StoreError::ClientRuns { .. }
            | StoreError::Forked { .. } => Code::FailedPrecondition,
        }
    }
}
