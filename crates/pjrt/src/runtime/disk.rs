//! A folder of compiled programs: one file for each, whole or not there, whoever writes it at the same time.

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

    /// What is stored under a key.
    pub fn find(&self, key: &Digest) -> Found {
        let file = self.file(key);
        let Ok(bytes) = fs::read(&file) else { return Found::Missing };
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
            fs::create_dir_all(&self.0)?;
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
