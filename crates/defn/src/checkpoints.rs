//! Checkpoints: the state of a run in files, so that the run goes on where it was interrupted.
//!
//! A directory has one `.defn` file for each saved step, with the names that Python gives them. Each file is replaced at
//! once: a run that is killed at any moment finds the last complete checkpoint. One process at a time saves to a directory.
//!
//! ```
//! use defn::checkpoints::{self, Damaged, Retention};
//! use defn::prelude::*;
//! # let directory = std::env::temp_dir().join(format!("defn-checkpoints-{}", std::process::id()));
//!
//! let mut params = (tensor![1.0, 2.0]?, Tensor::scalar(0.5)?);
//! for step in 1..=5 {
//!     params.0 = (params.0 * 2)?;
//!     checkpoints::save(&directory, step, &params, Retention::last(2))?;
//! }
//! assert_eq!(checkpoints::steps(&directory)?, [4, 5]);
//! let last = checkpoints::load(&directory, &params, None, Damaged::Refuse)?;
//! assert_eq!((last.step, last.state.0.to_vec::<f32>()?), (5, vec![32.0, 64.0]));
//! # std::fs::remove_dir_all(&directory).ok();
//! # Ok::<(), defn::Error>(())
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use defn_core::{Error, ErrorClass, ErrorKind, Location, Result};

use crate::files::{failed, tree_of, write_tree};
use crate::replace::sync_directory;
use crate::{Tensor, Tree};

/// Threads of this process take turns: each removes what is left over.
static SAVING: Mutex<()> = Mutex::new(());

/// Which checkpoints [`save`] leaves.
///
/// ```
/// use defn::checkpoints::Retention;
///
/// assert_eq!(Retention::default(), Retention::last(3));
/// assert_ne!(Retention::all(), Retention::last(3).overwriting());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    keep: usize,
    overwrite: bool,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention::last(3)
    }
}

impl Retention {
    /// The last checkpoints, the new one among them, which stays in any case.
    ///
    /// ```
    /// # use defn::checkpoints::Retention;
    /// assert_eq!(Retention::last(0), Retention::last(1));
    /// ```
    pub fn last(keep: usize) -> Retention {
        Retention { keep: keep.max(1), overwrite: false }
    }

    /// All of them.
    ///
    /// ```
    /// # use defn::checkpoints::Retention;
    /// assert_eq!(Retention::all(), Retention::last(usize::MAX));
    /// ```
    pub fn all() -> Retention {
        Retention::last(usize::MAX)
    }

    /// As this, where checkpoints of later steps, which belong to another course of the run, are removed. Otherwise they are
    /// an error.
    ///
    /// ```
    /// # use defn::checkpoints::{self, Retention};
    /// # use defn::prelude::*;
    /// # let directory = std::env::temp_dir().join(format!("defn-overwriting-{}", std::process::id()));
    /// let params = tensor![1.0]?;
    /// checkpoints::save(&directory, 5, &params, Retention::default())?;
    /// assert!(checkpoints::save(&directory, 4, &params, Retention::default()).is_err());
    /// checkpoints::save(&directory, 4, &params, Retention::default().overwriting())?;
    /// assert_eq!(checkpoints::latest(&directory)?, Some(4));
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), defn::Error>(())
    /// ```
    #[must_use]
    pub fn overwriting(self) -> Retention {
        Retention { overwrite: true, ..self }
    }
}

/// What [`load`] does where the last checkpoint is damaged. A killed run leaves none, but a disk may.
///
/// ```
/// use defn::checkpoints::Damaged;
///
/// assert_eq!(Damaged::default(), Damaged::Refuse);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Damaged {
    /// It is an error.
    #[default]
    Refuse,
    /// The last one that can be read is taken, and [`Loaded::skipped`] has the errors of the others.
    Skip,
}

