//! Keys from the generators of the crate `rand`.

use defn_core::{Location, Result, Shape};
use rand_core::Rng;

use crate::{Tensor, host};

/// A key from a random number generator of the crate `rand`: its next 64 bits, the upper half first. A generator that
/// was seeded yields the same keys in every process. It needs the feature `rand`.
///
/// - Shape: `[2]`.
/// - Dtypes: u32.
///
/// ```
/// use defn::random::{self, Sample};
/// # /// A generator that counts, instead of `rand::rng()`.
/// # struct Counter(u32);
/// # impl rand_core::TryRng for Counter {
/// #     type Error = std::convert::Infallible;
/// #     fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
/// #         self.0 += 1;
/// #         Ok(self.0)
/// #     }
/// #     fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
/// #         rand_core::utils::next_u64_via_u32(self)
/// #     }
/// #     fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
/// #         rand_core::utils::fill_bytes_via_next_word(bytes, || self.try_next_u32())
/// #     }
/// # }
/// # let mut rng = Counter(0);
///
/// // `rng` is any generator, such as `rand::rng()` or `StdRng::seed_from_u64(7)`.
/// let key = random::key_from_rng(&mut rng)?;
/// assert_eq!(key.ty().to_string(), "u32[2]");
/// assert!((0.0..1.0).contains(&random::uniform_split(&key, 0.0, 1.0, &Sample::default())?.item::<f32>()?));
/// assert_ne!(random::key_from_rng(&mut rng)?.to_vec::<u32>()?, key.to_vec::<u32>()?);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Too little memory on a device (`OutOfMemory`).
#[track_caller]
pub fn key_from_rng<R: Rng + ?Sized>(rng: &mut R) -> Result<Tensor> {
    let location = Location::caller();
    let bits = rng.next_u64();
    let key = vec![(bits >> 32) as u32, bits as u32];
    host::from_vec("key_from_rng", key, Shape::new(&[2])).map_err(|error| error.at(Some(location)))
}
