//! Reads bytes from front to back, with a check of the remaining length before each read.

use super::malformed;
use crate::error::Result;

/// A position in a byte slice.
pub(super) struct Cursor<'a> {
    op: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(op: &'static str, bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { op, bytes, at: 0 }
    }

    /// The number of bytes read.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The number of bytes left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next bytes.
    ///
    /// # Errors
    /// When fewer are left.
    pub(super) fn take(&mut self, what: &str, len: usize) -> Result<&'a [u8]> {
        match self.bytes[self.at..].get(..len) {
            Some(bytes) => {
                self.at += len;
                Ok(bytes)
            }
            None => {
                let problem = format!("{} bytes are left where {what} should be", self.left());
                Err(malformed(
                    self.op,
                    problem,
                    format!("there must be {len}; the file is cut short or damaged"),
                ))
            }
        }
    }

    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        Ok(self.take(what, N)?.try_into().expect("as many bytes as were asked for"))
    }

    pub(super) fn u8(&mut self, what: &str) -> Result<u8> {
        Ok(self.array::<1>(what)?[0])
    }

    /// Numbers outside the elements are little endian.
    pub(super) fn u16(&mut self, what: &str) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// A number of items, each of at least one byte; it cannot exceed the number of bytes left.
    ///
    /// # Errors
    /// When it does.
    pub(super) fn count(&mut self, what: &str) -> Result<usize> {
        let count = self.u32(what)? as usize;
        if count > self.left() {
            let problem = format!("{what} is {count} with {} bytes left", self.left());
            return Err(malformed(self.op, problem, "each needs at least one; the file is damaged"));
        }
        Ok(count)
    }

    /// A text, preceded by its length.
    ///
    /// # Errors
    /// When it is not UTF-8.
    pub(super) fn text(&mut self, what: &str) -> Result<&'a str> {
        let len = self.count(what)?;
        std::str::from_utf8(self.take(what, len)?).map_err(|_| {
            malformed(self.op, format!("{what} is no text"), "it must be UTF-8; the file is damaged")
        })
    }
}