/// A checkpoint that [`load`] has read.
///
/// ```
/// use defn::Tensor;
/// use defn::checkpoints::Loaded;
///
/// fn next_step(loaded: &Loaded<(Tensor, Tensor)>) -> u64 {
///     loaded.skipped.iter().for_each(|(step, error)| eprintln!("step {step}: {error}"));
///     loaded.step + 1
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loaded<S> {
    /// Its step.
    pub step: u64,
    /// The state.
    pub state: S,
    /// Later steps, whose files are damaged, and their errors, the last step first.
    pub skipped: Vec<(u64, Error)>,
}

/// Saves the state of a run after a step, and removes old checkpoints.
///
/// The directory is created if there is none. A checkpoint of the same step is replaced. Temporary files of interrupted saves
/// are removed.
///
/// ```
/// use defn::checkpoints::{self, Retention};
/// use defn::prelude::*;
/// # let directory = std::env::temp_dir().join(format!("defn-checkpoint-{}", std::process::id()));
///
/// checkpoints::save(&directory, 100, &vec![tensor![1.0]?], Retention::default())?;
/// assert_eq!(checkpoints::latest(&directory)?, Some(100));
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A directory with a later step, unless it is [overwritten](Retention::overwriting), and two leaves of one name (`Option`);
/// elements that were freed, and errors of the system (`Backend`).
#[track_caller]
pub fn save<A: Tree<Tensor>>(
    directory: impl AsRef<Path>,
    step: u64,
    state: &A,
    retention: Retention,
) -> Result<()> {
    let location = Location::caller();
    write(directory.as_ref(), step, state, retention).map_err(|error| error.at(Some(location)))
}

fn write<A: Tree<Tensor>>(directory: &Path, step: u64, state: &A, retention: Retention) -> Result<()> {
    let _turn = SAVING.lock().unwrap_or_else(PoisonError::into_inner);
    if !directory.is_dir() {
        fs::create_dir_all(directory).map_err(failed)?;
        let directory = fs::canonicalize(directory).map_err(failed)?;
        sync_directory(directory.parent().unwrap_or(&directory)).map_err(failed)?;
    }
    for name in names(directory)?.iter().filter(|name| is_temporary(name)) {
        fs::remove_file(directory.join(name)).map_err(failed)?;
    }
    let before = steps_in(directory)?;
    let later = before.iter().rev().take_while(|&&saved| saved > step);
    if let Some(last) = later.clone().next().filter(|_| !retention.overwrite) {
        let (op, option) = ("save", "the step");
        let required = format!(
            "after {last}, the last of {}; give another directory, or remove later steps by overwriting",
            directory.display()
        );
        return Err(ErrorKind::OptionValue { op, option, given: step.to_string(), required }.into());
    }
    // The last one goes first, so that what is left is always the beginning of one run.
    for &saved in later {
        fs::remove_file(file_of(directory, saved)).map_err(failed)?;
    }
    write_tree("save", &file_of(directory, step), state)?;
    for &saved in steps_in(directory)?.iter().rev().skip(retention.keep) {
        fs::remove_file(file_of(directory, saved)).map_err(failed)?;
    }
    Ok(())
}

/// Reads a checkpoint, the last one without a step, into a container of the same structure as `like`, whose leaves may be
/// [templates](Tensor::template): see [`load_tree`](crate::load_tree).
///
/// ```
/// use defn::checkpoints::{self, Damaged, Retention};
/// use defn::prelude::*;
/// # let directory = std::env::temp_dir().join(format!("defn-checkpoint-load-{}", std::process::id()));
///
/// for step in [1, 2] {
///     checkpoints::save(&directory, step, &tensor![step as f32]?, Retention::default())?;
/// }
/// // The file of the last step is cut short.
/// std::fs::write(directory.join("step_0000000002.defn"), "").unwrap();
/// let like = Tensor::template(&[1], DType::F32)?;
/// assert!(checkpoints::load(&directory, &like, None, Damaged::Refuse).is_err());
/// let found = checkpoints::load(&directory, &like, None, Damaged::Skip)?;
/// assert_eq!((found.step, found.skipped[0].0), (1, 2));
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// No checkpoint, or none of the step (`Option`); a damaged file, and a state that does not fit (`Format`); errors of the
/// system (`Backend`).
#[track_caller]
pub fn load<A: Tree<Tensor>>(
    directory: impl AsRef<Path>,
    like: &A,
    step: Option<u64>,
    damaged: Damaged,
) -> Result<Loaded<A::Of<Tensor>>> {
    let location = Location::caller();
    read(directory.as_ref(), like, step, damaged).map_err(|error| error.at(Some(location)))
}

