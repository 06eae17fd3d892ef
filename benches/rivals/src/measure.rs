//! Workloads: a check that all results are equal, then calls of the libraries in turn.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::numbers::Numbers;

/// The number of turns of a library, at least and at most.
const LEAST_TURNS: usize = 5;
const MOST_TURNS: usize = 300;

/// Calls are counted together until they take this long, so that the clock's resolution does not matter.
const BATCH: Duration = Duration::from_micros(100);

/// A turn has several batches of short calls: the first of them may find the caches cold.
const BATCHES: usize = 4;

/// Threads of defn's pool spin for 200 us before they sleep; the next library must not share a processor with them.
const UNTIL_THREADS_SLEEP: Duration = Duration::from_micros(400);

/// What to run.
pub struct Runner {
    /// Words in the names of workloads; all workloads if there is none.
    pub only: Vec<String>,
    /// The time for the turns of one workload.
    pub budget: Duration,
    /// The number of threads of each library.
    pub threads: usize,
}

/// One library's call.
struct Contestant<'a> {
    library: &'static str,
    /// Runs so many calls and returns how long they took.
    run: Box<dyn Fn(usize) -> Duration + 'a>,
    calls: usize,
    seconds: Vec<f64>,
    spent: Duration,
}

/// A workload, with the libraries that have passed the check.
pub struct Workload<'a> {
    runner: &'a Runner,
    family: &'static str,
    name: String,
    tolerance: f64,
    want: Vec<f64>,
    contestants: Vec<Contestant<'a>>,
}

impl Runner {
    /// Whether the workload is chosen.
    fn is_chosen(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|word| name.contains(word.as_str()))
    }

    /// A workload, with the call of defn. A workload that is not chosen calls nothing.
    pub fn time<'a, R: Numbers>(
        &'a self,
        family: &'static str,
        name: impl ToString,
        ours: impl Fn() -> R + 'a,
    ) -> Workload<'a> {
        self.time_by(family, name, ours, R::numbers)
    }

    /// As [`Runner::time`], where `numbers` computes what is compared with the other libraries.
    pub fn time_by<'a, R>(
        &'a self,
        family: &'static str,
        name: impl ToString,
        ours: impl Fn() -> R + 'a,
        numbers: impl Fn(&R) -> Vec<f64>,
    ) -> Workload<'a> {
        let (name, tolerance) = (name.to_string(), 0.0);
        let mut workload =
            Workload { runner: self, family, name, tolerance, want: Vec::new(), contestants: Vec::new() };
        if self.is_chosen(&workload.name) {
            workload.want = numbers(&ours());
            assert!(workload.want.iter().all(|x| x.is_finite()), "{}: not finite", workload.name);
            workload.join("defn", ours);
        }
        workload
    }
}

impl<'a> Workload<'a> {
    /// Sets the tolerance relative to the largest number; the default is 0.
    pub fn within(self, tolerance: f64) -> Self {
        Workload { tolerance, ..self }
    }

    fn join<R>(&mut self, library: &'static str, call: impl Fn() -> R + 'a) {
        let run = move |calls: usize| {
            let start = Instant::now();
            for _ in 0..calls {
                black_box(call());
            }
            start.elapsed()
        };
        self.contestants.push(Contestant {
            library,
            run: Box::new(run),
            calls: 1,
            seconds: Vec::new(),
            spent: Duration::ZERO,
        });
    }

    /// Adds another library, whose result must equal defn's.
    pub fn beside<R: Numbers>(self, library: &'static str, theirs: impl Fn() -> R + 'a) -> Self {
        self.beside_by(library, theirs, R::numbers)
    }

    /// As [`Workload::beside`], where `numbers` computes what is compared.
    pub fn beside_by<R>(
        mut self,
        library: &'static str,
        theirs: impl Fn() -> R + 'a,
        numbers: impl Fn(&R) -> Vec<f64>,
    ) -> Self {
        if self.contestants.is_empty() {
            return self;
        }
        let got = numbers(&theirs());
        let name = &self.name;
        assert_eq!(got.len(), self.want.len(), "{name}: the number of results of {library} and of defn");
        let largest = self.want.iter().fold(0f64, |largest, x| largest.max(x.abs()));
        for (place, (got, want)) in got.iter().zip(&self.want).enumerate() {
            // A NaN is not within any tolerance.
            let within = (got - want).abs() <= self.tolerance * largest;
            assert!(within, "{name}: element {place} is {got} by {library} and {want} by defn");
        }
        self.join(library, theirs);
        self
    }

    /// Times the libraries in turn, and prints a line for each.
    pub fn done(mut self) {
        if self.contestants.is_empty() {
            return;
        }
        for contestant in &mut self.contestants {
            let once = (contestant.run)(1).max(Duration::from_nanos(1));
            contestant.calls = (BATCH.as_nanos() / once.as_nanos()).max(1) as usize;
        }
        let share = self.runner.budget / self.contestants.len() as u32;
        let mut turn = 0;
        loop {
            let mut waiting = 0;
            let count = self.contestants.len();
            for step in 0..count {
                // Each turn starts with another library, and every other turn goes backwards.
                let place = if turn % 2 == 0 { (turn + step) % count } else { (turn + count - step) % count };
                let contestant = &mut self.contestants[place];
                let turns_are_over = turn >= MOST_TURNS || contestant.spent >= share;
                if turn >= LEAST_TURNS && turns_are_over {
                    continue;
                }
                waiting += 1;
                if self.runner.threads > 1 {
                    std::thread::sleep(UNTIL_THREADS_SLEEP);
                }
                contestant.turn();
            }
            turn += 1;
            if waiting == 0 {
                break;
            }
        }
        for contestant in &mut self.contestants {
            contestant.seconds.sort_by(f64::total_cmp);
            let seconds = &contestant.seconds;
            let (least, median) = (seconds[0], seconds[seconds.len() / 2]);
            println!("{}\t{}\t{}\t{least:e}\t{median:e}", self.family, self.name, contestant.library);
        }
    }
}

impl Contestant<'_> {
    /// One call that is not timed, so that the caches hold this library's data, and then timed batches.
    fn turn(&mut self) {
        let start = Instant::now();
        (self.run)(1);
        for _ in 0..BATCHES {
            let batch = (self.run)(self.calls);
            self.seconds.push(batch.as_secs_f64() / self.calls as f64);
            if batch > BATCH * BATCHES as u32 {
                break;
            }
        }
        self.spent += start.elapsed();
    }
}
