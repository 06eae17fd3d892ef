//! A folder of compiled programs: one file for each, whole or not there, whoever writes it at the same time.
//!
//! Programs are native code, which runs in whatever process reads them. So the folder and its files have to be the
//! user's own, and nobody else may write it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::digest::{Digest, digest_of, hex};

/// What a file begins with; another version of the layout has another number.
const HEAD: &[u8; 16] = b"defn program 001";
const SUFFIX: &str = "defn-program";

/// A folder of compiled programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Folder(PathBuf);

/// What there is under a key.
pub(super) enum Found {
    /// Nothing.
    Missing,
    /// A file that is not whole; it was removed.
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

    /// Why nothing is read or written there, if so: somebody else may have put files there.
    pub fn refusal(&self) -> Option<String> {
        own::refusal(&fs::metadata(&self.0).ok()?)
    }

    /// What is stored under a key.
    pub fn find(&self, key: &Digest) -> Found {
        let file = self.file(key);
        if self.refusal().is_some() {
            return Found::Missing;
        }
        let Ok(bytes) = own::read(&file) else { return Found::Missing };
        match open(key, bytes) {
            Some(program) => Found::Whole(program),
            None => {
                // Were it to stay, the file that is made again would replace it all the same.
                let _ = fs::remove_file(file);
                Found::Corrupt
            }
        }
    }

    /// Stores a program. A folder that cannot be written keeps nothing.
    pub fn store(&self, key: &Digest, program: &[u8]) {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let aside = self.0.join(format!("{}.{}.{number}.part", hex(key), std::process::id()));
        let write = || -> std::io::Result<()> {
            own::create(&self.0)?;
            if let Some(refusal) = self.refusal() {
                return Err(std::io::Error::other(refusal));
            }
            fs::write(&aside, close(key, program))?;
            // The name appears with the whole file behind it.
            fs::rename(&aside, self.file(key))
        };
        if write().is_err() {
            let _ = fs::remove_file(&aside);
        }
    }

    /// How many programs there are, and their bytes.
    pub fn size(&self) -> (usize, u64) {
        let Ok(files) = fs::read_dir(&self.0) else { return (0, 0) };
        let ours = files.flatten().filter(|file| file.path().extension().is_some_and(|end| end == SUFFIX));
        ours.fold((0, 0), |(files, bytes), file| {
            (files + 1, bytes + file.metadata().map_or(0, |metadata| metadata.len()))
        })
    }
}

/// What belongs to the user.
#[cfg(unix)]
mod own {
    use std::fs::{DirBuilder, File, Metadata};
    use std::io::{Error, Read, Result};
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    use std::path::Path;

    use crate::api::user;

    /// Write access of the group and of all others.
    const OTHERS_WRITE: u32 = 0o022;

    pub fn refusal(found: &Metadata) -> Option<String> {
        if found.uid() != user() {
            return Some(format!("belongs to user {} and this process to user {}", found.uid(), user()));
        }
        let mode = found.mode() & 0o7777;
        (mode & OTHERS_WRITE != 0).then(|| format!("may be written by others (mode {mode:o})"))
    }

    /// The bytes of a file of the user's.
    pub fn read(path: &Path) -> Result<Vec<u8>> {
        let mut file = File::open(path)?;
        if let Some(refusal) = refusal(&file.metadata()?) {
            return Err(Error::other(refusal));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Makes a folder that others neither read nor write; one that is there stays as it is.
    pub fn create(path: &Path) -> Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)
    }
}

/// Whose a file is takes more than the standard library to find out.
#[cfg(not(unix))]
mod own {
    pub use std::fs::{create_dir_all as create, read};

    pub fn refusal(_: &std::fs::Metadata) -> Option<String> {
        None
    }
}

/// A program as it is stored: head, checksum, bytes.
fn close(key: &Digest, program: &[u8]) -> Vec<u8> {
    let mut file = Vec::with_capacity(HEAD.len() + 32 + program.len());
    file.extend_from_slice(HEAD);
    file.extend_from_slice(&digest_of(&[key, program]));
    file.extend_from_slice(program);
    file
}

/// The program in a file's bytes, where they are whole and those of the key.
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
