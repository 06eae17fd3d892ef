//! Members in threads, against one server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use super::frame::{Frame, Kind, MAGIC};
use super::server::Server;
use super::*;

const LONG: Duration = Duration::from_secs(30);

/// A free address.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn join(peer: SocketAddr, rank: usize, world: usize, timeout: Duration) -> Result<Member, StoreError> {
    Member::join((&peer.to_string(), peer), (rank, world), timeout, &|| Ok::<(), StoreError>(()))
}

/// Runs `body` as each of `world` members.
fn members<T: Send>(world: usize, body: impl Fn(Member) -> T + Sync) -> Vec<T> {
    let (peer, body) = (free(), &body);
    std::thread::scope(|scope| {
        let run = |rank| scope.spawn(move || body(join(peer, rank, world, LONG).unwrap()));
        let threads: Vec<_> = (0..world).map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn values_reach_every_member() {
    let all = Barrier::new(4);
    let got = members(4, |member| {
        assert_eq!(member.world(), 4);
        let key = |rank: usize| format!("rank {rank}").into_bytes();
        let value = |rank: usize| vec![u8::try_from(rank).unwrap(); rank * 100_000];
        assert_eq!(
            member.try_get(b"nothing").unwrap_err(),
            StoreError::NotFound { key: "nothing".to_owned() }
        );
        member.put(&key(member.rank()), &value(member.rank())).unwrap();
        let again = member.put(&key(member.rank()), b"other").unwrap_err();
        assert_eq!(again, StoreError::Exists { key: format!("rank {}", member.rank()) });
        for rank in 0..4 {
            assert_eq!(member.get(&key(rank), LONG).unwrap(), value(rank));
            assert_eq!(member.try_get(&key(rank)).unwrap(), value(rank));
        }
        all.wait();
        member.rank()
    });
    assert_eq!(got, [0, 1, 2, 3]);
}

#[test]
fn a_wait_ends() {
    members(1, |member| {
        let start = Instant::now();
        let error = member.get(b"never", Duration::from_millis(1200)).unwrap_err();
        assert!((1.2..10.0).contains(&start.elapsed().as_secs_f64()));
        let address = member.address().to_owned();
        assert_eq!(
            error,
            StoreError::Timeout { address, rank: 0, world: 1, key: "never".to_owned(), seconds: 1 }
        );
        assert_eq!(error.code(), crate::Code::DeadlineExceeded);
    });
}

#[test]
fn who_went_away_is_named_to_those_who_wait() {
    let (before, after) = (Barrier::new(3), Barrier::new(2));
    members(3, |member| {
        before.wait();
        if member.rank() == 2 {
            return;
        }
        let error = member.get(b"from 2", LONG).unwrap_err();
        let gone = "rank 2".to_owned();
        assert!(matches!(&error, StoreError::PeerGone { gone: there, .. } if *there == gone), "{error}");
        after.wait();
    });
}

#[test]
fn a_coordinator_that_went_away_is_named() {
    let before = Barrier::new(2);
    members(2, |member| {
        before.wait();
        if member.rank() == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(300));
        let error = member.try_get(b"key").unwrap_err();
        assert!(matches!(error, StoreError::CoordinatorGone { .. }), "{error}");
    });
}

#[test]
fn ranks_and_worlds_are_checked_by_the_server() {
    let server = Server::start("127.0.0.1:0".parse().unwrap(), 3).unwrap();
    let peer = server.address();
    let ask = |rank: u64, world: u64| {
        let mut stream = TcpStream::connect(peer).unwrap();
        stream.write_all(MAGIC).unwrap();
        Frame { numbers: [rank, world, 60_000], ..Frame::new(Kind::Join) }.write(&mut stream).unwrap();
        stream
    };
    let waiting = ask(1, 3);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(Frame::read(&mut ask(1, 3)).unwrap().kind, Kind::RankTaken);
    let other = Frame::read(&mut ask(2, 4)).unwrap();
    assert_eq!((other.kind, other.numbers[0]), (Kind::World, 3));
    // A process that ended while it waited can be started again.
    drop(waiting);
    std::thread::sleep(Duration::from_millis(300));
    let mut again = ask(1, 3);
    std::thread::sleep(Duration::from_millis(100));
    let mut last = (ask(2, 3), ask(0, 3));
    for stream in [&mut again, &mut last.0, &mut last.1] {
        assert_eq!(Frame::read(stream).unwrap().kind, Kind::Done);
    }
}

#[test]
fn other_protocols_get_no_answer() {
    let server = Server::start("127.0.0.1:0".parse().unwrap(), 1).unwrap();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    // The server may reset the connection, for it has not read all.
    drop(stream.read_to_end(&mut answer));
    assert!(answer.is_empty());
    drop(server);
    let mut bytes = [u8::MAX; 41];
    assert!(Frame::read(&mut &bytes[..]).is_err(), "an unknown kind");
    bytes[0] = Kind::Done as u8;
    assert!(Frame::read(&mut &bytes[..]).is_err(), "a length that nobody writes");
}

#[test]
fn frames_are_read_as_they_were_written() {
    for kind in [Kind::Join, Kind::Get, Kind::Put, Kind::World] {
        let frame = Frame { kind, numbers: [1, u64::MAX, 3], key: b"key".to_vec(), value: vec![0, 255, 7] };
        let mut bytes = Vec::new();
        frame.write(&mut bytes).unwrap();
        assert_eq!(Frame::read(&mut &bytes[..]).unwrap(), frame);
    }
}
