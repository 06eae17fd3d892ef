//! What a plugin answers, as the errors that users see.

use std::sync::Arc;

use defn_core::Error;
use defn_core::device::DeviceError;
use defn_core::mesh::MeshError;

use super::Runtime;
use crate::error::{Code, Error as PluginError};
use crate::lower::LowerError;
use crate::options::CompileOptions;

/// What is wrong with a program that looks for errors after each op, for what only one of a piece can do.
pub(crate) const CHECKED: &str = "the program is run with checks, op by op";

/// Such a program has no bytes.
#[cold]
pub(crate) fn not_written() -> Error {
    DeviceError::NotWritten { problem: CHECKED, required: "one without is required" }.into()
}

/// An answer of a plugin on behalf of an operation.
#[cold]
pub(crate) fn device(op: &'static str, runtime: &Runtime, error: PluginError) -> Error {
    let client = runtime.name().to_owned();
    let PluginError::Plugin { code, message, call } = error else {
        return DeviceError::Failed { op, client, why: error.to_string() }.into();
    };
    if code == Code::ResourceExhausted {
        let live = runtime.live().text();
        return DeviceError::Memory { op, client, message: first_line(&message), live }.into();
    }
    let why = format!("{call} answered {code:?}: {}", message.trim_end());
    DeviceError::Failed { op, client, why }.into()
}

/// The flag that a plugin refuses when it compiles for a client, if that is what it answers: it says which, and codes
/// only that something was wrong.
#[cold]
pub(crate) fn refused_flag(client: &str, options: &CompileOptions, error: &PluginError) -> Option<Error> {
    let PluginError::Plugin { code: Code::InvalidArgument | Code::NotFound, message, call: _ } = error else {
        return None;
    };
    let named = options.flags.iter().filter(|(flag, _)| message.contains(flag.as_str()));
    // The name of one may begin that of another.
    let (flag, _) = named.max_by_key(|(flag, _)| flag.len())?;
    let (client, flag, why) = (client.to_owned(), flag.clone(), first_line(message));
    Some(DeviceError::RefusedFlag { client, flag, why }.into())
}

/// What is wrong with a plugin, before there is a client.
#[cold]
pub(crate) fn plugin(error: PluginError) -> Error {
    DeviceError::Plugin { error: Arc::new(error) }.into()
}

/// Why a graph has no program.
#[cold]
pub(crate) fn lowering(error: LowerError) -> Error {
    match error {
        LowerError::Core(error) => error,
        LowerError::Alone { op, count, location } => {
            let place = "a compiler of \"pjrt\"".to_owned();
            Error::from(MeshError::Alone { op, place, count }).at(location)
        }
        LowerError::InnerHook { ref location } | LowerError::RuntimeCall { ref location } => {
            let location = location.clone();
            Error::from(DeviceError::Plugin { error: Arc::new(error) }).at(location)
        }
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
}
