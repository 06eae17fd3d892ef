//! Batches for training: rows of containers of tensors, in an order that a key determines.
//!
//! An iterator of batches has a position. Saved with the state of a run, it lets another iterator go on with the same
//! batches. The orders are those of Python's `dn.data`.
//!
//! ```
//! use defn::data::{self, BatchOptions};
//! use defn::prelude::*;
//! use defn::random;
//!
//! let arrays = (tensor![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]?, tensor![0, 1, 2]?);
//! let options = BatchOptions::default().shuffled(random::key(0)?).epochs(2);
//! let mut labels = Vec::new();
//! for batch in data::batches(arrays, 2, &options)? {
//!     let (x, y) = batch?;
//!     assert_eq!(x.axis_size(1)?, 2);
//!     labels.push(y.to_vec::<i32>()?);
//! }
//! assert_eq!(labels, [vec![1, 2], vec![0], vec![0, 1], vec![2]]);
//! # Ok::<(), defn::Error>(())
//! ```

use std::fmt;
use std::iter::FusedIterator;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use defn_core::{DType, Error, ErrorKind, Location, Result};

use crate::backend::{default_backend, with_default_backend};
use crate::files::failed;
use crate::tree::{flatten, map, name_of};
use crate::{Tensor, Tree, random};

/// A position in the data: the epoch, and the number of its rows that have been taken.
///
/// ```
/// use defn::data::Position;
///
/// assert_eq!(Position::default(), Position { epoch: 0, rows: 0 });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The number of epochs before.
    pub epoch: u64,
    /// The number of rows of this epoch that have been taken.
    pub rows: u64,
}

impl Position {
    /// Both numbers as a tensor of two u64, for the state of a run that [`checkpoints`](crate::checkpoints) save.
    ///
    /// ```
    /// # use defn::data::Position;
    /// let position = Position { epoch: 1, rows: 64 };
    /// assert_eq!(position.to_tensor()?.to_vec::<u64>()?, [1, 64]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the default backend (`Backend`).
    #[track_caller]
    pub fn to_tensor(self) -> Result<Tensor> {
        Tensor::from_slice(&[self.epoch, self.rows], &[2])
    }

    /// The position that [`to_tensor`](Position::to_tensor) made a tensor.
    ///
    /// ```
    /// # use defn::data::Position;
    /// let position = Position { epoch: 1, rows: 64 };
    /// assert_eq!(Position::from_tensor(&position.to_tensor()?)?, position);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A tensor that is no vector of two u64 (`Option`).
    #[track_caller]
    pub fn from_tensor(tensor: &Tensor) -> Result<Position> {
        let location = Location::caller();
        if tensor.dtype() == DType::U64
            && let [epoch, rows] = tensor.to_vec::<u64>()?[..]
        {
            return Ok(Position { epoch, rows });
        }
        let (op, option, given) = ("from_tensor", "the position", tensor.ty().to_string());
        let required = "the u64[2] that to_tensor gave".to_owned();
        Err(Error::from(ErrorKind::OptionValue { op, option, given, required }).at(Some(location)))
    }
}

/// How [`batches`] iterates: by default once, in order, with a last batch that may be smaller.
///
/// ```
/// use defn::data::{self, BatchOptions};
/// use defn::prelude::*;
///
/// let options = BatchOptions::default().epochs(2).dropping_last();
/// assert_eq!(data::batches(tensor![1, 2, 3]?, 2, &options)?.count(), 2);
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BatchOptions {
    key: Option<Tensor>,
    epochs: Option<u64>,
    drop_last: bool,
    start: Position,
}

impl Default for BatchOptions {
    fn default() -> BatchOptions {
        BatchOptions { key: None, epochs: Some(1), drop_last: false, start: Position::default() }
    }
}

