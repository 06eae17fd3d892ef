//! Products and convolutions with elementwise epilogues are one step, and give the evaluator's results.

mod back_to_back;

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use defn_core::backend::{Backend, Checks, Compiler, Executable, HostMemory, NoHooks};
use defn_core::evaluator::Evaluator;
use defn_core::profile::{Recorder, observing};
use defn_core::region::Region;
use defn_core::{DType, Number, Result, Scalar, Tensor, TensorType, pass};
use defn_cpu::{
    CpuCompiler, cpu_backend, live_bytes, peak_bytes, reset_peak, with_epilogues_always, with_threads,
};

/// The numbers of threads that must give the same bits; one of them exceeds the number of processors.
const THREADS: [usize; 3] = [1, 2, 7];

/// Runs one test at a time: the counters of allocations are global.
static ALONE: Mutex<()> = Mutex::new(());

/// Pseudo-random numbers (Marsaglia, "Xorshift RNGs", 2003).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() >> 33) as usize % count
    }

    fn one<'t, T: ?Sized>(&mut self, of: &[&'t T]) -> &'t T {
        of[self.below(of.len())]
    }
}

/// Elements between -1 and 1, or small integers.
fn input(backend: &Arc<dyn Backend>, index: usize, ty: &TensorType) -> Tensor {
    let mut noise = Noise(0x9E37_79B9_7F4A_7C15 ^ (index as u64 + 1) << 7);
    let mut part = || ((noise.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0).clamp(-1.0, 1.0);
    let mut element = || {
        let number = if ty.dtype.is_integer() {
            Number::Int((part().abs() * 2.0) as i128)
        } else if ty.dtype.is_complex() {
            Number::complex(part(), part())
        } else {
            Number::Float(part())
        };
        Scalar::new(ty.dtype, number).unwrap().to_bytes()
    };
    let bytes: Vec<u8> = (0..ty.size()).flat_map(|_| element()).collect();
    Tensor::concrete(ty.clone(), backend.from_host(ty, HostMemory::from(bytes)).unwrap())
}

fn inputs(region: &Region) -> Vec<Tensor> {
    region.inputs().iter().enumerate().map(|(index, ty)| input(&cpu_backend(), index, ty)).collect()
}

fn region(text: &str) -> Arc<Region> {
    Arc::new(Region::from_text(text).unwrap_or_else(|error| panic!("{error} in\n{text}")))
}

fn bytes_of(results: &[Tensor]) -> Vec<Vec<u8>> {
    results.iter().map(|result| result.host_bytes("test").unwrap().bytes().to_vec()).collect()
}

/// Compares the results of a program on any number of threads with the evaluator's, and its memory with the plan, with
/// epilogues wherever possible. Returns the ops of each step.
fn check(text: &str) -> Vec<Vec<&'static str>> {
    check_as(text, |program| with_epilogues_always(|| CpuCompiler::new().compile(program, Checks::default())))
}

fn check_as(
    text: &str,
    compile: impl FnOnce(Arc<Region>) -> Result<Arc<dyn Executable>>,
) -> Vec<Vec<&'static str>> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (region, backend) = (region(text), cpu_backend());
    let expanded = Arc::new(pass::expand(&region, &backend).unwrap());
    let arguments = inputs(&region);
    let evaluator = Evaluator::new(backend.clone()).compile(expanded, Checks::default()).unwrap();
    let want = bytes_of(&evaluator.run(&backend, arguments.clone(), &NoHooks).unwrap());
    let program = compile(region).unwrap();
    let recorder = Arc::new(Recorder::default());
    for threads in THREADS {
        let run = || {
            reset_peak();
            let before = live_bytes();
            let results = program.run(&backend, arguments.clone(), &NoHooks).unwrap();
            assert_eq!(peak_bytes() - before, program.memory().unwrap().peak(), "{text}");
            bytes_of(&results)
        };
        let got = with_threads(threads, || observing(&recorder, run)).unwrap();
        assert!(want == got, "{threads} threads, {text}");
    }
    recorder.record().steps.into_iter().map(|step| step.work.ops).collect()
}

/// A program of a product and its consumers.
struct Program {
    text: String,
    inputs: Vec<String>,
    count: usize,
}

impl Program {
    fn new() -> Program {
        Program { text: String::new(), inputs: Vec::new(), count: 0 }
    }

