//! Builds an op from a name and attributes.

use std::sync::Arc;

use super::{Attr, Attribute, form, quoted};
use crate::dtype::{DType, Kind};
use crate::op::{
    AllReduceOp, BinaryOp, Block, Collective, CollectiveOp, CondOp, CustomGradOp, CustomRules, DeviceGroups,
    Direction, FoldOp, HookOp, ImplicitOp, LinearMethod, LinearSolver, Literal, MemorySpace, Op, QrMode,
    RuntimeCallOp, TieBreak, Transform, UnaryOp, UserBlockOp, WhileOp, WindowFoldOp,
};
use crate::region::Region;
use crate::scalar::{Number, Scalar};
use crate::shape::{Name, Shape, Sizes, TensorType};

/// Builds the op with this name, attributes, regions and output types; the inverse of [`form`].
///
/// Whether the op is legal for its operands is checked by `infer`.
///
/// # Errors
/// A sentence about an unknown name, or about attributes or regions that are missing, of another kind or not
/// part of the op.
pub fn build(
    name: &str,
    attributes: &[(String, Attr)],
    regions: Vec<Arc<Region>>,
    outputs: &[TensorType],
) -> Result<Op, String> {
    let reader = Reader { name, attributes, outputs };
    let op = reader.op(&regions)?;
    // The op's own form lists the expected attributes; all others are rejected.
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

/// The parts from which an op is read: its name, its attributes, the types of its outputs.
pub(crate) struct Reader<'a> {
    name: &'a str,
    attributes: &'a [(String, Attr)],
    outputs: &'a [TensorType],
}

