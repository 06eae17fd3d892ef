//! Where the elements that an index selects come from and go to: a window of the tensor, then positions and masks
//! within it, then the order of the axes and the new ones.
//!
//! As in NumPy, positions broadcast against each other, and their axes stand in the place of the first of them. If an
//! entry that keeps or makes an axis is between two of them, their axes come first. A single position counts as one
//! of them if there are others with axes, but not in an index by axis name.

use defn_core::builder::{Arg, BuildCreate, BuildElementwise, BuildIndex, BuildShape, Ops};
use defn_core::{Axes, AxisRef, DType, Name, Number, Shape, Tensor, TensorType};
use smallvec::SmallVec;

use super::entries::{Entries, Entry, Pick, Positions};
use super::mask::Mask;
use super::steps::{self, Step, Steps};
use super::update::Update;
use crate::error::Fallible;
use crate::misuse::Misuse;

/// An axis of the result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// An axis of the window.
    Kept(usize),
    /// A new axis.
    New,
}

/// What picks elements along an axis of the window.
pub(super) enum Picked {
    Positions(Tensor),
    Mask(Mask),
}

/// An index with positions or masks.
pub(super) struct Plan {
    /// The window.
    pub(super) steps: Steps,
    /// The shape of the window, with the axes of each mask merged into one.
    pub(super) window: Shape,
    /// What picks elements, with its axis of the window, ascending.
    pub(super) picked: SmallVec<[(usize, Picked); 2]>,
    /// The axes of the result but for those of the positions.
    slots: SmallVec<[Slot; 6]>,
    /// How many of them come before those of the positions.
    before: usize,
}

/// The steps of an index without positions or masks, and the places of its new axes in the result.
pub(super) fn basic(ty: &TensorType, entries: &Entries<'_>) -> Fallible<(Steps, SmallVec<[usize; 4]>)> {
    let (mut all, mut new_axes) = (Steps::new(), SmallVec::new());
    let mut axis = 0;
    for entry in entries {
        match entry {
            Entry::At(pick) => {
                axis += usize::from(pick.keeps_axis());
                all.push(steps::step(ty, all.len(), pick)?);
            }
            Entry::New => {
                new_axes.push(axis);
                axis += 1;
            }
            Entry::Rest => {
                let count = rest(ty, entries);
                axis += count;
                for _ in 0..count {
                    all.push(Step::whole(ty.shape.sizes()[all.len()]));
                }
            }
        }
    }
    Ok((all, new_axes))
}

/// The number of axes that an ellipsis stands for.
fn rest(ty: &TensorType, entries: &Entries<'_>) -> usize {
    let axes = |entry: &Entry<'_>| match entry {
        Entry::At(pick) => pick.axes(),
        Entry::New | Entry::Rest => 0,
    };
    ty.shape.rank() - entries.iter().map(axes).sum::<usize>()
}

