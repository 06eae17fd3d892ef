//! Tests of executable memory. Those that fork, or are refused something by the system, run in a process of their own.

use std::collections::VecDeque;
use std::io::{PipeReader, Read};
use std::time::{Duration, Instant};

use super::arena::{Arena, constant_function, name_file};
use super::*;

/// Code that gives a number, followed by so many bytes that are not executed.
fn code(number: u32, more: usize) -> Vec<u8> {
    let mut code = constant_function(number).expect("there is code for this architecture");
    code.resize(code.len() + more, 0);
    code
}

/// Executes a function of [`code`].
fn call(entry: *const u8) -> u32 {
    // SAFETY: the tests pass functions without arguments, which exist.
    unsafe { std::mem::transmute::<*const u8, extern "C" fn() -> u32>(entry)() }
}

fn add(number: u32, more: usize) -> CodeBlock {
    let code = code(number, more);
    let block = CodeMemory::add(&code, "test").expect("there is memory for code");
    assert_eq!(block.len(), code.len());
    assert!(block.entry().addr().is_multiple_of(64));
    block
}

/// Runs a test in its own process.
fn alone(name: &str, body: fn()) {
    const ALONE: &str = "DEFN_TEST_ALONE_FOR_CODE";
    if std::env::var_os(ALONE).is_some() {
        return body();
    }
    let (_, module) = module_path!().split_once("::").expect("a module of the crate");
    let run = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", &format!("{module}::{name}")])
        .env(ALONE, "1")
        .env("DEFN_PERF", if name.starts_with("perf") { "1" } else { "" })
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && text.contains("1 passed"), "{text}{errors}");
}

#[test]
fn code_can_be_executed() {
    assert_eq!(available(), Ok(()));
    let blocks: Vec<CodeBlock> =
        (0..300).map(|number| add(number * 1_000_003, number as usize * 7)).collect();
    for (number, block) in (0..).zip(&blocks) {
        assert_eq!(call(block.entry()), number * 1_000_003);
    }
    let mut ranges: Vec<(usize, usize)> =
        blocks.iter().map(|block| (block.entry().addr(), block.entry().addr() + block.len())).collect();
    ranges.sort_unstable();
    assert!(ranges.is_sorted_by(|(_, end), (begin, _)| end <= begin), "blocks overlap");
}

#[test]
fn threads_add_and_drop_blocks() {
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            scope.spawn(move || {
                let mut live: VecDeque<(u32, CodeBlock)> = VecDeque::new();
                for round in 0..2000_u32 {
                    let number = thread << 16 | round;
                    live.push_back((number, add(number, (round as usize * 37) % 3000)));
                    if live.len() > 20 {
                        // Now the first, now one of the middle.
                        let at = if round % 3 == 0 { 10 } else { 0 };
                        let (number, block) = live.remove(at).expect("there are more");
                        assert_eq!(call(block.entry()), number);
                    }
                    let (number, block) = &live[round as usize % live.len()];
                    assert_eq!(call(block.entry()), *number);
                }
            });
        }
    });
}

/// A block is executed by another thread than the one that has written it to a range where that thread had executed
/// another one.
#[test]
fn threads_execute_what_others_write_to_a_used_place() {
    let (send, receive) = std::sync::mpsc::sync_channel::<(u32, CodeBlock)>(0);
    let executing = std::thread::spawn(move || {
        for (number, block) in receive {
            for _ in 0..10 {
                assert_eq!(call(block.entry()), number);
            }
        }
    });
    for number in 0..2000 {
        send.send((number, add(number, 0))).unwrap();
    }
    drop(send);
    executing.join().unwrap();
}