impl Reader<'_> {
    fn op(&self, regions: &[Arc<Region>]) -> Result<Op, String> {
        if let Some(&op) = UnaryOp::ALL.iter().find(|op| self.is_named(op.name())) {
            return Ok(Op::Unary(op));
        }
        if let Some(&op) = BinaryOp::ALL.iter().find(|op| self.is_named(op.name())) {
            return Ok(Op::Binary(op));
        }
        if let Some(op) = Op::read_row(self)? {
            return Ok(op);
        }
        if let Some(block) = Block::read(self)? {
            self.check_drawn(&block)?;
            return Ok(Op::Block(block));
        }
        let name = self.name;
        let op = match name {
            "parameter" => Op::Parameter { index: self.attribute("index")?, ty: self.result().ty()?.clone() },
            "constant" => Op::Constant(self.scalar()?),
            "tensor" => Op::Literal(self.literal()?),
            "as_type" => Op::AsType { dtype: self.result().dtype()? },
            "bitcast" => Op::Bitcast { dtype: self.result().dtype()? },
            "select" => Op::Select,
            "clip" => Op::Clip,
            "all_reduce" => self.collective(Collective::AllReduce {
                op: self.leaf("op", AllReduceOp::ALL, AllReduceOp::name)?,
            })?,
            "all_gather" => self.collective(Collective::AllGather { axis: self.attribute("axis")? })?,
            "reduce_scatter" => {
                self.collective(Collective::ReduceScatter { axis: self.attribute("axis")? })?
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
                let (axes, keep_axes) = (self.attribute("axes")?, self.attribute("keep_axes")?);
                Op::Fold(FoldOp { axes, keep_axes, fun: fun.clone() })
            }
            "window_reduce" => {
                let [fun] = regions else { return Err(region_count(name, regions, 1)) };
                Op::WindowFold(WindowFoldOp { window: self.attribute("window")?, fun: fun.clone() })
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
                    state: self.attribute("state")?,
                    trips: self.integer("trips")?,
                    snapshots: if self.has("snapshots") { self.integer("snapshots")? } else { None },
                    cond: cond.clone(),
                    body: body.clone(),
                })
            }
            "custom_grad" => {
                let (values, inputs) = (self.attribute("values")?, self.attribute("inputs")?);
                Op::CustomGrad(CustomGradOp { values, inputs, rules: self.rules(regions)? })
            }
            "implicit" => {
                let (condition, preconditioner) = match regions {
                    [condition] => (condition, None),
                    [condition, preconditioner] => (condition, Some(preconditioner)),
                    _ => return Err(region_count(name, regions, 1)),
                };
                let restart = self.integer("restart")?.unwrap_or_default();
                let methods =
                    LinearMethod::NAMES.iter().filter_map(|name| LinearMethod::of_name(name, restart));
                Op::Implicit(ImplicitOp {
                    values: self.attribute("values")?,
                    lanes: self.attribute("lanes")?,
                    solver: LinearSolver {
                        method: self.leaf("solver", &methods.collect::<Vec<_>>(), LinearMethod::name)?,
                        rtol: self.attribute("rtol")?,
                        atol: self.attribute("atol")?,
                        maxiter: self.integer("maxiter")?,
                    },
                    holomorphic: self.attribute("holomorphic")?,
                    condition: condition.clone(),
                    preconditioner: preconditioner.cloned(),
                })
            }
            "stop_grad" => Op::StopGrad,
            "barrier" => Op::Barrier,
            "transfer" => Op::Transfer { to: self.leaf("to", MemorySpace::ALL, MemorySpace::name)? },
            "mark" => match self.text("name")? {
                Some(name) => Op::Mark { name },
                None => return Err("the name of a mark is none, a name is required".to_owned()),
            },
            "hook" => Op::Hook(HookOp { slot: self.attribute("slot")?, name: self.text("name")? }),
            "runtime_call" => {
                let outputs = self.outputs.iter().cloned().collect();
                Op::RuntimeCall(RuntimeCallOp { slot: self.attribute("slot")?, outputs })
            }
            "block" => {
                let [default] = regions else { return Err(region_count(name, regions, 1)) };
                let text = |name: &str| {
                    self.text(name)?.ok_or_else(|| format!("{name} is none, a text in quotes is required"))
                };
                Op::UserBlock(UserBlockOp {
                    name: text("name")?,
                    attributes: text("attributes")?,
                    slot: self.attribute("slot")?,
                    args: self.attribute("args")?,
                    default: default.clone(),
                })
            }
            _ => return Err(format!("\"{name}\" is no op")),
        };
        Ok(op)
    }

    /// A collective of this kind over the groups that were read.
    fn collective(&self, kind: Collective) -> Result<Op, String> {
        let Some(axes) = self.text("over")? else {
            return Err("over is none, the axes of a mesh are required".to_owned());
        };
        let groups = DeviceGroups::new(axes, self.devices("groups")?, self.attribute("size")?)?;
        Ok(Op::Collective(CollectiveOp { kind, groups }))
    }

    fn devices(&self, name: &str) -> Result<Vec<u32>, String> {
        let devices: Result<Vec<u32>, _> = Sizes::read(name, self)?.into_iter().map(u32::try_from).collect();
        devices.map_err(|_| format!("a device in {name} is out of range"))
    }

    /// Checks the element type of random elements, which is that of the result.
    fn check_drawn(&self, block: &Block) -> Result<(), String> {
        let (dtype, kinds): (DType, &[Kind]) = if let Block::RandomBits { dtype, .. } = block {
            (*dtype, &[Kind::Unsigned])
        } else if let Block::RandomUniform { dtype, .. } = block {
            (*dtype, &[Kind::Float])
        } else if let Block::RandomBelow { dtype, .. } = block {
            (*dtype, &[Kind::Unsigned, Kind::Signed])
        } else {
            return Ok(());
        };
        if kinds.contains(&dtype.kind()) { Ok(()) } else { Err(self.result().not_drawn()?) }
    }

    /// Whether this is the op's name.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name
    }

    /// The one of several ops that has this name.
    ///
    /// # Errors
    /// A sentence about a name that none of them has.
    pub fn leaf_of_name<T: Copy>(&self, all: &[T], name: impl Fn(T) -> &'static str) -> Result<T, String> {
        let found = all.iter().copied().find(|&leaf| name(leaf) == self.name);
        found.ok_or_else(|| format!("\"{}\" is no op", self.name))
    }

    /// An attribute.
    ///
    /// # Errors
    /// A sentence about an attribute that is missing, of another kind or out of range.
    pub fn attribute<T: Attribute>(&self, name: &str) -> Result<T, String> {
        T::read(name, self)
    }

    /// The attributes that follow from the result's type.
    pub fn result(&self) -> OfResult<'_> {
        OfResult { reader: self }
    }

    /// Whether the attribute is present.
    pub fn has(&self, name: &str) -> bool {
        self.attributes.iter().any(|(own, _)| own == name)
    }

    /// The value of an attribute.
    ///
    /// # Errors
    /// A sentence about a missing attribute.
    pub fn attr(&self, name: &str) -> Result<&Attr, String> {
        let found = self.attributes.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value).ok_or_else(|| format!("the attribute {name} is missing"))
    }

    /// An integer, or None.
    ///
    /// # Errors
    /// A sentence about an attribute that is missing, of another kind or out of range.
    pub fn integer<T: TryFrom<i128>>(&self, name: &str) -> Result<Option<T>, String> {
        let attr = self.attr(name)?;
        if let Attr::Number(Number::Int(value)) = attr {
            T::try_from(*value).map(Some).map_err(|_| format!("{name} is out of range"))
        } else if let Attr::None = attr {
            Ok(None)
        } else {
            Err(kind(name, attr, "an integer"))
        }
    }

    /// One of several names.
    fn leaf<T: Copy>(&self, name: &str, all: &[T], text: impl Fn(T) -> &'static str) -> Result<T, String> {
        let attr = self.attr(name)?;
        let required = || all.iter().map(|&leaf| quoted(text(leaf))).collect::<Vec<_>>().join(" or ");
        let Attr::Text(value) = attr else { return Err(kind(name, attr, &required())) };
        let found = all.iter().copied().find(|&leaf| text(leaf) == &**value);
        found.ok_or_else(|| kind(name, attr, &required()))
    }

    /// The rules of a custom derivative. Without a mode there is one rule, for reverse mode.
    fn rules(&self, regions: &[Arc<Region>]) -> Result<CustomRules, String> {
        let mode = if self.has("mode") { self.text("mode")? } else { None };
        match (mode.as_deref(), regions) {
            (None, [rule]) => Ok(CustomRules::Reverse(rule.clone())),
            (Some("forward"), [rule]) => Ok(CustomRules::Forward(rule.clone())),
            (Some("both"), [reverse, forward]) => {
                Ok(CustomRules::Both { reverse: reverse.clone(), forward: forward.clone() })
            }
            (Some("recompute"), [region]) => {
                let (kept, offloaded) = (self.attribute("kept")?, self.attribute("offloaded")?);
                Ok(CustomRules::Recompute { region: region.clone(), kept, offloaded })
            }
            (None | Some("forward" | "recompute"), _) => Err(region_count(self.name, regions, 1)),
            (Some("both"), _) => Err(region_count(self.name, regions, 2)),
            (Some(mode), _) => Err(format!(
                "the mode is {}, it must be \"forward\", \"both\" or \"recompute\"",
                quoted(mode)
            )),
        }
    }

    fn text(&self, name: &str) -> Result<Option<Name>, String> {
        let attr = self.attr(name)?;
        if let Attr::Text(text) = attr {
            Ok(Some(text.clone()))
        } else if let Attr::None = attr {
            Ok(None)
        } else {
            Err(kind(name, attr, "a name in quotes"))
        }
    }

    fn scalar(&self) -> Result<Scalar, String> {
        let result = self.result();
        let (attr, ty) = (self.attr("value")?, result.ty()?);
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
        let result = self.result();
        let (attr, ty) = (self.attr("bytes")?, result.ty()?);
        let Attr::Bytes(bytes) = attr else { return Err(kind("bytes", attr, "bytes")) };
        if bytes.len() != ty.byte_size() {
            return Err(format!("the elements have {} bytes, {ty} has {}", bytes.len(), ty.byte_size()));
        }
        // A packed element has one byte here, in which only some values are valid.
        let is_whole = |byte: &u8| Scalar::from_bytes(ty.dtype, &[*byte]).to_bytes() == [*byte];
        if ty.dtype.bits() < 8 && !bytes.iter().all(is_whole) {
            return Err(format!("a byte is out of the range of {}", ty.dtype));
        }
        Ok(Literal::new(ty.clone(), bytes.clone()))
    }
}