    /// Adds a value, and returns its name.
    fn add(&mut self, op: &str, ty: &str) -> String {
        let name = format!("%{}", self.count);
        self.count += 1;
        writeln!(self.text, "  {name} = {op} : {ty}").unwrap();
        name
    }

    fn input(&mut self, ty: &str) -> String {
        self.inputs.push(ty.to_owned());
        self.add(&format!("parameter {{index: {}}}", self.inputs.len() - 1), ty)
    }

    fn finish(self, results: &[String]) -> String {
        format!("defn-ir 1\n({}) {{\n{}  return {}\n}}", self.inputs.join(", "), self.text, results.join(" "))
    }
}

fn shape(sizes: &[usize]) -> String {
    sizes.iter().map(|size| format!("[{size}]")).collect()
}

/// A product with an epilogue: the matrices, their type and layout, and the epilogue.
#[derive(Clone, Copy, Debug)]
struct Dot {
    dtype: DType,
    batch: usize,
    sizes: [usize; 3],
    transposed: (bool, bool),
}

impl Dot {
    fn add(self, program: &mut Program) -> (String, Vec<usize>) {
        let Dot { dtype, batch, sizes: [m, k, n], transposed } = self;
        let lead: &[usize] = if batch == 1 { &[] } else { &[batch] };
        let of = |rows, columns, transposed| {
            let own = if transposed { [columns, rows] } else { [rows, columns] };
            format!("{dtype}{}", shape(&[lead, &own].concat()))
        };
        let (a, b) = (program.input(&of(m, k, transposed.0)), program.input(&of(k, n, transposed.1)));
        let first = lead.len();
        let batches = if lead.is_empty() { "" } else { "0" };
        let (along_a, along_b) = (first + usize::from(!transposed.0), first + usize::from(transposed.1));
        let op = format!(
            "dot {a} {b} {{contract_a: [{along_a}], batch_a: [{batches}], contract_b: [{along_b}], batch_b: [{batches}]}}"
        );
        let sizes = [lead, &[m, n]].concat();
        (program.add(&op, &format!("{dtype}{}", shape(&sizes))), sizes)
    }
}

/// The number of kinds of epilogues.
const CONSUMERS: usize = 8;

fn with_consumers(
    mut program: Program,
    (product, sizes): (String, Vec<usize>),
    dtype: DType,
    way: usize,
) -> String {
    let ty = format!("{dtype}{}", shape(&sizes));
    let last = format!("{dtype}[{}]", sizes[sizes.len() - 1]);
    let mut ones = vec![1; sizes.len()];
    let at = sizes.len() - if sizes.len() > 3 { 3 } else { 2 };
    ones[at] = sizes[at];
    let down = format!("{dtype}{}", shape(&ones));
    let most = if dtype.is_complex() { "multiply" } else { "max" };
    let number = if dtype.is_integer() { "1" } else { "0.5" };
    let results = match way {
        // A dense layer: a bias, and a bound.
        0 => {
            let (bias, one) = (program.input(&last), program.input(&dtype.to_string()));
            let sum = program.add(&format!("add {product} {bias}"), &ty);
            vec![program.add(&format!("{most} {sum} {one}"), &ty)]
        }
        // An operand of the same size, and one with an element for each row.
        1 => {
            let (residual, each) = (program.input(&ty), program.input(&down));
            let sum = program.add(&format!("add {residual} {product}"), &ty);
            vec![program.add(&format!("multiply {sum} {each}"), &ty)]
        }
        // Several results, the product itself among them.
        2 => {
            let bias = program.input(&last);
            let sum = program.add(&format!("subtract {product} {bias}"), &ty);
            let equal = program.add(&format!("equal {sum} {product}"), &format!("bool{}", shape(&sizes)));
            vec![sum, equal, product]
        }
        // The product is used twice, and a result has another type.
        3 => {
            let square = program.add(&format!("multiply {product} {product}"), &ty);
            let sum = program.add(&format!("add {square} {product}"), &ty);
            let to = if dtype.is_complex() { DType::C64 } else { DType::BF16 };
            vec![program.add(&format!("as_type {sum}"), &format!("{to}{}", shape(&sizes)))]
        }
        // A reshape.
        4 => {
            let size: usize = sizes.iter().product();
            let other = program.input(&format!("{dtype}[{size}]"));
            let flat = program.add(&format!("reshape {product}"), &format!("{dtype}[{size}]"));
            vec![program.add(&format!("subtract {other} {flat}"), &format!("{dtype}[{size}]"))]
        }
        // A consumer that permutes the product is no part of the epilogue.
        5 => {
            let reversed = program.add(&format!("reverse {product} {{axes: [{}]}}", sizes.len() - 1), &ty);
            vec![program.add(&format!("add {product} {reversed}"), &ty)]
        }
        // A scalar, and a value that is used later.
        6 => {
            let number = if dtype.is_complex() {
                program.input(&dtype.to_string())
            } else {
                program.add(&format!("constant {{value: {number}}}"), &dtype.to_string())
            };
            let sum = program.add(&format!("multiply {product} {number}"), &ty);
            let fold = format!("sum {sum} {{axes: [{}], keep_axes: true}}", sizes.len() - 1);
            let mut rows = sizes.clone();
            rows[sizes.len() - 1] = 1;
            let wide = if dtype == DType::U8 { DType::U32 } else { dtype };
            let fold = program.add(&fold, &format!("{wide}{}", shape(&rows)));
            vec![fold, sum]
        }
        // Many ops in sequence, some of which are results.
        _ => {
            let mut noise = Noise((way as u64).wrapping_mul(0x2545_F491_4F6C_DD1D) + 1);
            let mut pool = vec![product.clone()];
            let others = [program.input(&last), program.input(&ty), program.input(&down)];
            for _ in 0..2 + noise.below(9) {
                let a = pool[noise.below(pool.len())].clone();
                let b = match noise.below(3) {
                    0 => pool[noise.below(pool.len())].clone(),
                    _ => others[noise.below(others.len())].clone(),
                };
                let op = noise.one(&["add", "subtract", "multiply", most]);
                pool.push(program.add(&format!("{op} {a} {b}"), &ty));
            }
            let mut results: Vec<String> =
                (0..noise.below(3)).map(|_| pool[noise.below(pool.len())].clone()).collect();
            results.push(pool[pool.len() - 1].clone());
            results
        }
    };
    program.finish(&results)
}