#[test]
fn places_are_used_again() {
    let mut arena = Arena::new().unwrap();
    let add = |arena: &mut Arena, number, more| {
        let entry = arena.add(&code(number, more), "").unwrap();
        assert_eq!(call(entry.as_ptr()), number);
        entry
    };
    let length = |more| code(0, more).len();
    let first = add(&mut arena, 1, 0);
    let blocks = [100, 200, 300].map(|more| add(&mut arena, more as u32, more));
    let last = add(&mut arena, 2, 0);
    // The smallest that is large enough; three neighbours are one range, in whatever order they come.
    arena.release(blocks[2], length(300));
    arena.release(blocks[0], length(100));
    assert_eq!(add(&mut arena, 3, 90), blocks[0]);
    assert_eq!(add(&mut arena, 4, 190), blocks[2]);
    arena.release(blocks[2], length(190));
    arena.release(blocks[0], length(90));
    arena.release(blocks[1], length(200));
    let all = add(&mut arena, 5, 600);
    assert_eq!(all, blocks[0]);
    assert!(call(first.as_ptr()) == 1 && call(last.as_ptr()) == 2);
    for (entry, more) in [(all, 600), (first, 0), (last, 0)] {
        arena.release(entry, length(more));
    }
    // All of it is one range again.
    assert_eq!(add(&mut arena, 6, (1 << 20) - 64), first);
    assert_eq!(arena.regions(), 1);
    arena.release(first, length((1 << 20) - 64));
}

#[test]
fn regions_are_added_and_never_moved() {
    let mut arena = Arena::new().unwrap();
    let more = 100 << 10;
    let blocks: Vec<_> = (0..60).map(|number| arena.add(&code(number, more), "").unwrap()).collect();
    // 1, 2 and 4 MiB.
    assert_eq!(arena.regions(), 3);
    let large = arena.add(&code(7, 40 << 20), "").unwrap();
    for (number, entry) in (0..).zip(&blocks) {
        assert_eq!(call(entry.as_ptr()), number);
    }
    assert_eq!((call(large.as_ptr()), arena.regions()), (7, 4));
    assert_eq!(arena.add(&[], "").map(drop), Some(()));
}

#[test]
fn nothing_is_used_again_without_a_barrier() {
    let mut arena = Arena::new().unwrap();
    arena.reuse_nothing();
    let first = arena.add(&code(1, 0), "").unwrap();
    let mut last = first;
    // Much more than a region at any time: what is used up goes back.
    for number in 0..200 {
        let entry = arena.add(&code(number, 64 << 10), "").unwrap();
        assert_ne!(entry, last);
        assert_eq!(call(entry.as_ptr()), number);
        arena.release(entry, code(number, 64 << 10).len());
        last = entry;
        assert!(arena.regions() <= 8);
    }
    assert_eq!(call(first.as_ptr()), 1);
    arena.release(first, code(1, 0).len());
}

/// A child of this process.
struct Child {
    process: libc::pid_t,
}

impl Child {
    /// Forks; the child runs `body`, and ends.
    fn fork(fork: fn() -> libc::pid_t, body: impl FnOnce() -> bool) -> Child {
        let process = fork();
        assert!(process >= 0);
        if process == 0 {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            // SAFETY: ends the child.
            unsafe { libc::_exit(if result.is_ok_and(|is_right| is_right) { 0 } else { 1 }) };
        }
        Child { process }
    }

    /// Waits until the child has ended well.
    fn join(self) {
        let begun = Instant::now();
        let mut status = 0;
        // SAFETY: the child is ours.
        while unsafe { libc::waitpid(self.process, &raw mut status, libc::WNOHANG) } == 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "the child waits for ever");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(status, 0);
    }
}

fn by_library() -> libc::pid_t {
    // SAFETY: the child runs this test only.
    unsafe { libc::fork() }
}

/// A fork of which no handler is told.
fn by_system() -> libc::pid_t {
    // SAFETY: as above. Without a stack the child has a copy of this one.
    unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t }
}

/// Waits until the other side closes its end.
fn wait(mut pipe: PipeReader) {
    assert_eq!(pipe.read(&mut [0]).unwrap(), 0);
}

