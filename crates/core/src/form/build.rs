//! From a name and attributes back to an op.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Attr, form, quoted};
use crate::dtype::{DType, Kind};
use crate::op::{
    AllReduceOp, ArgOp, BinaryOp, Block, Collective, CollectiveOp, CondOp, ConvOp, CumulativeOp,
    CustomGradOp, Direction, FftOp, FoldOp, HookOp, Literal, Op, Over, Padding, QrMode, ReduceOp,
    RuntimeCallOp, ScatterOp, Starts, TieBreak, Tolerance, Transform, UnaryOp, UserBlockOp, WhileOp, Window,
    WindowFoldOp, WindowOp, WindowScatterOp,
};
use crate::region::Region;
use crate::scalar::{Number, Scalar};
use crate::shape::{Axis, AxisList, Name, Sizes, TensorType};

/// The op of a name with attributes, regions, and the types of its outputs, the inverse of [`form`].
///
/// Whether the op fits its operands is not known here: `infer` says it.
///
/// # Errors
/// A sentence about a name that no op has, and attributes or regions that are missing, of another kind, or
/// more than the op has.
pub fn build(
    name: &str,
    attributes: &[(String, Attr)],
    regions: Vec<Arc<Region>>,
    outputs: &[TensorType],
) -> Result<Op, String> {
    let given = Given { attributes, outputs };
    let op = given.op(name, &regions)?;
    // The op's own form says what it takes; whatever else was given is too much.
    let expected = form(&op);
    let texts = |pairs: Vec<(&str, &Attr)>| {
        let mut texts: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        texts.sort();
        texts
    };
    let own = texts(expected.attributes().collect());
    let all = texts(attributes.iter().map(|(name, value)| (name.as_str(), value)).collect());
    if own != all {
        let braces = |texts: Vec<String>| format!("{{{}}}", texts.join(", "));
        return Err(format!("the attributes are {}, they must be {}", braces(all), braces(own)));
    }
    if expected.regions.len() != regions.len() {
        return Err(format!("{} regions, {name} has {}", regions.len(), expected.regions.len()));
    }
    Ok(op)
}

/// What was read of an op.
struct Given<'a> {
    attributes: &'a [(String, Attr)],
    outputs: &'a [TensorType],
}

