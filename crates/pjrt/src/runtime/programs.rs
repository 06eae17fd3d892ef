//! The compiled programs of a client, by their text and options: in memory, and in a folder.
//!
//! The key is a digest of the text, the compile options, and the build: the plugin's version, size and attributes, the
//! platform and its version, `XLA_FLAGS`, the kind of device, on the host the processor's features, and our own
//! version. The text has neither the user's names nor lines, so that equal definitions share a program. A thread that
//! needs a program that another thread compiles waits for it.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use defn_core::Result;
use defn_core::device::DeviceError;

use super::digest::{Digest, digest_of};
use super::disk::{Folder, Lookup};
use super::program_cache::{CacheEntry, ProgramCache};
use super::{Runtime, caller, failure};
use crate::api::{Buffer, Client, LoadedExecutable};
use crate::element::ElementType;
use crate::lower::LoweredProgram;
use crate::options::{CompileOptions, LIBRARY};
use crate::plugin::Plugin;

/// The origin of a program. XLA serializes a program that it compiled; of a program that it loaded, it serializes only
/// a part, which does not run.
pub(super) enum Origin {
    /// The plugin compiled it in this process.
    Compiled,
    /// These bytes.
    Bytes(Box<[u8]>),
    /// A file of a folder.
    File(Folder, Digest),
}

/// A compiled program.
pub(super) struct Compiled {
    pub executable: LoadedExecutable,
    /// The memory that a run needs besides its arguments, in bytes.
    pub bytes: usize,
    /// Whether starting a run may take long: the program has a loop, or an earlier run took long.
    pub may_block: AtomicBool,
    /// Whether any device of a client can run it, not only the first one.
    pub is_portable: bool,
    /// Whether a run may take long although earlier ones did not.
    pub has_unbounded_loop: bool,
    /// Whether a run was started.
    pub was_run: AtomicBool,
    /// The time of its last use, in the unit of [`ProgramCache::now`].
    used: AtomicU64,
    origin: Origin,
    /// The number of first runs that were checked, all of which had computed everything when their call returned.
    prompt_runs: AtomicU8,
}

/// The operation of a loop in a program's text. XLA on the CPU runs a program that it estimates to be short before the
/// call returns, and its estimate counts one trip of a loop.
const LOOP: &str = "stablehlo.while";
/// The operation of a kernel, of which the estimate knows nothing.
const KERNEL: &str = "stablehlo.custom_call";

/// After this number of runs a program counts as prompt: it computes within the call that starts it, as the smallest
/// programs of a plugin do.
const PROMPT: u8 = 8;
/// In place of a number of runs: one of them returned before it had computed everything.
const LATE: u8 = u8::MAX;

impl Compiled {
    pub fn new(
        executable: LoadedExecutable,
        program: &LoweredProgram,
        is_portable: bool,
        origin: Origin,
    ) -> Compiled {
        let inner = executable.executable();
        let bytes = match inner.memory() {
            Ok(memory) => memory.outputs + memory.temporaries - memory.aliases,
            // For a plugin that does not report it: at least the results.
            Err(_) => inner.outputs().map_or(0, |outputs| {
                let bytes =
                    |(element, sizes): &(ElementType, Vec<i64>)| element.bytes(sizes).unwrap_or(usize::MAX);
                let sum = outputs.iter().map(bytes).fold(0, usize::saturating_add);
                i64::try_from(sum).unwrap_or(i64::MAX)
            }),
        };
        let may_block = AtomicBool::new([LOOP, KERNEL].iter().any(|op| program.text.contains(op)));
        let (bytes, was_run) = (usize::try_from(bytes).unwrap_or(0), AtomicBool::new(false));
        let (used, prompt_runs) = (AtomicU64::new(0), AtomicU8::new(0));
        let has_unbounded_loop = program.has_unbounded_loop;
        Compiled {
            executable,
            bytes,
            may_block,
            has_unbounded_loop,
            is_portable,
            was_run,
            used,
            origin,
            prompt_runs,
        }
    }

    /// Records that the program is used now, so that others are evicted first.
    pub fn touch(&self, now: u64) {
        // A write by each thread that runs the program would move its cache line between processors.
        if self.used.load(Ordering::Relaxed) != now {
            self.used.store(now, Ordering::Relaxed);
        }
    }

    /// The time of its last use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether a run on computed arguments is known to compute within the call that starts it.
    pub fn is_always_prompt(&self) -> bool {
        self.prompt_runs.load(Ordering::Relaxed) == PROMPT
    }

