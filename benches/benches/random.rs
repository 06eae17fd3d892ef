//! Random numbers in [0, 1) from a key, compared with a plain loop over the same generator.

use criterion::{Criterion, criterion_group, criterion_main};
use defn::Shape;
use defn::random::{self, Sample};
use defn_benches::{Case, SIZES, time};

/// Threefry-2x32 with 20 rounds of one pair of counters.
fn threefry(key: [u32; 2], mut x: u32, mut y: u32) -> [u32; 2] {
    let words = [key[0], key[1], key[0] ^ key[1] ^ 0x1BD1_1BDA];
    x = x.wrapping_add(words[0]);
    y = y.wrapping_add(words[1]);
    for group in 1..=5 {
        let rotations = if group % 2 == 1 { [13, 15, 26, 6] } else { [17, 29, 16, 24] };
        for rotation in rotations {
            x = x.wrapping_add(y);
            y = y.rotate_left(rotation) ^ x;
        }
        x = x.wrapping_add(words[group % 3]);
        y = y.wrapping_add(words[(group + 1) % 3]).wrapping_add(group as u32);
    }
    [x, y]
}

fn uniform(c: &mut Criterion) {
    for n in SIZES {
        let key = random::key(1701).expect("there is memory for a key");
        let sample = Sample::of(Shape::new(&[n]));
        let rival = || {
            let mut numbers = vec![0f32; n];
            let float = |word: u32| f32::from_bits(word >> 9 | 1f32.to_bits()) - 1.0;
            for at in 0..n / 2 {
                let [x, y] = threefry([0, 1701], at as u32, (n / 2 + at) as u32);
                numbers[at] = float(x);
                numbers[n / 2 + at] = float(y);
            }
            numbers
        };
        let ours = || random::uniform_split(&key, 0.0, 1.0, &sample);
        time(c, Case::computes("uniform/f32", n, n), ours).beside("loop", rival).done();
    }
}

criterion_group!(drawing, uniform);
criterion_main!(drawing);
