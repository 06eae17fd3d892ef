//! Windows that slide over a tensor, and convolutions.

use defn_core::op::{ConvOp, Window, WindowOp, WindowScatterOp};
use defn_core::{DType, TensorType};

use super::reduce::{RegionResult, combine};
use super::text::{List, RegionText, Ssa, Ty, Writer, array};
use super::value::{compute_type, half, storage_type};
use super::{Lowering, Operands};
use crate::element::ElementType as E;

/// The attributes of a window. Negative padding was cropped before.
fn attributes(window: &Window) -> String {
    let pairs = window.padding.iter().map(|(low, high)| format!("[{}, {}]", low.max(&0), high.max(&0)));
    let padding = if window.padding.is_empty() {
        String::new()
    } else {
        let pairs: Vec<String> = pairs.collect();
        format!(", padding = dense<[{}]> : tensor<{}x2xi64>", List(&pairs), window.padding.len())
    };
    format!(
        "window_dimensions = {}, window_strides = {}, window_dilations = {}{padding}",
        array(&window.sizes),
        array(&window.strides),
        array(&window.dilations)
    )
}

/// The same windows without the elements at their ends that are in padding at every position of the window, except
/// `padding_kept` of them on each side. The cost of a window then depends on what it covers, not on its width.
fn trimmed(window: &Window, dims: &[usize], out: &[usize], padding_kept: i128) -> Window {
    let mut trimmed = window.clone();
    if out.contains(&0) {
        return trimmed;
    }
    let wide = |size: usize| size as i128;
    for axis in 0..dims.len() {
        let (size, stride, dilation) =
            (wide(window.sizes[axis]), wide(window.strides[axis]), wide(window.dilations[axis]));
        let (low, high) = window.padding[axis];
        let (low, high) = (i128::from(low), i128::from(high));
        // Element `j` of window `k` is at `k * stride - low + j * dilation`: the first `j` that is not before the
        // input in the last window, and the last that is not behind it in the first window.
        let before = low - (wide(out[axis]) - 1) * stride;
        let first = before.max(0).div_euclid(dilation) + i128::from(before.max(0).rem_euclid(dilation) > 0);
        let last = (low + wide(dims[axis]) - 1).div_euclid(dilation);
        let first = (first - padding_kept).clamp(0, size - 1);
        let last = (last + padding_kept).clamp(first, size - 1);
        let narrow = |value: i128| i64::try_from(value).expect("between two numbers of this width");
        trimmed.sizes[axis] = usize::try_from(last - first + 1).expect("at most what it was");
        trimmed.padding[axis] = (narrow(low - first * dilation), narrow(high - (size - 1 - last) * dilation));
    }
    trimmed
}

impl Writer {
    /// Removes the elements that negative padding cuts off.
    fn crop(&mut self, x: &Ssa, filler: &Ssa, padding: &[(i64, i64)]) -> Ssa {
        let config: Vec<_> = padding.iter().map(|&(low, high)| (low.min(0), high.min(0), 0)).collect();
        self.pad(x, filler, &config)
    }
}

impl Lowering {
    pub(super) fn window(
        &mut self,
        op: WindowOp,
        x: &Operands<'_>,
        window: &Window,
        out: &TensorType,
    ) -> Ssa {
        let w = &mut self.writer;
        let element = compute_type(out.dtype);
        let value = w.load_as(&x.values[0], x.types[0].dtype, out.dtype);
        let (start, name) = match op {
            WindowOp::WindowSum => (w.number(element, 0), "add"),
            WindowOp::WindowProduct => (w.number(element, 1), "multiply"),
            WindowOp::WindowMax => (w.limit(out.dtype, true), "maximum"),
            WindowOp::WindowMin => (w.limit(out.dtype, false), "minimum"),
        };
        if window.sizes.is_empty() {
            return w.store(&value, out.dtype);
        }
        let window = &trimmed(window, value.dims(), out.shape.sizes(), 0);
        let value = w.crop(&value, &start, &window.padding);
        let ty = Ty::new(element, out.shape.sizes());
        let region = combine(element, name);
        let folded: RegionResult<Vec<Ssa>> =
            w.op_with("reduce_window", &[&value, &start], &attributes(window), vec![region], &[ty]);
        let folded = folded.expect("an operation of two operands is always written").remove(0);
        w.store(&folded, out.dtype)
    }

