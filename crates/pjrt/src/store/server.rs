//! The server in the process of rank 0.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::frame::{Frame, Kind, MAGIC};

/// How long the server waits for the rest of a request.
const REQUEST_TIME: Duration = Duration::from_secs(10);

/// How often a process that waits for others is looked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Default)]
struct State {
    values: HashMap<Vec<u8>, Vec<u8>>,
    /// The ranks that have joined.
    joined: BTreeSet<u64>,
    /// All ranks have joined.
    is_complete: bool,
    /// How many processes know that all have joined.
    answered: u64,
    /// The ranks that went away after that.
    gone: BTreeSet<u64>,
}

struct Table {
    world: u64,
    is_closing: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

/// A server, which runs until it is dropped.
pub(super) struct Server {
    address: SocketAddr,
    table: Arc<Table>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens on an address, for `world` processes.
    pub fn start(address: SocketAddr, world: usize) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let table = Arc::new(Table {
            world: world as u64,
            is_closing: AtomicBool::new(false),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let served = table.clone();
        let serve = move || {
            for stream in listener.incoming() {
                if served.is_closing.load(Ordering::Acquire) {
                    return;
                }
                let table = served.clone();
                // A connection that fails, or for which there is no thread, ends; its process says so.
                if let Ok(stream) = stream {
                    let answer = move || drop(table.answer(stream));
                    drop(std::thread::Builder::new().name("defn-store".to_owned()).spawn(answer));
                }
            }
        };
        let thread = std::thread::Builder::new().name("defn-store".to_owned()).spawn(serve)?;
        Ok(Server { address, table, thread: Some(thread) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.table.is_closing.store(true, Ordering::Release);
        // The thread waits for a connection. Without one it goes on listening, which only keeps the port.
        if TcpStream::connect(self.address).is_ok()
            && let Some(thread) = self.thread.take()
        {
            drop(thread.join());
        }
    }
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something changes, for at most `time`.
    fn wait<'a>(&self, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Answers the request of a connection.
    fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REQUEST_TIME))?;
        let mut magic = [0; MAGIC.len()];
        stream.read_exact(&mut magic)?;
        if magic != *MAGIC {
            return Ok(());
        }
        let request = Frame::read(&mut stream)?;
        match request.kind {
            Kind::Join => self.join(&request, stream),
            Kind::Get => self.get(&request).write(&mut stream),
            Kind::TryGet => self.try_get(&request).write(&mut stream),
            Kind::Put => self.put(request).write(&mut stream),
            Kind::Done
            | Kind::NotFound
            | Kind::Exists
            | Kind::Late
            | Kind::Gone
            | Kind::RankTaken
            | Kind::World => Ok(()),
        }
    }

    fn put(&self, request: Frame) -> Frame {
        let mut state = self.lock();
        if state.values.contains_key(&request.key) {
            return Frame::new(Kind::Exists);
        }
        state.values.insert(request.key, request.value);
        self.changed.notify_all();
        Frame::new(Kind::Done)
    }

    fn try_get(&self, request: &Frame) -> Frame {
        match self.lock().values.get(&request.key) {
            Some(value) => Frame::with_value(Kind::Done, value.clone()),
            None => Frame::new(Kind::NotFound),
        }
    }

    fn get(&self, request: &Frame) -> Frame {
        let end = end_of(request.numbers[0]);
        let mut state = self.lock();
        loop {
            if let Some(value) = state.values.get(&request.key) {
                return Frame::with_value(Kind::Done, value.clone());
            }
            if !state.gone.is_empty() {
                return Frame::with_value(Kind::Gone, ranks(&state.gone).into_bytes());
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Frame::new(Kind::Late);
            }
            state = self.wait(state, left);
        }
    }

    /// Waits until all processes have joined, and then until this one ends.
    fn join(&self, request: &Frame, mut stream: TcpStream) -> io::Result<()> {
        let [rank, world, milliseconds] = request.numbers;
        if world != self.world {
            return Frame { numbers: [self.world, 0, 0], ..Frame::new(Kind::World) }.write(&mut stream);
        }
        let end = end_of(milliseconds);
        let mut state = self.lock();
        if !state.joined.insert(rank) {
            drop(state);
            return Frame::new(Kind::RankTaken).write(&mut stream);
        }
        if state.joined.len() as u64 == world {
            state.is_complete = true;
            self.changed.notify_all();
        }
        while !state.is_complete {
            if self.is_closing.load(Ordering::Acquire) {
                return Ok(());
            }
            let is_late = Instant::now() >= end;
            if is_late || is_closed(&stream) {
                // It may be started again.
                state.joined.remove(&rank);
                let missing: BTreeSet<u64> =
                    (0..world).filter(|other| *other != rank && !state.joined.contains(other)).collect();
                drop(state);
                return Frame::with_value(Kind::Late, ranks(&missing).into_bytes()).write(&mut stream);
            }
            state = self.wait(state, LOOK_INTERVAL);
        }
        // This server ends with the process of rank 0, which may end once it is answered: it is the last.
        while rank == 0 && state.answered + 1 < self.world {
            state = self.wait(state, LOOK_INTERVAL);
        }
        drop(state);
        let answered = Frame::new(Kind::Done).write(&mut stream);
        self.lock().answered += 1;
        self.changed.notify_all();
        stream.set_read_timeout(None)?;
        // It sends nothing more: this returns when it ends.
        let ended = answered.and_then(|()| stream.read_to_end(&mut Vec::new()));
        self.lock().gone.insert(rank);
        self.changed.notify_all();
        ended.map(drop)
    }
}

/// The end of a wait, which is a year at most.
fn end_of(milliseconds: u64) -> Instant {
    Instant::now() + Duration::from_millis(milliseconds.min(365 * 24 * 3600 * 1000))
}

/// Whether the other side has ended the connection.
fn is_closed(stream: &TcpStream) -> bool {
    let looked = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut [0]));
    let is_open = looked
        .is_err_and(|error| [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted].contains(&error.kind()));
    !is_open || stream.set_nonblocking(false).is_err()
}

/// Ranks in words: `rank 3` or `ranks 1, 2`.
fn ranks(ranks: &BTreeSet<u64>) -> String {
    let all: Vec<String> = ranks.iter().map(u64::to_string).collect();
    format!("rank{} {}", if all.len() == 1 { "" } else { "s" }, all.join(", "))
}
