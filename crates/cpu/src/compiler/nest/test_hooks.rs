//! What tests do with nests: they choose the executor and the work of a thread, put operands between pages that cannot
//! be accessed, and keep calls for other processors.

use std::cell::{Cell, RefCell};

use defn_core::TensorType;
use once_cell::race::OnceBox;
use smallvec::SmallVec;

use super::super::emit::Target;
use super::super::ir::Function;
use super::super::memory::code::CodeBlock;
use super::shared::{Runner, SharedCode};
use super::{CHUNK_WORK, Nest, allocated, instruction_sets};
use crate::compiler::memory::code::CodeMemory;
use crate::kernels::reduce::CHUNK;
use crate::par::Par;

/// The size of a page, or a multiple of it.
const PAGE: usize = 1 << 14;
/// What is written where nothing may write.
const CANARY: u8 = 0xA5;
/// How many bytes beside an operand are looked at, where there is no page.
const LOOKED_AT: usize = 512;

/// What runs nests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Executor {
    Portable,
    /// The code of one of [`instruction_sets`].
    Machine(usize),
}

/// How a test has its nests run.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Mode {
    pub(in super::super) executor: Executor,
    /// Whether operands end where a page ends that has none behind it, or begin where there is none before it.
    pub(in super::super) at_end: bool,
    /// Whether calls are recorded.
    pub(in super::super) is_recorded: bool,
}

/// A call, and what it left.
#[derive(Debug)]
#[cfg_attr(fuzzing, allow(dead_code, reason = "the fuzzer keeps none"))]
pub(in super::super) struct RecordedCall {
    pub(in super::super) function: Function,
    /// The offsets in the data of the pointers among the arguments, then the numbers.
    pub(in super::super) offsets: Vec<usize>,
    pub(in super::super) numbers: Vec<u64>,
    pub(in super::super) before: Vec<u8>,
    pub(in super::super) after: Vec<u8>,
    /// Where the results begin, and their types.
    pub(in super::super) results: Vec<(usize, TensorType)>,
}

thread_local! {
    static MODE: Cell<Option<Mode>> = const { Cell::new(None) };
    static WORK: Cell<usize> = const { Cell::new(CHUNK_WORK) };
    static CHUNK_OF_ROW: Cell<usize> = const { Cell::new(CHUNK) };
    static WRITES_IN_PLACE: Cell<bool> = const { Cell::new(false) };
    static RECORDED: RefCell<Vec<RecordedCall>> = const { RefCell::new(Vec::new()) };
    static FREE: RefCell<Vec<Fenced>> = const { RefCell::new(Vec::new()) };
    static LACKING: Cell<usize> = const { Cell::new(0) };
}

/// Undoes what is set for a body, after a panic too.
struct Reset {
    mode: Option<Mode>,
    work: usize,
    chunk: usize,
    writes_in_place: bool,
}

impl Reset {
    fn later() -> Reset {
        let (mode, work, chunk) = (MODE.get(), WORK.get(), CHUNK_OF_ROW.get());
        Reset { mode, work, chunk, writes_in_place: WRITES_IN_PLACE.get() }
    }
}

impl Drop for Reset {
    fn drop(&mut self) {
        MODE.set(self.mode);
        WORK.set(self.work);
        CHUNK_OF_ROW.set(self.chunk);
        WRITES_IN_PLACE.set(self.writes_in_place);
    }
}

/// Runs `body`, whose nests run as the mode says.
pub(in super::super) fn with_mode<T>(mode: Mode, body: impl FnOnce() -> T) -> T {
    let _reset = Reset::later();
    MODE.set(Some(mode));
    body()
}

/// Runs `body`, which makes nests of which a thread does so much work at a time.
pub(in super::super) fn with_work<T>(work: usize, body: impl FnOnce() -> T) -> T {
    let _reset = Reset::later();
    WORK.set(work);
    body()
}

/// Runs `body`, whose nests reduce rows in pieces of so many elements.
pub(in super::super) fn with_chunk<T>(chunk: usize, body: impl FnOnce() -> T) -> T {
    let _reset = Reset::later();
    CHUNK_OF_ROW.set(chunk);
    body()
}

/// Runs `body`, which makes plans whose nests write in place of inputs wherever they may.
pub(in super::super) fn with_writes_in_place<T>(body: impl FnOnce() -> T) -> T {
    let _reset = Reset::later();
    WRITES_IN_PLACE.set(true);
    body()
}

