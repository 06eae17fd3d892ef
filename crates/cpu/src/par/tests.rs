use std::sync::Mutex;

use defn_core::ErrorKind;

use super::*;

fn chunks_of(par: Par, n: usize, grain: usize) -> Vec<Range<usize>> {
    let seen = Mutex::new(Vec::new());
    par.for_chunks(n, grain, |chunk| seen.lock().unwrap().push(chunk));
    let mut seen = seen.into_inner().unwrap();
    seen.sort_by_key(|chunk| chunk.start);
    seen
}

#[test]
fn chunks_do_not_depend_on_the_threads() {
    for (n, grain) in [(0, 4), (1, 4), (4, 4), (1000, 7), (5, 0)] {
        assert_eq!(chunks_of(Par::Serial, n, grain), chunks_of(Par::Pool, n, grain));
    }
    assert_eq!(chunks_of(Par::Pool, 10, 4), [0..4, 4..8, 8..10]);
}

#[test]
fn several_threads_and_nested_calls_share_the_pool() {
    let total = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                Par::Pool.for_chunks(64, 1, |_| {
                    Par::Pool.for_chunks(100, 10, |chunk| {
                        total.fetch_add(chunk.len(), Ordering::Relaxed);
                    });
                });
            });
        }
    });
    assert_eq!(total.into_inner(), 4 * 64 * 100);
}

#[test]
fn threads_join_and_leave_while_others_work() {
    let seen = Mutex::new(std::collections::HashSet::new());
    let total = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..500 {
                    Par::Pool.for_chunks(round % 50, 1, |chunk| {
                        lock(&seen).insert(std::thread::current().id());
                        total.fetch_add(chunk.len(), Ordering::Relaxed);
                    });
                }
            });
        }
    });
    assert_eq!(total.into_inner(), 4 * (0..500).map(|round| round % 50).sum::<usize>());
    // Other tests may enlarge the pool.
    assert!(seen.into_inner().unwrap().len() < 4 + 7);
}