impl Given<'_> {
    fn op(&self, name: &str, regions: &[Arc<Region>]) -> Result<Op, String> {
        let leaf = |names: &[&'static str]| names.iter().position(|known| *known == name);
        if let Some(at) = leaf(&UnaryOp::ALL.iter().map(|op| op.name()).collect::<Vec<_>>()) {
            return Ok(Op::Unary(UnaryOp::ALL[at]));
        }
        if let Some(at) = leaf(&BinaryOp::ALL.iter().map(|op| op.name()).collect::<Vec<_>>()) {
            return Ok(Op::Binary(BinaryOp::ALL[at]));
        }
        if let Some(&op) = ReduceOp::ALL.iter().find(|op| op.name() == name) {
            return Ok(Op::Reduce { op, axes: self.axes("axes")?, keep_axes: self.bool("keep_axes")? });
        }
        if let Some(&op) = ArgOp::ALL.iter().find(|op| op.name() == name) {
            return Ok(Op::ArgReduce {
                op,
                axis: self.optional_usize("axis")?.map(Axis),
                keep_axis: self.bool("keep_axis")?,
                tie_break: self.tie_break()?,
                dtype: self.out()?.dtype,
            });
        }
        if let Some(&op) = ScatterOp::ALL.iter().find(|op| op.name() == name) {
            return Ok(Op::Scatter { op, axes: self.axes("axes")? });
        }
        if let Some(&op) = WindowOp::ALL.iter().find(|op| op.name() == name) {
            return Ok(Op::Window { op, window: self.window()? });
        }
        if let Some(&op) = WindowScatterOp::ALL.iter().find(|op| op.name() == name) {
            return Ok(Op::WindowScatter { op, window: self.window()? });
        }
        if let Some(&op) = FftOp::ALL.iter().find(|op| op.name() == name) {
            let (axis, length) = (Axis(self.usize("axis")?), self.usize("length")?);
            return Ok(Op::Fft { op, axis, length, eps: self.tolerance("eps")? });
        }
        if let Some(block) = self.block(name)? {
            return Ok(Op::Block(block));
        }
        let op = match name {
            "parameter" => Op::Parameter { index: self.usize("index")?, ty: self.out()?.clone() },
            "constant" => Op::Constant(self.scalar()?),
            "tensor" => Op::Literal(self.literal()?),
            "iota" => {
                let TensorType { dtype, shape } = self.out()?.clone();
                Op::Iota { shape, dtype, axis: self.optional_usize("axis")?.map(Axis) }
            }
            "eye" => {
                let TensorType { dtype, shape } = self.out()?.clone();
                Op::Eye { shape, dtype }
            }
            "as_type" => Op::AsType { dtype: self.out()?.dtype },
            "bitcast" => Op::Bitcast { dtype: self.out()?.dtype },
            "select" => Op::Select,
            "clip" => Op::Clip,
            "reshape" => Op::Reshape { shape: self.out()?.shape.clone() },
            "squeeze" => Op::Squeeze { axes: self.axes("axes")? },
            "broadcast" => Op::Broadcast { shape: self.out()?.shape.clone(), axes: self.axes("axes")? },
            "transpose" => Op::Transpose { axes: self.axes("axes")? },
            "pad" => Op::Pad { config: self.padding("config")? },
            "reverse" => Op::Reverse { axes: self.axes("axes")? },
            "concatenate" => Op::Concatenate { axis: Axis(self.usize("axis")?) },
            "stack" => {
                let axis = self.usize("axis")?;
                let shape = &self.out()?.shape;
                Op::Stack { axis, name: shape.axis(axis).and_then(|axis| shape.name(axis).cloned()) }
            }
            "slice" => Op::Slice {
                starts: self.starts()?,
                lengths: self.usizes("lengths")?,
                strides: self.usizes("strides")?,
            },
            "put_slice" => Op::PutSlice { starts: self.starts()? },
            "dot" => Op::Dot {
                contract_a: self.axes("contract_a")?,
                batch_a: self.axes("batch_a")?,
                contract_b: self.axes("contract_b")?,
                batch_b: self.axes("batch_b")?,
            },
            "gather" => Op::Gather { axes: self.axes("axes")? },
            "sort" => Op::Sort { axis: Axis(self.usize("axis")?), direction: self.direction()? },
            "argsort" => Op::Argsort {
                axis: Axis(self.usize("axis")?),
                direction: self.direction()?,
                dtype: self.out()?.dtype,
            },
            "conv" => Op::Conv(self.conv()?),
            "triangular_solve" => Op::TriangularSolve {
                lower: self.bool("lower")?,
                left_side: self.bool("left_side")?,
                transform: self.leaf("transform_a", Transform::ALL, Transform::name)?,
            },
            "all_reduce" => self.collective(Collective::AllReduce {
                op: self.leaf("op", AllReduceOp::ALL, AllReduceOp::name)?,
            })?,
            "all_gather" => self.collective(Collective::AllGather { axis: Axis(self.usize("axis")?) })?,
            "reduce_scatter" => {
                self.collective(Collective::ReduceScatter { axis: Axis(self.usize("axis")?) })?
            }
            "collective_permute" => {
                let flat = self.devices("pairs")?;
                let (pairs, []) = flat.as_chunks::<2>() else {
                    return Err(format!("pairs has {} entries, an even number is required", flat.len()));
                };
                let pairs = pairs.iter().map(|&[from, to]| (from, to)).collect();
                self.collective(Collective::CollectivePermute { pairs })?
            }
            "mesh_index" => self.collective(Collective::MeshIndex)?,
            "reduce" => {
                let [fun] = regions else { return Err(region_count(name, regions, 1)) };
                let (axes, keep_axes) = (self.axes("axes")?, self.bool("keep_axes")?);
                Op::Fold(FoldOp { axes, keep_axes, fun: fun.clone() })
            }
            "window_reduce" => {
                let [fun] = regions else { return Err(region_count(name, regions, 1)) };
                Op::WindowFold(WindowFoldOp { window: self.window()?, fun: fun.clone() })
            }
            "cond" => {
                if regions.len() < 2 {
                    return Err(format!("{} branches, at least 2 are required", regions.len()));
                }
                Op::Cond(CondOp { branches: regions.iter().cloned().collect() })
            }
            "while" => {
                let [cond, body] = regions else { return Err(region_count(name, regions, 2)) };
                Op::While(WhileOp {
                    state: self.usize("state")?,
                    trips: self.optional_u64("trips")?,
                    cond: cond.clone(),
                    body: body.clone(),
                })
            }
            "custom_grad" => {
                let [rule] = regions else { return Err(region_count(name, regions, 1)) };
                Op::CustomGrad(CustomGradOp {
                    values: self.usize("values")?,
                    inputs: self.usize("inputs")?,
                    rule: rule.clone(),
                })
            }
            "stop_grad" => Op::StopGrad,
            "mark" => match self.name("name")? {
                Some(name) => Op::Mark { name },
                None => return Err("the name of a mark is none, a name is required".to_owned()),
            },
            "hook" => Op::Hook(HookOp { slot: self.usize("slot")?, name: self.name("name")? }),
            "runtime_call" => {
                let outputs = self.outputs.iter().cloned().collect();
                Op::RuntimeCall(RuntimeCallOp { slot: self.usize("slot")?, outputs })
            }
            "block" => {
                let [default] = regions else { return Err(region_count(name, regions, 1)) };
                let text = |name: &str| {
                    self.name(name)?.ok_or_else(|| format!("{name} is none, a text in quotes is required"))
                };
                Op::UserBlock(UserBlockOp {
                    name: text("name")?,
                    attributes: text("attributes")?,
                    slot: self.usize("slot")?,
                    args: self.usize("args")?,
                    default: default.clone(),
                })
            }
            _ => return Err(format!("\"{name}\" is no op")),
        };
        Ok(op)
    }

    /// The block of a name, where it is one.
    fn block(&self, name: &str) -> Result<Option<Block>, String> {
        if let Some(&op) = CumulativeOp::ALL.iter().find(|op| op.name() == name) {
            let (axis, reverse) = (Axis(self.usize("axis")?), self.bool("reverse")?);
            return Ok(Some(Block::Cumulative { op, axis, reverse }));
        }
        let fft2 = |op: FftOp| -> Result<Block, String> {
            let pair = |name: &str| {
                let sizes = self.usizes(name)?;
                <[usize; 2]>::try_from(&sizes[..]).map_err(|_| format!("{name} must have two entries"))
            };
            let (axes, lengths) = (pair("axes")?.map(Axis), pair("lengths")?);
            Ok(Block::Fft2 { op, axes, lengths, eps: self.tolerance("eps")? })
        };
        Ok(Some(match name {
            "logical_not" => Block::LogicalNot,
            "phase" => Block::Phase,
            "log2" => Block::Log2,
            "log10" => Block::Log10,
            "logsumexp" => Block::Logsumexp { axes: self.axes("axes")?, keep_axes: self.bool("keep_axes")? },
            "all_close" => Block::AllClose {
                equal_nan: self.bool("equal_nan")?,
                rtol: self.tolerance("rtol")?,
                atol: self.tolerance("atol")?,
            },
            "take" => Block::Take { axis: Axis(self.usize("axis")?) },
            "take_along_axis" => Block::TakeAlongAxis { axis: Axis(self.usize("axis")?) },
            "top_k" => Block::TopK { k: self.usize("k")? },
            "fft2" => fft2(FftOp::Fft)?,
            "ifft2" => fft2(FftOp::Ifft)?,
            "rfft" => {
                let (axis, length) = (Axis(self.usize("axis")?), self.usize("length")?);
                Block::Rfft { axis, length, eps: self.tolerance("eps")? }
            }
            "irfft" => {
                let (axis, length) = (Axis(self.usize("axis")?), self.usize("length")?);
                Block::Irfft { axis, length, eps: self.tolerance("eps")? }
            }
            "cholesky" => Block::Cholesky,
            "solve" => Block::Solve,
            "qr" => {
                let mode = self.leaf("mode", QrMode::ALL, QrMode::name)?;
                Block::Qr { mode, eps: self.tolerance("eps")? }
            }
            "lu" => Block::Lu,
            "svd" => {
                Block::Svd { max_iter: self.usize("max_iter")?, full_matrices: self.bool("full_matrices")? }
            }
            "eigh" => Block::Eigh { max_iter: self.usize("max_iter")?, eps: self.tolerance("eps")? },
            "determinant" => Block::Determinant,
            "threefry" => Block::Threefry,
            "random_bits" => {
                let (dtype, count) = self.drawn(&[Kind::Unsigned])?;
                Block::RandomBits { dtype, count }
            }
            "random_uniform" => {
                let (dtype, count) = self.drawn(&[Kind::Float])?;
                Block::RandomUniform { dtype, count }
            }
            "random_below" => {
                let (dtype, count) = self.drawn(&[Kind::Unsigned, Kind::Signed])?;
                Block::RandomBelow { dtype, count }
            }
            _ => return Ok(None),
        }))
    }

    /// A collective of a kind over the groups that were read.
    fn collective(&self, kind: Collective) -> Result<Op, String> {
        let Some(axes) = self.name("over")? else {
            return Err("over is none, the axes of a mesh are required".to_owned());
        };
        let over = Over::new(axes, self.devices("groups")?, self.usize("size")?)?;
        Ok(Op::Collective(CollectiveOp { kind, over }))
    }

    fn devices(&self, name: &str) -> Result<Vec<u32>, String> {
        let devices: Result<Vec<u32>, _> = self.usizes(name)?.into_iter().map(u32::try_from).collect();
        devices.map_err(|_| format!("a device in {name} is out of range"))
    }

    fn window(&self) -> Result<Window, String> {
        Ok(Window {
            sizes: self.usizes("window")?,
            strides: self.usizes("strides")?,
            padding: self.pairs("padding")?,
            dilations: self.usizes("window_dilations")?,
        })
    }

    fn conv(&self) -> Result<ConvOp, String> {
        Ok(ConvOp {
            strides: self.usizes("strides")?,
            padding: self.pairs("padding")?,
            input_dilation: self.usizes("input_dilation")?,
            kernel_dilation: self.usizes("kernel_dilation")?,
            feature_groups: self.usize("feature_group_size")?,
            batch_groups: self.usize("batch_group_size")?,
            input_permutation: self.axes("input_permutation")?,
            kernel_permutation: self.axes("kernel_permutation")?,
            output_permutation: self.axes("output_permutation")?,
        })
    }

    /// The element type and the size of a vector of elements of a kind.
    fn drawn(&self, kinds: &[Kind]) -> Result<(DType, usize), String> {
        let ty = self.out()?;
        match ty.shape.sizes() {
            [count] if kinds.contains(&ty.dtype.kind()) => Ok((ty.dtype, *count)),
            _ => Err(format!("the result has type {ty}, which no random bits have")),
        }
    }

    /// The type of the one output.
    fn out(&self) -> Result<&TensorType, String> {
        match self.outputs {
            [out] => Ok(out),
            _ => Err(format!("{} types of results, one is required", self.outputs.len())),
        }
    }

    fn attr(&self, name: &str) -> Result<&Attr, String> {
        let found = self.attributes.iter().find(|(given, _)| given == name);
        found.map(|(_, value)| value).ok_or_else(|| format!("the attribute {name} is missing"))
    }

    fn bool(&self, name: &str) -> Result<bool, String> {
        let attr = self.attr(name)?;
        if let Attr::Bool(value) = attr { Ok(*value) } else { Err(kind(name, attr, "true or false")) }
    }

    fn int(&self, name: &str) -> Result<Option<i128>, String> {
        let attr = self.attr(name)?;
        if let Attr::Number(Number::Int(value)) = attr {
            Ok(Some(*value))
        } else if let Attr::None = attr {
            Ok(None)
        } else {
            Err(kind(name, attr, "an integer"))
        }
    }

    fn optional_usize(&self, name: &str) -> Result<Option<usize>, String> {
        let found = self.int(name)?.map(usize::try_from).transpose();
        found.map_err(|_| format!("{name} is out of range"))
    }

    fn optional_u64(&self, name: &str) -> Result<Option<u64>, String> {
        let found = self.int(name)?.map(u64::try_from).transpose();
        found.map_err(|_| format!("{name} is out of range"))
    }

    fn usize(&self, name: &str) -> Result<usize, String> {
        self.optional_usize(name)?.ok_or_else(|| format!("{name} is none, an integer is required"))
    }

    fn usizes(&self, name: &str) -> Result<Sizes, String> {
        let attr = self.attr(name)?;
        let Attr::Ints(values) = attr else { return Err(kind(name, attr, "a list of integers")) };
        let sizes: Result<Sizes, _> = values.iter().map(|&value| usize::try_from(value)).collect();
        sizes.map_err(|_| format!("{name} is {attr}, integers that are not negative are required"))
    }

    fn axes(&self, name: &str) -> Result<AxisList, String> {
        Ok(self.usizes(name)?.into_iter().map(Axis).collect())
    }

    /// Starts that are not given are operands.
    fn starts(&self) -> Result<Starts, String> {
        let given = self.attributes.iter().any(|(name, _)| name == "starts");
        if given {
            return Ok(Starts::Static(self.usizes("starts")?));
        }
        let counted = self.attributes.iter().any(|(name, _)| name == "from_end") && self.bool("from_end")?;
        Ok(if counted { Starts::FromEnd } else { Starts::Dynamic })
    }

    fn padding(&self, name: &str) -> Result<SmallVec<[Padding; 4]>, String> {
        let attr = self.attr(name)?;
        if let Attr::Padding(config) = attr {
            return Ok(config.clone());
        }
        // An empty list does not say what it is a list of.
        let is_empty = if let Attr::Ints(values) = attr { values.is_empty() } else { false };
        if is_empty { Ok(SmallVec::new()) } else { Err(kind(name, attr, "a list of triples")) }
    }

    /// Padding without anything between the elements.
    fn pairs(&self, name: &str) -> Result<SmallVec<[(i64, i64); 4]>, String> {
        let config = self.padding(name)?;
        if config.iter().any(|padding| padding.interior != 0) {
            return Err(format!("{name} has padding between elements, none is required"));
        }
        Ok(config.iter().map(|padding| (padding.low, padding.high)).collect())
    }

    /// One of several names.
    fn leaf<T: Copy>(&self, name: &str, all: &[T], text: impl Fn(T) -> &'static str) -> Result<T, String> {
        let attr = self.attr(name)?;
        let required = || all.iter().map(|&leaf| quoted(text(leaf))).collect::<Vec<_>>().join(" or ");
        let Attr::Text(given) = attr else { return Err(kind(name, attr, &required())) };
        let found = all.iter().copied().find(|&leaf| text(leaf) == &**given);
        found.ok_or_else(|| kind(name, attr, &required()))
    }

    fn direction(&self) -> Result<Direction, String> {
        self.leaf("direction", Direction::ALL, Direction::name)
    }

    fn name(&self, name: &str) -> Result<Option<Name>, String> {
        let attr = self.attr(name)?;
        if let Attr::Text(text) = attr {
            Ok(Some(text.clone()))
        } else if let Attr::None = attr {
            Ok(None)
        } else {
            Err(kind(name, attr, "a name in quotes"))
        }
    }

    fn tolerance(&self, name: &str) -> Result<Tolerance, String> {
        let attr = self.attr(name)?;
        if let Attr::Number(Number::Float(value)) = attr {
            Ok(Tolerance(*value))
        } else {
            Err(kind(name, attr, "a float"))
        }
    }

    fn tie_break(&self) -> Result<TieBreak, String> {
        self.leaf("tie_break", TieBreak::ALL, TieBreak::name)
    }

    fn scalar(&self) -> Result<Scalar, String> {
        let (attr, ty) = (self.attr("value")?, self.out()?);
        let number = if ty.dtype.is_bool() {
            let Attr::Bool(value) = attr else { return Err(kind("value", attr, "true or false")) };
            &Number::Bool(*value)
        } else {
            let Attr::Number(number) = attr else { return Err(kind("value", attr, "a number")) };
            number
        };
        if ty.shape.rank() != 0 {
            return Err(format!("a constant has type {ty}, it must be a scalar"));
        }
        Scalar::new(ty.dtype, *number).map_err(|error| error.to_string())
    }

    fn literal(&self) -> Result<Literal, String> {
        let (attr, ty) = (self.attr("bytes")?, self.out()?);
        let Attr::Bytes(bytes) = attr else { return Err(kind("bytes", attr, "bytes")) };
        if bytes.len() != ty.byte_size() {
            return Err(format!("the elements have {} bytes, {ty} has {}", bytes.len(), ty.byte_size()));
        }
        // A packed element has a byte to itself, of which only some values mean anything.
        let is_whole = |byte: &u8| Scalar::from_bytes(ty.dtype, &[*byte]).to_bytes() == [*byte];
        if ty.dtype.bits() < 8 && !bytes.iter().all(is_whole) {
            return Err(format!("a byte is out of the range of {}", ty.dtype));
        }
        Ok(Literal::new(ty.clone(), bytes.clone()))
    }
}

fn kind(name: &str, got: &Attr, required: &str) -> String {
    format!("{name} is {got}, {required} is required")
}

fn region_count(name: &str, got: &[Arc<Region>], required: usize) -> String {
    format!("{} regions, {name} has {required}", got.len())
}
