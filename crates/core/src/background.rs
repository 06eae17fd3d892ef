//! Compilation in the background: the first calls of a program do not wait for its compiler.
//!
//! [`Background`] is a compiler around another one. What it returns runs by the [`First`] executable until the other
//! compiler is done, and by that compiler's program from the next call on. The core starts no threads: the compiler
//! says how its jobs are started.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::backend::{Backend, Buffers, Checks, Compiler, Executable, Hooks, MemoryNeed, Poll};
use crate::device::DeviceError;
use crate::donation::aliases;
use crate::error::{Error, Result};
use crate::region::Region;
use crate::tensor::Tensor;

/// A compilation, as the thread that runs it sees it. It does not panic.
pub type Job = Box<dyn FnOnce() + Send>;

/// Told the error of a compilation that has failed. Its own error ends the call that told it.
pub type Tell = Arc<dyn Fn(&Error) -> Result<()> + Send + Sync>;

/// How calls run while a compiler works in the background.
pub struct First {
    /// Computes what the compiled program will, and puts it on the same backend. It reads no less of its arguments
    /// than the compiled program, and takes the donated ones.
    pub executable: Arc<dyn Executable>,
    /// Starts a job on a thread. If there is no thread for it, the job runs before this returns.
    pub start: fn(Job),
}

/// How far a compilation is.
#[derive(Clone, Debug)]
pub enum Progress {
    /// The program is compiled.
    Compiled,
    /// The compiler works in the background.
    Compiling,
    /// The compiler has failed in the background, with this error.
    Failed(Error),
}

thread_local! {
    static IS_HERE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread compiles in the background now. It belongs to no caller then: nobody interrupts it, and it must
/// not wait for the host language, which may be ending.
pub fn is_here() -> bool {
    IS_HERE.get()
}

/// A compiler that works in the background, while the first calls run by other means.
#[derive(Clone)]
pub struct Background {
    compiler: Arc<dyn Compiler>,
    tell: Tell,
}

impl Background {
    /// The compiler `compiler`, in the background. If it fails, the next call tells the error, once for each program;
    /// calls go on as they began.
    pub fn new(compiler: Arc<dyn Compiler>, tell: Tell) -> Background {
        Background { compiler, tell }
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Background({:?})", self.compiler)
    }
}

impl Compiler for Background {
    fn name(&self) -> &str {
        self.compiler.name()
    }

    /// Starts to compile.
    ///
    /// # Errors
    /// A compiler that does not work in the background, and an argument whose memory no result can take. Other errors
    /// of the compiler come later; see [`Executable::wait`].
    fn compile_donating(
        &self,
        program: Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> Result<Arc<dyn Executable>> {
        // This is the caller's mistake, which the call reports.
        aliases(&program, donate)?;
        let Some(First { executable: first, start }) =
            self.compiler.in_background(&program, checks, donate)?
        else {
            return self.compiler.compile_donating(program, checks, donate);
        };
        let inputs = 0..program.inputs().len();
        let used: Arc<[bool]> = inputs.map(|input| first.uses(input)).collect();
        let compilation = Arc::new(Compilation::default());
        start(job(
            &compilation,
            self.compiler.clone(),
            program.clone(),
            checks,
            donate.to_vec(),
            used.clone(),
        ));
        Ok(Arc::new(Switching {
            compilation,
            first,
            used,
            program,
            process: std::process::id(),
            in_fork: OnceLock::new(),
            background: self.clone(),
            checks,
            donate: donate.to_vec(),
        }))
    }
}

/// A compilation in the background, and its outcome.
#[derive(Default)]
struct Compilation {
    outcome: OnceLock<Result<Arc<dyn Executable>>>,
    /// For threads that wait for the outcome.
    is_done: Mutex<bool>,
    done: Condvar,
    /// Whether a call has told the error.
    is_told: AtomicBool,
}

fn job(
    compilation: &Arc<Compilation>,
    compiler: Arc<dyn Compiler>,
    program: Arc<Region>,
    checks: Checks,
    donate: Vec<usize>,
    used: Arc<[bool]>,
) -> Job {
    struct Here(bool);
    impl Drop for Here {
        fn drop(&mut self) {
            IS_HERE.set(self.0);
        }
    }
    let compilation = Arc::downgrade(compilation);
    Box::new(move || {
        // Nobody waits for a program that was dropped before its thread began.
        if compilation.strong_count() == 0 {
            return;
        }
        let _here = Here(IS_HERE.replace(true));
        let compile = || {
            let made = compiler.compile_donating(program, checks, &donate)?;
            // Callers leave out the arguments that the first calls do not read.
            match used.iter().enumerate().find(|&(input, is_used)| made.uses(input) && !is_used) {
                None => Ok(made),
                Some((input, _)) => {
                    let problem = format!("the program reads argument {input}, and its first calls did not");
                    Err(DeviceError::Background { problem, required: "one that agrees is required" }.into())
                }
            }
        };
        let outcome = catch_unwind(AssertUnwindSafe(compile)).unwrap_or_else(|panic| Err(panicked(&*panic)));
        let Some(compilation) = compilation.upgrade() else { return };
        // This is the only place that sets it.
        let _ = compilation.outcome.set(outcome);
        *compilation.is_done.lock().unwrap_or_else(PoisonError::into_inner) = true;
        compilation.done.notify_all();
    })
}

fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    let problem = format!("the compiler panicked ({text})");
    DeviceError::Background { problem, required: "a program that it can compile is required" }.into()
}

/// How often a thread that waits looks for interruptions.
const POLL_PERIOD: Duration = Duration::from_millis(20);

/// A program that is compiled, or will be.
struct Switching {
    compilation: Arc<Compilation>,
    first: Arc<dyn Executable>,
    /// The inputs that `first` reads. They do not change with the switch, because callers keep what they are told.
    used: Arc<[bool]>,
    program: Arc<Region>,
    /// The process in which the compilation was started.
    process: u32,
    /// The program of a process that was forked meanwhile: it has no thread that compiles.
    in_fork: OnceLock<Arc<dyn Executable>>,
    background: Background,
    checks: Checks,
    donate: Vec<usize>,
}

impl Switching {
    /// What a call runs now.
    #[inline]
    fn current(&self) -> Result<&dyn Executable> {
        match self.compilation.outcome.get() {
            Some(Ok(compiled)) => Ok(&**compiled),
            Some(Err(error)) => self.failed(error),
            None => self.not_yet(),
        }
    }

    #[cold]
    fn failed(&self, error: &Error) -> Result<&dyn Executable> {
        if !self.compilation.is_told.swap(true, Ordering::Relaxed) {
            (self.background.tell)(error)?;
        }
        Ok(&*self.first)
    }

    #[cold]
    fn not_yet(&self) -> Result<&dyn Executable> {
        Ok(self.forked()?.unwrap_or(&*self.first))
    }

    /// In a process that was forked while the compilation ran: the program of a compilation of its own.
    fn forked(&self) -> Result<Option<&dyn Executable>> {
        if self.process == std::process::id() {
            return Ok(None);
        }
        if let Some(known) = self.in_fork.get() {
            return Ok(Some(&**known));
        }
        let again = self.background.compile_donating(self.program.clone(), self.checks, &self.donate)?;
        Ok(Some(&**self.in_fork.get_or_init(|| again)))
    }

    /// The compiled program, after a wait.
    fn compiled(&self) -> Result<&dyn Executable> {
        self.wait(&|| Ok(()))?;
        match self.compilation.outcome.get() {
            Some(Ok(compiled)) => Ok(&**compiled),
            Some(Err(error)) => Err(error.clone()),
            None => self.not_yet(),
        }
    }
}

impl fmt::Debug for Switching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switching").field("first", &self.first).field("progress", &self.progress()).finish()
    }
}

