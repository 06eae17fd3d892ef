//! Keys from generators.

use std::convert::Infallible;

use defn::{Result, Tensor, random};
use rand_core::{Rng, SeedableRng, TryRng, utils};

/// The generator SplitMix64, whose outputs for the seed 0 are published.
struct SplitMix(u64);

impl SeedableRng for SplitMix {
    type Seed = [u8; 8];

    fn from_seed(seed: [u8; 8]) -> SplitMix {
        SplitMix(u64::from_le_bytes(seed))
    }
}

impl TryRng for SplitMix {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> std::result::Result<u32, Infallible> {
        self.try_next_u64().map(|bits| bits as u32)
    }

    fn try_next_u64(&mut self) -> std::result::Result<u64, Infallible> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Ok(mixed ^ (mixed >> 31))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> std::result::Result<(), Infallible> {
        utils::fill_bytes_via_next_word(bytes, || self.try_next_u64())
    }
}

#[test]
fn a_seeded_generator_gives_the_same_keys() -> Result<()> {
    let mut rng = SplitMix::from_seed([0; 8]);
    let key = random::key_from_rng(&mut rng)?;
    assert_eq!(key.ty().to_string(), "u32[2]");
    assert_eq!(key.to_vec::<u32>()?, [0xe220_a839, 0x7b1d_cdaf]);
    assert_eq!(random::key_from_rng(&mut rng)?.to_vec::<u32>()?, [0x6e78_9e6a, 0xa1b9_65f4]);
    // Generators behind references and of unsized types.
    let rng: &mut dyn Rng<Error = Infallible> = &mut SplitMix(0);
    let same = random::key_from_rng(rng)?;
    let draw = |key: &Tensor| random::normal_split(key, 0.0, 1.0, [4])?.to_vec::<f32>();
    assert_eq!(draw(&same)?, draw(&key)?);
    // The key of a seed has the same halves.
    assert_eq!(random::key(0xe220_a839_7b1d_cdafu64)?.to_vec::<u32>()?, key.to_vec::<u32>()?);
    Ok(())
}