impl Plan {
    /// The plan of an index with positions or masks.
    ///
    /// # Errors
    /// Positions that are known to be out of range, and a mask of other sizes than the axes that it stands for.
    pub(super) fn new(ty: &TensorType, entries: Entries<'_>, is_by_name: bool) -> Fallible<Plan> {
        let count = rest(ty, &entries);
        let mut plan = Plan {
            steps: Steps::new(),
            window: Shape::scalar(),
            picked: SmallVec::new(),
            slots: SmallVec::new(),
            before: 0,
        };
        let mut window: SmallVec<[(usize, Option<Name>); 6]> = SmallVec::new();
        let (mut first, mut is_interrupted, mut is_separated) = (None, false, false);
        for entry in entries {
            let axis = plan.steps.len();
            let pick = match entry {
                Entry::At(pick) => pick,
                Entry::New => {
                    plan.slots.push(Slot::New);
                    is_interrupted = first.is_some();
                    continue;
                }
                Entry::Rest => {
                    // Even one that stands for no axes is between two positions.
                    is_interrupted = first.is_some();
                    for axis in axis..axis + count {
                        plan.slots.push(Slot::Kept(window.len()));
                        window.push((
                            ty.shape.sizes()[axis],
                            ty.shape.axis(axis).and_then(|axis| ty.shape.name(axis).cloned()),
                        ));
                        plan.steps.push(Step::whole(ty.shape.sizes()[axis]));
                    }
                    continue;
                }
            };
            let step = steps::step(ty, axis, &pick)?;
            let name = ty.shape.axis(axis).and_then(|axis| ty.shape.name(axis).cloned());
            if pick.keeps_axis() {
                is_interrupted = first.is_some();
                plan.slots.push(Slot::Kept(window.len()));
                window.push((step.count(), name));
                plan.steps.push(step);
                continue;
            }
            if pick.is_advanced() || !is_by_name {
                is_separated |= is_interrupted;
                first.get_or_insert(plan.slots.len());
            }
            match pick {
                Pick::Positions(positions) => {
                    check_range(ty, axis, &positions)?;
                    plan.picked.push((window.len(), Picked::Positions(positions.tensor)));
                    window.push((step.count(), name));
                    plan.steps.push(step);
                }
                Pick::Mask(mask) => {
                    let sizes = mask.tensor.ty().shape.sizes();
                    if ty.shape.sizes().get(axis..axis + sizes.len()) != Some(sizes) {
                        let (mask, got) = (mask.tensor.ty().to_string(), ty.clone());
                        return Err(Misuse::MaskShape { mask, axis, got }.into());
                    }
                    plan.steps.extend(sizes.iter().map(|&size| Step::whole(size)));
                    let name = if sizes.len() == 1 { name } else { None };
                    let entry = (mask.tensor.ty().size(), name);
                    plan.picked.push((window.len(), Picked::Mask(mask)));
                    window.push(entry);
                }
                Pick::Position(_) | Pick::Dynamic(_) | Pick::Range(_) | Pick::Full => plan.steps.push(step),
            }
        }
        plan.before = if is_separated { 0 } else { first.unwrap_or(0) };
        plan.window = Shape::from_axes(window);
        Ok(plan)
    }

    /// Replaces masks by the positions at which they are true. Returns a mask whose values are unknown, if any.
    pub(super) fn read_masks(&mut self, tensor: &Tensor) -> Fallible<Option<&Mask>> {
        for (_, picked) in &mut self.picked {
            if let Picked::Mask(mask) = picked
                && mask.is_readable(tensor)
            {
                *picked = Picked::Positions(mask.positions(tensor)?);
            }
        }
        Ok(self.picked.iter().find_map(|(_, picked)| match picked {
            Picked::Mask(mask) => Some(mask),
            Picked::Positions(_) => None,
        }))
    }

    /// The axes of the window along which positions pick.
    fn picked_axes(&self) -> Vec<AxisRef> {
        refs(self.picked.iter().map(|(axis, _)| *axis))
    }

    /// The shape to which the positions are broadcast, names included.
    ///
    /// # Errors
    /// Positions that do not broadcast against each other.
    pub(super) fn places(&self) -> defn_core::Result<Shape> {
        let mut places = Shape::scalar();
        for (_, picked) in &self.picked {
            if let Picked::Positions(positions) = picked {
                places = places.broadcast_with("index", &positions.ty().shape)?;
            }
        }
        if let [(axis, _)] = *self.picked
            && places.rank() == 1
        {
            // A single axis of positions takes the name of the axis along which it picks.
            let own = Shape::from_axes(self.window.entries().nth(axis).map(|(_, name)| (1, name)));
            places = places.broadcast_with("index", &own)?;
        }
        Ok(places)
    }

    /// The shape of the result, whose positions have a shape.
    pub(super) fn result(&self, places: &Shape) -> Shape {
        let kept: Vec<_> = self.window.entries().collect();
        let slot = |slot: &Slot| match *slot {
            Slot::Kept(axis) => kept[axis].clone(),
            Slot::New => (1, None),
        };
        let (before, after) = self.slots.split_at(self.before);
        Shape::from_axes(before.iter().map(slot).chain(places.entries()).chain(after.iter().map(slot)))
    }

    /// The number of axes of the result before those of the positions, new ones left out.
    fn kept_before(&self) -> usize {
        self.slots[..self.before].iter().filter(|slot| **slot != Slot::New).count()
    }

    /// The number of axes of the window that stay.
    fn kept(&self) -> usize {
        self.slots.iter().filter(|slot| **slot != Slot::New).count()
    }