#[test]
fn what_follows_products_of_any_sizes_gives_what_the_evaluator_gives() {
    let sizes = [
        // Read in place: few columns, many columns, few rows, and complete blocks.
        [300, 17, 31],
        [2000, 32, 32],
        [20, 100, 900],
        [700, 40, 130],
        [90, 3, 1500],
        // Packed: sizes around blocks and their parts.
        [301, 257, 67],
        [349, 300, 513],
        [700, 100, 600],
        [130, 1100, 260],
        [1600, 70, 100],
    ];
    for (index, &sizes) in sizes.iter().enumerate() {
        for way in 0..CONSUMERS {
            let transposed = ((way + index) % 3 == 0, (way + index) % 2 == 0);
            let dot = Dot { dtype: DType::F32, batch: 1, sizes, transposed };
            let mut program = Program::new();
            let product = dot.add(&mut program);
            check(&with_consumers(program, product, DType::F32, way));
        }
    }
}

#[test]
fn what_follows_products_of_any_type_gives_what_the_evaluator_gives() {
    let dtypes = [DType::F64, DType::C64, DType::C128, DType::BF16, DType::F16, DType::S32, DType::U8];
    for dtype in dtypes {
        for (batch, sizes) in [
            (1, [150, 60, 140]),
            (7, [40, 70, 100]),
            (3, [300, 90, 80]),
            (1, [70, 900, 1]),
            (1, [2000, 9, 20]),
        ] {
            for way in 0..CONSUMERS {
                let dot = Dot { dtype, batch, sizes, transposed: (way % 2 == 0, way % 3 == 0) };
                let mut program = Program::new();
                let product = dot.add(&mut program);
                check(&with_consumers(program, product, dtype, way));
            }
        }
    }
}

#[test]
fn what_follows_stacks_of_products_gives_what_the_evaluator_gives() {
    for (batch, sizes) in [(64, [16, 20, 30]), (5, [200, 64, 100]), (2, [400, 300, 300]), (300, [8, 8, 8])] {
        for way in 0..CONSUMERS {
            let dot = Dot { dtype: DType::F32, batch, sizes, transposed: (false, way % 2 == 0) };
            let mut program = Program::new();
            let product = dot.add(&mut program);
            check(&with_consumers(program, product, DType::F32, way));
        }
    }
}

