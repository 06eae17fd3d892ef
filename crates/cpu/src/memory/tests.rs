//! Tests of the whole allocator. Other tests allocate meanwhile, so that totals are checked loosely.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::*;

const MIB: usize = 1 << 20;

/// Checks the alignment of a block and fills it.
fn fill(block: &Block, with: u8) {
    assert!(block.len() == 0 || block.start().addr().is_multiple_of(ALIGN));
    // SAFETY: the block has that many bytes, and only this test has it.
    unsafe { block.start().write_bytes(with, block.len()) };
}

/// Whether all bytes of a block are these.
fn is_filled(block: &Block, with: u8) -> bool {
    // SAFETY: they were written by `fill`.
    unsafe { std::slice::from_raw_parts(block.start(), block.len()) }.iter().all(|&byte| byte == with)
}

#[test]
fn blocks_of_all_sizes_are_disjoint() {
    let sizes = [
        0,
        1,
        64,
        65,
        1000,
        5000,
        small::MAX_SMALL_BYTES,
        small::MAX_SMALL_BYTES + 1,
        300_000,
        MIB,
        2 * MIB + 1,
        5 * MIB,
    ];
    for _ in 0..3 {
        let blocks: Vec<Block> =
            sizes.iter().chain(&sizes).map(|&bytes| Block::new(bytes).unwrap()).collect();
        blocks.iter().enumerate().for_each(|(i, block)| fill(block, i as u8));
        assert!(blocks.iter().enumerate().all(|(i, block)| is_filled(block, i as u8)));
        assert!(blocks.iter().zip(sizes.iter().chain(&sizes)).all(|(block, &bytes)| block.len() == bytes));
    }
}

#[test]
fn small_blocks_are_given_again_on_their_thread() {
    for bytes in [8, 1000, 60_000] {
        let first = Block::new(bytes).unwrap().start();
        assert_eq!(Block::new(bytes - 3).unwrap().start(), first, "{bytes}");
    }
}

#[test]
fn large_blocks_are_given_again_on_any_thread() {
    // A size that is not near one of any other test.
    let bytes = 37 * MIB;
    let first = Block::new(bytes).unwrap();
    assert!(first.start().addr().is_multiple_of(2 * MIB), "large pages begin there");
    let start = first.start().addr();
    drop(first);
    let other = std::thread::spawn(move || Block::new(bytes - MIB).unwrap().start().addr());
    assert_eq!(other.join().unwrap(), start);
    let much_less = Block::new(bytes - 5 * MIB).unwrap();
    assert_ne!(much_less.start().addr(), start, "that would waste more than an eighth");
}

/// Runs a test in its own process: the counters are global, and other tests allocate too.
fn alone(name: &str, body: fn()) {
    const ALONE: &str = "DEFN_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return body();
    }
    let run = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("memory::tests::{name}")])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn threads_that_take_and_threads_that_give_hold_no_more_than_is_live() {
    alone("threads_that_take_and_threads_that_give_hold_no_more_than_is_live", pass_blocks_on);
}

fn pass_blocks_on() {
    let (send, receive) = mpsc::sync_channel::<Block>(16);
    let before = held_bytes();
    let giver = std::thread::spawn(move || receive.into_iter().map(|block| block.len()).sum::<usize>());
    let mut most = 0;
    for round in 0..20_000 {
        send.send(Block::new(4096 + round % 7 * 512).unwrap()).unwrap();
        most = most.max(held_bytes());
    }
    drop(send);
    assert!(giver.join().unwrap() >= 20_000 * 4096);
    assert!(most < before + 400 * MIB, "{most} bytes, {before} before");
}

#[test]
fn sizes_that_vary_keep_a_bounded_amount() {
    alone("sizes_that_vary_keep_a_bounded_amount", vary_sizes);
}

fn vary_sizes() {
    let mut most = 0;
    for round in 0..300 {
        // Each size is new, and no block fits two of them for long.
        let first = Block::new(MIB + round * 131 % 300 * 37_000).unwrap();
        let second = Block::new(2 * MIB + round * 57 % 200 * 41_000).unwrap();
        drop((first, second));
        most = most.max(held_bytes());
    }
    // A cache with a block for each size would hold nearly a gibibyte.
    assert!(most < 700 * MIB, "{most} bytes");
}

#[test]
fn what_is_live_is_counted_exactly() {
    alone("what_is_live_is_counted_exactly", counts_alone);
}

fn counts_alone() {
    assert_eq!((live_bytes(), peak_bytes(), held_bytes()), (0, 0, 0));
    let small = Block::new(100).unwrap();
    let large = Block::new(3 * MIB + 1).unwrap();
    assert_eq!(live_bytes(), 3 * MIB + 101);
    drop(large);
    let half = Block::new(MIB).unwrap();
    assert_eq!((live_bytes(), peak_bytes()), (MIB + 100, 3 * MIB + 101));
    reset_peak();
    assert_eq!(peak_bytes(), MIB + 100);
    assert_eq!(held_bytes(), 128 + (3 * MIB + 1).next_multiple_of(16 << 10) + MIB);
    drop((half, small));
    assert_eq!((live_bytes(), peak_bytes()), (0, MIB + 100));
    return_cached();
    assert_eq!(held_bytes(), 0);
    // Young blocks stay cached, old ones do not.
    drop(Block::new(5 * MIB).unwrap());
    give_back_old();
    assert_eq!(held_bytes(), 5 * MIB);
    assert!(!large::give_back_at(Instant::now() + large::MAX_IDLE_TIME + Duration::from_millis(1)));
    assert_eq!(held_bytes(), 0);
    refused_only_when_nothing_is_kept();
}

/// The caches are returned to the system before an allocation is refused.
fn refused_only_when_nothing_is_kept() {
    drop((Block::new(50 * MIB).unwrap(), Block::new(100).unwrap()));
    assert!(held_bytes() > 50 * MIB);
    assert!(Block::new(isize::MAX as usize).is_err() && Block::new(usize::MAX).is_err());
    assert!(Block::new(1 << 50).is_err());
    assert_eq!((held_bytes(), live_bytes()), (0, 0));
}

#[cfg(unix)]
#[test]
fn a_fork_can_take_and_give() {
    use std::sync::atomic::{AtomicBool, Ordering};
    // Another thread is in the allocator most of the time.
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                drop(Block::new(128 << 10).unwrap());
            }
        });
        for _ in 0..20 {
            // SAFETY: the child only allocates and frees, and exits without running the parent's code.
            let child = unsafe { libc::fork() };
            if child == 0 {
                for bytes in [100, 128 << 10, 3 * MIB] {
                    let block = Block::new(bytes);
                    // SAFETY: ends the child.
                    block.is_err().then(|| unsafe { libc::_exit(1) });
                }
                // SAFETY: ends the child.
                unsafe { libc::_exit(0) };
            }
            let begun = Instant::now();
            let mut status = 0;
            // SAFETY: the child is ours.
            while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
                assert!(begun.elapsed() < Duration::from_secs(60), "the child waits for ever");
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(status, 0);
        }
        done.store(true, Ordering::Relaxed);
    });
}
