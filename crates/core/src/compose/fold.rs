//! Definitions of folds by user functions in other ops, for backends and compilers that run no regions.
//!
//! An element-wise function is applied to all retained positions together, and only the folded elements are iterated. Any
//! other function is applied to each element separately. A function that is one op with a built-in reduction becomes
//! that reduction.

use smallvec::SmallVec;

use crate::builder::{BuildControl, BuildCreate, BuildElementwise, Builder};
use crate::dtype::DType;
use crate::error::Result;
use crate::grad::region::{self as grad_region, fill};
use crate::graph::{Graph, Value, Values};
use crate::infer::infer;
use crate::op::{BinaryOp, FoldOp, OnScalars, Op, Padding, ReduceOp, Starts, Window, WindowFoldOp, WindowOp};
use crate::region::Region;
use crate::shape::{AxisList, Shape, Sizes, TensorType};

/// The maximum number of steps that are unrolled; more steps become a loop.
const MAX_UNROLLED_STEPS: usize = 16;

/// The definition of a fold as a region with operands of the given types; `None` if the op is no fold.
///
/// # Errors
/// The errors of the definition's ops.
pub fn region(op: &Op, types: &[&TensorType]) -> Result<Option<Region>> {
    let mut graph = Graph::new();
    let mut arguments = || -> Vec<Value> {
        types.iter().enumerate().map(|(index, ty)| graph.parameter(index, (*ty).clone())).collect()
    };
    let result = if let Op::Fold(op) = op {
        let arguments = arguments();
        fold(&mut graph, op, &arguments)?
    } else if let Op::WindowFold(op_) = op {
        let result = infer(op, types)?.remove(0).shape;
        let arguments = arguments();
        window_fold(&mut graph, op_, &arguments, &result)?
    } else {
        return Ok(None);
    };
    let inputs = types.iter().map(|ty| (*ty).clone()).collect();
    Ok(Some(Region::new(graph, inputs, types.len(), [result].into_iter().collect())))
}

/// `(x, acc, captures...)`: see [`Op::Fold`].
///
/// # Errors
/// The errors of the definition's ops.
pub fn fold(graph: &mut Graph, op: &FoldOp, operands: &[Value]) -> Result<Value> {
    let [x, acc, captures @ ..] = operands else { unreachable!("a fold has two operands") };
    let result = graph.ty(*x).shape.reduced(&op.axes, op.keep_axes);
    let shape = graph.ty(*x).shape.without_names();
    let retained: AxisList = shape.axes().filter(|axis| !op.axes.contains(axis)).collect();
    let steps: usize = op.axes.iter().map(|&axis| shape[axis]).product();
    let width: usize = retained.iter().map(|&axis| shape[axis]).product();
    if steps == 0 || width == 0 {
        return fill(graph, *acc, &result);
    }
    if let Some(builtin) = BuiltinReduction::of(&op.fun) {
        let reduce = Op::Reduce { op: builtin.reduce, axes: op.axes.clone(), keep_axes: op.keep_axes };
        let folded = graph.emit_one(reduce, &[*x])?;
        let folded = grad_region::convert(graph, folded, graph.ty(*acc).dtype)?;
        return graph.emit_one(Op::Binary(builtin.binary), &[*acc, folded]);
    }
    // The folded axes come first. The folded axes and the retained axes are flattened to one axis each.
    let axes = op.axes.iter().chain(&retained).copied().collect();
    let x = grad_region::nameless(graph, *x)?;
    let x = graph.emit_one(Op::Transpose { axes }, &[x])?;
    let folded = if width > 1 && !is_elementwise(&op.fun) {
        let x = graph.emit_one(Op::Reshape { shape: Shape::new(&[steps * width]) }, &[x])?;
        fold_sequentially(graph, &op.fun, steps * width, width, *acc, x, captures, |graph, at, x| {
            element(graph, x, &[at])
        })?
    } else {
        let x = graph.emit_one(Op::Reshape { shape: Shape::new(&[steps, width]) }, &[x])?;
        // A single position needs no axis, so that every function can be applied.
        let shape = if width == 1 { Shape::scalar() } else { Shape::new(&[width]) };
        let row = RowLoop { count: steps, width, shape: shape.clone() };
        let acc = fill(graph, *acc, &shape)?;
        row.fold_rows(graph, x, acc, captures, |graph, row, acc, captures| {
            apply(graph, &op.fun, row, acc, captures, &shape)
        })?
    };
    graph.emit_one(Op::Reshape { shape: result }, &[folded])
}

