//! Ops that move elements.

use smallvec::{SmallVec, smallvec};

use super::Rewrite;
use crate::builder::{Arg, BuildCreate, BuildElementwise, BuildShape, Builder};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Op, Padding, Starts};
use crate::scalar::Number;
use crate::shape::{Axes, Axis, AxisRef, Shape, Sizes};
use crate::tensor::Tensor;

impl Rewrite<'_> {
    pub(super) fn pad(&mut self, config: &[Padding], operands: &[Tensor]) -> Result<SmallVec<[Tensor; 1]>> {
        self.refuse_vectorized("the padding value", &operands[1])?;
        let mut led: SmallVec<[Padding; 4]> = smallvec![Padding::default(); self.axes.len()];
        led.extend_from_slice(config);
        self.emit(Op::Pad { config: led }, &[operands[0].flat(), operands[1].clone()])
    }

    /// Starts that begin at 0 on the vectorized axes; those that are operands get constants beside them.
    fn starts(&mut self, starts: &Starts, dynamic: &[Tensor]) -> Result<(Starts, Vec<Tensor>)> {
        match starts {
            Starts::Static(starts) => {
                let mut led: Sizes = smallvec![0; self.axes.len()];
                led.extend_from_slice(starts);
                Ok((Starts::Static(led), Vec::new()))
            }
            Starts::Dynamic => {
                let dtype = dynamic.first().map_or(DType::S32, |start| start.ty().dtype);
                let zero = self.ops.constant(dtype, 0)?;
                let mut led = vec![zero; self.axes.len()];
                led.extend_from_slice(dynamic);
                Ok((Starts::Dynamic, led))
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

    /// Starts that differ from position to position: the window's elements are gathered one by one.
    pub(super) fn slice_by_gather(
        self,
        lengths: &[usize],
        strides: &[usize],
        operands: &[Tensor],
    ) -> Result<SmallVec<[Tensor; 1]>> {
        let (ops, ty) = (self.ops, &self.inner[0]);
        let sizes = ty.shape.without_names();
        let rank = sizes.rank();
        let column = Shape::from_axes(sizes.entries().chain([(1, None)]));
        let mut columns = Vec::with_capacity(rank);
        for (axis, start) in operands[1..].iter().enumerate() {
            let size = operands[0].ty().shape.sizes()[axis];
            let last = size - lengths[axis];
            // Unsigned starts become signed ones, as constants beside them are; what wraps was out of range.
            let start = ops.as_type(start, DType::S64)?;
            let start = ops.max(start, 0)?;
            let start = ops.min(start, Arg::Number(Number::from(last)))?;
            let steps = ops.iota(column.clone(), DType::S64, Some(AxisRef::Index(axis as i64)))?;
            let steps = ops.multiply(steps, Arg::Number(Number::from(strides[axis])))?;
            let at = ops.add(steps, start)?;
            columns.push(ops.broadcast(at, column.clone(), Axes::All)?);
        }
        let indices = ops.concatenate(&columns, rank as i64)?;
        let axes = (0..rank).map(Axis).collect();
        let gathered = ops.emit_one(Op::Gather { axes }, &[operands[0].clone(), indices])?;
        Ok(smallvec![ops.reshape_to(gathered, ty.shape.clone())?])
    }

    pub(super) fn put_slice(
        &mut self,
        starts: &Starts,
        operands: &[Tensor],
    ) -> Result<SmallVec<[Tensor; 1]>> {
        for start in &operands[2..] {
            self.refuse_vectorized("a start index", start)?;
        }
        let (starts, dynamic) = self.starts(starts, &operands[2..])?;
        let mut all = self.all_full(&operands[..2])?;
        all.extend(dynamic);
        self.emit(Op::PutSlice { starts }, &all)
    }
}
