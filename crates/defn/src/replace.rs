//! Files that are replaced at once.

use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Replaces a file: whatever interrupts this, the path leads to the whole old content or to the whole new one.
///
/// The bytes go to a temporary file in the same directory, which is renamed. They are on the disk before the name refers to
/// them, and the name is when this returns.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A symbolic link stays: the file that it leads to is replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let permissions = match fs::metadata(path) {
        // Pipes and devices have no content to keep.
        Ok(found) if !found.is_file() => return fs::write(path, bytes),
        Ok(found) => {
            // Renaming would not ask whether the file is protected.
            File::options().write(true).open(path)?;
            Some(found.permissions())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let temporary = temporary_beside(path);
    let written = (|| {
        let mut file = File::create_new(&temporary)?;
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        fs::remove_file(&temporary).ok();
    }
    written?;
    sync_directory(path.parent().unwrap_or(Path::new("")))
}

/// Waits until the entries of a directory are on the disk, where the system can say so.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) {
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// A name in the directory of a file that no file has.
fn temporary_beside(path: &Path) -> PathBuf {
    // The keys of the hasher are random.
    let random = RandomState::new().build_hasher().finish();
    // The name is cut so that it stays one that the file system takes.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().take(40).collect();
    path.with_file_name(OsString::from(format!(".{name}.{random:016x}.tmp")))
}