/// `(x, acc, captures...)`: see [`Op::WindowFold`].
///
/// # Errors
/// The errors of the definition's ops.
pub fn window_fold(
    graph: &mut Graph,
    op: &WindowFoldOp,
    operands: &[Value],
    result: &Shape,
) -> Result<Value> {
    let [x, acc, captures @ ..] = operands else { unreachable!("a fold has two operands") };
    let positions = result.without_names();
    if positions.size() == 0 {
        return fill(graph, *acc, result);
    }
    let x = grad_region::nameless(graph, *x)?;
    let config = op.window.padding.iter().map(|&(low, high)| Padding { low, high, interior: 0 }).collect();
    // The function's first argument has the type of `x`, whatever the accumulator's type is.
    let padding = grad_region::convert(graph, *acc, graph.ty(x).dtype)?;
    let x = graph.emit_one(Op::Pad { config }, &[x, padding])?;
    let window =
        Window { padding: SmallVec::from_elem((0, 0), positions.rank()), ..op.window.as_ref().clone() };
    let folded = if let Some(builtin) = BuiltinReduction::of(&op.fun) {
        let folded = graph.emit_one(Op::Window { op: builtin.window, window: Box::new(window) }, &[x])?;
        graph.emit_one(Op::Binary(builtin.binary), &[*acc, folded])?
    } else if !is_elementwise(&op.fun) {
        let cells: usize = window.sizes.iter().product();
        let width = positions.size();
        fold_sequentially(graph, &op.fun, cells * width, width, *acc, x, captures, |graph, at, x| {
            let sizes: Sizes = window.sizes.iter().chain(positions.sizes()).copied().collect();
            let digits = digits(graph, at, &sizes)?;
            let (cell, position) = digits.split_at(positions.rank());
            let mut starts = Values::new();
            for axis in 0..positions.rank() {
                let to_cell = graph.multiply(cell[axis], window.dilations[axis])?;
                let to_position = graph.multiply(position[axis], window.strides[axis])?;
                starts.push(graph.add(to_cell, to_position)?);
            }
            element(graph, x, &starts)
        })?
    } else {
        let acc = fill(graph, *acc, &positions)?;
        let state = for_each_window_offset(
            graph,
            &window,
            &positions,
            &[x],
            &[acc],
            captures,
            |graph, cell, state, captures| {
                Ok(vec![apply(graph, &op.fun, cell[0], state[0], captures, &positions)?])
            },
        )?;
        state[0]
    };
    graph.emit_one(Op::Reshape { shape: result.clone() }, &[folded])
}

