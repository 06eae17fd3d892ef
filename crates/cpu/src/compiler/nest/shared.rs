//! The code of functions, shared by all programs of the process.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, TryLockError, Weak};

use once_cell::race::OnceBox;
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::super::emit::Entry;
use super::super::interpret::Interpreter;
use super::super::ir::functions::rare::applied;
use super::super::ir::{Function, Status};
use super::super::memory::code::{CodeBlock, CodeMemory};
use super::processor::{allocated, processor};
use crate::modes::DefaultModes;

/// The run from which on a nest gets machine code, however short it is.
const WARM: u32 = 8;

/// Instructions that the portable executor may run before code is worth while, for each instruction of the nest.
const COLD_WORK: usize = 1 << 10;

/// A function and its code, shared by all nests that are alike.
///
/// Nothing here waits for another thread, since a child that was forked meanwhile does not have it. Two threads that
/// compile at once both do so, and one result is dropped.
#[derive(Debug)]
pub(in super::super) struct SharedCode {
    pub(in super::super) function: Function,
    runs: AtomicU32,
    interpreter: OnceBox<Interpreter>,
    /// None where there is no machine code: no memory for it, or an op that the processor lacks.
    machine: OnceBox<Option<CodeBlock>>,
    /// The kernels that machine code calls for what the function applies, as words behind its arguments.
    pub(in super::super) applied: SmallVec<[u64; 16]>,
    #[cfg(all(any(test, fuzzing), target_os = "linux"))]
    pub(super) codes: super::test_hooks::Codes,
}

/// What runs a function now.
#[derive(Clone, Copy)]
pub(in super::super) enum Runner<'s> {
    Machine(Entry),
    Portable(&'s Interpreter),
}

impl Runner<'_> {
    /// Machine code.
    #[cfg(all(any(test, fuzzing), target_os = "linux"))]
    pub(super) fn of_block(block: &CodeBlock) -> Runner<'_> {
        Runner::Machine(entry_of(block))
    }

    /// # Safety
    /// The arguments are those of the function: pointers to the memory that it uses, scalars, kernels.
    pub(in super::super) unsafe fn run(self, args: &[u64]) -> Status {
        match self {
            // SAFETY: as the caller promises.
            Runner::Machine(entry) => unsafe { entry(args.as_ptr()) },
            Runner::Portable(interpreter) => {
                let _modes = DefaultModes::set();
                // SAFETY: as above.
                unsafe { interpreter.run(args.as_ptr()) }
            }
        }
    }
}

/// The functions of the process by their hashes.
type CodeTable = FxHashMap<u64, Vec<Weak<SharedCode>>>;

static CODE_TABLE: Mutex<Option<CodeTable>> = Mutex::new(None);

impl SharedCode {
    /// The code of a function: that of an equal one, if there is one and no other thread looks for one now.
    pub(in super::super) fn of(function: Function) -> Arc<SharedCode> {
        let mut known = match CODE_TABLE.try_lock() {
            Ok(known) => known,
            Err(TryLockError::Poisoned(known)) => known.into_inner(),
            Err(TryLockError::WouldBlock) => return Arc::new(SharedCode::new(function)),
        };
        let known = known.get_or_insert_default();
        let mut hasher = FxHasher::default();
        function.hash(&mut hasher);
        let hash = hasher.finish();
        if known.len().is_power_of_two() && !known.contains_key(&hash) {
            known.retain(|_, alike| alike.iter().any(|code| code.strong_count() > 0));
        }
        let alike = known.entry(hash).or_default();
        alike.retain(|code| code.strong_count() > 0);
        if let Some(code) = alike.iter().filter_map(Weak::upgrade).find(|code| code.function == function) {
            return code;
        }
        let code = Arc::new(SharedCode::new(function));
        alike.push(Arc::downgrade(&code));
        code
    }

    fn new(function: Function) -> SharedCode {
        let (interpreter, machine) = (OnceBox::new(), OnceBox::new());
        let applied = function.applied().into_iter().flat_map(|(rare, elem)| {
            let kernel = applied(rare, elem);
            [kernel.run as *const () as u64, kernel.context.addr() as u64]
        });
        let applied = applied.collect();
        SharedCode {
            function,
            runs: AtomicU32::new(0),
            interpreter,
            machine,
            applied,
            #[cfg(all(any(test, fuzzing), target_os = "linux"))]
            codes: Default::default(),
        }
    }

    /// What runs the function on so many elements: machine code once it pays.
    pub(in super::super) fn runner(&self, elements: usize) -> Runner<'_> {
        #[cfg(all(any(test, fuzzing), target_os = "linux"))]
        if let Some(runner) = self.test_hooks() {
            return runner;
        }
        if let Some(Some(block)) = self.machine.get() {
            return Runner::Machine(entry_of(block));
        }
        if self.machine.get().is_none() {
            let runs = self.runs.fetch_add(1, Ordering::Relaxed) + 1;
            if (runs >= WARM || elements > COLD_WORK)
                && let Some(block) = self.machine.get_or_init(|| Box::new(compiled(&self.function)))
            {
                return Runner::Machine(entry_of(block));
            }
        }
        self.portable()
    }

    /// The portable executor.
    pub(super) fn portable(&self) -> Runner<'_> {
        Runner::Portable(self.interpreter.get_or_init(|| Box::new(Interpreter::new(&self.function))))
    }
}

fn entry_of(block: &CodeBlock) -> Entry {
    // SAFETY: the block begins with the code of a function that is called so.
    unsafe { std::mem::transmute::<*const u8, Entry>(block.entry()) }
}

/// The machine code of a function, where this processor has all that it needs.
fn compiled(function: &Function) -> Option<CodeBlock> {
    let target = processor()?;
    let allocated = allocated(function, target).ok()?;
    CodeMemory::add(&target.encode(&allocated), "nest")
}
