//! Lowers graphs to StableHLO, the language that plugins compile.
//!
//! Each family of operations has its own function, with an exhaustive match. Blocks lower to their default graphs, or
//! natively where StableHLO has the operation. Folds by a user's function lower to loops.
//!
//! A program is lowered for the host or for separate devices. Where XLA on the host is slow or wrong with the plain
//! form, as for extremes (`extreme`), the host's program has another form.

mod block;
mod collective;
mod complex;
mod control;
mod create;
mod elementwise;
mod extreme;
mod fold;
mod fourier;
mod functions;
mod index;
mod kernel;
mod linalg;
mod matrix;
mod numeric;
mod order;
mod position;
mod reduce;
mod shape;
mod solver;
mod steps;
mod text;
mod value;
mod window;

use std::fmt;

use defn_core::graph::{Graph, Node, Value};
use defn_core::op::Op;
use defn_core::region::Region;
use defn_core::{Location, Scalar, TensorType};
use rustc_hash::FxHashMap;

pub(crate) use kernel::{PROGRAM, TARGET};
pub(crate) use solver::SOLVER_CALLS;
use steps::{Step, steps};
use text::{Ssa, Ty, Writer};
use value::storage_type;

use crate::element::ElementType;

/// A program in StableHLO.
#[derive(Clone, Debug)]
pub struct LoweredProgram {
    /// The module, as text.
    pub text: String,
    /// For each hook at the top level, in order: its slot and the number of its values. The values follow the results
    /// in the program's outputs.
    pub hooks: Vec<(usize, usize)>,
    /// Whether it has a loop without a known trip count, which may never end.
    pub has_unbounded_loop: bool,
}

/// The reason why a graph cannot be lowered.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// A hook inside a loop or a branch; hooks run on the host.
    #[error("hook: inside a loop or a branch, one at the top level of the program is required")]
    InnerHook {
        /// The location of the hook in the user's code.
        location: Option<Location>,
    },
    /// A call of a host function whose result the program needs.
    #[error(
        "runtime_call: in a program for a device, a program without one is required; compile with \"cpu\""
    )]
    RuntimeCall {
        /// The location of the call in the user's code.
        location: Option<Location>,
    },
    /// A collective in a program for one device.
    #[error("{op}: between {count} devices, and this program is for one; run the whole by dn.shard")]
    Alone {
        /// The name of the collective.
        op: &'static str,
        /// The number of its devices.
        count: usize,
        /// The location of the collective in the user's code.
        location: Option<Location>,
    },
    /// An error of the core in a default graph.
    #[error(transparent)]
    Core(#[from] defn_core::Error),
}

type Result<T> = std::result::Result<T, LowerError>;

/// The storage type of a tensor's elements on the device.
pub fn element_type(ty: &TensorType) -> ElementType {
    storage_type(ty.dtype)
}

/// The hardware that a program is compiled for. The results are the same on both; the lowerings are fast on their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hardware {
    /// The host's processors, through XLA.
    Host,
    /// The host's processors, through XLA, whose programs call kernels of this process
    /// ([`set_kernel_compiler`](crate::set_kernel_compiler)).
    HostWithKernels,
    /// An accelerator.
    Device,
    /// NVIDIA's GPUs, whose programs call the library cuSOLVER ([`set_library`](crate::set_library)).
    DeviceWithSolver,
}

impl Hardware {
    /// Its name, as saved executables have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Hardware::Host => "host",
            Hardware::HostWithKernels => "host with kernels",
            Hardware::Device => "device",
            Hardware::DeviceWithSolver => "device with solver",
        }
    }

    /// The hardware that this one's programs run on too, without what they need not call.
    fn plain(self) -> Hardware {
        match self {
            Hardware::Host | Hardware::HostWithKernels => Hardware::Host,
            Hardware::Device | Hardware::DeviceWithSolver => Hardware::Device,
        }
    }

    /// The hardware of a name, if its programs run here.
    pub(crate) fn running(self, name: &str) -> Option<Hardware> {
        [self, self.plain()].into_iter().find(|hardware| hardware.name() == name)
    }
}

/// Lowers a region to a module whose function `main` takes the region's inputs and returns its results. `donated[i]` is
/// the result that may reuse the memory of input `i`.
///
/// # Errors
/// [`LowerError`].
pub fn lower(region: &Region, donated: &[Option<usize>], hardware: Hardware) -> Result<LoweredProgram> {
    write(region, donated, hardware, None)
}

/// Like [`lower`], for a program that each of `count` devices runs on its own blocks, with collectives between them.
/// The devices are its replicas.
///
/// # Errors
/// [`LowerError`].
pub fn lower_over(
    region: &Region,
    donated: &[Option<usize>],
    hardware: Hardware,
    count: usize,
) -> Result<LoweredProgram> {
    write(region, donated, hardware, Some(count))
}