/// Whether nests write in place of small inputs too.
pub(in super::super) fn writes_in_place() -> bool {
    WRITES_IN_PLACE.get()
}

/// The elements of a piece of a row.
pub(in super::super) fn chunk() -> usize {
    CHUNK_OF_ROW.get()
}

pub(super) fn work() -> usize {
    WORK.get()
}

/// The calls that were recorded on this thread.
#[cfg(test)]
pub(in super::super) fn take_recorded() -> Vec<RecordedCall> {
    RECORDED.take()
}

/// How many functions had no code for an instruction set, on this thread.
#[cfg(test)]
pub(in super::super) fn lacking() -> usize {
    LACKING.get()
}

/// The executors of this machine.
pub(in super::super) fn executors() -> Vec<(&'static str, Executor)> {
    let has = |target: &&dyn Target| match target.name() {
        #[cfg(target_arch = "x86_64")]
        "avx512" => {
            let all = is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512bw");
            all && is_x86_feature_detected!("avx512vl")
        }
        #[cfg(target_arch = "x86_64")]
        "avx2" => {
            let all = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            all && is_x86_feature_detected!("f16c")
        }
        "neon" => cfg!(target_arch = "aarch64"),
        _ => false,
    };
    let sets = instruction_sets().into_iter().enumerate();
    let machines =
        sets.filter(|(_, target)| has(target)).map(|(at, target)| (target.name(), Executor::Machine(at)));
    [("portable", Executor::Portable)].into_iter().chain(machines).collect()
}

/// The code of a function for each instruction set.
#[derive(Debug, Default)]
pub(super) struct Codes([OnceBox<Option<CodeBlock>>; 3]);

impl SharedCode {
    /// What runs the function for the test on this thread.
    pub(super) fn test_hooks(&self) -> Option<Runner<'_>> {
        let Executor::Machine(at) = MODE.get()?.executor else { return Some(self.portable()) };
        let code = self.codes.0[at].get_or_init(|| {
            let target = instruction_sets()[at];
            let allocated = allocated(&self.function, target).ok();
            let block = allocated.and_then(|code| CodeMemory::add(&target.encode(&code), "nest"));
            LACKING.set(LACKING.get() + usize::from(block.is_none()));
            Box::new(block)
        });
        Some(code.as_ref().map_or_else(|| self.portable(), Runner::of_block))
    }
}

#[cfg(asan)]
unsafe extern "C" {
    fn __asan_poison_memory_region(start: *const u8, bytes: usize);
    fn __asan_unpoison_memory_region(start: *const u8, bytes: usize);
}

/// Tells AddressSanitizer, where tests run with it, that nobody may access so many bytes, or that all may.
#[cfg_attr(not(asan), expect(unused_variables, reason = "nobody is told"))]
fn forbid((start, bytes): (*mut u8, usize), is_forbidden: bool) {
    #[cfg(asan)]
    // SAFETY: the bytes are there; neither accesses them.
    unsafe {
        let tell = if is_forbidden { __asan_poison_memory_region } else { __asan_unpoison_memory_region };
        tell(start, bytes);
    }
}

/// Pages that can be accessed, between two that cannot.
struct Fenced {
    start: *mut u8,
    bytes: usize,
}