/// Both sides add code after a fork, and each executes its own and what was there before.
fn both_sides(fork: fn() -> libc::pid_t) {
    let old: Vec<CodeBlock> = (0..50).map(|number| add(number, 500)).collect();
    let check_old = || (0..).zip(&old).all(|(number, block)| call(block.entry()) == number);
    let dropped = add(60, 100);
    drop(dropped);
    let child = Child::fork(fork, || {
        let new: Vec<CodeBlock> = (0..50).map(|number| add(1000 + number, 500)).collect();
        let mut is_right = check_old();
        is_right &= (1000..).zip(&new).all(|(number, block)| call(block.entry()) == number);
        // A child of the child.
        Child::fork(by_library, || {
            let newer = add(5, 0);
            check_old() && call(newer.entry()) == 5 && call(new[3].entry()) == 1003
        })
        .join();
        is_right && check_old()
    });
    // The parent adds its own at the same time.
    let new: Vec<CodeBlock> = (0..50).map(|number| add(2000 + number, 500)).collect();
    child.join();
    assert!(check_old() && (2000..).zip(&new).all(|(number, block)| call(block.entry()) == number));
}

#[test]
fn a_fork_has_code_of_its_own() {
    alone("a_fork_has_code_of_its_own", || both_sides(by_library));
}

#[test]
fn a_fork_that_no_handler_is_told_of_has_code_of_its_own() {
    alone("a_fork_that_no_handler_is_told_of_has_code_of_its_own", || both_sides(by_system));
}

/// The child executes a block that its parent drops, and in whose range it would write other code.
#[test]
fn what_the_parent_drops_stays_in_the_child() {
    alone("what_the_parent_drops_stays_in_the_child", || {
        let mut blocks: Vec<CodeBlock> = (0..50).map(|number| add(number, 500)).collect();
        let kept = add(77, 0);
        let entries: Vec<*const u8> = blocks.iter().map(CodeBlock::entry).collect();
        let (waits, goes) = std::io::pipe().unwrap();
        let mut goes = Some(goes);
        let child = Child::fork(by_library, || {
            drop(goes.take());
            wait(waits);
            // What it drops itself is not the parent's any more.
            let still = (0..).zip(&entries).all(|(number, &entry)| call(entry) == number);
            blocks.clear();
            let new: Vec<CodeBlock> = (0..200).map(|number| add(100 + number, 300)).collect();
            still && (100..).zip(&new).all(|(number, block)| call(block.entry()) == number)
        });
        blocks.clear();
        let new: Vec<CodeBlock> = (0..200).map(|number| add(number, 300)).collect();
        assert!(new.iter().all(|block| !entries.contains(&block.entry())));
        drop(goes);
        child.join();
        assert!((0..).zip(&new).all(|(number, block)| call(block.entry()) == number));
        assert_eq!(call(kept.entry()), 77);
        // The old region is unmapped with its last block.
        let address = kept.entry().addr();
        drop(kept);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let is_mapped = maps.lines().any(|line| {
            let (range, _) = line.split_once(' ').unwrap();
            let (begin, end) = range.split_once('-').unwrap();
            let number = |text| usize::from_str_radix(text, 16).unwrap();
            line.contains("defn-code") && (number(begin)..number(end)).contains(&address)
        });
        assert!(!is_mapped, "{maps}");
    });
}

/// Threads add code while another one forks.
#[test]
fn a_fork_amidst_additions() {
    alone("a_fork_amidst_additions", || {
        let is_done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let is_done = &is_done;
                scope.spawn(move || {
                    while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                        assert_eq!(call(add(thread, 300).entry()), thread);
                    }
                });
            }
            for round in 0..50 {
                let child = Child::fork(by_library, || call(add(round, 0).entry()) == round);
                child.join();
            }
            is_done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    });
}

/// No mapping of the process is writable and executable, and none of a file in memory is left open.
#[test]
fn no_mapping_is_writable_and_executable() {
    let _block = add(1, 0);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let ours: Vec<&str> = maps.lines().filter(|line| line.contains("defn-code")).collect();
    assert!(ours.len() >= 2);
    assert!(ours.iter().all(|line| line.contains("rw-s") || line.contains("r-xs")), "{maps}");
}

