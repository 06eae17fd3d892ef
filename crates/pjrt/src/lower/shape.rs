//! Operations that move elements.

use defn_core::op::{Padding, Starts};
use defn_core::{Axis, DType, TensorType};

use super::text::{Dims, Ssa, Ty, Writer, array};
use super::value::storage_type;
use super::{Lowering, Operands, tensor};

impl Writer {
    /// The same elements in another shape.
    pub fn reshape(&mut self, x: &Ssa, dims: &[usize]) -> Ssa {
        if x.dims() == dims { x.clone() } else { self.op("reshape", &[x], "", Ty::new(x.element(), dims)) }
    }

    /// Axis `axes[i]` becomes axis i.
    pub fn transpose(&mut self, x: &Ssa, axes: &[usize]) -> Ssa {
        if axes.iter().copied().eq(0..axes.len()) {
            return x.clone();
        }
        let dims: Dims = axes.iter().map(|&axis| x.dims()[axis]).collect();
        let ty = Ty { element: x.element(), dims };
        self.op("transpose", &[x], &format!("permutation = {}", array(axes)), ty)
    }

    /// Axis i of `x` becomes axis `axes[i]`.
    pub fn broadcast_along(&mut self, x: &Ssa, axes: &[usize], dims: &[usize]) -> Ssa {
        let attributes = format!("broadcast_dimensions = {}", array(axes));
        self.op("broadcast_in_dim", &[x], &attributes, Ty::new(x.element(), dims))
    }

    /// Pads around and between the elements of `x`; negative padding removes elements.
    pub fn pad(&mut self, x: &Ssa, value: &Ssa, config: &[(i64, i64, usize)]) -> Ssa {
        if config.iter().all(|&padding| padding == (0, 0, 0)) {
            return x.clone();
        }
        let dims = x.dims().iter().zip(config).map(|(&size, &(low, high, interior))| {
            let dilated_size = size + size.saturating_sub(1) * interior;
            let size = i64::try_from(dilated_size).unwrap_or(i64::MAX) + low + high;
            usize::try_from(size).expect("inferred sizes are not negative")
        });
        let ty = Ty { element: x.element(), dims: dims.collect() };
        let attributes = format!(
            "edge_padding_low = {}, edge_padding_high = {}, interior_padding = {}",
            array(config.iter().map(|padding| padding.0)),
            array(config.iter().map(|padding| padding.1)),
            array(config.iter().map(|padding| padding.2)),
        );
        self.op("pad", &[x, value], &attributes, ty)
    }

    /// A strided window of `x` at constant positions.
    pub fn cut(&mut self, x: &Ssa, starts: &[usize], lengths: &[usize], strides: &[usize]) -> Ssa {
        let limits = starts.iter().zip(lengths).map(|(start, length)| start + length);
        let dims: Dims =
            lengths.iter().zip(strides).map(|(length, &stride)| length.div_ceil(stride)).collect();
        if dims[..] == *x.dims() && strides.iter().all(|&stride| stride == 1) {
            return x.clone();
        }
        let attributes = format!(
            "start_indices = {}, limit_indices = {}, strides = {}",
            array(starts),
            array(limits),
            array(strides)
        );
        self.op("slice", &[x], &attributes, Ty { element: x.element(), dims })
    }

    /// Concatenates the operands.
    pub fn join(&mut self, operands: &[Ssa], axis: usize) -> Ssa {
        let [first, rest @ ..] = operands else { unreachable!("one operand at least") };
        if rest.is_empty() {
            return first.clone();
        }
        let mut ty = first.ty.clone();
        ty.dims[axis] = operands.iter().map(|operand| operand.dims()[axis]).sum();
        let operands: Vec<&Ssa> = operands.iter().collect();
        self.op("concatenate", &operands, &format!("dimension = {axis} : i64"), ty)
    }
}

impl Lowering {
    pub(super) fn reshape(&mut self, x: &Ssa, dims: &[usize]) -> Ssa {
        self.writer.reshape(x, dims)
    }

