//! Ops that move elements.

use smallvec::{SmallVec, smallvec};

use super::Rewrite;
use crate::builder::{Arg, BuildCreate, BuildElementwise, BuildIndex, BuildShape, Builder, starts};
use crate::dtype::DType;
use crate::error::Result;
use crate::form::Attribute;
use crate::op::{Op, Padding, ScatterOp, Starts};
use crate::scalar::Number;
use crate::shape::{Axes, Axis, AxisRef, Shape, Sizes};
use crate::tensor::Tensor;

impl Rewrite<'_> {
    pub(super) fn pad(
        &mut self,
        config: &SmallVec<[Padding; 4]>,
        operands: &[Tensor],
    ) -> Result<SmallVec<[Tensor; 1]>> {
        if operands[1].is_vectorized() {
            return self.pad_each(config, operands);
        }
        let config = config.shifted(self.axes.len());
        self.emit(Op::Pad { config }, &[operands[0].flat(), operands[1].clone()])
    }

    /// Padding values that differ between positions: they replace all elements that do not come from `x`.
    fn pad_each(&mut self, config: &[Padding], operands: &[Tensor]) -> Result<SmallVec<[Tensor; 1]>> {
        let dtype = self.inner[0].dtype;
        let shape = operands[0].ty().shape.without_names();
        let x = self.ops.reshape_to(operands[0].clone(), shape.clone())?;
        let x = self.ops.as_type(x, dtype)?;
        let value = self.ops.as_type(operands[1].clone(), dtype)?;
        let ones = self.ops.full(shape, DType::U8, 1)?;
        let mut padded = SmallVec::<[Tensor; 2]>::new();
        for whole in [x, ones] {
            let zero = self.ops.constant(whole.ty().dtype, 0)?;
            padded.push(self.ops.emit_one(Op::Pad { config: config.into() }, &[whole, zero])?);
        }
        let out = self.ops.select(padded.remove(1), padded.remove(0), value)?;
        self.flattened(&out)
    }

    /// The builder's result on vectorized operands, converted to plain outputs.
    pub(super) fn flattened(&mut self, result: &Tensor) -> Result<SmallVec<[Tensor; 1]>> {
        Ok(smallvec![self.full(result)?])
    }

    /// Starts with 0 for the vectorized axes; starts that are operands get constants for them.
    fn starts(&mut self, starts: &Starts, dynamic: &[Tensor]) -> Result<(Starts, Vec<Tensor>)> {
        match starts {
            Starts::Static(starts) => {
                let mut with_lanes_first: Sizes = smallvec![0; self.axes.len()];
                with_lanes_first.extend_from_slice(starts);
                Ok((Starts::Static(with_lanes_first), Vec::new()))
            }
            Starts::Dynamic | Starts::FromEnd => {
                let dtype = dynamic.first().map_or(DType::S32, |start| start.ty().dtype);
                let zero = self.ops.constant(dtype, 0)?;
                let mut with_lanes_first = vec![zero; self.axes.len()];
                with_lanes_first.extend_from_slice(dynamic);
                Ok((starts.clone(), with_lanes_first))
            }
        }
    }

    pub(super) fn slice(
        &mut self,
        starts: &Starts,
        lengths: &[usize],
        strides: &[usize],
        operands: &[Tensor],
    ) -> Result<SmallVec<[Tensor; 1]>> {
        let (starts, dynamic) = self.starts(starts, &operands[1..])?;
        let mut led_lengths: Sizes = self.axes.iter().map(|(_, size)| *size).collect();
        led_lengths.extend_from_slice(lengths);
        let mut led_strides: Sizes = smallvec![1; self.axes.len()];
        led_strides.extend_from_slice(strides);
        let mut all = vec![operands[0].flat()];
        all.extend(dynamic);
        self.emit(Op::Slice { starts, lengths: led_lengths, strides: led_strides }, &all)
    }

    /// Starts that differ between positions: the window's elements are gathered.
    pub(super) fn slice_by_gather(
        &mut self,
        starts: &Starts,
        lengths: &[usize],
        strides: &[usize],
        operands: &[Tensor],
    ) -> Result<SmallVec<[Tensor; 1]>> {
        let indices = self.elements(starts, &operands[1..], &operands[0], lengths, strides)?;
        let axes = (0..lengths.len()).map(Axis).collect();
        let gathered = self.ops.emit_one(Op::Gather { axes }, &[operands[0].clone(), indices])?;
        self.flattened(&gathered)
    }

    /// The positions of a window's elements, with starts that may be vectorized: the window's axes, then the
    /// entries.
    fn elements(
        &mut self,
        starts: &Starts,
        dynamic: &[Tensor],
        x: &Tensor,
        lengths: &[usize],
        strides: &[usize],
    ) -> Result<Tensor> {
        let counts: Sizes =
            lengths.iter().zip(strides).map(|(length, &stride)| length.div_ceil(stride)).collect();
        let column = Shape::from_axes(counts.iter().map(|&count| (count, None)).chain([(1, None)]));
        let mut columns = Vec::with_capacity(counts.len());
        for (axis, start) in dynamic.iter().enumerate() {
            let start = self.inside(starts, start, lengths[axis], x.ty().shape.sizes()[axis])?;
            let ops = &mut *self.ops;
            let steps = ops.iota(column.clone(), DType::S64, Some(AxisRef::Index(axis as i64)))?;
            let steps = ops.multiply(steps, Arg::Number(Number::from(strides[axis])))?;
            let at = ops.add(steps, start)?;
            columns.push(ops.broadcast(at, column.clone(), Axes::All)?);
        }
        self.ops.concatenate(&columns, counts.len() as i64)
    }

    /// A start on an axis of `size`, clamped so that a window of `length` is inside.
    fn inside(&mut self, starts: &Starts, start: &Tensor, length: usize, size: usize) -> Result<Tensor> {
        let (ops, last) = (&mut *self.ops, size - length);
        let start = starts::convert_starts(ops, start, DType::S64, size)?;
        if !starts.count_from_end() {
            let start = ops.max(start, 0)?;
            return ops.min(start, Arg::Number(Number::from(last)));
        }
        let below = ops.less(&start, 0)?;
        let counted = ops.add(&start, Arg::Number(Number::from(size)))?;
        let start = ops.select(below, counted, start)?;
        // A gather from all valid starts treats a start out of range like any other position: as an error, or
        // clamped.
        let still = ops.less(&start, 0)?;
        let nowhere = ops.constant(DType::S64, -(last as i64) - 2)?;
        let start = ops.select(still, nowhere, start)?;
        let all = ops.iota(Shape::new(&[last + 1]), DType::S64, None)?;
        ops.take(all, start, 0)
    }

    pub(super) fn put_slice(
        &mut self,
        starts: &Starts,
        operands: &[Tensor],
    ) -> Result<SmallVec<[Tensor; 1]>> {
        if operands[2..].iter().any(Tensor::is_vectorized) {
            return self.put_by_scatter(starts, operands);
        }
        let (starts, dynamic) = self.starts(starts, &operands[2..])?;
        let mut all = self.all_full(&operands[..2])?;
        all.extend(dynamic);
        self.emit(Op::PutSlice { starts }, &all)
    }

    /// Starts that differ between positions: the window's elements are scattered.
    fn put_by_scatter(&mut self, starts: &Starts, operands: &[Tensor]) -> Result<SmallVec<[Tensor; 1]>> {
        let (x, update) = (&operands[0], &operands[1]);
        let lengths: Sizes = update.ty().shape.sizes().into();
        let (rank, count) = (lengths.len(), update.ty().size());
        let strides: Sizes = smallvec![1; rank];
        let indices = self.elements(starts, &operands[2..], x, &lengths, &strides)?;
        let indices = self.ops.reshape_to(indices, Shape::new(&[count, rank]))?;
        let updates = self.ops.reshape_to(update.clone(), Shape::new(&[count]))?;
        let x = self.ops.reshape_to(x.clone(), x.ty().shape.without_names())?;
        let axes = (0..rank).map(Axis).collect();
        let op = Op::Scatter { op: ScatterOp::IndexedPut, axes };
        let put = self.ops.emit_one(op, &[x, indices, updates])?;
        self.flattened(&put)
    }
}
