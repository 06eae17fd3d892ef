//! A folder of compiled programs, one file for each. A file is complete or absent, even with concurrent writers.
//!
//! Programs are native code, which runs in every process that loads them. So the folder and its files must belong to
//! the user, and nobody else may have write access.
//!
//! A file is renamed into place and has a checksum. A file that is not complete is compiled again and replaced.
//!
//! The folder of users who name none has a limit: what was used longest ago is removed. Several processes may do that at
//! once, for a file that is gone is a program that is not there.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::digest::{Digest, digest_of, hex};

/// The first bytes of a file. Each version of the layout has its own number.
const HEAD: &[u8; 16] = b"defn program 001";
const SUFFIX: &str = "defn-program";
/// The ending of a file that is being written.
const PART: &str = "part";

/// The most bytes in the folder of users who name none.
const MAX_BYTES: u64 = 1 << 30;
/// After so many stores of a process, and after its first one, it is checked whether a folder has too many bytes.
const STORES: u64 = 16;
/// The age of a file that a process has begun to write and will not complete.
const ABANDONED: Duration = Duration::from_secs(3600);

/// A folder of compiled programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Folder {
    path: PathBuf,
    /// The most bytes that it should have.
    limit: Option<u64>,
}

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
    /// A folder that the user has named.
    pub fn new(path: PathBuf) -> Folder {
        Folder { path, limit: None }
    }

    /// The folder of users who name none: `defn/programs` in the user's folder for caches.
    pub fn of_user() -> Option<Folder> {
        let absolute =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || std::env::home_dir().filter(|path| path.is_absolute());
        let caches = if cfg!(windows) {
            absolute("LOCALAPPDATA")?
        } else if cfg!(target_os = "macos") {
            home()?.join("Library/Caches")
        } else {
            absolute("XDG_CACHE_HOME").or_else(|| Some(home()?.join(".cache")))?
        };
        Some(Folder { path: caches.join("defn").join("programs"), limit: Some(MAX_BYTES) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether files may be removed from it while a process uses their programs.
    pub fn may_forget(&self) -> bool {
        self.limit.is_some()
    }

    fn file(&self, key: &Digest) -> PathBuf {
        self.path.join(format!("{}.{SUFFIX}", hex(key)))
    }

    /// The reason why the folder is not used, if there is one: other users may have put files there.
    pub fn refusal(&self) -> Option<String> {
        ownership::refusal(&fs::metadata(&self.path).ok()?)
    }

    /// Looks up the program of a key.
    pub fn find(&self, key: &Digest) -> Lookup {
        let file = self.file(key);
        if self.refusal().is_some() {
            return Lookup::Missing;
        }
        let Ok(bytes) = ownership::read(&file) else { return Lookup::Missing };
        match open(key, bytes) {
            Some(program) => {
                if self.may_forget() {
                    // The time of its last use. If it cannot be set, the program is forgotten earlier.
                    let _ = fs::File::open(file).and_then(|file| file.set_modified(SystemTime::now()));
                }
                Lookup::Whole(program)
            }
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
        let temporary = self.path.join(format!("{}.{}.{number}.{PART}", hex(key), std::process::id()));
        let write = || -> std::io::Result<()> {
            ownership::create(&self.path)?;
            if let Some(refusal) = self.refusal() {
                return Err(std::io::Error::other(refusal));
            }
            fs::write(&temporary, close(key, program))?;
            // The rename makes the complete file visible at once.
            fs::rename(&temporary, self.file(key))
        };
        if write().is_err() {
            let _ = fs::remove_file(&temporary);
        } else if let Some(limit) = self.limit
            && number.is_multiple_of(STORES)
        {
            self.forget(limit);
        }
    }

    /// Removes what was used longest ago if the folder has more than `limit` bytes, until it has half of them, and files
    /// that were begun and never completed.
    fn forget(&self, limit: u64) {
        let now = SystemTime::now();
        for (begun, _, path) in self.files(PART) {
            if now.duration_since(begun).is_ok_and(|age| age > ABANDONED) {
                let _ = fs::remove_file(path);
            }
        }
        let mut programs: Vec<_> = self.files(SUFFIX).collect();
        let mut total: u64 = programs.iter().map(|(_, bytes, _)| bytes).sum();
        if total <= limit {
            return;
        }
        programs.sort_unstable();
        for (_, bytes, path) in programs {
            if total <= limit / 2 {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= bytes;
            }
        }
    }

    /// The number of programs and their total size in bytes.
    pub fn size(&self) -> (usize, u64) {
        self.files(SUFFIX).fold((0, 0), |(files, sum), (_, bytes, _)| (files + 1, sum + bytes))
    }

    /// The files with this ending: the time of the last change, the size in bytes, and the path.
    fn files(&self, end: &'static str) -> impl Iterator<Item = (SystemTime, u64, PathBuf)> {
        fs::read_dir(&self.path).into_iter().flatten().flatten().filter_map(move |file| {
            let (path, metadata) = (file.path(), file.metadata().ok()?);
            let changed = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            path.extension().is_some_and(|other| other == end).then_some((changed, metadata.len(), path))
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
    fn a_folder_with_a_limit_forgets_what_was_used_longest_ago() {
        let path = std::env::temp_dir().join(format!("defn-programs-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        let folder = Folder { path: path.clone(), limit: None };
        let keys: Vec<Digest> = (0..10_u8).map(|number| digest_of(&[&[number]])).collect();
        let set_age = |file: &Path, hours: u64| {
            let time = SystemTime::now() - Duration::from_secs(3600 * hours);
            fs::File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
        };
        for (key, hours) in keys.iter().zip(10..) {
            folder.store(key, &[0; 1000]);
            set_age(&folder.file(key), hours);
        }
        let (begun, abandoned) = (path.join("a.part"), path.join("b.part"));
        [&begun, &abandoned].iter().for_each(|file| fs::write(file, "begun").unwrap());
        set_age(&abandoned, 2);
        let limited = Folder { path: path.clone(), limit: Some(8000) };
        // The oldest one is used again.
        assert!(matches!(limited.find(&keys[9]), Lookup::Whole(_)));
        let size = folder.size();
        limited.forget(size.1);
        assert_eq!((folder.size(), begun.exists(), abandoned.exists()), (size, true, false));
        limited.forget(8000);
        let left: Vec<usize> = (0..10).filter(|&at| folder.file(&keys[at]).exists()).collect();
        assert_eq!(left, [0, 1, 9]);
        fs::remove_dir_all(path).unwrap();
    }

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
