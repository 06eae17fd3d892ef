//! Invalid calls that only the Python layer can detect, and their messages.
//!
//! The messages have the core's form: `<function>: <what was given>, <what is required>[; <what to do>]`.

use std::borrow::Cow;

use defn_core::{DType, TensorType};

/// An invalid call.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub(crate) enum Misuse {
    #[error("internal error: {text}; this is a bug in defn, please report it with the code that led here")]
    Internal { text: String },

    #[error(
        "{op}: an executable is native code that this process would run, and trust is {trust}, trust=True is required; give it for what you or whom you trust has saved"
    )]
    Untrusted { op: &'static str, trust: String },

    // values
    #[error("{op}: the operand is of type {got}, it must be a tensor, a number or an array{hint}")]
    NotATensor { op: String, got: String, hint: &'static str },
    #[error("tensor: the integer {value} fits no integer type; give a float dtype")]
    HugeInteger { value: String },
    #[error(
        "tensor: the list is ragged, {path} {got} where {first} {expected}; every list at one depth must have one length"
    )]
    Ragged { path: String, got: String, first: String, expected: String },
    #[error("tensor: an empty list has no type; give dtype=")]
    EmptyList,
    #[error("tensor: {path} is a tensor; join tensors with stack or concatenate")]
    TensorInside { path: String },
    #[error("tensor: {path} is of type {got}, it must be a number or a list")]
    NotANumber { path: String, got: String },
    #[error(
        "tensor: the array has the dtype {got}, which has no counterpart here; convert it with astype first"
    )]
    ArrayDType { got: String },
    #[error("tensor: copy=False was given, but {why}; leave copy out to let it be copied")]
    MustCopy { why: String },
    #[error("tensor: the tensor is {got}, dtype={dtype} was given; convert it with as_type")]
    TensorDType { got: TensorType, dtype: DType },
    #[error(
        "tensor: the tensor {got} is on {device}, backend={requested} was given; move it with backend_copy or backend_transfer"
    )]
    TensorBackend { got: TensorType, device: String, requested: String },
    #[error(
        "dtype: \"{name}\" is no dtype, it must be one of {known}, or NumPy's name of one, such as \"float32\"{hint}"
    )]
    UnknownDType { name: String, known: String, hint: &'static str },
    #[error(
        "dtype: {got} is no dtype, it must be a dtype, its name, a NumPy dtype, or bool, int, float or complex"
    )]
    NotADType { got: String },
    #[error("{op}: the shape is {got}, it must be an int or a sequence of ints{hint}")]
    BadShape { op: &'static str, got: String, hint: &'static str },
    #[error("{op}: {what} is {got}, it must be {required}")]
    BadArgument { op: String, what: String, got: String, required: String },
    #[error(
        "from_binary: {given} bytes for elements of {dtype}, the length must be a positive multiple of the element's width"
    )]
    BinaryLength { given: usize, dtype: DType },

    // indexing and reading
    #[error("index: {index} is out of range for axis {axis} of {got}, it must be in {}..{size}", -(*size as i64))]
    IndexRange { index: String, axis: usize, size: usize, got: TensorType },
    #[error("index: {given} entries for {got}, at most {} are possible", got.shape.rank())]
    TooManyIndices { given: usize, got: TensorType },
    #[error("index: more than one ellipsis for {got}, there may be one")]
    TwoEllipses { got: TensorType },
    #[error("index: the slice step on axis {axis} of {got} is zero, it must not be zero")]
    ZeroStep { axis: usize, got: TensorType },
    #[error(
        "index: the mask {mask} cannot index {got} while a definition is traced, the shape of the result would depend on its values; choose element by element with select, as in sum(select(mask, x, 0)), take n elements at nonzero(mask, size=n), or index outside of the definition"
    )]
    MaskIndex { mask: String, got: TensorType },
    #[error(
        "index: the mask {mask} cannot index {got} from axis {axis} on, it must have the sizes of the axes that it replaces"
    )]
    MaskShape { mask: String, axis: usize, got: TensorType },
    #[error(
        "index: {index} cannot index {got}, it must be an int, a slice, ..., None, integers or bools in a tensor, an array or a list, or a dict by axis name"
    )]
    BadIndex { index: String, got: TensorType },
    #[error(
        "index: the {bound} of a slice along axis {axis} of {of} is {got}, the number of elements must be known, as in x[i:i + 2]; use dn.slice_along_axis(x, start, length, axis), or keep all elements and mask them with dn.select(mask, x, 0)"
    )]
    TracedSlice { bound: &'static str, axis: usize, got: String, of: TensorType },
    #[error("index: a slice of {length} elements along axis {axis} of {of}, at most {size} are possible")]
    TracedSliceLength { length: usize, axis: usize, size: usize, of: TensorType },
    #[error("at: the value is {got}, it must broadcast to {selected}, the elements that the index selects")]
    UpdateShape { got: TensorType, selected: TensorType },
    #[error(
        "at: the value {got} is for the elements at which the traced mask {mask} is true, it must be the same for all of them; choose element by element with dn.select(mask, value, x)"
    )]
    MaskUpdate { got: String, mask: String },
    #[error("len: {got} is a scalar, it has no length")]
    ScalarLength { got: TensorType },
    #[error("iter: {got} is a scalar, it cannot be iterated over")]
    ScalarIteration { got: TensorType },
    #[error("{op}: the tensor is {got}, it must have exactly one element{hint}")]
    NotOneElement { op: &'static str, got: TensorType, hint: &'static str },
    #[error("{op}: the tensor is {got}, it must be {required}")]
    NotThisKind { op: &'static str, got: TensorType, required: &'static str },
    #[error(
        "bool: the tensor {got} is being traced and has no values yet{line}; use dn.cond to run one of two branches, dn.select to choose element by element, or Python's own if in a function that is itself decorated with dn.defn"
    )]
    TracedBool { got: TensorType, line: String },
    #[error("{op}: in a mapped function the tensor is {axes}, it has no single value; {hint}")]
    MappedValue { op: &'static str, axes: String, hint: &'static str },
    #[error(
        "round: ndigits is {ndigits}, only rounding to integers is supported; multiply, round and divide"
    )]
    RoundDigits { ndigits: i64 },

    // containers
    #[error(
        "{op}: {path} is of type {got}, which is neither a tensor nor a container; register its class with register_container"
    )]
    NotAContainer { op: String, path: String, got: String },
    #[error(
        "container: a {class} is not made of a dict alone; pass dict(x), or register its class with register_container"
    )]
    MappingClass { class: String },
    #[error("vmap: {what} has {given} entries for {expected} arguments, one for each is required")]
    AxisCount { what: &'static str, given: usize, expected: usize },
    #[error("vmap: in_axes is {got}, which takes no axis, one at least is required; or give axis_size")]
    NoMappedAxes { got: String },
    #[error("vmap: the axis of {what} is {axis}, it must be an axis of {got}")]
    NoMappedAxis { what: String, got: String, axis: String },
    #[error(
        "vmap: {what} is {axis} for {got}, it must be in -{rank}..{rank}, the axes of the result with one more"
    )]
    NoResultAxis { what: String, axis: i64, got: String, rank: i64 },
    #[error(
        "vmap: the sizes of the mapped axes are {known} of {other} and {own} of {what}, they must be equal"
    )]
    MappedSizes { what: String, own: usize, other: String, known: usize },
    #[error(
        "vmap: axis_name is \"{name}\", the name of an axis of {what}, which is {got}, another name is required"
    )]
    MappedName { name: String, what: String, got: String },
    #[error("{op}: {what} and {other} differ in structure: {difference}")]
    Structure { op: Cow<'static, str>, what: String, other: String, difference: String },
    #[error(
        "runtime_call: the function gives {got}{path}, the output says {expected}; convert what it gives, or change the output"
    )]
    HostResult { got: String, path: String, expected: TensorType },
    #[error("{op}: {what} gives {got}, it must give {required}")]
    BadResult { op: &'static str, what: &'static str, got: String, required: &'static str },
    #[error("register_container: {got} is already a container")]
    KnownContainer { got: String },
    #[error("lazy: the function gave {got}, its template says {expected}; make both say the same")]
    LazyType { got: String, expected: String },
    #[error("scope: {problem}")]
    ScopeUse { problem: &'static str },
    #[error("{op}: {path} is {got}, the stream was made for {expected}; make another stream for it")]
    ChunkType { op: &'static str, path: String, got: TensorType, expected: TensorType },
    #[error(
        "compile: argument {position} is {got}, the compiled function takes a number; compile it again for tensors"
    )]
    NumberExpected { position: usize, got: String },
    #[error("transpose: outer is {outer}, it must have a leaf for each inner container")]
    NoOuterLeaf { outer: String },
    #[error("{op}: {given} leaves for a structure of {expected}")]
    LeafCount { op: &'static str, given: usize, expected: usize },
    #[error("{op}: the containers are nested deeper than {limit}; a container must not contain itself")]
    TooDeep { op: &'static str, limit: usize },
    #[error(
        "{op}: a container holds more than {limit} values; parts that it holds again and again count each time"
    )]
    TooManyValues { op: &'static str, limit: usize },
    #[error(
        "jit: {fun} closes over more than {limit} functions, counting those that these close over, so many are looked into; a container must not make another function each time it is taken apart"
    )]
    TooManyFunctions { fun: String, limit: usize },

    // user-defined backends
    #[error("{callback}: the backend {backend} gave {got}, it must give {expected}")]
    CallbackResult { callback: String, backend: String, got: String, expected: String },
    #[error(
        "{callback}: the backend {backend} has no such callback, and there is no default; define it, or have the host do it, with fallback=\"host\""
    )]
    CallbackMissing { callback: String, backend: String },

    // user-defined compilers
    #[error("{callback}: the compiler {compiler} gave {got}, it must give {expected}")]
    CompilerResult { callback: &'static str, compiler: String, got: String, expected: String },
    #[error(
        "{callback}: the compiler {compiler} has no such callback; define it as dn.Compiler describes it"
    )]
    CompilerCallback { callback: &'static str, compiler: String },
    #[error(
        "{callback}: the compiler {compiler} did not call fun, it must call fun(*vars), which gives what is to be compiled"
    )]
    NeverTraced { callback: &'static str, compiler: String },
    #[error(
        "{callback}: fun is called with {got}, it must be called with the vars of the compiler: fun(*vars)"
    )]
    OtherVars { callback: &'static str, got: String },
    #[error(
        "compile: fun is called after the compiler returned, {fun} must be traced before; call fun(*vars) in compile"
    )]
    OverForGood { fun: String },
    #[error(
        "checks: the compiler {compiler} does not look for {kind}, it must name that in its checks; use another compiler"
    )]
    CompilerChecks { compiler: String, kind: &'static str },
    #[error(
        "hooks: no program of a compiler is running, hooks are there while one is; call it where the program runs"
    )]
    NoRun,
    #[error(
        "expr: the tensor {got} {what}, only a traced tensor has a node; look at tensors inside a definition, or at those that debug_expr gives"
    )]
    NoNode { got: TensorType, what: &'static str },
    #[error(
        "node: the definition that node {node} is of has ended, its graph is gone; look at it while it is traced, or use debug_expr"
    )]
    GraphGone { node: u32 },
    #[error("{op}: the tensor {got} is of another definition, all must be of one")]
    OtherGraph { op: &'static str, got: TensorType },
    #[error("{op}: the value is {got}, it must hold a traced tensor; {hint}")]
    NoGraph { op: &'static str, got: String, hint: &'static str },
    #[error(
        "pickle: {stage} shows values to the host or asks it for some, one that computes alone is required; take hooks and runtime_call out of it"
    )]
    HostStage { stage: String },
    #[error("from_text: {given} captured tensors, the graph of the text takes {expected}; give captures=")]
    CaptureCount { given: usize, expected: usize },
    #[error("run: stages cannot run inside a definition; call them outside")]
    StageInTrace,

    // arrays of other libraries
    #[error(
        "tensor: the array is on the device ({kind}, {id}) of DLPack, it must be on the host; copy it there first"
    )]
    ForeignDevice { kind: i32, id: i32 },
    #[error("tensor: {problem}, DLPack of version 1 with elements on the host is required")]
    BadCapsule { problem: String },
    #[error(
        "tensor: the array is masked, its mask would be lost; fill the masked elements with filled(value), or make tensors of its data and its mask"
    )]
    MaskedArray,
    #[error("{op}: the tensor is on {device}, its memory must be on the host; move it with backend_transfer")]
    NotOnHost { op: &'static str, device: String },

    // files
    #[error(
        "serialize: {class} is not found by its name, a class in a container must stand in an imported module; define it at the top of one"
    )]
    ClassPlace { class: String },
    #[error(
        "serialize: a value is of type {got}, it must be a tensor, a number, a container, or a plain value of Python's"
    )]
    NotStored { got: String },
    #[error("deserialize: the data holds a {class}, which is not defined; import its module first")]
    ClassMissing { class: String },
    #[error(
        "deserialize: the data holds a {class} of another form, its fields must be as they were when it was stored"
    )]
    ClassChanged { class: String },
    #[error("inspect: {given} elements for {got}, the first {needed} are required")]
    FewBytes { got: TensorType, given: usize, needed: usize },
    #[error("save: {what}, {required}")]
    NotSaved { what: String, required: &'static str },

    // definitions
    #[error(
        "{op}: the static value {value} of {path} cannot be hashed, and so cannot tell one compiled version from another; pass a tuple, a frozenset or a frozen dataclass, or pass arrays as inputs"
    )]
    Unhashable { op: String, value: String, path: String },
    #[error("{op}: {what}, {required}")]
    Call { op: String, what: String, required: String },
    #[error("jit: static names the parameter \"{name}\", the function has {known}")]
    UnknownStatic { name: String, known: String },
    #[error("jit: donate names the parameter {given}, the function has {known}")]
    UnknownDonated { given: String, known: String },
    #[error("{op}: {option} is {got}, it must be {required}")]
    OptionValue { op: &'static str, option: String, got: String, required: String },
    #[error("profile: {problem}, {required}")]
    Profile { problem: String, required: &'static str },
    #[error("{op}: unknown option \"{option}\", it takes {known}")]
    UnknownOption { op: &'static str, option: String, known: String },
    #[error("compiler \"{name}\": unknown option \"{option}\", it takes {known}")]
    CompilerOption { name: String, option: String, known: &'static str },
    #[error("jit: {fun} was compiled {count} times, max_compiles allows {limit}; {why}")]
    TooManyCompiles { fun: String, count: usize, limit: usize, why: String },
    #[error(
        "jit: {fun} is called while another definition is traced; decorate it with @defn, or pass on_conflict=\"reuse\" to trace it into that definition or \"force\" to run it apart"
    )]
    Conflict { fun: String },
    #[error(
        "{op}: {fun} is called with traced tensors where it must run apart; on_conflict=\"reuse\" traces it into the open definition"
    )]
    ForcedTraced { op: &'static str, fun: String },
    #[error(
        "compile: the compiled function is called while a definition is traced; call the function itself there"
    )]
    CompiledInTrace,
    #[error(
        "{op}: definitions call one another {depth} deep; a definition that calls itself must stop by a Python condition on shapes or options, or repeat with dn.while_"
    )]
    Recursion { op: &'static str, depth: usize },
    #[error(
        "jit: the tensor {got} is used inside {fun}, but it is neither an argument nor found in the function's closure, defaults or globals; pass it as an argument"
    )]
    UnknownCapture { fun: String, got: TensorType },
    #[error(
        "jit: the tensor {got} at {path} was there when {fun} was compiled and is now {now}; keep a tensor there"
    )]
    CaptureGone { fun: String, got: TensorType, path: String, now: String },
    #[error("grad: argnums is {given}, {fun} has {count} positional arguments in this call")]
    ArgNums { given: String, fun: String, count: usize },
    #[error("grad: argument {position} of {fun} is static, gradients are of tensors and numbers")]
    StaticGrad { position: usize, fun: String },
    #[error(
        "grad: the function's value is {what}, gradients are of one tensor; choose it with value_and_grad's transform"
    )]
    GradValue { what: String },
    #[error(
        "shard: {given} specs for {what}, {expected} are required; one spec may stand for a whole container"
    )]
    SpecCount { what: String, given: usize, expected: usize },
    #[error("shard: no spec for {key} of {what}, one for each of its keys is required")]
    SpecKey { what: String, key: String },
    #[error(
        "shard: {fun} is called while another definition is traced, it runs on the devices of its mesh only by itself; call it outside"
    )]
    ShardTraced { fun: String },
    #[error("{op}: {got} is a template, a value is required; templates are for compile")]
    TemplateArgument { op: &'static str, got: TensorType },
}