/// Calls `step` for each cell of a window, in row-major order. Its arguments are the elements under that cell for all
/// positions of the window, one value for each of `arrays`, which have the same shape, then the state and the
/// captures. It returns the next state. The window has no padding.
pub(crate) fn for_each_window_offset(
    graph: &mut Graph,
    window: &Window,
    positions: &Shape,
    arrays: &[Value],
    state: &[Value],
    captures: &[Value],
    step: impl Fn(&mut Graph, &[Value], &[Value], &[Value]) -> Result<Vec<Value>>,
) -> Result<Vec<Value>> {
    let counts: usize = window.sizes.iter().product();
    let lengths: Sizes = positions
        .sizes()
        .iter()
        .zip(&window.strides)
        .map(|(&count, &stride)| (count - 1) * stride + 1)
        .collect();
    let slice =
        |starts: Starts| Op::Slice { starts, lengths: lengths.clone(), strides: window.strides.clone() };
    if counts <= MAX_UNROLLED_STEPS {
        let mut state = state.to_vec();
        for cell in 0..counts {
            let mut rest = cell;
            let mut starts: Sizes = SmallVec::from_elem(0, positions.rank());
            for axis in (0..positions.rank()).rev() {
                starts[axis] = rest % window.sizes[axis] * window.dilations[axis];
                rest /= window.sizes[axis];
            }
            let op = slice(Starts::Static(starts));
            let elements = arrays.iter().map(|&array| graph.emit_one(op.clone(), &[array]));
            let elements: Vec<Value> = elements.collect::<Result<_>>()?;
            state = step(graph, &elements, &state, captures)?;
        }
        return Ok(state);
    }
    let counter = graph.constant(counter_dtype(counts), 0)?;
    let state: Vec<Value> = std::iter::once(counter).chain(state.iter().copied()).collect();
    let captures: Vec<Value> = arrays.iter().chain(captures).copied().collect();
    let last = grad_region::while_(
        graph,
        Some(counts as u64),
        &state,
        &captures,
        |graph, state, _| graph.less(state[0], counts),
        |graph, state, captures| {
            let (arrays, captures) = captures.split_at(arrays.len());
            let mut starts = digits(graph, state[0], &window.sizes)?;
            for (start, &dilation) in starts.iter_mut().zip(&window.dilations) {
                *start = graph.multiply(*start, dilation)?;
            }
            let mut elements = Vec::with_capacity(arrays.len());
            for &array in arrays {
                let operands: Values = std::iter::once(array).chain(starts.iter().copied()).collect();
                elements.push(graph.emit_one(slice(Starts::Dynamic), &operands)?);
            }
            let mut next = vec![graph.add(state[0], 1)?];
            next.extend(step(graph, &elements, &state[1..], captures)?);
            Ok(next)
        },
    )?;
    Ok(last[1..].to_vec())
}

/// The rows of a matrix.
struct RowLoop {
    count: usize,
    width: usize,
    /// The shape to which a row is reshaped.
    shape: Shape,
}

impl RowLoop {
    /// Calls `step` for each row of `x` with the previous result.
    fn fold_rows(
        &self,
        graph: &mut Graph,
        x: Value,
        acc: Value,
        captures: &[Value],
        step: impl Fn(&mut Graph, Value, Value, &[Value]) -> Result<Value>,
    ) -> Result<Value> {
        let slice = |starts| Op::Slice {
            starts,
            lengths: SmallVec::from_slice(&[1, self.width]),
            strides: SmallVec::from_slice(&[1, 1]),
        };
        let shape = || Op::Reshape { shape: self.shape.clone() };
        if self.count <= MAX_UNROLLED_STEPS {
            let mut acc = acc;
            for row in 0..self.count {
                let row = graph.emit_one(slice(Starts::Static(SmallVec::from_slice(&[row, 0]))), &[x])?;
                let row = graph.emit_one(shape(), &[row])?;
                acc = step(graph, row, acc, captures)?;
            }
            return Ok(acc);
        }
        let counter = graph.constant(counter_dtype(self.count), 0)?;
        let captures: Vec<Value> = std::iter::once(x).chain(captures.iter().copied()).collect();
        let last = grad_region::while_(
            graph,
            Some(self.count as u64),
            &[counter, acc],
            &captures,
            |graph, state, _| graph.less(state[0], self.count),
            |graph, state, captures| {
                let zero = graph.constant(counter_dtype(self.count), 0)?;
                let row = graph.emit_one(slice(Starts::Dynamic), &[captures[0], state[0], zero])?;
                let row = graph.emit_one(shape(), &[row])?;
                let acc = step(graph, row, state[1], &captures[1..])?;
                Ok(vec![graph.add(state[0], 1)?, acc])
            },
        )?;
        Ok(last[1])
    }
}