    /// Whether the results of a run that was just started on computed arguments are computed too. The check would take
    /// as long as a small program, so the first runs decide for all later ones.
    pub fn is_prompt(&self, results: &[Buffer]) -> bool {
        match self.prompt_runs.load(Ordering::Relaxed) {
            PROMPT => true,
            LATE => false,
            runs => {
                let is_computed =
                    |result: &Buffer| result.ready().and_then(|event| event.is_ready()) == Ok(true);
                let are_computed = results.iter().all(is_computed);
                self.prompt_runs.store(if are_computed { runs + 1 } else { LATE }, Ordering::Relaxed);
                are_computed
            }
        }
    }

    /// The program as bytes.
    ///
    /// # Errors
    /// A plugin that does not serialize programs, or a missing file.
    pub fn to_bytes(&self, runtime: &Runtime) -> Result<Vec<u8>> {
        match &self.origin {
            Origin::Compiled => {
                let serialized = self.executable.executable().serialize();
                serialized.map_err(|error| failure::device("save", runtime, error))
            }
            Origin::Bytes(bytes) => Ok(bytes.to_vec()),
            Origin::File(folder, key) => match folder.find(key) {
                Lookup::Whole(bytes) => Ok(bytes),
                Lookup::Missing | Lookup::Corrupt => {
                    let problem = "the program came from a folder whose file is gone";
                    let required = "the file is required; compile it again in a new process";
                    Err(DeviceError::NotWritten { problem, required }.into())
                }
            },
        }
    }
}

/// The statistics of the caches of compiled programs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CacheReport {
    /// Programs found in memory.
    pub memory_hits: u64,
    /// Programs loaded from a folder.
    pub disk_hits: u64,
    /// Programs looked up in a folder but not found.
    pub disk_misses: u64,
    /// Damaged files, which were rewritten.
    pub corrupt: u64,
    /// Compiled programs.
    pub compiles: u64,
    /// The total compile time, in seconds.
    pub compile_seconds: f64,
    /// Programs that are in memory now.
    pub entries: usize,
    /// Files that are now in the folders that were used.
    pub disk_entries: usize,
    /// Their total size in bytes.
    pub disk_bytes: u64,
}

/// The compiled programs of a client.
pub(super) struct Programs {
    /// A digest of all that a program depends on besides its text and options.
    build: Digest,
    cache: ProgramCache,
    folders: Mutex<Vec<Folder>>,
    /// Whether the plugin rejected the flag of XLA's kernel library.
    has_no_library: AtomicBool,
    memory_hits: AtomicU64,
    disk_hits: AtomicU64,
    disk_misses: AtomicU64,
    corrupt: AtomicU64,
    compiles: AtomicU64,
    compile_nanos: AtomicU64,
}

impl Programs {
    pub fn new(plugin: &Plugin, client: &Client, machine: &str) -> crate::Result<Programs> {
        let bytes = std::fs::metadata(plugin.path()).map_or(0, |file| file.len());
        let build = format!(
            "{} {:?} {machine} {} {bytes} {:?}",
            plugin.version(),
            plugin.attributes()?,
            client.platform_version()?,
            std::env::var_os("XLA_FLAGS"),
        );
        // A program is for a kind of device, not for a single device.
        let kind = match client.addressable_devices()?.first() {
            Some(device) => device.description()?.kind,
            None => String::new(),
        };
        Ok(Programs {
            build: digest_of(&[build.as_bytes(), kind.as_bytes(), env!("CARGO_PKG_VERSION").as_bytes()]),
            cache: ProgramCache::default(),
            folders: Mutex::default(),
            has_no_library: AtomicBool::new(false),
            memory_hits: AtomicU64::new(0),
            disk_hits: AtomicU64::new(0),
            disk_misses: AtomicU64::new(0),
            corrupt: AtomicU64::new(0),
            compiles: AtomicU64::new(0),
            compile_nanos: AtomicU64::new(0),
        })
    }

    /// The current time, for [`Compiled::touch`].
    pub fn now(&self) -> u64 {
        self.cache.now()
    }

    /// The program of a text: from memory, loaded from the folder, or compiled; `op` is for messages.
    ///
    /// # Errors
    /// An error from the plugin about the text.
    pub fn get(
        &self,
        op: &'static str,
        runtime: &'static Runtime,
        program: &LoweredProgram,
        options: &CompileOptions,
        folder: Option<&Folder>,
    ) -> Result<Arc<Compiled>> {
        runtime.require_process(op)?;
        // Only where it helps: XLA copies a program's options at each run.
        let text = &program.text;
        let uses = text.contains("\"stablehlo.reduce\"") || text.contains("\"stablehlo.dot_general\"");
        let may_use_library = uses && runtime.is_host() && !self.has_no_library.load(Ordering::Relaxed);
        let with_library = may_use_library.then(|| options.with_library());
        if let Some(options) = &with_library {
            let compiled = self.find(op, runtime, program, options, folder);
            let is_rejected = compiled.as_ref().is_err_and(|error| error.to_string().contains(LIBRARY));
            if !is_rejected || options.flags.iter().filter(|(flag, _)| flag == LIBRARY).count() > 1 {
                return compiled;
            }
            // Another version of the plugin, which lacks the flag.
            self.has_no_library.store(true, Ordering::Relaxed);
        }
        self.find(op, runtime, program, options, folder)
    }

