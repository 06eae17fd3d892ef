//! A folder of compiled programs, one file for each. A file is complete or absent, even with concurrent writers.
//!
//! Programs are native code, which runs in every process that loads them. So the folder and its files must belong to
//! the user, and nobody else may have write access.
//!
//! A file is renamed into place and has a checksum. A file that is not complete is compiled again and replaced.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::digest::{Digest, digest_of, hex};

/// The first bytes of a file. Each version of the layout has its own number.
const HEAD: &[u8; 16] = b"defn program 001";
const SUFFIX: &str = "defn-program";

/// A folder of compiled programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Folder(PathBuf);

/// The result of looking up a key.
pub(super) enum Lookup {
    /// No file.
    Missing,
    /// A damaged file; it was removed.
    Corrupt,
    /// A program.
    Whole(Vec<u8>),
}

impl Folder {
    pub fn new(path: &Path) -> Folder {
        Folder(path.to_owned())
    }

    fn file(&self, key: &Digest) -> PathBuf {
        self.0.join(format!("{}.{SUFFIX}", hex(key)))
    }

    /// The reason why the folder is not used, if there is one: other users may have put files there.
    pub fn refusal(&self) -> Option<String> {
        ownership::refusal(&fs::metadata(&self.0).ok()?)
    }

    /// Looks up the program of a key.
    pub fn find(&self, key: &Digest) -> Lookup {
        let file = self.file(key);
        if self.refusal().is_some() {
            return Lookup::Missing;
        }
        let Ok(bytes) = ownership::read(&file) else { return Lookup::Missing };
        match open(key, bytes) {
            Some(program) => Lookup::Whole(program),
            None => {
                // If this fails, the next store replaces the file all the same.
                let _ = fs::remove_file(file);
                Lookup::Corrupt
            }
        }
    }

    /// Stores a program. If the folder cannot be written, nothing is stored.
    pub fn store(&self, key: &Digest, program: &[u8]) {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let temporary = self.0.join(format!("{}.{}.{number}.part", hex(key), std::process::id()));
        let write = || -> std::io::Result<()> {
            ownership::create(&self.0)?;
            if let Some(refusal) = self.refusal() {
                return Err(std::io::Error::other(refusal));
            }
            fs::write(&temporary, close(key, program))?;
            // The rename makes the complete file visible at once.
            fs::rename(&temporary, self.file(key))
        };
        if write().is_err() {
            let _ = fs::remove_file(&temporary);
        }
    }

    /// The number of programs and their total size in bytes.
    pub fn size(&self) -> (usize, u64) {
        let Ok(files) = fs::read_dir(&self.0) else { return (0, 0) };
        let programs =
            files.flatten().filter(|file| file.path().extension().is_some_and(|end| end == SUFFIX));
        programs.fold((0, 0), |(files, bytes), file| {
            (files + 1, bytes + file.metadata().map_or(0, |metadata| metadata.len()))
        })
    }
}

/// Checks of ownership.
#[cfg(unix)]
mod ownership {
    use std::fs::{DirBuilder, File, Metadata};
    use std::io::{Error, Read, Result};
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    use std::path::Path;

    use crate::api::user;

    /// Write access of the group and of all others.
    const OTHERS_WRITE: u32 = 0o022;

    pub fn refusal(metadata: &Metadata) -> Option<String> {
        if metadata.uid() != user() {
            return Some(format!("belongs to user {} and this process to user {}", metadata.uid(), user()));
        }
        let mode = metadata.mode() & 0o7777;
        (mode & OTHERS_WRITE != 0).then(|| format!("may be written by others (mode {mode:o})"))
    }

    /// Reads a file that belongs to the user.
    pub fn read(path: &Path) -> Result<Vec<u8>> {
        let mut file = File::open(path)?;
        if let Some(refusal) = refusal(&file.metadata()?) {
            return Err(Error::other(refusal));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Creates a folder that others can neither read nor write; an existing folder is left as it is.
    pub fn create(path: &Path) -> Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)
    }
}

/// The standard library cannot determine a file's owner on other systems.
#[cfg(not(unix))]
mod ownership {
    pub use std::fs::{create_dir_all as create, read};

    pub fn refusal(_: &std::fs::Metadata) -> Option<String> {
        None
    }
}

/// The file of a program: head, checksum, bytes.
fn close(key: &Digest, program: &[u8]) -> Vec<u8> {
    let mut file = Vec::with_capacity(HEAD.len() + 32 + program.len());
    file.extend_from_slice(HEAD);
    file.extend_from_slice(&digest_of(&[key, program]));
    file.extend_from_slice(program);
    file
}

/// The program in a file's bytes, if they are complete and belong to the key.
fn open(key: &Digest, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let body = HEAD.len() + 32;
    if bytes.len() < body || !bytes.starts_with(HEAD) {
        return None;
    }
    let program = bytes.split_off(body);
    (bytes[HEAD.len()..] == digest_of(&[key, &program])).then_some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_whole_is_not_there() {
        let key = digest_of(&[b"key"]);
        let whole = close(&key, b"program");
        assert_eq!(open(&key, whole.clone()).as_deref(), Some(&b"program"[..]));
        for length in 0..whole.len() {
            assert!(open(&key, whole[..length].to_vec()).is_none(), "{length} bytes");
        }
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 1;
            assert!(open(&key, other).is_none(), "byte {at}");
        }
        assert!(open(&digest_of(&[b"other"]), whole).is_none());
    }
}