#[test]
fn random_followers_give_what_the_evaluator_gives() {
    let mut noise = Noise(7);
    for seed in 0..60 {
        let sizes = [20 + noise.below(500), 1 + noise.below(400), 1 + noise.below(600)];
        let transposed = (noise.below(2) == 0, noise.below(2) == 0);
        let dot = Dot {
            dtype: *noise.one(&[&DType::F32, &DType::F32, &DType::F64, &DType::C64]),
            batch: 1 + noise.below(2),
            sizes,
            transposed,
        };
        let mut program = Program::new();
        let product = dot.add(&mut program);
        check(&with_consumers(program, product, dot.dtype, CONSUMERS + seed));
    }
}

/// Convolutions: items, channels, features, groups, sizes, kernel, strides, padding, dilations of the input.
#[derive(Clone, Copy, Debug)]
struct Conv {
    items: usize,
    channels: usize,
    features: usize,
    groups: usize,
    size: [usize; 2],
    kernel: [usize; 2],
    stride: usize,
    padding: usize,
    dilation: usize,
    /// Whether channels come before items in the result.
    is_swapped: bool,
}

impl Conv {
    fn add(self, program: &mut Program, dtype: DType) -> (String, Vec<usize>) {
        let Conv { items, channels, features, groups, size, kernel, stride, padding, dilation, is_swapped } =
            self;
        let x = program.input(&format!("{dtype}{}", shape(&[items, channels, size[0], size[1]])));
        let weights = [features, channels / groups, kernel[0], kernel[1]];
        let weights = program.input(&format!("{dtype}{}", shape(&weights)));
        let place = |axis: usize| ((size[axis] - 1) * dilation + 1 + 2 * padding - kernel[axis]) / stride + 1;
        let (first, second) = if is_swapped { (features, items) } else { (items, features) };
        let order = if is_swapped { "1, 0, 2, 3" } else { "0, 1, 2, 3" };
        let op = format!(
            "conv {x} {weights} {{strides: [{stride}, {stride}], padding: [({padding}, {padding}, 0), ({padding}, {padding}, 0)], \
             input_dilation: [{dilation}, {dilation}], kernel_dilation: [1, 1], feature_group_size: {groups}, \
             batch_group_size: 1, input_permutation: [0, 1, 2, 3], kernel_permutation: [0, 1, 2, 3], \
             output_permutation: [{order}]}}"
        );
        let sizes = vec![first, second, place(0), place(1)];
        (program.add(&op, &format!("{dtype}{}", shape(&sizes))), sizes)
    }
}

const CONV: Conv = Conv {
    items: 4,
    channels: 6,
    features: 16,
    groups: 1,
    size: [28, 28],
    kernel: [3, 3],
    stride: 1,
    padding: 1,
    dilation: 1,
    is_swapped: false,
};

#[test]
fn what_follows_convolutions_gives_what_the_evaluator_gives() {
    let convs = [
        CONV,
        Conv { items: 3, size: [32, 64], padding: 0, ..CONV },
        Conv { stride: 2, size: [60, 57], ..CONV },
        Conv { groups: 2, ..CONV },
        Conv { groups: 2, channels: 2, features: 60, size: [40, 50], ..CONV },
        Conv { features: 3, size: [60, 60], ..CONV },
        Conv { kernel: [1, 1], padding: 0, ..CONV },
        Conv { kernel: [5, 9], padding: 2, size: [40, 19], ..CONV },
        Conv { dilation: 2, size: [17, 20], ..CONV },
        Conv { is_swapped: true, ..CONV },
        Conv { is_swapped: true, size: [21, 13], stride: 2, features: 80, ..CONV },
    ];
    for conv in convs {
        for way in 0..CONSUMERS {
            let dtype = if way % 3 == 1 { DType::F64 } else { DType::F32 };
            let mut program = Program::new();
            let product = conv.add(&mut program, dtype);
            check(&with_consumers(program, product, dtype, way));
        }
    }
    for dtype in [DType::C64, DType::BF16] {
        for way in 0..CONSUMERS {
            let mut program = Program::new();
            let product = CONV.add(&mut program, dtype);
            check(&with_consumers(program, product, dtype, way));
        }
    }
}

/// The steps of an f32 product with an epilogue.
fn steps(way: usize) -> Vec<Vec<&'static str>> {
    let dot = Dot { dtype: DType::F32, batch: 1, sizes: [100, 50, 120], transposed: (false, false) };
    let mut program = Program::new();
    let product = dot.add(&mut program);
    check(&with_consumers(program, product, DType::F32, way))
}

