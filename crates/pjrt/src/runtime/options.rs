//! The options of the compiler.

use std::path::PathBuf;

use defn_core::{ErrorKind, Result};

use super::disk::Folder;
use crate::options::CompileOptions;
use crate::plugin::Attribute;

/// The environment variable that names the folder of compiled programs.
const FOLDER: &str = "DEFN_CACHE_DIR";

/// The options that programs are compiled with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompilerOptions {
    /// The folder of compiled programs; by default that of `DEFN_CACHE_DIR`, if set. It must belong to the user, and
    /// nobody else may have write access: its files are executed.
    pub cache_dir: Option<PathBuf>,
    /// XLA's flags, such as `xla_cpu_enable_fast_math`; the plugin rejects unknown ones.
    pub flags: Vec<(String, Attribute)>,
}

impl CompilerOptions {
    /// The names that [`CompilerOptions::parse`] accepts.
    pub const KNOWN: &str = "\"cache_dir\" and XLA's flags, which begin with \"xla_\"";

    /// Parses named options.
    ///
    /// # Errors
    /// An unknown name, or a value of the wrong type.
    pub fn parse(options: &[(String, Attribute)]) -> Result<CompilerOptions> {
        let mut parsed = CompilerOptions::default();
        for (name, value) in options {
            match (name.as_str(), value) {
                ("cache_dir", Attribute::Text(path)) => parsed.cache_dir = Some(PathBuf::from(path)),
                ("cache_dir", other) => {
                    let (given, required) = (other.to_string(), "the path of a folder".to_owned());
                    let option = "cache_dir";
                    return Err(
                        ErrorKind::OptionValue { op: "compiler \"pjrt\"", option, given, required }.into()
                    );
                }
                (flag, value) if flag.starts_with("xla_") => {
                    parsed.flags.push((flag.to_owned(), value.clone()));
                }
                (option, _) => {
                    let (compiler, option) = ("pjrt".to_owned(), option.to_owned());
                    let known = CompilerOptions::KNOWN.to_owned();
                    return Err(ErrorKind::UnknownCompilerOption { compiler, option, known }.into());
                }
            }
        }
        Ok(parsed)
    }

    /// The folder of compiled programs, if there is one.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let named = || std::env::var_os(FOLDER).filter(|path| !path.is_empty()).map(PathBuf::from);
        self.cache_dir.clone().or_else(named)
    }

    /// The folder of compiled programs and the reason why it is not used, if there is one.
    pub fn refused_folder(&self) -> Option<(PathBuf, String)> {
        let folder = self.folder()?;
        let why = Folder::new(&folder).refusal()?;
        Some((folder, why))
    }

    /// The plugin's options, for one program for any device of the client.
    pub(super) fn to_compile(&self) -> CompileOptions {
        CompileOptions { portable: true, flags: self.flags.clone(), ..CompileOptions::default() }
    }
}