    /// Finds the flat position of each window's extreme, then adds there. Padding has the initial value.
    pub(super) fn window_scatter(
        &mut self,
        op: WindowScatterOp,
        x: &Operands<'_>,
        window: &Window,
        out: &TensorType,
    ) -> Ssa {
        let w = &mut self.writer;
        let compared = x.types[0].dtype.merge(x.types[2].dtype);
        let value = w.load_as(&x.values[0], x.types[0].dtype, compared);
        let start = w.load_as(&x.values[2], x.types[2].dtype, compared);
        // One element of padding on each side represents all of it: the initial value may be the extreme, and is it
        // once.
        let window = &trimmed(window, value.dims(), x.types[1].shape.sizes(), 1);
        let count: usize = value.dims().iter().product();
        let (flat, index_type) = (Ty::new(E::S64, &[count]), value.ty.of(E::S64));
        let numbers = w.iota(flat, 0);
        let mut numbers = w.reshape(&numbers, &index_type.dims);
        // Padding has no position: updates to it are dropped.
        let nowhere = w.position(count);
        let mut padded = value.clone();
        let config: Vec<_> = window.padding.iter().map(|&(low, high)| (low, high, 0)).collect();
        padded = w.pad(&padded, &start, &config);
        numbers = w.pad(&numbers, &nowhere, &config);
        // The positions of a window's elements in the padded tensor: the last of equal elements wins.
        let order = w.iota(Ty::new(E::S64, &[padded.dims().iter().product()]), 0);
        let order = w.reshape(&order, padded.dims());
        let before = w.number(E::S64, -1);
        let direction = match op {
            WindowScatterOp::WindowScatterMax => "GT",
            WindowScatterOp::WindowScatterMin => "LT",
        };
        let worst = w.limit(compared, op == WindowScatterOp::WindowScatterMax);
        let is_float = compared.is_float();
        let (scalar, scalar_index) = (Ty::scalar(value.element()), Ty::scalar(E::S64));
        let region = RegionText {
            arguments: [&scalar, &scalar_index, &scalar_index, &scalar, &scalar_index, &scalar_index]
                .map(Clone::clone)
                .to_vec(),
            write: Box::new(move |w: &mut Writer, arguments: &[Ssa]| -> RegionResult<Vec<Ssa>> {
                let [a, a_position, a_order, b, b_position, b_order] = arguments else {
                    unreachable!("two triples")
                };
                let (better, same) = w.beyond(a, b, direction, is_float);
                let later = w.compare(a_order, b_order, "GT");
                let tie = w.op("and", &[&same, &later], "", same.ty.clone());
                let wins = w.op("or", &[&better, &tie], "", same.ty.clone());
                Ok(vec![
                    w.choose(&wins, a, b),
                    w.choose(&wins, a_position, b_position),
                    w.choose(&wins, a_order, b_order),
                ])
            }),
        };
        let plain = Window { padding: window.padding.iter().map(|_| (0, 0)).collect(), ..window.clone() };
        let source = w.load_as(&x.values[1], x.types[1].dtype, out.dtype);
        let initial = w.load_as(&x.values[2], x.types[2].dtype, out.dtype);
        let extreme_positions = if window.sizes.is_empty() {
            w.reshape(&numbers, source.dims())
        } else {
            let result = Ty::new(value.element(), source.dims());
            let results = [result.clone(), result.of(E::S64), result.of(E::S64)];
            let operands = [&padded, &numbers, &order, &worst, &nowhere, &before];
            w.op_with("reduce_window", &operands, &attributes(&plain), vec![region], &results)
                .expect("comparisons are always written")
                .remove(1)
        };
        let many = source.dims().iter().product();
        let (extreme_positions, source) =
            (w.reshape(&extreme_positions, &[many, 1]), w.reshape(&source, &[many]));
        let into = w.splat(&initial, &[count]);
        let attributes = "scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], \
                          scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, \
                          unique_indices = false";
        let region = combine(into.element(), "add");
        let ty = into.ty.clone();
        let sums: RegionResult<Vec<Ssa>> =
            w.op_with("scatter", &[&into, &extreme_positions, &source], attributes, vec![region], &[ty]);
        let sums = sums.expect("a sum is always written").remove(0);
        let stored = w.store(&sums, out.dtype);
        w.reshape(&stored, out.shape.sizes())
    }