    /// The positions, broadcast, with one entry for each axis along which they pick.
    fn positions(&self, ops: &mut Ops, places: &Shape) -> defn_core::Result<Tensor> {
        let all: Vec<(&Tensor, usize)> = self
            .picked
            .iter()
            .filter_map(|(axis, picked)| match picked {
                Picked::Positions(positions) => Some((positions, self.window.sizes()[*axis])),
                Picked::Mask(_) => None,
            })
            .collect();
        let merged = all.iter().map(|(positions, _)| positions.ty().dtype).reduce(DType::merge);
        let is_one = all.iter().all(|(positions, _)| Some(positions.ty().dtype) == merged);
        let mut entries = Vec::with_capacity(all.len());
        for (positions, size) in all {
            let mut positions = positions.clone();
            if !is_one {
                if positions.ty().dtype == DType::U64 {
                    // In a signed dtype the greatest would count from the end.
                    positions = ops.min(positions, Arg::Number(Number::from(size)))?;
                }
                positions = ops.as_type(positions, DType::S64)?;
            }
            let unnamed = positions.ty().shape.without_names();
            positions = ops.reshape_to(positions, unnamed)?;
            entries.push(ops.broadcast(positions, places.without_names(), Axes::All)?);
        }
        ops.stack(&entries, -1, None)
    }

    /// The elements of the window that the positions pick.
    pub(super) fn get(&self, ops: &mut Ops, window: &Tensor) -> defn_core::Result<Tensor> {
        let window = ops.reshape_to(window, self.window.clone())?;
        if let [(axis, Picked::Positions(positions))] = &*self.picked
            && *axis == self.before
            && self.slots.len() == self.kept()
        {
            return ops.take(window, positions, *axis as i64);
        }
        let places = self.places()?;
        // The axes of the positions, and how many axes that stay come before them.
        let (picked, before) = match &*self.picked {
            [(axis, Picked::Positions(positions))] => (ops.take(&window, positions, *axis as i64)?, *axis),
            _ => {
                let positions = self.positions(ops, &places)?;
                (ops.gather(&window, positions, self.picked_axes())?, 0)
            }
        };
        let order = moved(before, places.rank(), self.kept_before(), self.kept());
        let picked = ops.transpose(picked, order)?;
        ops.reshape_to(picked, self.result(&places))
    }

    /// Values of the shape of the result as updates at positions: one axis for all of them, then the axes that stay.
    fn updates(&self, ops: &mut Ops, places: &Shape, values: Tensor) -> defn_core::Result<Tensor> {
        let result = self.result(places);
        let sizes = result.sizes();
        let rank = places.rank();
        let is_kept = |at: usize| {
            let slot = if at < self.before { at } else { at.wrapping_sub(rank) };
            (self.before..self.before + rank).contains(&at) || self.slots[slot] != Slot::New
        };
        let kept: Vec<usize> = (0..sizes.len()).filter(|&at| is_kept(at)).map(|at| sizes[at]).collect();
        let values = ops.reshape_to(values, Shape::new(&kept))?;
        let order = moved(self.kept_before(), rank, 0, self.kept());
        let values = ops.transpose(values, order)?;
        let rest = values.ty().shape.sizes()[rank..].to_vec();
        let shape: Vec<usize> = std::iter::once(places.size()).chain(rest).collect();
        ops.reshape_to(values, Shape::new(&shape))
    }

    /// A value of the shape of the result, with one place for all that a mask selects, as one that broadcasts against
    /// the window.
    pub(super) fn under_mask(&self, ops: &mut Ops, value: Tensor, axis: usize) -> defn_core::Result<Tensor> {
        let places = Shape::new(&[1]);
        let value = ops.broadcast(value, self.result(&places).without_names(), Axes::All)?;
        let updates = self.updates(ops, &places, value)?;
        ops.transpose(updates, moved(0, 1, axis, self.kept()))
    }

