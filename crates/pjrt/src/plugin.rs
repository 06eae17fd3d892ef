//! A loaded plugin.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::api::{Api, Client, CustomCall, KeyValues, Topology};
use crate::error::Result;

/// A PJRT plugin, loaded and initialised. Clones are cheap; the plugin stays loaded until the process ends.
///
/// ```no_run
/// # fn main() -> Result<(), defn_pjrt::Error> {
/// let plugin = defn_pjrt::Plugin::load("xla_cpu_pjrt.so")?;
/// println!("PJRT {} with extensions {:?}", plugin.version(), plugin.extensions());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Plugin {
    path: PathBuf,
    api: Api,
}

/// A version of the PJRT C API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Changes with incompatible versions.
    pub major: i32,
    /// Changes with additions.
    pub minor: i32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// An attribute of a plugin, or an option for it.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// A string.
    Text(String),
    /// An integer.
    Int(i64),
    /// A list of integers, such as a version.
    Ints(Vec<i64>),
    /// A float.
    Float(f32),
    /// A boolean.
    Bool(bool),
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attribute::Text(value) => write!(f, "{value:?}"),
            Attribute::Int(value) => value.fmt(f),
            Attribute::Ints(value) => write!(f, "{value:?}"),
            Attribute::Float(value) => value.fmt(f),
            Attribute::Bool(value) => value.fmt(f),
        }
    }
}

impl Plugin {
    /// Loads the shared library at `path`, checks its version and initialises it.
    ///
    /// # Errors
    /// No such library, a library that is not a plugin, an incompatible version, or an error from the plugin.
    pub fn load(path: impl AsRef<Path>) -> Result<Plugin> {
        let path = path.as_ref().to_owned();
        let api = Api::load(&path)?;
        Ok(Plugin { path, api })
    }

    /// The file that the plugin was loaded from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The version of the PJRT C API that the plugin implements.
    pub fn version(&self) -> Version {
        self.api.version()
    }

    /// The type numbers of the plugin's extensions, as defined in the PJRT C API.
    pub fn extensions(&self) -> Vec<i32> {
        self.api.extensions()
    }

    /// The plugin's attributes, such as `stablehlo_current_version`.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn attributes(&self) -> Result<Vec<(String, Attribute)>> {
        self.api.attributes()
    }

    /// Creates a client, which acquires the devices of this process. The options are the plugin's, such as
    /// `cpu_device_count`.
    ///
    /// # Errors
    /// An error from the plugin: no driver, no device, an unknown option.
    pub fn client(&self, options: &[(String, Attribute)]) -> Result<Client> {
        Client::new(self.api, options, None)
    }

    /// As [`Plugin::client`], for a client that finds the others of its name through the key-value store.
    pub(crate) fn joined_client(
        &self,
        options: &[(String, Attribute)],
        key_values: &'static KeyValues,
    ) -> Result<Client> {
        Client::new(self.api, options, Some(key_values))
    }

    /// As [`Api::register_library_call`].
    pub(crate) fn register_library_call(&self, platform: &str, call: &CustomCall) -> bool {
        self.api.register_library_call(platform, call)
    }

    /// Describes devices to compile for; they need not be present.
    ///
    /// # Errors
    /// An error from the plugin: a plugin without topologies, an unknown option.
    pub fn topology(&self, name: &str, options: &[(String, Attribute)]) -> Result<Topology> {
        Topology::new(self.api, name, options)
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin").field("path", &self.path).field("version", &self.version()).finish()
    }
}