#[test]
fn no_more_threads_come_than_were_asked_for() {
    for count in [1, 2, 7] {
        let (here, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let total = AtomicUsize::new(0);
        with_threads(count, || {
            assert_eq!(threads().unwrap(), count);
            Par::Pool.for_chunks(20, 1, |_| {
                // A nested call is run by the idle threads of the outer call.
                Par::Pool.for_chunks(20, 1, |chunk| {
                    assert_eq!(Par::Pool.threads(), count);
                    let now = 1 + here.fetch_add(1, Ordering::SeqCst);
                    most.fetch_max(now, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_micros(20));
                    total.fetch_add(chunk.len(), Ordering::Relaxed);
                    here.fetch_sub(1, Ordering::SeqCst);
                });
            });
        })
        .unwrap();
        assert_eq!(total.into_inner(), 400);
        let most = most.into_inner();
        assert!(most <= count && (count == 1 || most > 1), "{most} of {count}");
    }
}

#[test]
fn threads_with_different_counts_share_the_pool() {
    std::thread::scope(|scope| {
        for count in [1, 2, 3, 5, 7] {
            scope.spawn(move || {
                for _ in 0..50 {
                    let total = AtomicUsize::new(0);
                    let add = |chunk: Range<usize>| _ = total.fetch_add(chunk.len(), Ordering::Relaxed);
                    with_threads(count, || Par::Pool.for_chunks(1000, 7, add)).unwrap();
                    assert_eq!(total.into_inner(), 1000);
                }
            });
        }
    });
}

#[test]
fn a_count_holds_until_its_body_ends() {
    let outside = threads().unwrap();
    let caught = std::panic::catch_unwind(|| {
        with_threads(3, || {
            assert_eq!(with_threads(5, threads).unwrap().unwrap(), 5);
            assert_eq!(threads().unwrap(), 3);
            panic!("out of it");
        })
    });
    assert!(caught.is_err());
    assert_eq!(threads().unwrap(), outside);
    for count in [0, 1025, usize::MAX] {
        let error = with_threads(count, || ()).unwrap_err().to_string();
        let text = "the number of threads is";
        assert!(error.starts_with(&format!("with_threads: {text} {count}, ")), "{error}");
    }
}

/// Calls `work` once on a thread of the pool, while the caller waits in its own chunk.
fn on_another_thread(work: impl Fn() + Sync) {
    let come = AtomicUsize::new(0);
    let caller = std::thread::current().id();
    Par::Pool.for_chunks(2, 1, |_| {
        if std::thread::current().id() == caller {
            while come.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
        } else if come.fetch_add(1, Ordering::Relaxed) == 0 {
            // It may take both chunks if it is faster than the caller.
            work();
        }
    });
}

#[test]
fn a_sleeping_thread_is_woken() {
    if Par::Pool.threads() == 1 {
        return;
    }
    let count = AtomicUsize::new(0);
    for _ in 0..3 {
        std::thread::sleep(4 * SPIN_BEFORE_SLEEP);
        on_another_thread(|| {
            count.fetch_add(1, Ordering::Relaxed);
        });
    }
    assert_eq!(count.into_inner(), 3);
}

#[test]
fn a_panic_of_another_thread_comes_out() {
    if Par::Pool.threads() == 1 {
        return;
    }
    let caught = std::panic::catch_unwind(|| {
        on_another_thread(|| {
            // The caller has finished and waits for this thread.
            std::thread::sleep(4 * SPIN_FOR_HELPERS);
            panic!("of another thread");
        });
    });
    assert_eq!(*caught.unwrap_err().downcast::<&str>().unwrap(), "of another thread");
    assert_eq!(chunks_of(Par::Pool, 100, 1).len(), 100);
}

#[test]
fn a_panic_comes_out_and_the_pool_goes_on() {
    let caught = std::panic::catch_unwind(|| {
        Par::Pool.for_chunks(100, 1, |chunk| assert_ne!(chunk.start, 50));
    });
    assert!(caught.is_err());
    assert_eq!(chunks_of(Par::Pool, 100, 1).len(), 100);
}

thread_local! {
    /// Whether the poll of this thread returns an error.
    static STOP: Cell<bool> = const { Cell::new(false) };
}

#[test]
fn work_is_stopped_between_chunks() {
    set_poll(|| if STOP.get() { Err(ErrorKind::NoHostFunction { slot: 7 }.into()) } else { Ok(()) });
    let step = |done: &AtomicUsize| {
        std::thread::sleep(Duration::from_millis(1));
        done.fetch_add(1, Ordering::Relaxed);
    };
    let plain = |done: &AtomicUsize| Par::Pool.for_chunks(10_000, 1, |_| step(done));
    let nested = |done: &AtomicUsize| {
        Par::Pool.for_chunks(2, 1, |_| Par::Pool.for_chunks(5000, 1, |_| step(done)));
    };
    let in_one_chunk = |done: &AtomicUsize| {
        Par::Pool.for_chunks(2, 1, |_| {
            (0..5000).for_each(|_| {
                poll_within_chunk();
                step(done);
            });
        });
    };
    let works: [&dyn Fn(&AtomicUsize); 3] = [&plain, &nested, &in_one_chunk];
    for threads in [1, 4] {
        for work in works {
            with_threads(threads, || {
                let done = AtomicUsize::new(0);
                STOP.set(true);
                let ended = interruptible(|| {
                    work(&done);
                    Ok(())
                });
                STOP.set(false);
                let ErrorKind::NoHostFunction { slot: 7 } = ended.unwrap_err().kind() else {
                    panic!("another")
                };
                assert!(done.into_inner() < 2000);
                // The next call has a new team.
                let sum = AtomicUsize::new(0);
                Par::Pool.for_chunks(1000, 10, |chunk| {
                    sum.fetch_add(chunk.sum::<usize>(), Ordering::Relaxed);
                });
                assert_eq!(sum.into_inner(), 499_500);
            })
            .unwrap();
        }
    }
}