impl BatchOptions {
    /// Each epoch has an order of its own, which depends on the key and the number of the epoch alone.
    ///
    /// ```
    /// # use defn::data::{self, BatchOptions};
    /// # use defn::{prelude::*, random};
    /// let options = BatchOptions::default().shuffled(random::key(0)?);
    /// let batch = data::batches(tensor![1, 2, 3]?, 3, &options)?.next().unwrap()?;
    /// assert_eq!(batch.to_vec::<i32>()?, [2, 3, 1]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    #[must_use]
    pub fn shuffled(self, key: Tensor) -> BatchOptions {
        BatchOptions { key: Some(key), ..self }
    }

    /// The number of epochs.
    ///
    /// ```
    /// # use defn::data::{self, BatchOptions};
    /// # use defn::prelude::*;
    /// assert_eq!(data::batches(tensor![1, 2]?, 1, &BatchOptions::default().epochs(3))?.count(), 6);
    /// # Ok::<(), defn::Error>(())
    /// ```
    #[must_use]
    pub fn epochs(self, epochs: u64) -> BatchOptions {
        BatchOptions { epochs: Some(epochs), ..self }
    }

    /// Epochs without end.
    ///
    /// ```
    /// # use defn::data::{self, BatchOptions};
    /// # use defn::prelude::*;
    /// let batches = data::batches(tensor![1, 2]?, 2, &BatchOptions::default().endless())?;
    /// assert_eq!(batches.take(100).count(), 100);
    /// # Ok::<(), defn::Error>(())
    /// ```
    #[must_use]
    pub fn endless(self) -> BatchOptions {
        BatchOptions { epochs: None, ..self }
    }

    /// The last rows of an epoch are left out where they do not fill a batch.
    ///
    /// ```
    /// # use defn::data::{self, BatchOptions};
    /// # use defn::prelude::*;
    /// let options = BatchOptions::default().dropping_last();
    /// assert_eq!(data::batches(tensor![1, 2, 3]?, 2, &options)?.count(), 1);
    /// # Ok::<(), defn::Error>(())
    /// ```
    #[must_use]
    pub fn dropping_last(self) -> BatchOptions {
        BatchOptions { drop_last: true, ..self }
    }

    /// The position of an iterator over the same data, after which this one goes on.
    ///
    /// ```
    /// # use defn::data::{self, BatchOptions, Position};
    /// # use defn::prelude::*;
    /// let options = BatchOptions::default().from(Position { epoch: 0, rows: 2 });
    /// let batch = data::batches(tensor![1, 2, 3]?, 2, &options)?.next().unwrap()?;
    /// assert_eq!(batch.to_vec::<i32>()?, [3]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    #[must_use]
    pub fn from(self, start: Position) -> BatchOptions {
        BatchOptions { start, ..self }
    }
}

/// An iterator of batches, which [`batches`] returns. Its size hint is exact where there is a last epoch.
///
/// ```
/// use defn::data::{self, BatchOptions, Position};
/// use defn::prelude::*;
///
/// let mut batches = data::batches(tensor![1, 2, 3]?, 2, &BatchOptions::default())?;
/// assert_eq!(batches.size_hint(), (2, Some(2)));
/// batches.next().unwrap()?;
/// assert_eq!(batches.position(), Position { epoch: 0, rows: 2 });
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "batches are made when they are asked for"]
pub struct Batches<A> {
    arrays: A,
    leaves: Vec<Tensor>,
    rows: u64,
    size: u64,
    options: BatchOptions,
    position: Position,
    /// The order of the rows in an epoch.
    order: Option<(u64, Tensor)>,
    location: Location,
}

impl<A> fmt::Debug for Batches<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Batches { rows, size, position, .. } = self;
        write!(f, "Batches({size} of {rows} rows, {position:?})")
    }
}

impl<A> Batches<A> {
    /// The position after the last batch that was handed out.
    ///
    /// ```
    /// # use defn::data::{self, BatchOptions, Position};
    /// # use defn::prelude::*;
    /// let mut batches = data::batches(tensor![1, 2]?, 2, &BatchOptions::default())?;
    /// batches.next().unwrap()?;
    /// assert_eq!(batches.position(), Position { epoch: 1, rows: 0 });
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn position(&self) -> Position {
        self.position
    }

