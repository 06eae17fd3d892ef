//! The options of the compiler.

use std::path::PathBuf;

use defn_core::{ErrorKind, Result};

use super::disk::Folder;
use crate::options::CompileOptions;
use crate::plugin::Attribute;

/// The environment variable that names the folder of compiled programs; if it is empty, there is none.
const FOLDER: &str = "DEFN_CACHE_DIR";

/// The options that programs are compiled with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompilerOptions {
    /// The folder of compiled programs; by default that of `DEFN_CACHE_DIR`, or none if that is empty, else
    /// `defn/programs` in the user's folder for caches, which has at most a gigabyte. It must belong to the user, and
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
    pub(super) fn folder(&self) -> Option<Folder> {
        match (&self.cache_dir, std::env::var_os(FOLDER)) {
            (Some(path), _) => Some(Folder::new(path.clone())),
            (None, Some(path)) if path.is_empty() => None,
            (None, Some(path)) => Some(Folder::new(path.into())),
            (None, None) => Folder::of_user(),
        }
    }

    /// The folder of compiled programs that was named and the reason why it is not used, if there is one.
    pub fn refused_folder(&self) -> Option<(PathBuf, String)> {
        let folder = self.folder().filter(|folder| !folder.may_forget())?;
        let why = folder.refusal()?;
        Some((folder.path().to_owned(), why))
    }

    /// The plugin's options, for one program for any device of the client.
    pub(super) fn to_compile(&self) -> CompileOptions {
        CompileOptions { portable: true, flags: self.flags.clone(), ..CompileOptions::default() }
    }
}
