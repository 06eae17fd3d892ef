//! Errors about devices: plugins, clients, and programs that run on them.

use std::fmt;
use std::sync::Arc;

use crate::backend::Gone;
use crate::error::{Error, ErrorClass, ErrorKind};
use crate::shape::TensorType;

/// An argument of a compiled program, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Its position among the program's tensor arguments.
    Position(usize),
    /// Its name where the function is written, such as `argument model.weight` or `the global scale`.
    Written(String),
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Argument::Position(position) => write!(f, "argument {position}"),
            Argument::Written(text) => f.write_str(text),
        }
    }
}

impl From<usize> for Argument {
    fn from(position: usize) -> Argument {
        Argument::Position(position)
    }
}

/// Errors about devices. `op` is the public name of the function that was called.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum DeviceError {
    #[error(
        "{op}: no PJRT plugin is installed, one is required; install XLA's for the CPU by pip install 'defn[xla]', one for a GPU by pip install 'defn[cuda13]', or name a plugin's file in DEFN_PJRT_PLUGIN"
    )]
    NoPlugin { op: &'static str },
    /// An error in a file or in a request to a plugin, with the text of the component that reported it.
    #[error("{error}")]
    Plugin { error: Arc<dyn std::error::Error + Send + Sync> },
    #[error(
        "client \"{client}\": {plugin} cannot start: {why}, the device with its driver and the options that the plugin knows are required"
    )]
    Start { client: String, plugin: String, why: String },
    /// The hint explains how to install a plugin for the client, where that is known.
    #[error("{op}: the client \"{client}\" is unknown, it must be one of {known}{hint}")]
    UnknownClient { op: &'static str, client: String, known: String, hint: &'static str },
    #[error("client \"{client}\": unknown option \"{option}\", it takes {known}")]
    UnknownOption { client: String, option: String, known: String },
    /// `why` is the plugin's own message.
    #[error(
        "compiler \"pjrt\": the plugin of client \"{client}\" refuses the option \"{flag}\" ({why}), a flag that its version of XLA has and a value of the flag's kind are required; correct it or leave it out, XLA lists its flags in xla.proto as DebugOptions"
    )]
    RefusedFlag { client: String, flag: String, why: String },
    #[error("{op}: the client \"{client}\" is running with other options, {required}")]
    ClientRuns { op: &'static str, client: String, required: &'static str },
    #[error("{op}: device_id is {id}, the client \"{client}\" has {count} devices; it must be in 0..{count}")]
    DeviceRange { op: &'static str, client: String, id: i64, count: usize },
    #[error(
        "{op}: the client \"{client}\" was started by process {parent} and this is its fork {child}, a client of this process is required; start processes by \"spawn\", or start the client after the fork"
    )]
    Forked { op: &'static str, client: String, parent: u32, child: u32 },
    #[error(
        "client \"{client}\": {plugin} does not join the {world} processes of distributed.initialize: {tried}, a plugin whose devices span processes is required, such as CUDA's or ROCm's; or describe the client as local, for the devices of this process alone"
    )]
    OneProcess { client: String, plugin: String, world: usize, tried: String },
    #[error(
        "{op}: the device {id} of client \"{client}\" belongs to process {process}, one of this process is required: {own}; place it there, or let all processes run it on a mesh"
    )]
    OtherProcess { op: &'static str, client: String, id: usize, process: i32, own: String },
    #[error("{op}: the device of client \"{client}\" failed, {why}")]
    Failed { op: &'static str, client: String, why: String },
    #[error(
        "{op}: the device of client \"{client}\" has no memory left ({message}), and {live}; free tensors with backend_deallocate, donate arguments, or use smaller shapes"
    )]
    Memory { op: &'static str, client: String, message: String, live: String },
    #[error(
        "memory_limit: the client \"{client}\" runs on {platform}, a platform that can be limited is required: \"cuda\" or \"rocm\""
    )]
    NoLimit { client: String, platform: String },
    #[error(
        "donate: {argument} is {got}, a result of its dtype and shape that takes no other argument's memory is required; do not donate it"
    )]
    DonateType { argument: Argument, got: TensorType },
    #[error("donate: there is no argument {position}, it must be one of {count}")]
    DonatePosition { position: usize, count: usize },
    #[error("donate: {problem}, {required}")]
    Donate { problem: String, required: &'static str },
    #[error(
        "{op}: {argument} is {got} and its memory was {gone}, a tensor that is there is required; keep a copy, or do not use it after"
    )]
    ArgumentGone { op: &'static str, argument: Argument, got: TensorType, gone: Gone },
    #[error("{op}: the executable is for {made_for} and this is {here}, {required}")]
    Executable { op: &'static str, made_for: String, here: String, required: &'static str },
    #[error(
        "memory: the compiler plans no memory before it runs, one that does is required; compile with \"cpu\""
    )]
    NotPlanned,
    #[error("asm: the compiler does not show code, one that does is required; compile with \"cpu\"")]
    NoAssembly,
    #[error(
        "run: the compiler's programs run on tensors, ones that run on memory of the caller are required; compile with \"cpu\""
    )]
    OnlyTensors,
    #[error("save: {problem}, {required}")]
    NotWritten { problem: &'static str, required: &'static str },
    #[error("compile: {problem}, {required}")]
    Background { problem: String, required: &'static str },
    #[error("{op}: the target \"{target}\" is unknown, it must be one of {known}")]
    UnknownTarget { op: &'static str, target: String, known: String },
}

impl DeviceError {
    /// The error of a compiler of this name that does not support donated arguments.
    #[cold]
    pub fn no_donation(compiler: &str) -> DeviceError {
        let problem = format!("the compiler \"{compiler}\" reuses no arguments");
        DeviceError::Donate { problem, required: "a compiler that does is required, such as \"pjrt\"" }
    }

    /// The error of a compiler of this name that does not work in the background.
    #[cold]
    pub fn no_background(compiler: &str) -> DeviceError {
        let problem = format!("the compiler \"{compiler}\" only compiles at once");
        let required =
            "one that also does in the background is required, such as \"cpu\" or \"pjrt\"; compile now";
        DeviceError::Background { problem, required }
    }

    /// The public error class.
    pub fn class(&self) -> ErrorClass {
        match self {
            DeviceError::NoPlugin { .. }
            | DeviceError::Plugin { .. }
            | DeviceError::Start { .. }
            | DeviceError::UnknownClient { .. }
            | DeviceError::ClientRuns { .. }
            | DeviceError::Forked { .. }
            | DeviceError::OneProcess { .. }
            | DeviceError::OtherProcess { .. }
            | DeviceError::ArgumentGone { .. }
            | DeviceError::Failed { .. } => ErrorClass::Backend,
            DeviceError::UnknownOption { .. }
            | DeviceError::RefusedFlag { .. }
            | DeviceError::DeviceRange { .. }
            | DeviceError::NoLimit { .. } => ErrorClass::Option,
            DeviceError::Memory { .. } => ErrorClass::OutOfMemory,
            DeviceError::DonateType { .. }
            | DeviceError::DonatePosition { .. }
            | DeviceError::Donate { .. }
            | DeviceError::Background { .. }
            | DeviceError::UnknownTarget { .. }
            | DeviceError::NotWritten { .. }
            | DeviceError::NotPlanned
            | DeviceError::NoAssembly
            | DeviceError::OnlyTensors
            | DeviceError::Executable { .. } => ErrorClass::Compile,
        }
    }
}

impl From<DeviceError> for Error {
    #[cold]
    fn from(error: DeviceError) -> Error {
        ErrorKind::Device(error).into()
    }
}