    /// The number of batches in rows of an epoch.
    fn count(&self, rows: u64) -> u64 {
        if self.options.drop_last { rows / self.size } else { rows.div_ceil(self.size) }
    }

    /// A position, or the beginning of the next epoch where this one has no batch left.
    fn advanced(&self, position: Position) -> Position {
        if self.count(self.rows - position.rows) > 0 {
            return position;
        }
        Position { epoch: position.epoch + 1, rows: 0 }
    }

    fn rows_from(&mut self, epoch: u64, start: i64, length: i64) -> Result<Vec<Tensor>> {
        let Some(key) = &self.options.key else {
            return self.leaves.iter().map(|leaf| leaf.slice_along_axis(start, length, 0)).collect();
        };
        let order = match self.order.take() {
            Some((of, order)) if of == epoch => order,
            _ => {
                let key = random::fold_in(key, epoch as i64)?;
                let rows = Tensor::iota(&[self.rows as usize], DType::S32, None)?;
                random::shuffle(&key, rows, 0, false)?.0
            }
        };
        let places = order.slice_along_axis(start, length, 0)?;
        self.order = Some((epoch, order));
        self.leaves.iter().map(|leaf| leaf.take(&places, 0)).collect()
    }
}

impl<A: Tree<Tensor>> Iterator for Batches<A> {
    type Item = Result<A::Of<Tensor>>;

    fn next(&mut self) -> Option<Self::Item> {
        let Position { epoch, rows: index } = self.position;
        if self.options.epochs.is_some_and(|epochs| epoch >= epochs) {
            return None;
        }
        let end = (index + self.size).min(self.rows);
        self.position = self.advanced(Position { epoch, rows: end });
        let rows = self.rows_from(epoch, index as i64, (end - index) as i64);
        Some(rows.map_err(|error| error.at(Some(self.location.clone()))).map(|rows| {
            let mut rows = rows.into_iter();
            map(&self.arrays, |_| rows.next().expect("rows of each leaf"))
        }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let Some(epochs) = self.options.epochs else { return (usize::MAX, None) };
        let Position { epoch, rows: index } = self.position;
        if epoch >= epochs {
            return (0, Some(0));
        }
        let whole = (epochs - epoch - 1).saturating_mul(self.count(self.rows));
        let left = usize::try_from(self.count(self.rows - index).saturating_add(whole));
        (left.unwrap_or(usize::MAX), left.ok())
    }
}

impl<A: Tree<Tensor>> FusedIterator for Batches<A> {}

/// Iterates over batches of `size` rows: containers like `arrays`, of slices along the first axes.
///
/// ```
/// use defn::data::{self, BatchOptions};
/// use defn::prelude::*;
///
/// let x = tensor![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]?;
/// let mut batches = data::batches(vec![x], 2, &BatchOptions::default())?;
/// assert_eq!(batches.next().unwrap()?[0].to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
/// assert!(data::batches((tensor![1, 2]?, tensor![1]?), 1, &BatchOptions::default()).is_err());
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Leaves without rows or with other numbers of rows, which are named, and a container without leaves (`Shape`); a size
/// that no batch can have, and a start behind the rows (`Option`); what is not a key (`DType`).
#[track_caller]
pub fn batches<A: Tree<Tensor>>(arrays: A, size: usize, options: &BatchOptions) -> Result<Batches<A>> {
    let location = Location::caller();
    batches_at(arrays, size, options, location.clone()).map_err(|error| error.at(Some(location)))
}

fn batches_at<A: Tree<Tensor>>(
    arrays: A,
    size: usize,
    options: &BatchOptions,
    location: Location,
) -> Result<Batches<A>> {
    let op = "batches";
    let (leaves, _) = flatten(&arrays);
    let mut rows = None;
    for (position, leaf) in leaves.iter().enumerate() {
        let refuse = |required| {
            let error = Error::from(ErrorKind::Rank { op, got: leaf.ty().clone(), required });
            Err(error.within(|| name_of(&arrays, position)))
        };
        match (leaf.shape().sizes().first(), rows) {
            (None | Some(0), _) => return refuse("an axis of at least one row is required"),
            (Some(&size), None) => rows = Some(size),
            (Some(&size), Some(rows)) if size != rows => {
                return refuse("its first axis must have as many elements as that of the first leaf");
            }
            (Some(_), Some(_)) => {}
        }
    }
    let Some(rows) = rows else { return Err(ErrorKind::NoTensors { op }.into()) };
    let refuse = |option, given: String, required: String| {
        Err(ErrorKind::OptionValue { op, option, given, required }.into())
    };
    if size == 0 || (options.drop_last && size > rows) {
        let required = match options.drop_last {
            true => format!("in 1..={rows}, since the rows of no whole batch are left out"),
            false => "at least 1".to_owned(),
        };
        return refuse("the size", size.to_string(), required);
    }
    let (rows, size, start) = (rows as u64, size as u64, options.start);
    if start.rows > rows {
        return refuse("the start", format!("{start:?}"), format!("at most {rows} rows of an epoch"));
    }
    if let Some(key) = &options.key {
        random::fold_in(key, 0)?;
    }
    let (options, order) = (options.clone(), None);
    let mut batches = Batches { arrays, leaves, rows, size, options, position: start, order, location };
    batches.position = batches.advanced(start);
    Ok(batches)
}

/// The items of another iterator, made ahead on a thread. [`prefetch`] returns it; when it is dropped, the thread ends.
///
/// ```
/// use defn::data::{Prefetch, prefetch};
///
/// let items: Prefetch<u32> = prefetch(0..3, 2)?;
/// assert_eq!(items.collect::<Vec<_>>(), [0, 1, 2]);
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Debug)]
pub struct Prefetch<T> {
    items: Option<Receiver<T>>,
    thread: Option<JoinHandle<()>>,
}