fn write(
    region: &Region,
    donated: &[Option<usize>],
    hardware: Hardware,
    count: Option<usize>,
) -> Result<LoweredProgram> {
    let on_host = hardware.plain() == Hardware::Host;
    let mut lowering = Lowering {
        writer: Writer::new(on_host),
        hooks: Vec::new(),
        depth: 0,
        has_unbounded_loop: false,
        is_over_devices: count.is_some(),
        has_kernels: hardware == Hardware::HostWithKernels,
        has_solver: hardware == Hardware::DeviceWithSolver,
    };
    let arguments: Vec<Ssa> =
        region.inputs().iter().enumerate().map(|(index, ty)| Writer::argument(index, tensor(ty))).collect();
    let mut outputs = lowering.region(region, &arguments)?;
    let hooks = lowering.hooks.iter().map(|(slot, values)| (*slot, values.len())).collect();
    outputs.extend(lowering.hooks.into_iter().flat_map(|(_, values)| values));
    let parameter = |(index, argument): (usize, &Ssa)| {
        let donated = donated.get(index).copied().flatten();
        let alias =
            donated.map_or_else(String::new, |output| format!(" {{tf.aliasing_output = {output} : i32}}"));
        format!("{argument}: {}{alias}", argument.ty)
    };
    let parameters: Vec<String> = arguments.iter().enumerate().map(parameter).collect();
    let results = text::List(outputs.iter().map(|value| &value.ty)).to_string();
    let has_unbounded_loop = lowering.has_unbounded_loop;
    let body = lowering.writer.finish(&outputs);
    let attributes = count.map_or_else(String::new, |count| {
        format!(" attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = {count} : i32}}")
    });
    let text = format!(
        "module @defn{attributes} {{\n  func.func public @main({}) -> ({results}) {{\n{body}  }}\n}}\n",
        text::List(&parameters)
    );
    Ok(LoweredProgram { text, hooks, has_unbounded_loop })
}

/// The type of a tensor as stored on the device.
fn tensor(ty: &TensorType) -> Ty {
    Ty::new(storage_type(ty.dtype), ty.shape.sizes())
}

/// A program under construction.
struct Lowering {
    writer: Writer,
    /// The slots and values of the hooks at the top level.
    hooks: Vec<(usize, Vec<Ssa>)>,
    /// The number of loops and branches around the current position.
    depth: usize,
    /// Whether a loop without a known trip count was written.
    has_unbounded_loop: bool,
    /// Whether several devices run the program together.
    is_over_devices: bool,
    /// Whether the program may call kernels.
    has_kernels: bool,
    /// Whether the program may call functions of cuSOLVER.
    has_solver: bool,
}

/// The operands of a node: their types in the graph and their values in the program.
struct Operands<'a> {
    types: Vec<&'a TensorType>,
    values: Vec<Ssa>,
    /// The operands that are constants of the program.
    constants: Vec<Option<Scalar>>,
}

/// The constant of a value, if it is one.
fn constant(graph: &Graph, value: Value) -> Option<Scalar> {
    if let Op::Constant(scalar) = graph.node(value).op { Some(scalar) } else { None }
}

impl Lowering {
    /// Writes a region's nodes in order, and returns its results.
    fn region(&mut self, region: &Region, inputs: &[Ssa]) -> Result<Vec<Ssa>> {
        let graph = region.graph();
        let mut values: FxHashMap<Value, Ssa> = FxHashMap::default();
        values.reserve(graph.len());
        for step in steps(region, self.has_kernels)? {
            match step {
                Step::Node(at) => {
                    let node = &graph.nodes()[at];
                    let operands = Operands {
                        types: node.inputs.iter().map(|&input| graph.ty(input)).collect(),
                        values: node.inputs.iter().map(|input| values[input].clone()).collect(),
                        constants: node.inputs.iter().map(|&input| constant(graph, input)).collect(),
                    };
                    let results = self.node(node, &operands, inputs)?;
                    values.extend(graph.outputs(at).into_iter().zip(results));
                }
                Step::Kernel(kernel) => {
                    let operands: Vec<Ssa> =
                        kernel.inputs.iter().map(|input| values[input].clone()).collect();
                    let results = self.kernel(&kernel.program, &operands);
                    values.extend(kernel.outputs.into_iter().zip(results));
                }
            }
        }
        Ok(region.results().iter().map(|result| values[result].clone()).collect())
    }