/// Attributes that follow from the type of the only result. Each method has the attribute's name.
pub(crate) struct OfResult<'a> {
    reader: &'a Reader<'a>,
}

impl OfResult<'_> {
    fn ty(&self) -> Result<&TensorType, String> {
        match self.reader.outputs {
            [out] => Ok(out),
            outputs => Err(format!("{} types of results, one is required", outputs.len())),
        }
    }

    /// The shape, with names.
    ///
    /// # Errors
    /// A sentence, unless there is exactly one result. This holds for all methods here.
    pub fn shape(&self) -> Result<Shape, String> {
        Ok(self.ty()?.shape.clone())
    }

    /// The element type.
    pub fn dtype(&self) -> Result<DType, String> {
        Ok(self.ty()?.dtype)
    }

    /// The name of the new axis of `stack`.
    pub fn name(&self) -> Result<Option<Name>, String> {
        let (axis, shape): (usize, _) = (self.reader.attribute("axis")?, &self.ty()?.shape);
        Ok(shape.axis(axis).and_then(|axis| shape.name(axis).cloned()))
    }

    /// The number of random elements, which is the size of a vector.
    pub fn count(&self) -> Result<usize, String> {
        match self.ty()?.shape.sizes() {
            [count] => Ok(*count),
            _ => Err(self.not_drawn()?),
        }
    }

    fn not_drawn(&self) -> Result<String, String> {
        Ok(format!("the result has type {}, which no random bits have", self.ty()?))
    }
}

/// Attributes that are one of several names.
macro_rules! leaves {
    ($($leaf:ident),*) => {
        $(impl Attribute for $leaf {
            fn value(&self) -> Attr {
                Attr::Text(self.name().into())
            }

            fn read(name: &str, reader: &Reader<'_>) -> Result<$leaf, String> {
                reader.leaf(name, $leaf::ALL, $leaf::name)
            }
        })*
    };
}

leaves!(Direction, QrMode, TieBreak, Transform);

pub(super) fn kind(name: &str, got: &Attr, required: &str) -> String {
    format!("{name} is {got}, {required} is required")
}

fn region_count(name: &str, got: &[Arc<Region>], required: usize) -> String {
    format!("{} regions, {name} has {required}", got.len())
}
