//! Executables as bytes, with the graph that they were compiled from, so that they are checked and run like any other.
//!
//! Loading plans and lowers the graph again, and finds the saved segments by the digests of their texts.

use std::fmt;

use defn_core::device::DeviceError;
use defn_core::region::Region;
use defn_core::{Error, ErrorKind, Result};

use super::Runtime;
use super::digest::{Digest, digest_of};
use crate::lower::Hardware;

/// The first bytes. Each version of the layout has its own number.
const HEAD: &[u8; 16] = b"defn compiled 03";

/// An executable as bytes.
pub(super) struct Saved {
    /// The platform or the processor that it is for.
    machine: String,
    /// The device that it was compiled for, in human-readable text.
    device: String,
    /// The name of the hardware that it was lowered for.
    hardware: String,
    /// The graph, as text.
    graph: String,
    donated: Vec<usize>,
    /// The note that the caller stored with it.
    note: Vec<u8>,
    /// The segments: the digest of the text, and the bytes that the plugin wrote.
    segments: Vec<(Digest, Vec<u8>)>,
}

impl Saved {
    pub fn new(
        machine: &str,
        device: &str,
        hardware: Hardware,
        program: &Region,
        donated: &[usize],
    ) -> Saved {
        let (machine, device) = (machine.to_owned(), device.to_owned());
        let hardware = hardware.name().to_owned();
        let (graph, donated) = (program.to_text(), donated.to_vec());
        Saved { machine, device, hardware, graph, donated, note: Vec::new(), segments: Vec::new() }
    }

    /// Adds the next segment, with the digest of the text from which it was compiled.
    pub fn add(&mut self, text: Digest, bytes: Vec<u8>) {
        self.segments.push((text, bytes));
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
        Err(self.mismatch("load", machine.to_owned(), required))
    }

    /// The hardware that it was lowered for, whose programs this machine must be able to run.
    pub fn require_hardware(&self, here: Hardware) -> Result<Hardware> {
        here.running(&self.hardware).ok_or_else(|| {
            let here = format!("{}, a {} here", self.machine, here.name());
            let required = "the library or the kernels that its programs call are required; compile it again";
            self.mismatch("load", here, required)
        })
    }

    /// The error of a plugin that rejects the executable.
    #[cold]
    pub fn rejected(&self, runtime: &Runtime, error: &crate::Error) -> Error {
        let kind = runtime.devices().first().and_then(|device| device.description().ok());
        let kind = kind.map_or_else(String::new, |description| format!(" {}", description.kind));
        let here = format!("{}{kind}, whose plugin says: {error}", runtime.platform());
        let required = "an executable for this device by the same plugin is required; compile it again";
        self.mismatch("load", here, required)
    }

    /// The error that the executable's device is not available; `op` is for messages.
    #[cold]
    pub fn mismatch(&self, op: &'static str, here: String, required: &'static str) -> Error {
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

    /// The segments, in order.
    pub fn segments(&self) -> SavedSegments<'_> {
        SavedSegments { saved: self, next: 0 }
    }

    pub fn to_bytes(&self, note: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        write_field(&mut body, self.machine.as_bytes());
        write_field(&mut body, self.device.as_bytes());
        write_field(&mut body, self.hardware.as_bytes());
        write_field(&mut body, self.graph.as_bytes());
        let donated: Vec<u8> =
            self.donated.iter().flat_map(|&position| (position as u64).to_le_bytes()).collect();
        write_field(&mut body, &donated);
        write_field(&mut body, note);
        for (digest, segment) in &self.segments {
            write_field(&mut body, digest);
            write_field(&mut body, segment);
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
        let checked = rest.split_at_checked(32).filter(|(digest, body)| *digest == digest_of(&[body]));
        let Some((_, mut body)) = checked else {
            return Err(malformed("the executable is cut short or damaged"));
        };
        let mut read = || -> Option<Saved> {
            let mut text = || String::from_utf8(read_field(&mut body)?.to_vec()).ok();
            let (machine, device, hardware, graph) = (text()?, text()?, text()?, text()?);
            let donated = read_field(&mut body)?
                .chunks(8)
                .map(|eight| usize::try_from(u64::from_le_bytes(eight.try_into().ok()?)).ok())
                .collect::<Option<_>>()?;
            let note = read_field(&mut body)?.to_vec();
            let mut segments = Vec::new();
            while !body.is_empty() {
                segments.push((read_field(&mut body)?.try_into().ok()?, read_field(&mut body)?.to_vec()));
            }
            Some(Saved { machine, device, hardware, graph, donated, note, segments })
        };
        read().ok_or_else(|| malformed("the executable has parts that are not whole"))
    }
}

impl fmt::Debug for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.device, self.machine)
    }
}

/// The remaining segments of an executable.
pub(super) struct SavedSegments<'a> {
    saved: &'a Saved,
    next: usize,
}

impl<'a> SavedSegments<'a> {
    /// The next segment, which must have been compiled from the text with this digest.
    pub fn next(&mut self, text: Digest) -> Result<&'a [u8]> {
        let segment = self.saved.segments.get(self.next);
        self.next += 1;
        match segment {
            Some((digest, bytes)) if *digest == text => Ok(bytes),
            Some(_) | None => {
                let here = format!("version {} of this package", env!("CARGO_PKG_VERSION"));
                let required = "the version that wrote it is required; compile it again";
                Err(self.saved.mismatch("load", here, required))
            }
        }
    }
}

/// Writes a part, preceded by its length.
fn write_field(out: &mut Vec<u8>, field: &[u8]) {
    out.extend_from_slice(&(field.len() as u64).to_le_bytes());
    out.extend_from_slice(field);
}

/// Reads the next part.
fn read_field<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let (field, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    *bytes = rest;
    Some(field)
}