/// Applies a function to `count` scalars sequentially; `fetch` returns the scalar at an index. Scalar `i` is folded
/// into position `i % width` of the result, a vector.
#[expect(clippy::too_many_arguments, reason = "a loop and what it is about")]
fn fold_sequentially(
    graph: &mut Graph,
    fun: &Region,
    count: usize,
    width: usize,
    acc: Value,
    x: Value,
    captures: &[Value],
    fetch: impl Fn(&mut Graph, Value, Value) -> Result<Value>,
) -> Result<Value> {
    let acc = fill(graph, acc, &Shape::new(&[width]))?;
    let counter = graph.constant(counter_dtype(count), 0)?;
    let captures: Vec<Value> = std::iter::once(x).chain(captures.iter().copied()).collect();
    let last = grad_region::while_(
        graph,
        Some(count as u64),
        &[counter, acc],
        &captures,
        |graph, state, _| graph.less(state[0], count),
        |graph, state, captures| {
            let item = fetch(graph, state[0], captures[0])?;
            let position = graph.remainder(state[0], width)?;
            let before = element(graph, state[1], &[position])?;
            let arguments: Vec<Value> = [item, before].iter().chain(&captures[1..]).copied().collect();
            let after = graph.inline(fun, &arguments)?[0];
            let after = graph.emit_one(Op::Reshape { shape: Shape::new(&[1]) }, &[after])?;
            let all =
                graph.emit_one(Op::PutSlice { starts: Starts::Dynamic }, &[state[1], after, position])?;
            Ok(vec![graph.add(state[0], 1)?, all])
        },
    )?;
    Ok(last[1])
}

/// One element, as a scalar.
fn element(graph: &mut Graph, x: Value, starts: &[Value]) -> Result<Value> {
    let ones: Sizes = SmallVec::from_elem(1, starts.len());
    let operands: Values = std::iter::once(x).chain(starts.iter().copied()).collect();
    let op = Op::Slice { starts: Starts::Dynamic, lengths: ones.clone(), strides: ones };
    let part = graph.emit_one(op, &operands)?;
    graph.emit_one(Op::Reshape { shape: Shape::scalar() }, &[part])
}

/// The position along each axis of the element with a row-major index.
fn digits(graph: &mut Graph, number: Value, sizes: &[usize]) -> Result<Vec<Value>> {
    let dtype = graph.ty(number).dtype;
    let zero = graph.constant(dtype, 0)?;
    let mut digits = vec![zero; sizes.len()];
    let mut rest = number;
    for (axis, &size) in sizes.iter().enumerate().rev() {
        if size > 1 {
            digits[axis] = graph.remainder(rest, size)?;
            rest = graph.quotient(rest, size)?;
        }
    }
    Ok(digits)
}

/// The dtype of a counter up to `count`.
fn counter_dtype(count: usize) -> DType {
    if i32::try_from(count).is_ok() { DType::S32 } else { DType::S64 }
}

/// Applies a function of scalars to values of `shape` element by element. The function is element-wise, or the shape
/// is that of a scalar.
fn apply(
    graph: &mut Graph,
    fun: &Region,
    element: Value,
    acc: Value,
    captures: &[Value],
    shape: &Shape,
) -> Result<Value> {
    let arguments: Vec<Value> = [element, acc].iter().chain(captures).copied().collect();
    if shape.rank() == 0 {
        return Ok(graph.inline(fun, &arguments)?[0]);
    }
    let mut values: Vec<Values> = Vec::with_capacity(fun.graph().len());
    let varied = varied(fun);
    for (node, &lifted) in fun.graph().nodes().iter().zip(&varied) {
        let inputs: Values = node.inputs.iter().map(|v| values[v.node as usize][v.output as usize]).collect();
        values.push(if let Op::Parameter { index, .. } = &node.op {
            SmallVec::from_elem(arguments[*index], 1)
        } else if let (Op::Reshape { .. } | Op::Squeeze { .. } | Op::Broadcast { .. }, true) =
            (&node.op, lifted)
        {
            // These ops act on scalars in the function; here they would reshape all elements.
            inputs
        } else if let (Op::Clip, true) = (&node.op, lifted) {
            // The bounds may vary per element, which `Clip` does not support.
            let dtype = node.outputs[0].dtype;
            let [x, low, high] = [0, 1, 2].map(|input| grad_region::convert(graph, inputs[input], dtype));
            let raised = graph.max(x?, low?)?;
            SmallVec::from_elem(graph.min(raised, high?)?, 1)
        } else {
            graph.emit(node.op.clone(), &inputs)?.into_iter().collect()
        });
    }
    let result = fun.results()[0];
    let value = values[result.node as usize][result.output as usize];
    if graph.ty(value).shape == *shape { Ok(value) } else { fill(graph, value, shape) }
}