impl Fenced {
    fn new(bytes: usize) -> Fenced {
        let bytes = bytes.next_multiple_of(PAGE).max(PAGE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, whose middle is made accessible.
        let start = unsafe {
            let all = libc::mmap(std::ptr::null_mut(), bytes + 2 * PAGE, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(all, libc::MAP_FAILED);
            let start = all.cast::<u8>().add(PAGE);
            assert_eq!(libc::mprotect(start.cast(), bytes, libc::PROT_READ | libc::PROT_WRITE), 0);
            start
        };
        Fenced { start, bytes }
    }

    /// One that has room for so many bytes.
    fn take(bytes: usize) -> Fenced {
        let found = FREE.with_borrow_mut(|free| {
            let at = free.iter().position(|fenced| fenced.bytes >= bytes)?;
            Some(free.swap_remove(at))
        });
        found.unwrap_or_else(|| Fenced::new(bytes))
    }

    fn recycle(self) {
        FREE.with_borrow_mut(|free| free.push(self));
    }

    /// Where so many bytes begin.
    fn operand_start(&self, bytes: usize, at_end: bool) -> *mut u8 {
        self.start.wrapping_add(if at_end { self.bytes - bytes } else { 0 })
    }

    /// Where bytes beside the operand are that can be accessed, and how many.
    fn beside(&self, bytes: usize, at_end: bool) -> (*mut u8, usize) {
        let rest = (self.bytes - bytes).min(LOOKED_AT);
        let start = if at_end { self.bytes - bytes - rest } else { bytes };
        (self.start.wrapping_add(start), rest)
    }

    /// Writes beside the operand what nothing may write over.
    fn guard(&self, bytes: usize, at_end: bool) {
        let (start, rest) = self.beside(bytes, at_end);
        // SAFETY: inside of the mapping, which only the owner uses.
        unsafe { start.write_bytes(CANARY, rest) };
        forbid((start, rest), true);
    }

    /// Whether nothing has written beside the operand, where all may access now.
    fn is_untouched(&self, bytes: usize, at_end: bool) -> bool {
        let (start, rest) = self.beside(bytes, at_end);
        forbid((start, rest), false);
        // SAFETY: as above; `guard` has written all of them.
        unsafe { std::slice::from_raw_parts(start, rest) }.iter().all(|&byte| byte == CANARY)
    }

    /// Runs `work` with so many bytes, and looks whether it wrote beside them.
    fn with<T>(bytes: usize, at_end: bool, work: impl FnOnce(*mut u8) -> T) -> T {
        let fenced = Fenced::take(bytes);
        fenced.guard(bytes, at_end);
        let result = work(fenced.operand_start(bytes, at_end));
        assert!(fenced.is_untouched(bytes, at_end), "a nest wrote beside an operand of {bytes} bytes");
        fenced.recycle();
        result
    }
}

/// What a nest needs to know besides what every one knows: the types of its inputs and results.
#[derive(Debug, Default)]
pub(super) struct Types {
    pub(super) inputs: Vec<TensorType>,
    pub(super) results: Vec<TensorType>,
}

/// Memory that operands share.
struct Span {
    start: usize,
    end: usize,
    is_written: bool,
}

/// Spans of memory that do not overlap.
fn spans(inputs: &[(usize, usize)], results: &[(usize, usize)]) -> Vec<Span> {
    let span = |&(start, bytes): &(usize, usize), is_written| Span { start, end: start + bytes, is_written };
    let mut all: Vec<Span> = inputs.iter().map(|operand| span(operand, false)).collect();
    all.extend(results.iter().map(|operand| span(operand, true)));
    all.retain(|span| span.start < span.end);
    all.sort_by_key(|span| span.start);
    let mut merged: Vec<Span> = Vec::new();
    for span in all {
        match merged.last_mut() {
            Some(last) if span.start < last.end => {
                last.end = last.end.max(span.end);
                last.is_written |= span.is_written;
            }
            _ => merged.push(span),
        }
    }
    merged
}

/// Scratch memory between pages, where a test runs on the thread that called the nest.
pub(super) fn with_scratch(mode: Option<Mode>, bytes: usize, work: impl FnOnce(*mut u8)) -> bool {
    let Some(mode) = mode else { return false };
    // Lines of 64 bytes, as others have it.
    Fenced::with(bytes.next_multiple_of(64), mode.at_end, work);
    true
}

pub(super) fn mode() -> Option<Mode> {
    MODE.get()
}

impl Nest {
    /// Runs the nest as the test on this thread says. False if there is none.
    ///
    /// # Safety
    /// As for `run`.
    pub(super) unsafe fn run_in_test_mode(&self, inputs: &[*mut u8], results: &[*mut u8]) -> bool {
        let Some(mode) = mode() else { return false };
        let with_bytes = |pointers: &[*mut u8], types: &[TensorType]| -> Vec<(usize, usize)> {
            pointers.iter().zip(types).map(|(pointer, ty)| (pointer.addr(), ty.byte_size())).collect()
        };
        let (read, written) =
            (with_bytes(inputs, &self.types.inputs), with_bytes(results, &self.types.results));
        let spans = spans(&read, &written);
        let fenced: Vec<(Fenced, usize)> =
            spans.iter().map(|span| (Fenced::take(span.end - span.start), span.end - span.start)).collect();
        let relocated = |pointer: &*mut u8| {
            let at = spans.iter().position(|span| (span.start..span.end).contains(&pointer.addr()));
            at.map_or(*pointer, |at| {
                let (fenced, bytes) = &fenced[at];
                fenced.operand_start(*bytes, mode.at_end).wrapping_add(pointer.addr() - spans[at].start)
            })
        };
        for (span, (fenced, bytes)) in spans.iter().zip(&fenced) {
            fenced.guard(*bytes, mode.at_end);
            let source = std::ptr::with_exposed_provenance::<u8>(span.start);
            // SAFETY: the operand's bytes, and pages with room for them.
            unsafe {
                std::ptr::copy_nonoverlapping(source, fenced.operand_start(*bytes, mode.at_end), *bytes)
            };
        }
        let (relocated_inputs, relocated_results): (SmallVec<[*mut u8; 8]>, SmallVec<[*mut u8; 8]>) =
            (inputs.iter().map(relocated).collect(), results.iter().map(relocated).collect());
        Fenced::with(self.scratch_bytes().next_multiple_of(64), mode.at_end, |scratch| {
            // SAFETY: the same operands elsewhere, and as much memory beside as is asked for.
            unsafe { self.run_here(&relocated_inputs, &relocated_results, scratch, Par::Pool) };
        });
        let bytes_of = |(fenced, bytes): &(Fenced, usize)| {
            // SAFETY: the operand, which nobody writes any more.
            unsafe { std::slice::from_raw_parts(fenced.operand_start(*bytes, mode.at_end), *bytes) }
        };
        if mode.is_recorded {
            self.record(&spans, inputs, results, |at| bytes_of(&fenced[at]).to_vec());
        }
        for (span, fenced) in spans.iter().zip(fenced) {
            assert!(
                fenced.0.is_untouched(fenced.1, mode.at_end),
                "beside an operand: {}",
                self.code.function
            );
            let target = std::ptr::with_exposed_provenance_mut::<u8>(span.start);
            // SAFETY: as above.
            unsafe {
                if span.is_written {
                    std::ptr::copy_nonoverlapping(bytes_of(&fenced).as_ptr(), target, fenced.1);
                } else {
                    let before = std::slice::from_raw_parts(target, fenced.1);
                    assert!(before == bytes_of(&fenced), "an input was written: {}", self.code.function);
                }
            }
            fenced.0.recycle();
        }
        true
    }

    /// Keeps the call, whose operands still are as they were before, and what `after` has of each span.
    fn record(
        &self,
        spans: &[Span],
        inputs: &[*mut u8],
        results: &[*mut u8],
        after: impl Fn(usize) -> Vec<u8>,
    ) {
        let mut recorded = RecordedCall {
            function: self.code.function.clone(),
            offsets: Vec::new(),
            numbers: vec![0, self.parts.steps as u64],
            before: vec![CANARY; 64],
            after: vec![CANARY; 64],
            results: Vec::new(),
        };
        let mut starts = Vec::new();
        let close = |bytes: &mut Vec<u8>| bytes.resize(bytes.len().next_multiple_of(64) + 64, CANARY);
        for (at, span) in spans.iter().enumerate() {
            starts.push(recorded.before.len());
            let source = std::ptr::with_exposed_provenance::<u8>(span.start);
            // SAFETY: the operand.
            recorded.before.extend(unsafe { std::slice::from_raw_parts(source, span.end - span.start) });
            recorded.after.extend(after(at));
            close(&mut recorded.before);
            close(&mut recorded.after);
        }
        for pointer in inputs.iter().chain(results) {
            let at = spans.iter().position(|span| (span.start..span.end).contains(&pointer.addr()));
            recorded.offsets.push(at.map_or(0, |at| starts[at] + pointer.addr() - spans[at].start));
        }
        let starts = recorded.offsets[inputs.len()..].iter().copied();
        recorded.results = starts.zip(self.types.results.iter().cloned()).collect();
        // Neither scratch memory nor results of pieces: nobody knows what is left in them.
        if self.parts.scratch == 0 && self.combining.is_none() {
            recorded.offsets.push(0);
            RECORDED.with_borrow_mut(|all| all.push(recorded));
        }
    }
}