impl Executable for Switching {
    fn program(&self) -> &Arc<Region> {
        &self.program
    }

    fn uses(&self, input: usize) -> bool {
        self.used[input]
    }

    fn progress(&self) -> Progress {
        match self.compilation.outcome.get() {
            Some(Ok(_)) => Progress::Compiled,
            Some(Err(error)) => Progress::Failed(error.clone()),
            None => self.in_fork.get().map_or(Progress::Compiling, |again| again.progress()),
        }
    }

    fn wait(&self, poll: Poll<'_>) -> Result<()> {
        loop {
            match self.compilation.outcome.get() {
                Some(outcome) => return outcome.as_ref().map(|_| ()).map_err(Error::clone),
                None => {
                    if let Some(again) = self.forked()? {
                        return again.wait(poll);
                    }
                }
            }
            let is_done = self.compilation.is_done.lock().unwrap_or_else(PoisonError::into_inner);
            let wait = self.compilation.done.wait_timeout_while(is_done, POLL_PERIOD, |is_done| !*is_done);
            drop(wait);
            poll()?;
        }
    }

    fn memory(&self) -> Result<MemoryNeed> {
        self.compiled()?.memory()
    }

    fn assembly(&self, instructions: Option<&str>) -> Result<String> {
        self.compiled()?.assembly(instructions)
    }

    fn run(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: Vec<Tensor>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Tensor>> {
        self.current()?.run(backend, arguments, hooks)
    }

    fn run_borrowed(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: &[&Tensor],
        hooks: &dyn Hooks,
    ) -> Result<Buffers> {
        self.current()?.run_borrowed(backend, arguments, hooks)
    }

    fn run_on_bytes(&self, arguments: &[&[u8]], results: &mut [&mut [u8]]) -> Result<()> {
        self.compiled()?.run_on_bytes(arguments, results)
    }

    fn run_each(
        &self,
        lists: Vec<(Arc<dyn Backend>, Vec<Tensor>)>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Vec<Tensor>>> {
        self.current()?.run_each(lists, hooks)
    }

    fn to_bytes(&self, note: &[u8]) -> Result<Vec<u8>> {
        self.compiled()?.to_bytes(note)
    }
}