#[test]
fn a_product_and_what_follows_it_are_one_step() {
    assert_eq!(steps(0), [vec!["dot", "add", "max"]]);
    assert_eq!(steps(1), [vec!["dot", "add", "multiply"]]);
    assert_eq!(steps(2), [vec!["dot", "subtract", "equal"]]);
    assert_eq!(steps(3), [vec!["dot", "multiply", "add"]]);
    assert_eq!(steps(4), [vec!["dot", "subtract"]]);
    assert_eq!(steps(5)[0], ["dot"]);
    let mut program = Program::new();
    let product = CONV.add(&mut program, DType::F32);
    assert_eq!(check(&with_consumers(program, product, DType::F32, 0)), [vec!["conv", "add", "max"]]);
}

#[test]
fn products_lie_where_results_will() {
    let plan = |text: &str| {
        let compile = || CpuCompiler::new().compile(region(text), Checks::default());
        let program = with_epilogues_always(compile).unwrap();
        let need = program.memory().unwrap();
        (need.results, need.temporaries)
    };
    let dot = Dot { dtype: DType::F32, batch: 1, sizes: [100, 50, 120], transposed: (false, false) };
    let bytes = 4 * 100 * 120;
    for (way, results, between) in
        [(0, bytes, 0), (1, bytes, 0), (2, 2 * bytes + bytes / 4, 0), (3, bytes / 2, bytes)]
    {
        let mut program = Program::new();
        let product = dot.add(&mut program);
        assert_eq!(plan(&with_consumers(program, product, DType::F32, way)), (results, between), "{way}");
    }
}

#[test]
fn donated_arguments_are_written_over() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dot = Dot { dtype: DType::F32, batch: 1, sizes: [120, 120, 120], transposed: (false, false) };
    // Another operand of the epilogue, and an operand of the product that is used in its epilogue.
    let beside = {
        let mut program = Program::new();
        let product = dot.add(&mut program);
        with_consumers(program, product, DType::F32, 1)
    };
    let operand = "defn-ir 1
        (f32[120][120], f32[120][120]) {
            %0 = parameter {index: 0} : f32[120][120]
            %1 = parameter {index: 1} : f32[120][120]
            %2 = dot %0 %1 {contract_a: [1], batch_a: [], contract_b: [0], batch_b: []} : f32[120][120]
            %3 = add %2 %0 : f32[120][120]
            return %3
        }";
    for (text, donated, results) in [(&*beside, 2, 0), (operand, 0, 4 * 120 * 120)] {
        let (region, backend) = (region(text), cpu_backend());
        let plain = CpuCompiler::new().compile(region.clone(), Checks::default()).unwrap();
        let want = bytes_of(&plain.run(&backend, inputs(&region), &NoHooks).unwrap());
        let donating = || CpuCompiler::new().compile_donating(region.clone(), Checks::default(), &[donated]);
        let program = with_epilogues_always(donating).unwrap();
        assert_eq!(program.memory().unwrap().results, results, "{text}");
        assert!(want == bytes_of(&program.run(&backend, inputs(&region), &NoHooks).unwrap()), "{text}");
    }
}

/// The number of steps of a dense layer or a convolution with one.
fn steps_of(program: Program, product: (String, Vec<usize>)) -> usize {
    let text = with_consumers(program, product, DType::F32, 0);
    check_as(&text, |program| CpuCompiler::new().compile(program, Checks::default())).len()
}

#[test]
fn large_results_of_short_sums_are_followed_unasked() {
    for (sizes, steps) in [([16_384, 8, 256], 1), ([16_380, 8, 256], 2), ([4096, 4, 1024], 2)] {
        let mut program = Program::new();
        let product =
            Dot { dtype: DType::F32, batch: 1, sizes, transposed: (false, false) }.add(&mut program);
        assert_eq!(steps_of(program, product), steps, "{sizes:?}");
    }
    for (conv, steps) in [
        (Conv { items: 16, channels: 1, size: [256, 256], features: 4, ..CONV }, 1),
        (Conv { items: 2048, channels: 1, size: [16, 16], features: 8, ..CONV }, 2),
    ] {
        let mut program = Program::new();
        let product = conv.add(&mut program, DType::F32);
        assert_eq!(steps_of(program, product), steps, "{conv:?}");
    }
}