    pub(super) fn conv(&mut self, x: &Operands<'_>, conv: &ConvOp, out: &TensorType) -> Ssa {
        let w = &mut self.writer;
        // 16-bit floats are not converted: devices accumulate them in f32 and round once.
        let element = match out.dtype {
            DType::F16 | DType::BF16 => storage_type(out.dtype),
            DType::Bool
            | DType::U2
            | DType::U4
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64
            | DType::S2
            | DType::S4
            | DType::S8
            | DType::S16
            | DType::S32
            | DType::S64
            | DType::F8E5M2
            | DType::F8E4M3FN
            | DType::F32
            | DType::F64
            | DType::C64
            | DType::C128 => compute_type(out.dtype),
        };
        let operand = |w: &mut Writer, at: usize| {
            let x = w.cast(&x.values[at], x.types[at].dtype, out.dtype);
            w.convert(&x, element)
        };
        let (input, kernel) = (operand(w, 0), operand(w, 1));
        let ty = Ty::new(element, out.shape.sizes());
        let attributes = conv_attributes(conv);
        let y = if out.dtype.is_complex() {
            // The product of (a + bi) and (c + di), by four real products.
            let part = half(ty.element);
            let parts = |w: &mut Writer, z: &Ssa| {
                (w.op("real", &[z], "", z.ty.of(part)), w.op("imag", &[z], "", z.ty.of(part)))
            };
            let ((a, b), (c, d)) = (parts(w, &input), parts(w, &kernel));
            let real = ty.of(part);
            let mut product = |x: &Ssa, y: &Ssa| w.op("convolution", &[x, y], &attributes, real.clone());
            let (ac, bd, ad, bc) = (product(&a, &c), product(&b, &d), product(&a, &d), product(&b, &c));
            let re = w.op("subtract", &[&ac, &bd], "", real.clone());
            let im = w.op("add", &[&ad, &bc], "", real.clone());
            w.op("complex", &[&re, &im], "", ty)
        } else {
            w.op("convolution", &[&input, &kernel], &attributes, ty)
        };
        if y.element() == storage_type(out.dtype) { y } else { w.store(&y, out.dtype) }
    }
}

fn conv_attributes(conv: &ConvOp) -> String {
    // Inverts the permutation, from the axis of each role to the role of each axis.
    let roles = |permutation: &[defn_core::Axis], names: [char; 2]| {
        let mut texts = vec![String::new(); permutation.len()];
        for (role, axis) in permutation.iter().enumerate() {
            texts[axis.index()] = match role {
                0 => names[0].to_string(),
                1 => names[1].to_string(),
                spatial => (spatial - 2).to_string(),
            };
        }
        List(&texts).to_string()
    };
    let pairs: Vec<String> = conv.padding.iter().map(|(low, high)| format!("[{low}, {high}]")).collect();
    let padding = if pairs.is_empty() {
        "padding = dense<> : tensor<0x2xi64>".to_owned()
    } else {
        format!("padding = dense<[{}]> : tensor<{}x2xi64>", List(&pairs), pairs.len())
    };
    format!(
        "window_strides = {}, {padding}, lhs_dilation = {}, rhs_dilation = {}, \
         dimension_numbers = #stablehlo.conv<[{}]x[{}]->[{}]>, feature_group_count = {} : i64, \
         batch_group_count = {} : i64",
        array(&conv.strides),
        array(&conv.input_dilation),
        array(&conv.kernel_dilation),
        roles(&conv.input_permutation, ['b', 'f']),
        roles(&conv.kernel_permutation, ['o', 'i']),
        roles(&conv.output_permutation, ['b', 'f']),
        conv.feature_groups,
        conv.batch_groups,
    )
}