    /// Writes one node.
    fn node(&mut self, node: &Node, x: &Operands<'_>, inputs: &[Ssa]) -> Result<Vec<Ssa>> {
        let out = &node.outputs[0];
        let one = match &node.op {
            Op::Parameter { index, .. } => inputs[*index].clone(),
            Op::Constant(scalar) => self.literal(scalar.to_bytes(), out),
            Op::Literal(literal) => self.literal(literal.bytes().to_vec(), out),
            Op::Iota { shape, dtype, axis } => self.iota(shape, *dtype, *axis),
            Op::Eye { shape, dtype } => self.eye(shape, *dtype),
            Op::Unary(op) => self.unary(*op, x, out),
            Op::Binary(op) => self.binary(*op, x, out),
            Op::AsType { dtype } => self.writer.cast(&x.values[0], x.types[0].dtype, *dtype),
            Op::Bitcast { dtype } => self.bitcast(x, *dtype),
            Op::Select => self.select(x, out),
            Op::Clip => self.clip(x, out),
            Op::Reshape { .. } | Op::Squeeze { .. } => self.reshape(&x.values[0], out.shape.sizes()),
            Op::Broadcast { axes, .. } => self.broadcast(&x.values[0], axes, out),
            Op::Transpose { axes } => self.transpose(&x.values[0], axes),
            Op::Pad { config } => self.pad(x, config, out),
            Op::Reverse { axes } => self.reverse(&x.values[0], axes),
            Op::Concatenate { axis } => self.concatenate(x, *axis, out),
            Op::Stack { axis, .. } => self.stack(x, *axis, out),
            Op::Slice { starts, lengths, strides } => self.slice(x, starts, lengths, strides),
            Op::PutSlice { starts } => self.put_slice(x, starts, out),
            Op::Reduce { op, axes, .. } => self.reduce(*op, x, axes, out),
            Op::ArgReduce { op, axis, tie_break, .. } => self.arg_reduce(*op, x, *axis, *tie_break, out),
            Op::Gather { axes } => self.gather(x, axes, out),
            Op::Scatter { op, axes } => self.scatter(*op, x, axes, out),
            Op::Sort { axis, direction } => self.sort(x, *axis, *direction),
            Op::Argsort { axis, direction, dtype } => self.argsort(x, *axis, *direction, *dtype),
            Op::Window { op, window } => self.window(*op, x, window, out),
            Op::WindowScatter { op, window } => self.window_scatter(*op, x, window, out),
            Op::Conv(conv) => self.conv(x, conv, out),
            Op::Fft { op, axis, length, eps } => self.fft(*op, x, *axis, *length, *eps, out),
            Op::Dot { contract_a, batch_a, contract_b, batch_b } => {
                self.dot(x, [contract_a, batch_a, contract_b, batch_b], out)
            }
            Op::TriangularSolve { lower, left_side, transform_a } => {
                self.triangular_solve(x, *lower, *left_side, *transform_a, out)
            }
            Op::StopGrad | Op::Mark { .. } => x.values[0].clone(),
            Op::Transfer { to } => self.transfer(x, *to, out),
            Op::Barrier => {
                let operands: Vec<&Ssa> = x.values.iter().collect();
                let types: Vec<Ty> = node.outputs.iter().map(tensor).collect();
                return Ok(self.writer.ops("optimization_barrier", &operands, "", &types));
            }
            Op::CustomGrad(op) => return Ok(x.values[..op.values].to_vec()),
            Op::Implicit(op) => return Ok(x.values[..op.values].to_vec()),
            Op::Collective(op) if !self.is_over_devices => {
                let (op, count, location) =
                    (op.kind.name(), op.groups.devices().len(), node.location.clone());
                return Err(LowerError::Alone { op, count, location });
            }
            Op::Collective(op) => self.collective(op, x, out),
            Op::Fold(op) => self.fold(op, x)?,
            Op::WindowFold(op) => self.window_fold(op, x, out)?,
            Op::Cond(op) => return self.cond(op, x, &node.outputs),
            Op::While(op) => return self.while_(op, x, &node.outputs),
            Op::Hook(op) => return self.hook(op.slot, x, node.location.as_ref()),
            Op::RuntimeCall(_) => {
                return Err(LowerError::RuntimeCall { location: node.location.clone() });
            }
            Op::Block(block) => {
                if let Some(results) = self.by_solver(block, x, &node.outputs)? {
                    return Ok(results);
                }
                match self.native(block, x, out)? {
                    Some(native) => native,
                    None => return self.block(block, x),
                }
            }
            Op::UserBlock(op) => return self.region(&op.default, &x.values),
        };
        debug_assert_eq!(one.ty, tensor(out), "{:?}", node.op);
        if self.is_non_negative(&node.op, x, out) {
            self.writer.mark_non_negative(&one);
        }
        Ok(vec![one])
    }
}

impl fmt::Display for LoweredProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::Hardware;

    #[test]
    fn hardware_runs_programs_that_call_less() {
        let solver = Hardware::DeviceWithSolver;
        assert_eq!(solver.running("device with solver"), Some(solver));
        assert_eq!(solver.running("device"), Some(Hardware::Device));
        assert_eq!(Hardware::Device.running("device with solver"), None);
        assert_eq!(Hardware::HostWithKernels.running("host"), Some(Hardware::Host));
        assert_eq!(Hardware::Host.running("host with kernels"), None);
        assert_eq!(solver.running("host"), None);
    }
}
