//! The part of a process in the key-value store.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::StoreError;
use super::frame::{Frame, Kind, MAGIC};
use super::server::Server;

/// How long a thread waits between two attempts or two looks for an answer.
const INTERVAL: Duration = Duration::from_millis(20);

/// How long after the end of a wait the answer may come.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// A process that has joined the others.
pub(crate) struct Member {
    /// The coordinator's address as it was given, for messages.
    address: String,
    peer: SocketAddr,
    rank: usize,
    world: usize,
    /// Open as long as this process is a member.
    _session: TcpStream,
    /// In the process of rank 0.
    _server: Option<Server>,
}

/// The address, rank and world of a process, which messages name.
#[derive(Clone, Copy)]
struct Place<'a> {
    address: &'a str,
    rank: usize,
    world: usize,
}

impl Member {
    /// Joins the processes whose rank 0 listens on `peer`, waiting for all of them. The process of rank 0 starts to
    /// listen. `poll` is called meanwhile.
    ///
    /// # Errors
    /// Any reason why not all processes could be joined; the error of `poll`.
    pub fn join<E: From<StoreError>>(
        (address, peer): (&str, SocketAddr),
        (rank, world): (usize, usize),
        timeout: Duration,
        poll: &dyn Fn() -> Result<(), E>,
    ) -> Result<Member, E> {
        let place = Place { address, rank, world };
        let end = Instant::now() + timeout;
        let server = if rank == 0 {
            let failed =
                |error: io::Error| StoreError::Listen { address: address.to_owned(), why: error.to_string() };
            Some(Server::start(peer, world).map_err(failed)?)
        } else {
            None
        };
        let peer = server.as_ref().map_or(peer, Server::address);
        let mut session = loop {
            let why = match TcpStream::connect_timeout(&peer, Duration::from_secs(1)) {
                Ok(stream) => break stream,
                Err(error) => error.to_string(),
            };
            poll()?;
            if Instant::now() >= end {
                let (address, seconds) = (address.to_owned(), timeout.as_secs());
                return Err(StoreError::Unreachable { address, rank, world, seconds, why }.into());
            }
            std::thread::sleep(INTERVAL);
        };
        let foreign = |error: io::Error| place.foreign(&error);
        let left = end.saturating_duration_since(Instant::now());
        let numbers = [rank as u64, world as u64, milliseconds(left)];
        let request = Frame { numbers, ..Frame::new(Kind::Join) };
        send(&mut session, &request).map_err(foreign)?;
        session.set_read_timeout(Some(INTERVAL)).map_err(foreign)?;
        loop {
            let why = match session.peek(&mut [0]) {
                Ok(0) => "it ended before all had joined".to_owned(),
                Ok(_) => break,
                Err(error) if is_late(&error) && Instant::now() < end + ANSWER_TIME => {
                    poll()?;
                    continue;
                }
                Err(error) => error.to_string(),
            };
            let (address, seconds) = (address.to_owned(), timeout.as_secs());
            return Err(StoreError::Unreachable { address, rank, world, seconds, why }.into());
        }
        session.set_read_timeout(Some(ANSWER_TIME)).map_err(foreign)?;
        let answer = Frame::read(&mut session).map_err(foreign)?;
        let address = address.to_owned();
        let error = match answer.kind {
            Kind::Done => {
                return Ok(Member { address, peer, rank, world, _session: session, _server: server });
            }
            Kind::Late => {
                let (seconds, missing) = (timeout.as_secs(), text(&answer.value));
                StoreError::Missing { address, rank, world, seconds, missing }
            }
            Kind::RankTaken => StoreError::RankTaken { address, rank, world },
            Kind::World => {
                let there = usize::try_from(answer.numbers[0]).unwrap_or(usize::MAX);
                StoreError::World { address, rank, world, there }
            }
            Kind::Join
            | Kind::Get
            | Kind::TryGet
            | Kind::Put
            | Kind::NotFound
            | Kind::Exists
            | Kind::Gone => place.foreign(&io::Error::other("it answers something else")),
        };
        Err(error.into())
    }

    /// The coordinator's address as it was given.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn rank(&self) -> usize {
        self.rank
    }

    pub fn world(&self) -> usize {
        self.world
    }

    /// The value of a key, once somebody has put it, within `timeout`.
    pub fn get(&self, key: &[u8], timeout: Duration) -> Result<Vec<u8>, StoreError> {
        let request =
            Frame { numbers: [milliseconds(timeout), 0, 0], key: key.to_vec(), ..Frame::new(Kind::Get) };
        self.ask(&request, timeout)
    }

    /// The value of a key, if somebody has put it.
    pub fn try_get(&self, key: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.ask(&Frame { key: key.to_vec(), ..Frame::new(Kind::TryGet) }, Duration::ZERO)
    }

    /// Puts the value of a key that has none.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let request = Frame { key: key.to_vec(), ..Frame::with_value(Kind::Put, value.to_vec()) };
        self.ask(&request, Duration::ZERO).map(drop)
    }

    /// Sends a request, and returns the value in its answer.
    fn ask(&self, request: &Frame, wait: Duration) -> Result<Vec<u8>, StoreError> {
        let place = Place { address: &self.address, rank: self.rank, world: self.world };
        let ask = || {
            let mut stream = TcpStream::connect_timeout(&self.peer, ANSWER_TIME)?;
            send(&mut stream, request)?;
            stream.set_read_timeout(Some(wait.saturating_add(ANSWER_TIME)))?;
            Frame::read(&mut stream)
        };
        let Place { rank, world, .. } = place;
        let (address, key) = (self.address.clone(), text(&request.key));
        let answer = ask().map_err(|error| StoreError::CoordinatorGone {
            address: self.address.clone(),
            rank,
            world,
            why: error.to_string(),
        })?;
        Err(match answer.kind {
            Kind::Done => return Ok(answer.value),
            Kind::NotFound => StoreError::NotFound { key },
            Kind::Exists => StoreError::Exists { key },
            Kind::Late => StoreError::Timeout { address, rank, world, key, seconds: wait.as_secs() },
            Kind::Gone => StoreError::PeerGone { address, rank, world, key, gone: text(&answer.value) },
            Kind::Join | Kind::Get | Kind::TryGet | Kind::Put | Kind::RankTaken | Kind::World => {
                place.foreign(&io::Error::other("it answers something else"))
            }
        })
    }
}

impl Place<'_> {
    #[cold]
    fn foreign(self, error: &io::Error) -> StoreError {
        StoreError::Foreign { address: self.address.to_owned(), why: error.to_string() }
    }
}

fn send(stream: &mut TcpStream, request: &Frame) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.write_all(MAGIC)?;
    request.write(stream)
}

/// Whether nothing has come yet. The kind of this error differs between systems, and a signal may end the wait.
fn is_late(error: &io::Error) -> bool {
    [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut, io::ErrorKind::Interrupted].contains(&error.kind())
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
