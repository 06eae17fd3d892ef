//! Executables as bytes, with the graph that they were compiled from, so that they are checked and run like any other.
//!
//! Loading plans and lowers the graph again, and finds the saved pieces by the digests of their texts.

use std::fmt;

use defn_core::device::DeviceError;
use defn_core::region::Region;
use defn_core::{Error, ErrorKind, Result};

use super::Runtime;
use super::digest::{Digest, digest_of};

/// The first bytes. Each version of the layout has its own number.
const HEAD: &[u8; 16] = b"defn compiled 02";

/// An executable as bytes.
pub(super) struct Saved {
    /// The platform or the processor that it is for.
    machine: String,
    /// The device that it was compiled for, in human-readable text.
    device: String,
    /// The graph, as text.
    graph: String,
    donated: Vec<usize>,
    /// The note that the caller stored with it.
    note: Vec<u8>,
    /// The pieces: the digest of the text, and the bytes that the plugin wrote.
    pieces: Vec<(Digest, Vec<u8>)>,
}

impl Saved {
    pub fn new(machine: &str, device: &str, program: &Region, donated: &[usize]) -> Saved {
        let (machine, device) = (machine.to_owned(), device.to_owned());
        let (graph, donated) = (program.to_text(), donated.to_vec());
        Saved { machine, device, graph, donated, note: Vec::new(), pieces: Vec::new() }
    }

    /// Adds the next piece, with the digest of the text from which it was compiled.
    pub fn add(&mut self, text: Digest, bytes: Vec<u8>) {
        self.pieces.push((text, bytes));
    }

    pub fn donated(&self) -> &[usize] {
        &self.donated
    }

    /// The graph.
    pub fn program(&self) -> Result<Region> {
        Region::from_text(&self.graph)
    }

    /// Rejects another platform or processor.
    pub fn require_machine(&self, machine: &str) -> Result<()> {
        if self.machine.eq_ignore_ascii_case(machine) {
            return Ok(());
        }
        let required = "an executable for this machine is required; compile it again";
        Err(self.other("load", machine.to_owned(), required))
    }

    /// The error of a plugin that rejects the executable.
    #[cold]
    pub fn refused(&self, runtime: &Runtime, error: &crate::Error) -> Error {
        let kind = runtime.devices().first().and_then(|device| device.description().ok());
        let kind = kind.map_or_else(String::new, |description| format!(" {}", description.kind));
        let here = format!("{}{kind}, whose plugin says: {error}", runtime.platform());
        let required = "an executable for this device by the same plugin is required; compile it again";
        self.other("load", here, required)
    }

    /// The error that the executable's device is not available; `op` is for messages.
    #[cold]
    pub fn other(&self, op: &'static str, here: String, required: &'static str) -> Error {
        let made_for = match &*self.device {
            "" => self.machine.clone(),
            device => format!("{device} on {}", self.machine),
        };
        DeviceError::Executable { op, made_for, here, required }.into()
    }

    /// The note that the caller stored with it.
    pub fn into_note(self) -> Vec<u8> {
        self.note
    }

    /// The pieces, in order.
    pub fn pieces(&self) -> Pieces<'_> {
        Pieces { saved: self, next: 0 }
    }

    pub fn to_bytes(&self, note: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        put(&mut body, self.machine.as_bytes());
        put(&mut body, self.device.as_bytes());
        put(&mut body, self.graph.as_bytes());
        let donated: Vec<u8> =
            self.donated.iter().flat_map(|&position| (position as u64).to_le_bytes()).collect();
        put(&mut body, &donated);
        put(&mut body, note);
        for (digest, piece) in &self.pieces {
            put(&mut body, digest);
            put(&mut body, piece);
        }
        [&HEAD[..], &digest_of(&[&body]), &body].concat()
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Saved> {
        let malformed = |problem: &str| -> Error {
            let (problem, required) = (problem.to_owned(), "it must be as it was saved".to_owned());
            ErrorKind::Malformed { op: "load", problem, required }.into()
        };
        let Some(rest) = bytes.strip_prefix(HEAD) else {
            return Err(malformed("these bytes are no executable of this version"));
        };
        let whole = rest.split_at_checked(32).filter(|(digest, body)| *digest == digest_of(&[body]));
        let Some((_, mut body)) = whole else {
            return Err(malformed("the executable is cut short or damaged"));
        };
        let mut read = || -> Option<Saved> {
            let mut text = || String::from_utf8(take(&mut body)?.to_vec()).ok();
            let (machine, device, graph) = (text()?, text()?, text()?);
            let donated = take(&mut body)?
                .chunks(8)
                .map(|eight| usize::try_from(u64::from_le_bytes(eight.try_into().ok()?)).ok())
                .collect::<Option<_>>()?;
            let note = take(&mut body)?.to_vec();
            let mut pieces = Vec::new();
            while !body.is_empty() {
                pieces.push((take(&mut body)?.try_into().ok()?, take(&mut body)?.to_vec()));
            }
            Some(Saved { machine, device, graph, donated, note, pieces })
        };
        read().ok_or_else(|| malformed("the executable has parts that are not whole"))
    }
}

impl fmt::Debug for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.device, self.machine)
    }
}

/// The remaining pieces of an executable.
pub(super) struct Pieces<'a> {
    saved: &'a Saved,
    next: usize,
}

impl<'a> Pieces<'a> {
    /// The next piece, which must have been compiled from the text with this digest.
    pub fn next(&mut self, text: Digest) -> Result<&'a [u8]> {
        let piece = self.saved.pieces.get(self.next);
        self.next += 1;
        match piece {
            Some((digest, bytes)) if *digest == text => Ok(bytes),
            Some(_) | None => {
                let here = format!("version {} of this package", env!("CARGO_PKG_VERSION"));
                let required = "the version that wrote it is required; compile it again";
                Err(self.saved.other("load", here, required))
            }
        }
    }
}

/// Writes a part, preceded by its length.
fn put(out: &mut Vec<u8>, part: &[u8]) {
    out.extend_from_slice(&(part.len() as u64).to_le_bytes());
    out.extend_from_slice(part);
}

/// Reads the next part.
fn take<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let (part, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    *bytes = rest;
    Some(part)
}
