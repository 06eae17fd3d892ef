//! Gathers in nests, on all executors.

use defn_core::{DType, Number, Scalar};

use super::{check, region};

/// The bytes of numbers in a dtype; what it does not have is the nearest that it has.
fn bytes(dtype: DType, numbers: impl Iterator<Item = i128>) -> Vec<u8> {
    let element = |number: i128| {
        let number = match (dtype.lowest(), dtype.highest()) {
            (Number::Int(low), Number::Int(high)) => Number::Int(number.clamp(low, high)),
            _ => Number::Float(number as f64 / 4.0),
        };
        Scalar::new(dtype, number).unwrap().to_bytes().to_vec()
    };
    numbers.flat_map(element).collect()
}

/// Checks a read of a table of `[n][w]` by positions of a shape, whose result has a shape.
fn read(dtype: DType, index: DType, [n, w]: [usize; 2], op: &str, positions: &[usize], result: &[usize]) {
    let shape = |sizes: &[usize]| sizes.iter().map(|size| format!("[{size}]")).collect::<String>();
    let (table, out) = (shape(&[n, w]), shape(result));
    let lines = [
        format!("%3 = {} : {dtype}{out}", op.replace("TABLE", "%0 %1")),
        format!("%4 = add %3 %2 : {dtype}{out}"),
        format!("%5 = max %4 %3 : {dtype}{out}"),
    ];
    let inputs = [(dtype, table.as_str()), (index, shape(positions).leak()), (dtype, out.as_str())];
    let region = region(&inputs, &lines, "%5");
    let count = |sizes: &[usize]| sizes.iter().product::<usize>() as i128;
    // Around both ends of the axes, and far from them.
    let position = |at: i128| match at % 17 {
        3 => i128::from(i64::MIN),
        9 => i128::from(i64::MAX),
        _ => at * 7 % (2 * n.max(w) as i128 + 5) - n.max(w) as i128 - 2,
    };
    let inputs = [
        bytes(dtype, (0..(n * w) as i128).map(|at| at * 5 % 31)),
        bytes(index, (0..count(positions)).map(position)),
        bytes(dtype, (0..count(result)).map(|at| at % 13)),
    ];
    check(&region, &inputs).unwrap_or_else(|problem| panic!("{problem}"));
}

#[test]
fn gathers_agree_on_all_executors() {
    let integers = [DType::S8, DType::U8, DType::S32, DType::U32, DType::S64, DType::U64];
    for (index, n) in integers.into_iter().flat_map(|index| [1, 5, 40].map(|n| (index, n))) {
        for dtype in [DType::F32, DType::F64, DType::S32, DType::S64] {
            read(dtype, index, [n, 19], "take TABLE {axis: 0}", &[6], &[6, 19]);
            read(dtype, index, [n, 37], "take TABLE {axis: 1}", &[21], &[n, 21]);
            if index.bits() >= 32 {
                read(dtype, index, [n, 3], "gather TABLE {axes: [0, 1]}", &[35, 2], &[35]);
            }
            // Nests have no short rows.
            if n != 5 {
                read(dtype, index, [n, 18], "gather TABLE {axes: [1]}", &[4, 16, 1], &[4, 16, n]);
            }
            read(dtype, index, [n, 18], "take_along_axis TABLE {axis: 0}", &[7, 18], &[7, 18]);
            read(dtype, index, [n, 3], "take_along_axis TABLE {axis: 1}", &[n, 17], &[n, 17]);
        }
    }
}

#[test]
fn rows_of_every_type_are_gathered() {
    for &dtype in DType::ALL.iter().filter(|dtype| !dtype.is_complex() && !dtype.is_bool()) {
        read(dtype, DType::S32, [9, 33], "take TABLE {axis: 0}", &[4, 2], &[4, 2, 33]);
    }
}
