//! What the system is asked for: mappings, and the synchronization of instructions.

use std::ptr::{NonNull, null_mut};

/// The two views of a region.
#[derive(Debug)]
pub(super) struct Views {
    /// Where code is executed.
    pub(super) run: NonNull<u8>,
    /// Where it is written.
    pub(super) write: NonNull<u8>,
}

/// Maps a new file in memory of so many bytes, a multiple of [`GRANULE`](super::region::GRANULE), twice.
///
/// # Errors
/// What the system has refused.
pub(super) fn map(bytes: usize) -> Result<Views, &'static str> {
    let file = memory_file().ok_or("the system refuses memfd_create")?;
    let views = map_file(file, bytes);
    // The mappings keep the file. SAFETY: it is ours, and not used behind this.
    unsafe { libc::close(file) };
    views
}

fn map_file(file: libc::c_int, bytes: usize) -> Result<Views, &'static str> {
    let length = libc::off_t::try_from(bytes).map_err(|_| "a region is too large")?;
    // A file beyond the limit of the process would end it by a signal.
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes to the variable.
    let is_known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    if is_known && limit.rlim_cur != libc::RLIM_INFINITY && limit.rlim_cur < bytes as u64 {
        return Err("files of the process are limited to less than code needs");
    }
    // SAFETY: the file is ours.
    if unsafe { libc::ftruncate(file, length) } != 0 {
        return Err("the system refuses the size of a file in memory");
    }
    let view = |protection| {
        // SAFETY: a new mapping changes no existing one.
        let at = unsafe { libc::mmap(null_mut(), bytes, protection, libc::MAP_SHARED, file, 0) };
        if at == libc::MAP_FAILED { None } else { NonNull::new(at.cast::<u8>()) }
    };
    let run = view(libc::PROT_READ | libc::PROT_EXEC).ok_or("the system refuses executable mappings")?;
    let Some(write) = view(libc::PROT_READ | libc::PROT_WRITE) else {
        // SAFETY: it was just mapped.
        unsafe { unmap(run, bytes) };
        return Err("the system refuses writable mappings of files in memory");
    };
    // A child has no use for it. Where the advice is not taken, the child does not write there by itself. SAFETY: it was
    // just mapped, and the advice does not change it here.
    unsafe { libc::madvise(write.as_ptr().cast(), bytes, libc::MADV_DONTFORK) };
    Ok(Views { run, write })
}

/// A new file in memory, which programs that are started do not inherit.
fn memory_file() -> Option<libc::c_int> {
    let create = |flags: libc::c_uint| {
        // The function is missing in older C libraries. SAFETY: the name ends with a zero.
        let file = unsafe { libc::syscall(libc::SYS_memfd_create, c"defn-code".as_ptr(), flags) };
        libc::c_int::try_from(file).ok().filter(|&file| file >= 0)
    };
    // Kernels before 6.3 do not know that a file may say it will be executed; newer ones may insist on it.
    create(libc::MFD_CLOEXEC | libc::MFD_EXEC).or_else(|| create(libc::MFD_CLOEXEC))
}

/// Gets the memory of part of a writable view, which would otherwise end the process when it is written and there is
/// none. Kernels before 5.14 cannot say in advance.
///
/// # Safety
/// It is part of a writable view, in whole pages.
pub(super) unsafe fn populate(at: *mut u8, bytes: usize) -> bool {
    // SAFETY: as the caller says; the contents stay.
    let result = unsafe { libc::madvise(at.cast(), bytes, libc::MADV_POPULATE_WRITE) };
    result == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
}

/// Unmaps a view.
///
/// # Safety
/// It was mapped with this size, and is not accessed any more.
pub(super) unsafe fn unmap(at: NonNull<u8>, bytes: usize) {
    // Only addresses are lost if this fails. SAFETY: as the caller says.
    unsafe { libc::munmap(at.as_ptr().cast(), bytes) };
}

/// Makes all threads of the process forget the instructions that they have fetched. Returns whether they have.
pub(super) fn synchronize() -> bool {
    const SYNCHRONIZE: libc::c_int = 1 << 5;
    const REGISTER: libc::c_int = 1 << 6;
    let membarrier = |command: libc::c_int| {
        // SAFETY: the commands change nothing that a program can see.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    };
    // A process has to be registered once, a forked one again.
    membarrier(SYNCHRONIZE) || (membarrier(REGISTER) && membarrier(SYNCHRONIZE))
}

/// The number of the calling thread.
pub(super) fn thread() -> u32 {
    // SAFETY: the call has no arguments and always succeeds.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Makes code that was written to one view visible to the instruction fetch of the other. The caches of x86-64 do it.
///
/// # Safety
/// Both views have so many bytes.
#[cfg(not(target_arch = "aarch64"))]
pub(super) unsafe fn clean_caches(_write: *const u8, _run: *const u8, _bytes: usize) {}

/// Makes code that was written to one view visible to the instruction fetch of the other.
///
/// # Safety
/// Both views have so many bytes.
#[cfg(target_arch = "aarch64")]
pub(super) unsafe fn clean_caches(write: *const u8, run: *const u8, bytes: usize) {
    use std::arch::asm;

    let types: u64;
    // SAFETY: Linux lets programs read this register.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) types, options(nomem, nostack, preserves_flags)) };
    let (data_line, instruction_line) = (4_usize << ((types >> 16) & 15), 4_usize << (types & 15));
    let lines = |from: *const u8, line: usize| {
        let begin = from.addr() & !(line - 1);
        (begin..from.addr() + bytes).step_by(line)
    };
    for at in lines(write, data_line) {
        // SAFETY: the address is mapped.
        unsafe { asm!("dc cvau, {}", in(reg) at, options(nostack, preserves_flags)) };
    }
    // SAFETY: a barrier.
    unsafe { asm!("dsb ish", options(nostack, preserves_flags)) };
    for at in lines(run, instruction_line) {
        // SAFETY: the address is mapped.
        unsafe { asm!("ic ivau, {}", in(reg) at, options(nostack, preserves_flags)) };
    }
    // SAFETY: barriers.
    unsafe { asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
}