    pub(super) fn broadcast(&mut self, x: &Ssa, axes: &[Axis], out: &TensorType) -> Ssa {
        let axes: Vec<usize> = axes.iter().map(|axis| axis.index()).collect();
        self.writer.broadcast_along(x, &axes, out.shape.sizes())
    }

    pub(super) fn transpose(&mut self, x: &Ssa, axes: &[Axis]) -> Ssa {
        let axes: Vec<usize> = axes.iter().map(|axis| axis.index()).collect();
        self.writer.transpose(x, &axes)
    }

    pub(super) fn pad(&mut self, x: &Operands<'_>, config: &[Padding], out: &TensorType) -> Ssa {
        let w = &mut self.writer;
        let value = w.cast(&x.values[1], x.types[1].dtype, out.dtype);
        let x = w.cast(&x.values[0], x.types[0].dtype, out.dtype);
        let config: Vec<_> = config.iter().map(|axis| (axis.low, axis.high, axis.interior)).collect();
        w.pad(&x, &value, &config)
    }

    pub(super) fn reverse(&mut self, x: &Ssa, axes: &[Axis]) -> Ssa {
        if axes.is_empty() {
            return x.clone();
        }
        let axes = array(axes.iter().map(|axis| axis.index()));
        self.writer.op("reverse", &[x], &format!("dimensions = {axes}"), x.ty.clone())
    }

    pub(super) fn concatenate(&mut self, x: &Operands<'_>, axis: Axis, out: &TensorType) -> Ssa {
        let operands = self.cast_all(x, out.dtype);
        self.writer.join(&operands, axis.index())
    }

    pub(super) fn stack(&mut self, x: &Operands<'_>, axis: usize, out: &TensorType) -> Ssa {
        let operands = self.cast_all(x, out.dtype);
        let mut dims: Dims = out.shape.sizes().into();
        dims[axis] = 1;
        let operands: Vec<Ssa> = operands.iter().map(|operand| self.writer.reshape(operand, &dims)).collect();
        self.writer.join(&operands, axis)
    }

    fn cast_all(&mut self, x: &Operands<'_>, dtype: DType) -> Vec<Ssa> {
        x.values.iter().zip(&x.types).map(|(value, ty)| self.writer.cast(value, ty.dtype, dtype)).collect()
    }

    pub(super) fn slice(
        &mut self,
        x: &Operands<'_>,
        starts: &Starts,
        lengths: &[usize],
        strides: &[usize],
    ) -> Ssa {
        let w = &mut self.writer;
        let value = &x.values[0];
        match starts {
            Starts::Static(starts) => w.cut(value, starts, lengths, strides),
            Starts::Dynamic | Starts::FromEnd => {
                let starts = w.starts(starts, &x.values[1..], &x.types[1..], value.dims());
                let operands: Vec<&Ssa> = std::iter::once(value).chain(&starts).collect();
                let ty = Ty::new(value.element(), lengths);
                let window =
                    w.op("dynamic_slice", &operands, &format!("slice_sizes = {}", array(lengths)), ty);
                w.cut(&window, &vec![0; lengths.len()], lengths, strides)
            }
        }
    }

    pub(super) fn put_slice(&mut self, x: &Operands<'_>, starts: &Starts, out: &TensorType) -> Ssa {
        let w = &mut self.writer;
        let into = w.cast(&x.values[0], x.types[0].dtype, out.dtype);
        let update = w.cast(&x.values[1], x.types[1].dtype, out.dtype);
        let starts: Vec<Ssa> = match starts {
            Starts::Static(starts) => starts.iter().map(|&start| w.position(start)).collect(),
            Starts::Dynamic | Starts::FromEnd => {
                w.starts(starts, &x.values[2..], &x.types[2..], out.shape.sizes())
            }
        };
        let operands: Vec<&Ssa> = [&into, &update].into_iter().chain(&starts).collect();
        w.op(
            "dynamic_update_slice",
            &operands,
            "",
            Ty::new(storage_type(out.dtype), tensor(out).dims.as_slice()),
        )
    }
}
