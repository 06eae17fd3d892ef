//! Converts the errors of a plugin to those that users see.

use std::sync::Arc;

use defn_core::Error;
use defn_core::device::DeviceError;
use defn_core::mesh::MeshError;

use super::Runtime;
use crate::error::{Code, Error as PluginError};
use crate::lower::LowerError;
use crate::options::CompileOptions;

/// The problem of a program with checks after each op, in an operation that needs a program of one segment.
pub(crate) const CHECKED: &str = "the program is run with checks, op by op";

/// The error that such a program cannot be saved as bytes.
#[cold]
pub(crate) fn not_written() -> Error {
    DeviceError::NotWritten { problem: CHECKED, required: "one without is required" }.into()
}

/// The error of a plugin in an operation.
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

/// The error of a compiler flag that a plugin rejects, if that is its error. The plugin's message names the flag; its
/// code says only that something was wrong.
#[cold]
pub(crate) fn rejected_flag(client: &str, options: &CompileOptions, error: &PluginError) -> Option<Error> {
    let PluginError::Plugin { code: Code::InvalidArgument | Code::NotFound, message, call: _ } = error else {
        return None;
    };
    let named = options.flags.iter().filter(|(flag, _)| message.contains(flag.as_str()));
    // One flag's name may be a prefix of another's.
    let (flag, _) = named.max_by_key(|(flag, _)| flag.len())?;
    let (client, flag, why) = (client.to_owned(), flag.clone(), first_line(message));
    Some(DeviceError::RefusedFlag { client, flag, why }.into())
}

/// The error of a compiler whose programs, those for `whom`, are not compiled in the background.
#[cold]
pub(crate) fn not_in_background(whom: &str) -> Error {
    let problem = format!("programs for {whom} compile only at once");
    let required = "a program for one device of this machine is required";
    DeviceError::Background { problem, required }.into()
}

/// The error of a plugin before there is a client.
#[cold]
pub(crate) fn plugin(error: PluginError) -> Error {
    DeviceError::Plugin { error: Arc::new(error) }.into()
}

/// The error of a graph that cannot be lowered.
#[cold]
pub(crate) fn lowering(error: LowerError) -> Error {
    match error {
        LowerError::Core(error) => error,
        LowerError::Alone { op, count, location } => {
            let executor = "a compiler of \"pjrt\"".to_owned();
            Error::from(MeshError::Alone { op, executor, count }).at(location)
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