fn read<A: Tree<Tensor>>(
    directory: &Path,
    like: &A,
    step: Option<u64>,
    damaged: Damaged,
) -> Result<Loaded<A::Of<Tensor>>> {
    let found = steps_in(directory)?;
    let mut skipped = Vec::new();
    for &saved in found.iter().rev().filter(|&&saved| step.is_none_or(|step| step == saved)) {
        let path = file_of(directory, saved);
        match tree_of("load", &path, like) {
            Ok(state) => return Ok(Loaded { step: saved, state, skipped }),
            // A file that holds tensors does not fit the container, which the others do not either.
            Err(error)
                if damaged == Damaged::Skip
                    && error.class() == ErrorClass::Format
                    && crate::load(&path).is_err() =>
            {
                skipped.push((saved, error));
            }
            Err(error) => return Err(error),
        }
    }
    if let Some((_, error)) = skipped.into_iter().next() {
        return Err(error);
    }
    let (op, option) = ("load", "the step");
    let given = step.map_or_else(|| "the last one".to_owned(), |step| step.to_string());
    let required = format!("one of the steps {found:?} of {}", directory.display());
    Err(ErrorKind::OptionValue { op, option, given, required }.into())
}

/// The last step that was saved; none without one and where there is no directory.
///
/// ```
/// # use defn::checkpoints;
/// assert_eq!(checkpoints::latest("nowhere")?, None);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Those of reading the directory (`Backend`).
pub fn latest(directory: impl AsRef<Path>) -> Result<Option<u64>> {
    Ok(steps(directory)?.last().copied())
}

/// The steps that were saved and not removed, in ascending order. Other files are ignored.
///
/// ```
/// # use defn::checkpoints::{self, Retention};
/// # use defn::prelude::*;
/// # let directory = std::env::temp_dir().join(format!("defn-checkpoint-steps-{}", std::process::id()));
/// for step in [10, 20, 30] {
///     checkpoints::save(&directory, step, &tensor![1.0]?, Retention::last(2))?;
/// }
/// assert_eq!(checkpoints::steps(&directory)?, [20, 30]);
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Those of reading the directory, unless there is none (`Backend`).
#[track_caller]
pub fn steps(directory: impl AsRef<Path>) -> Result<Vec<u64>> {
    let location = Location::caller();
    steps_in(directory.as_ref()).map_err(|error| error.at(Some(location)))
}

fn steps_in(directory: &Path) -> Result<Vec<u64>> {
    let mut found: Vec<u64> = names(directory)?.iter().filter_map(|name| step_of(name)).collect();
    found.sort_unstable();
    Ok(found)
}

/// The names of the files; none where there is no directory.
fn names(directory: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    entries.map(name).collect::<io::Result<_>>().map_err(failed)
}

/// The name, with zeros, so that other programs list the files in order.
fn name_of(step: u64) -> String {
    format!("step_{step:010}.defn")
}

fn file_of(directory: &Path, step: u64) -> PathBuf {
    directory.join(name_of(step))
}

/// The step of a file's name. A number with more zeros than the name of its step is another file.
fn step_of(name: &str) -> Option<u64> {
    let step = name.strip_prefix("step_")?.strip_suffix(".defn")?.parse().ok()?;
    (name == name_of(step)).then_some(step)
}

/// Whether this is the name of a file that an interrupted save has left.
fn is_temporary(name: &str) -> bool {
    let saved = || name.strip_prefix('.')?.strip_suffix(".tmp")?.rsplit_once('.');
    saved().is_some_and(|(saved, random)| step_of(saved).is_some() && random.len() == 16)
}
