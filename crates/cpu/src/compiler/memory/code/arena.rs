//! The arena: regions, and where a block is put.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use super::region::{ALIGN, CodeRange, GRANULE, Region};
use super::system;

/// The size of the first region. Only what is used takes memory.
const FIRST: usize = 1 << 20;

/// Each region is twice as large as the one before, up to this.
const MAX_REGION_BYTES: usize = 16 << 20;

/// The variable that asks for the names of blocks in a file for `perf`.
const PERF: &str = "DEFN_PERF";

/// The regions of a process.
#[derive(Debug)]
pub(super) struct Arena {
    /// The process whose arena it is: a child has a copy.
    process: u32,
    regions: Vec<Region>,
    /// Whether ranges are used again.
    reuses: bool,
    /// Whether names are written to a file.
    names: bool,
    /// The file, of the process with this number.
    file: Option<(u32, File)>,
}

impl Arena {
    /// An arena whose code can be executed.
    ///
    /// # Errors
    /// What the system has refused.
    pub(super) fn new() -> Result<Arena, &'static str> {
        let reuses = system::synchronize();
        if cfg!(target_arch = "aarch64") && !reuses {
            return Err("the system has no membarrier that synchronizes instructions");
        }
        let names = std::env::var_os(PERF).is_some_and(|value| value == "1");
        let process = std::process::id();
        let mut arena =
            Arena { process, regions: vec![Region::new(FIRST)?], reuses, names: false, file: None };
        arena.try_out()?;
        arena.names = names;
        Ok(arena)
    }

    /// Executes a function that gives 42.
    fn try_out(&mut self) -> Result<(), &'static str> {
        let code = constant_function(42).ok_or("no code is generated for this architecture")?;
        let entry = self.add(&code, "").ok_or("the system has no memory for code")?;
        // SAFETY: this is a function without arguments in executable memory.
        let result = unsafe { std::mem::transmute::<*mut u8, extern "C" fn() -> u32>(entry.as_ptr())() };
        self.release(entry, code.len());
        if result == 42 { Ok(()) } else { Err("generated code does not do what it should") }
    }

    /// Adds a block of code, and returns where it can be executed.
    pub(super) fn add(&mut self, code: &[u8], name: &str) -> Option<NonNull<u8>> {
        let bytes = size_of_block(code.len());
        loop {
            let (at, range) = self.take(bytes)?;
            let entry = self.regions[at].fill(range, code);
            if (range.is_used || cfg!(target_arch = "aarch64")) && !system::synchronize() {
                // Other threads may still have the old code: the range is not used again.
                self.regions[at].release(entry, bytes, false);
                if !self.reuses {
                    return None;
                }
                self.reuse_nothing();
                continue;
            }
            if self.names {
                self.write_name(entry, code.len(), name);
            }
            return Some(entry);
        }
    }

    /// Finds a range, which may be in a new region.
    fn take(&mut self, bytes: usize) -> Option<(usize, CodeRange)> {
        if self.reuses {
            let found = self.regions.iter_mut().enumerate();
            let found = found.filter_map(|(at, region)| Some((at, region.take_free(bytes)?))).next();
            if found.is_some() {
                return found;
            }
        }
        let mut regions = self.regions.iter_mut().enumerate();
        if let Some(found) = regions.find_map(|(at, region)| Some((at, region.take_fresh(bytes)?))) {
            return Some(found);
        }
        // What was sealed when it had no blocks is a child's copy of its parent's.
        self.regions.retain(|region| !(region.is_sealed() && region.is_empty()));
        let open = self.regions.iter().filter(|region| !region.is_sealed()).count();
        let wanted =
            (FIRST << open.min(8)).min(MAX_REGION_BYTES).max(bytes.checked_next_multiple_of(GRANULE)?);
        self.regions.push(Region::new(wanted).ok()?);
        let at = self.regions.len() - 1;
        Some((at, self.regions[at].take_fresh(bytes)?))
    }

    /// Gives a block of so many bytes of code back.
    pub(super) fn release(&mut self, entry: NonNull<u8>, length: usize) {
        // A child that had to begin anew does not know the regions of its parent.
        let Some(at) = self.regions.iter().position(|region| region.has(entry)) else { return };
        let region = &mut self.regions[at];
        region.release(entry, size_of_block(length), self.reuses);
        if region.is_empty() && (region.is_sealed() || (!self.reuses && region.is_used_up())) {
            self.regions.swap_remove(at);
        }
    }

    /// The process whose arena it is.
    pub(super) fn process(&self) -> u32 {
        self.process
    }

    /// After a fork, in the parent. It only writes to memory.
    pub(super) fn keep_for_child(&mut self) {
        self.regions.iter_mut().for_each(Region::keep_for_child);
    }

    /// In a child, before it uses the arena. It only writes to memory.
    pub(super) fn inherit(&mut self, process: u32) {
        self.process = process;
        self.regions.iter_mut().for_each(Region::inherit);
    }

    /// Writes the name of a block for `perf`.
    fn write_name(&mut self, entry: NonNull<u8>, length: usize, name: &str) {
        if self.file.as_ref().is_none_or(|&(process, _)| process != self.process) {
            let path = name_file(self.process);
            // Anyone may have put a link there.
            let open = File::options()
                .append(true)
                .create(true)
                .mode(0o600)
                .custom_flags(libc::O_NOFOLLOW)
                .open(path);
            self.names = open.is_ok();
            self.file = open.ok().map(|file| (self.process, file));
        }
        if let Some((_, file)) = &mut self.file {
            let name = name.replace(['\n', '\r'], " ");
            let line = format!("{:x} {length:x} {name}\n", entry.addr());
            // A profile without the name is better than no run.
            drop(file.write_all(line.as_bytes()));
        }
    }

    /// How many regions there are.
    #[cfg(test)]
    pub(super) fn regions(&self) -> usize {
        self.regions.len()
    }

    /// The system has no barrier, or not any more: no range is used again.
    pub(super) fn reuse_nothing(&mut self) {
        self.reuses = false;
        self.regions.iter_mut().for_each(Region::forget_free);
    }
}

/// Where `perf` looks for the names of a process, whatever the folder of temporary files is.
pub(super) fn name_file(process: u32) -> PathBuf {
    Path::new("/").join("tmp").join(format!("perf-{process}.map"))
}

/// The bytes of a block.
fn size_of_block(length: usize) -> usize {
    length.max(1).next_multiple_of(ALIGN)
}

/// A function without arguments that gives a number, if there is code for the architecture.
pub(super) fn constant_function(number: u32) -> Option<Vec<u8>> {
    if cfg!(target_arch = "x86_64") {
        // mov eax, number; ret
        let mut code = vec![0xB8];
        code.extend(number.to_le_bytes());
        code.push(0xC3);
        Some(code)
    } else if cfg!(target_arch = "aarch64") {
        // movz w0, low; movk w0, high, lsl 16; ret
        let (low, high) = (number & 0xFFFF, number >> 16);
        let words = [0x5280_0000 | (low << 5), 0x72A0_0000 | (high << 5), 0xD65F_03C0];
        Some(words.into_iter().flat_map(u32::to_le_bytes).collect())
    } else {
        None
    }
}
