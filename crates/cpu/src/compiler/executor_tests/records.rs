//! Elements of records: loaded and stored together by machine code, and one by one by the portable executor.

use super::{Call, Trial, check_all_executors};
use crate::compiler::ir::{Access, Builder, Elem, Function};

/// Reverses the elements of records that are so many elements apart, in rows that begin where an argument says.
fn reversed(elem: Elem, count: usize, stride: usize) -> Function {
    let mut b = Builder::new(2, 1, 0);
    let extent = b.param(0, Elem::Index);
    let bytes = elem.bytes() as i64;
    let access = |buffer: u16, at: usize, stride: usize| Access {
        buffer,
        offset: at as i64 * bytes,
        terms: Default::default(),
        lane: stride as i64 * bytes,
        is_streaming: false,
    };
    b.begin_lanes(extent);
    let values: Vec<_> = (0..count).map(|at| b.load(elem, access(0, at, stride))).collect();
    for (at, &value) in values.iter().rev().enumerate() {
        b.store(value, access(1, at, count));
    }
    b.end_lanes();
    b.finish()
}

fn check<T: super::Element>(of: impl Fn(usize) -> T, zero: T) {
    for count in 2..=17 {
        for stride in [count, count + 3] {
            let function = reversed(T::ELEM, count, stride);
            let mut trials = Vec::new();
            for extent in [1, 2, 5, 16, 39] {
                let from: Vec<T> = (0..(extent - 1) * stride + count).map(&of).collect();
                let to: Vec<T> = (0..extent * count)
                    .map(|at| from[at / count * stride + count - 1 - at % count])
                    .collect();
                let call = |to: &[T]| Call::new().with(&from).with(to).param(extent as u64);
                let before = vec![zero; to.len()];
                trials.push(Trial { call: call(&before), after: call(&to), status: 0 });
            }
            check_all_executors(&function, &trials);
        }
    }
}

#[test]
fn records_are_loaded_and_stored_as_their_elements_are() {
    check(|at| at as f32 + 0.5, 0.0);
    check(|at| at as f64 - 7.25, 0.0);
    check(|at| at as i32 * 77_777, 0);
}