/// For each node of a function, whether it depends on the element or the accumulator.
fn varied(fun: &Region) -> Vec<bool> {
    let mut varied: Vec<bool> = Vec::with_capacity(fun.graph().len());
    for node in fun.graph().nodes() {
        varied.push(if let Op::Parameter { index, .. } = &node.op {
            *index < fun.parameter_count()
        } else {
            node.inputs.iter().any(|input| varied[input.node as usize])
        });
    }
    varied
}

/// Whether a function computes its result from the element and the accumulator by element-wise ops only, so that it
/// can be applied to many elements together. Ops that depend on captures only are unrestricted.
fn is_elementwise(fun: &Region) -> bool {
    let is_mapped = |op: &Op| -> bool {
        match op.on_scalars() {
            OnScalars::Input(_) | OnScalars::Operand | OnScalars::ElementWise(_) => true,
            OnScalars::Block(block) => block.is_element_wise(),
            OnScalars::Constant(_) | OnScalars::Other => false,
        }
    };
    // A hook must receive each scalar separately, whatever it depends on.
    let mut nodes = fun.graph().nodes().iter().zip(varied(fun));
    !fun.has_effects()
        && nodes.all(|(node, varied)| {
            let mut types = node.inputs.iter().map(|&input| fun.graph().ty(input)).chain(&node.outputs);
            !varied || is_mapped(&node.op) && types.all(|ty| ty.shape.rank() == 0)
        })
}

/// Whether a fold by a function is a built-in reduction, which is faster than any fold.
pub fn is_one_reduction(fun: &Region) -> bool {
    BuiltinReduction::of(fun).is_some()
}

/// A function that is one op, and the built-in reductions by that op.
struct BuiltinReduction {
    binary: BinaryOp,
    reduce: ReduceOp,
    window: WindowOp,
}

impl BuiltinReduction {
    /// The reductions for a function that is one op of the element and the accumulator, in either order.
    fn of(fun: &Region) -> Option<BuiltinReduction> {
        let result = fun.graph().node(fun.results()[0]);
        let Op::Binary(binary) = result.op else { return None };
        let (reduce, window) = match binary {
            BinaryOp::ADD => (ReduceOp::Sum, WindowOp::WindowSum),
            BinaryOp::MULTIPLY => (ReduceOp::Product, WindowOp::WindowProduct),
            BinaryOp::MAX => (ReduceOp::ReduceMax, WindowOp::WindowMax),
            BinaryOp::MIN => (ReduceOp::ReduceMin, WindowOp::WindowMin),
            BinaryOp::Arithmetic(_)
            | BinaryOp::Bitwise(_)
            | BinaryOp::Comparison(_)
            | BinaryOp::Logical(_)
            | BinaryOp::Complex => return None,
        };
        let index = |input: usize| {
            if let Op::Parameter { index, .. } = fun.graph().node(result.inputs[input]).op {
                Some(index)
            } else {
                None
            }
        };
        let both = [index(0)?, index(1)?];
        let same_type = fun.inputs()[0] == fun.inputs()[1];
        let is_builtin = same_type && (both == [0, 1] || both == [1, 0]) && !fun.has_effects();
        is_builtin.then_some(BuiltinReduction { binary, reduce, window })
    }
}