    /// The window with values of the shape of the result at the positions, changed by `update`.
    pub(super) fn scatter(
        &self,
        ops: &mut Ops,
        window: &Tensor,
        values: Tensor,
        update: Update,
    ) -> defn_core::Result<Tensor> {
        let places = self.places()?;
        let merged = ops.reshape_to(window, self.window.clone())?;
        let updates = self.updates(ops, &places, values)?;
        let positions = self.positions(ops, &places)?;
        let positions = ops.reshape_to(positions, Shape::new(&[places.size(), self.picked.len()]))?;
        let axes = self.picked_axes();
        let are_bools = window.ty().dtype.is_bool() && updates.ty().dtype.is_bool();
        let mut combined = |update| self.combined(ops, &merged, &positions, &updates, update);
        let written = match update {
            // Of bools, the sum is whether any is true, the product whether all are.
            Update::Add if are_bools => combined(Update::Max)?,
            Update::Multiply if are_bools => combined(Update::Min)?,
            Update::Multiply | Update::Max | Update::Min => combined(update)?,
            Update::Set => ops.indexed_put(merged, positions, updates, axes)?,
            Update::Add => ops.indexed_add(merged, positions, updates, axes)?,
        };
        ops.reshape_to(written, window.ty().shape.clone())
    }

    /// The window combined with the product, the greatest or the least of the updates at each position.
    fn combined(
        &self,
        ops: &mut Ops,
        window: &Tensor,
        positions: &Tensor,
        updates: &Tensor,
        update: Update,
    ) -> defn_core::Result<Tensor> {
        let sizes = window.ty().shape.sizes();
        let axes: Vec<usize> = self.picked.iter().map(|(axis, _)| *axis).collect();
        let picked = Shape::new(&axes.iter().map(|&axis| sizes[axis]).collect::<Vec<_>>());
        // The number of each place in row-major order. A read from all of them treats a position out of range as
        // other reads do; what such a position would change stays as it is, as in other writes.
        let numbers = ops.iota(picked.clone(), DType::S64, None)?;
        let mut ids = ops.gather(numbers, positions, Axes::All)?;
        for (entry, &size) in picked.sizes().iter().enumerate() {
            let column = ops.slice_along_axis(positions, entry as i64, 1, 1, 1)?;
            let column = ops.squeeze(column, 1)?;
            let column = ops.as_type(column, DType::S64)?;
            let low = ops.less(&column, Arg::Number(Number::Int(-(size as i128))))?;
            let high = ops.greater_equal(&column, Arg::Number(Number::from(size)))?;
            let is_outside = ops.logical_or(low, high)?;
            ids = ops.select(is_outside, -1, ids)?;
        }
        let rest = (0..sizes.len()).filter(|axis| !axes.contains(axis));
        let order: Vec<usize> = axes.iter().copied().chain(rest).collect();
        let shape = window.ty().shape.clone();
        let window = ops.transpose(window, refs(order.iter().copied()))?;
        let count = picked.size();
        let combined = update.of_segments(ops, updates, &ids, count)?;
        let led = window.ty().shape.without_names();
        let combined = ops.reshape_to(combined, led)?;
        let changed = update.combine(ops, &window, &combined)?;
        let back = (0..order.len()).filter_map(|axis| order.iter().position(|&from| from == axis));
        let changed = ops.transpose(changed, refs(back))?;
        ops.reshape_to(changed, shape)
    }
}

/// The order of axes that moves `count` axes from behind `from` other ones to behind `to` others of all `rest`.
fn moved(from: usize, count: usize, to: usize, rest: usize) -> Vec<AxisRef> {
    let others = (0..from).chain(from + count..rest + count);
    let mut order: Vec<usize> = others.collect();
    order.splice(to..to, from..from + count);
    refs(order.into_iter())
}

fn refs(axes: impl Iterator<Item = usize>) -> Vec<AxisRef> {
    axes.map(|axis| AxisRef::Index(axis as i64)).collect()
}

fn check_range(ty: &TensorType, axis: usize, positions: &Positions) -> Fallible<()> {
    let size = ty.shape.sizes()[axis];
    let Some((least, greatest)) = positions.extremes else { return Ok(()) };
    let range = -(size as i64)..size as i64;
    match [least, greatest].into_iter().find(|position| !range.contains(position)) {
        Some(position) => {
            Err(Misuse::IndexRange { index: position.to_string(), axis, size, got: ty.clone() }.into())
        }
        None => Ok(()),
    }
}
