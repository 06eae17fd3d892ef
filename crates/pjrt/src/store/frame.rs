//! Requests and answers as bytes. Both have the same form: a kind, three numbers, a key and a value.

use std::io::{self, Read, Write};

/// The first bytes of a connection, with the version of the protocol.
pub(super) const MAGIC: &[u8; 8] = b"defn-kv1";

/// The longest key or value.
const MAX_BYTES: u64 = 256 << 20;

/// What a request asks for, and how it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// To join as the rank and world in the numbers, waiting for at most the milliseconds in the third.
    Join,
    /// To wait for a value, for at most the milliseconds in the first number.
    Get,
    TryGet,
    Put,
    /// It is done; the value is what was asked for.
    Done,
    NotFound,
    Exists,
    /// The wait is over; the value lists what is missing.
    Late,
    /// The value lists the processes that went away.
    Gone,
    RankTaken,
    /// The number is the world of the process of rank 0.
    World,
}

impl Kind {
    const ALL: [Kind; 11] = [
        Kind::Join,
        Kind::Get,
        Kind::TryGet,
        Kind::Put,
        Kind::Done,
        Kind::NotFound,
        Kind::Exists,
        Kind::Late,
        Kind::Gone,
        Kind::RankTaken,
        Kind::World,
    ];
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub kind: Kind,
    pub numbers: [u64; 3],
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

impl Frame {
    pub fn new(kind: Kind) -> Frame {
        Frame { kind, numbers: [0; 3], key: Vec::new(), value: Vec::new() }
    }

    pub fn with_value(kind: Kind, value: Vec<u8>) -> Frame {
        Frame { value, ..Frame::new(kind) }
    }

    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut bytes = vec![self.kind as u8];
        let lengths = [self.key.len() as u64, self.value.len() as u64];
        for number in self.numbers.iter().chain(&lengths) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.key);
        bytes.extend_from_slice(&self.value);
        to.write_all(&bytes)
    }

    pub fn read(from: &mut impl Read) -> io::Result<Frame> {
        let mut head = [0_u8; 41];
        from.read_exact(&mut head)?;
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&head[1 + 8 * at..9 + 8 * at]);
            u64::from_le_bytes(bytes)
        };
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == head[0]);
        let (Some(kind), Ok(key), Ok(value)) = (kind, length(number(3)), length(number(4))) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "an answer in another protocol"));
        };
        let mut frame = Frame { numbers: [number(0), number(1), number(2)], ..Frame::new(kind) };
        (frame.key, frame.value) = (vec![0; key], vec![0; value]);
        from.read_exact(&mut frame.key)?;
        from.read_exact(&mut frame.value)?;
        Ok(frame)
    }
}

/// A length that was read, if it is one that is written.
fn length(read: u64) -> Result<usize, ()> {
    usize::try_from(read).ok().filter(|_| read <= MAX_BYTES).ok_or(())
}