impl Misuse {
    /// The exception class in `defn.errors`.
    pub(crate) fn class(&self) -> &'static str {
        use Misuse::*;
        match self {
            Internal { .. } => "Error",
            ArrayDType { .. }
            | TensorDType { .. }
            | UnknownDType { .. }
            | NotADType { .. }
            | NotThisKind { .. } => "DTypeError",
            HugeInteger { .. } => "RangeError",
            Ragged { .. }
            | EmptyList
            | BadShape { .. }
            | BinaryLength { .. }
            | TooManyIndices { .. }
            | TwoEllipses { .. }
            | NotOneElement { .. }
            | ChunkType { .. }
            | NumberExpected { .. }
            | UpdateShape { .. }
            | MaskUpdate { .. }
            | FewBytes { .. }
            | MappedValue { .. } => "ShapeError",
            NotATensor { .. }
            | TensorInside { .. }
            | NotANumber { .. }
            | NotAContainer { .. }
            | MappingClass { .. }
            | Structure { .. }
            | BadResult { .. }
            | HostResult { .. }
            | KnownContainer { .. }
            | LazyType { .. }
            | NoOuterLeaf { .. }
            | LeafCount { .. }
            | HostStage { .. }
            | CaptureCount { .. }
            | TooDeep { .. }
            | TooManyValues { .. }
            | TooManyFunctions { .. }
            | ClassPlace { .. }
            | NotStored { .. }
            | ClassMissing { .. }
            | ClassChanged { .. }
            | NotSaved { .. }
            | SpecCount { .. }
            | SpecKey { .. }
            | GradValue { .. }
            | ScalarLength { .. }
            | ScalarIteration { .. } => "ContainerError",
            IndexRange { .. }
            | ZeroStep { .. }
            | MaskIndex { .. }
            | MaskShape { .. }
            | TracedSliceLength { .. }
            | BadIndex { .. } => "BoundsError",
            NoMappedAxis { .. } | NoResultAxis { .. } | MappedName { .. } => "AxisError",
            MustCopy { .. }
            | BadArgument { .. }
            | AxisCount { .. }
            | NoMappedAxes { .. }
            | MappedSizes { .. }
            | RoundDigits { .. }
            | ScopeUse { .. }
            | Unhashable { .. }
            | Call { .. }
            | UnknownStatic { .. }
            | UnknownDonated { .. }
            | OptionValue { .. }
            | UnknownOption { .. }
            | CompilerOption { .. }
            | ArgNums { .. }
            | StaticGrad { .. } => "OptionError",
            CompilerResult { .. }
            | CompilerCallback { .. }
            | NeverTraced { .. }
            | OtherVars { .. }
            | OverForGood { .. }
            | CompilerChecks { .. }
            | Profile { .. } => "CompileError",
            TracedSlice { .. }
            | NoRun
            | NoNode { .. }
            | GraphGone { .. }
            | OtherGraph { .. }
            | NoGraph { .. }
            | StageInTrace => "TraceError",
            CallbackResult { .. }
            | CallbackMissing { .. }
            | TensorBackend { .. }
            | ForeignDevice { .. }
            | NotOnHost { .. } => "BackendError",
            BadCapsule { .. } => "FormatError",
            MaskedArray | Untrusted { .. } => "OptionError",
            TooManyCompiles { .. } => "CompileError",
            ShardTraced { .. }
            | TracedBool { .. }
            | Conflict { .. }
            | ForcedTraced { .. }
            | CompiledInTrace
            | Recursion { .. }
            | UnknownCapture { .. }
            | CaptureGone { .. }
            | TemplateArgument { .. } => "TraceError",
        }
    }
}