    /// The program of a text, compiled with exactly these options.
    fn find(
        &self,
        op: &'static str,
        runtime: &'static Runtime,
        program: &LoweredProgram,
        options: &CompileOptions,
        folder: Option<&Folder>,
    ) -> Result<Arc<Compiled>> {
        let key =
            digest_of(&[&self.build, program.text.as_bytes(), &options.to_bytes(program.text.as_bytes())]);
        let entry = self.cache.entry(key, &runtime.eager);
        if let Ok(cached) = entry.try_lock()
            && let Some(cached) = &*cached
        {
            self.memory_hits.fetch_add(1, Ordering::Relaxed);
            cached.touch(self.now());
            return Ok(cached.clone());
        }
        let (program, options) = (program.clone(), options.clone());
        let folder = folder.cloned().inspect(|folder| self.note(folder));
        // After an interruption the helper finishes the program, for later calls.
        let load_or_compile = move || {
            runtime.programs.load_or_compile(op, runtime, key, &entry, (&program, &options), folder.as_ref())
        };
        caller::interruptible(load_or_compile)?
    }

    /// Loads or compiles the program of a key, unless another thread has done so by now.
    fn load_or_compile(
        &self,
        op: &'static str,
        runtime: &Runtime,
        key: Digest,
        entry: &CacheEntry,
        (program, options): (&LoweredProgram, &CompileOptions),
        folder: Option<&Folder>,
    ) -> Result<Arc<Compiled>> {
        let mut entry = entry.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = &*entry {
            self.memory_hits.fetch_add(1, Ordering::Relaxed);
            cached.touch(self.now());
            return Ok(cached.clone());
        }
        let loaded = folder
            .and_then(|folder| self.load(runtime, folder, &key))
            .map(|(executable, origin)| Compiled::new(executable, program, options.portable, origin));
        let compiled = match loaded {
            Some(loaded) => Arc::new(loaded),
            None => {
                let start = Instant::now();
                let compiled = runtime.client().compile(program.text.as_bytes(), options);
                let compiled = compiled.map_err(|error| {
                    let rejection = failure::rejected_flag(runtime.name(), options, &error);
                    rejection.unwrap_or_else(|| failure::device(op, runtime, error))
                })?;
                let compiled = Arc::new(Compiled::new(compiled, program, options.portable, Origin::Compiled));
                let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                self.compile_nanos.fetch_add(nanos, Ordering::Relaxed);
                self.compiles.fetch_add(1, Ordering::Relaxed);
                if let Some(folder) = folder {
                    // If the plugin cannot serialize programs, or the folder cannot be written, a later process
                    // compiles again.
                    if let Ok(bytes) = compiled.executable.executable().serialize() {
                        folder.store(&key, &bytes);
                    }
                }
                compiled
            }
        };
        compiled.touch(self.now());
        *entry = Some(compiled.clone());
        Ok(compiled)
    }

    fn load(&self, runtime: &Runtime, folder: &Folder, key: &Digest) -> Option<(LoadedExecutable, Origin)> {
        match folder.find(key) {
            Lookup::Missing => {}
            Lookup::Corrupt => {
                self.corrupt.fetch_add(1, Ordering::Relaxed);
            }
            Lookup::Whole(bytes) => {
                if let Ok(program) = runtime.client().load(&bytes) {
                    self.disk_hits.fetch_add(1, Ordering::Relaxed);
                    // A file that may be removed cannot be read again.
                    let origin = if folder.may_forget() {
                        Origin::Bytes(bytes.into())
                    } else {
                        Origin::File(folder.clone(), *key)
                    };
                    return Some((program, origin));
                }
                self.corrupt.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.disk_misses.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Notes a folder for the report.
    fn note(&self, folder: &Folder) {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if !folders.contains(folder) {
            folders.push(folder.clone());
        }
    }

    /// The statistics so far, and the current sizes.
    pub fn report(&self) -> CacheReport {
        let folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let sizes: Vec<(usize, u64)> = folders.iter().map(Folder::size).collect();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheReport {
            memory_hits: count(&self.memory_hits),
            disk_hits: count(&self.disk_hits),
            disk_misses: count(&self.disk_misses),
            corrupt: count(&self.corrupt),
            compiles: count(&self.compiles),
            compile_seconds: count(&self.compile_nanos) as f64 * 1e-9,
            entries: self.cache.count(),
            disk_entries: sizes.iter().map(|(files, _)| files).sum(),
            disk_bytes: sizes.iter().map(|(_, bytes)| bytes).sum(),
        }
    }
}