/// Makes the next items on a thread while the last one is used. At most `size` items wait. A panic of the iterator goes on
/// in the `next` that would have returned the item.
///
/// An iterator of batches is ahead of the batch that is used: let its position go with each.
///
/// ```
/// use defn::data::{self, BatchOptions, Position};
/// use defn::prelude::*;
///
/// let mut batches = data::batches(tensor![1, 2, 3]?, 2, &BatchOptions::default())?;
/// let with_positions =
///     std::iter::from_fn(move || batches.next().map(|batch| (batch, batches.position())));
/// let mut ahead = data::prefetch(with_positions, 2)?;
/// let (batch, position) = ahead.next().unwrap();
/// assert_eq!(batch?.to_vec::<i32>()?, [1, 2]);
/// assert_eq!(position, Position { epoch: 0, rows: 2 });
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A thread that the system refuses (`Backend`).
#[track_caller]
pub fn prefetch<I>(items: I, size: usize) -> Result<Prefetch<I::Item>>
where
    I: IntoIterator,
    I::IntoIter: Send + 'static,
    I::Item: Send + 'static,
{
    let location = Location::caller();
    let (sender, receiver) = sync_channel(size);
    let (items, backend) = (items.into_iter(), default_backend()?);
    let send_all = move || {
        for item in items {
            // Nobody takes the item, or any more of them.
            if sender.send(item).is_err() {
                break;
            }
        }
    };
    // The default backend is that of the thread that asked for the items.
    let work = move || with_default_backend(&backend, send_all);
    let thread = thread::Builder::new().name("defn-prefetch".to_owned()).spawn(work);
    let thread = thread.map_err(|error| failed(error).at(Some(location)))?;
    Ok(Prefetch { items: Some(receiver), thread: Some(thread) })
}

impl<T> Iterator for Prefetch<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if let Ok(item) = self.items.as_ref()?.recv() {
            return Some(item);
        }
        self.items = None;
        match self.thread.take()?.join() {
            Ok(()) => None,
            Err(panic) => resume_unwind(panic),
        }
    }
}

impl<T> FusedIterator for Prefetch<T> {}

impl<T> Drop for Prefetch<T> {
    fn drop(&mut self) {
        // Nobody receives any more, so that the thread does not wait.
        self.items = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
