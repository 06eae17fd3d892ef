//! Digests that identify programs and files: SHA-256.

use sha2::{Digest as _, Sha256};

/// A digest.
pub(crate) type Digest = [u8; 32];

/// The digest of several byte strings. Each is preceded by its length, so that different splits differ.
pub(crate) fn digest_of(fields: &[&[u8]]) -> Digest {
    let mut hash = Sha256::new();
    for field in fields {
        hash.update((field.len() as u64).to_le_bytes());
        hash.update(field);
    }
    hash.finalize().into()
}

/// A digest in hexadecimal, for file names.
pub(crate) fn hex(digest: &Digest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart() {
        assert_eq!(digest_of(&[b"ab", b"c"]), digest_of(&[b"ab", b"c"]));
        assert_ne!(digest_of(&[b"ab", b"c"]), digest_of(&[b"a", b"bc"]));
        // SHA-256 of no bytes at all (FIPS 180-4, National Institute of Standards and Technology, 2015).
        let none = hex(&digest_of(&[]));
        assert_eq!(none, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
