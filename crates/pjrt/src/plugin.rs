//! A loaded plugin.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::api::{Api, Client, Topology};
use crate::error::Result;

/// A PJRT plugin, loaded and initialised. Cheap to clone; it stays loaded until the process ends.
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

/// A version of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Changes break callers.
    pub major: i32,
    /// Changes add.
    pub minor: i32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Something that a plugin says of itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// A text.
    Text(String),
    /// An integer.
    Int(i64),
    /// A list of integers, such as a version.
    Ints(Vec<i64>),
    /// A float.
    Float(f32),
    /// A truth value.
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
    /// Loads the shared library at `path`, agrees on a version and initialises it.
    ///
    /// # Errors
    /// No such library, a library that is no plugin, a version that cannot be spoken, or the plugin's own error.
    pub fn load(path: impl AsRef<Path>) -> Result<Plugin> {
        let path = path.as_ref().to_owned();
        let api = Api::load(&path)?;
        Ok(Plugin { path, api })
    }

    /// The file that the plugin was loaded from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The version of the interface that the plugin speaks.
    pub fn version(&self) -> Version {
        self.api.version()
    }

    /// The numbers of the extensions that the plugin has, as the interface defines them.
    pub fn extensions(&self) -> Vec<i32> {
        self.api.extensions()
    }

    /// What the plugin says of itself, such as `stablehlo_current_version`.
    ///
    /// # Errors
    /// The plugin's own.
    pub fn attributes(&self) -> Result<Vec<(String, Attribute)>> {
        self.api.attributes()
    }

    /// Takes hold of the devices of this process, with options that the plugin knows, such as
    /// `cpu_device_count`.
    ///
    /// # Errors
    /// The plugin's own: no driver, no device, an option that it does not know.
    pub fn client(&self, options: &[(String, Attribute)]) -> Result<Client> {
        Client::new(self.api, options)
    }

    /// Describes devices that need not be there, to compile for them.
    ///
    /// # Errors
    /// The plugin's own: a plugin without such descriptions, an option that it does not know.
    pub fn topology(&self, name: &str, options: &[(String, Attribute)]) -> Result<Topology> {
        Topology::new(self.api, name, options)
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin").field("path", &self.path).field("version", &self.version()).finish()
    }
}