#[test]
fn a_process_that_may_not_make_memory_executable_has_code() {
    alone("a_process_that_may_not_make_memory_executable_has_code", || {
        const SET_MDWE: libc::c_int = 65;
        // SAFETY: it changes nothing but what this process may do.
        if unsafe { libc::prctl(SET_MDWE, 1, 0, 0, 0) } != 0 {
            // Kernels before 6.3 do not know it.
            return;
        }
        // SAFETY: the memory is mapped here.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
            let page =
                libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            assert_ne!(
                libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_EXEC),
                0,
                "it is not in force"
            );
        }
        assert_eq!(available(), Ok(()));
        assert_eq!(call(add(11, 0).entry()), 11);
    });
}

/// Lets the system refuse a call with an error to this thread, if one of these bits of its third argument is set, or
/// always.
fn refuse(call: libc::c_long, bits: Option<u32>, error: libc::c_int) {
    // Where a filter finds the number of a call, and the low half of its third argument.
    const NUMBER: u32 = 0;
    const THIRD: u32 = 16 + 2 * 8;
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let is = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let has = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
    let end = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        step(load, 0, 0, NUMBER),
        step(is, 0, 3, call as u32),
        step(load, 0, 0, THIRD),
        step(has, 0, 1, bits.unwrap_or(u32::MAX)),
        step(end, 0, 0, libc::SECCOMP_RET_ERRNO | error as u32),
        step(end, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    if bits.is_none() {
        // Whatever the argument.
        filter[3] = step(load, 0, 0, NUMBER);
    }
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the filter exists while it is installed, and is a valid one.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

fn is_unavailable() {
    let reason = available().unwrap_err();
    assert!(reason.starts_with("the system refuses"), "{reason}");
    assert!(CodeMemory::add(&code(1, 0), "").is_none());
    assert_eq!(available(), Err(reason));
}

#[test]
fn there_is_none_without_files_in_memory() {
    alone("there_is_none_without_files_in_memory", || {
        refuse(libc::SYS_memfd_create, None, libc::EPERM);
        is_unavailable();
    });
}

#[test]
fn there_is_none_where_the_call_is_unknown() {
    alone("there_is_none_where_the_call_is_unknown", || {
        refuse(libc::SYS_memfd_create, None, libc::ENOSYS);
        is_unavailable();
    });
}

#[test]
fn there_is_none_without_executable_mappings() {
    alone("there_is_none_without_executable_mappings", || {
        refuse(libc::SYS_mmap, Some(libc::PROT_EXEC as u32), libc::EACCES);
        is_unavailable();
    });
}

#[test]
fn places_are_not_used_again_where_the_system_has_no_barrier() {
    alone("places_are_not_used_again_where_the_system_has_no_barrier", || {
        refuse(libc::SYS_membarrier, None, libc::ENOSYS);
        if cfg!(target_arch = "aarch64") {
            assert!(available().is_err());
            return;
        }
        let first = add(1, 0);
        let entry = first.entry();
        drop(first);
        let second = add(2, 0);
        assert_ne!(second.entry(), entry);
        assert_eq!(call(second.entry()), 2);
    });
}

/// The barrier is refused when there is code already.
#[test]
fn a_barrier_that_is_lost() {
    alone("a_barrier_that_is_lost", || {
        let (first, entry) = {
            let block = add(1, 0);
            (add(3, 0), block.entry())
        };
        refuse(libc::SYS_membarrier, None, libc::EPERM);
        if cfg!(target_arch = "aarch64") {
            assert!(CodeMemory::add(&code(2, 0), "").is_none());
            return;
        }
        let second = add(2, 0);
        assert_ne!(second.entry(), entry);
        assert_eq!((call(first.entry()), call(second.entry())), (3, 2));
    });
}

#[test]
fn perf_finds_names() {
    alone("perf_finds_names", || {
        let code = code(4, 10);
        let block = CodeMemory::add(&code, "a sum\nof rows").unwrap();
        let path = name_file(std::process::id());
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text, format!("{:x} {:x} a sum of rows\n", block.entry().addr(), code.len()));
        // A child has a file of its own.
        let child = Child::fork(by_library, || {
            let block = CodeMemory::add(&code, "its own").unwrap();
            let path = name_file(std::process::id());
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            text == format!("{:x} {:x} its own\n", block.entry().addr(), code.len())
        });
        child.join();
    });
}
