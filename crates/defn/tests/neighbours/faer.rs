//! Matrices of `faer`. Its own indexing is the oracle.

use defn::Result;
use defn::num_complex::Complex;
use defn::prelude::*;
use faer::{Col, Mat, col, mat};
use proptest::prelude::*;

use crate::refused;

#[test]
fn columns_have_one_axis() -> Result<()> {
    let x = Tensor::try_from(&col![1f32, 2.0, 3.0])?;
    assert_eq!(x.ty().to_string(), "f32[3]");
    assert_eq!(Col::<f32>::try_from(&x)?, col![1f32, 2.0, 3.0]);
    let rows = mat![[1f32, 2.0], [3.0, 4.0]];
    // A column of a transposed matrix has steps between its elements.
    assert_eq!(Tensor::try_from(rows.transpose().col(1))?.to_vec::<f32>()?, [3.0, 4.0]);
    let complex = mat![[Complex::new(1f64, 2.0)]];
    assert_eq!(Tensor::try_from(&complex)?.ty().to_string(), "c128[1][1]");
    Ok(())
}

#[test]
fn other_shapes_are_refused() -> Result<()> {
    let x = Tensor::iota(&[2, 3], DType::F32, None)?;
    assert_eq!(
        refused(Col::<f32>::try_from(&x)),
        "faer: the operand is f32[2][3], a column must have one axis; reshape it, or take a Mat"
    );
    assert_eq!(
        refused(Mat::<f32>::try_from(&x.reshape(&[6])?)),
        "faer: the operand is f32[6], a matrix must have two axes; reshape it"
    );
    assert!(refused(Mat::<f64>::try_from(&x)).contains("it must be f64; convert it with as_type"));
    assert_eq!(Mat::<f32>::try_from(&x.vectorize(&["a"])?)?[(1, 2)], 5.0);
    Ok(())
}

proptest! {
    #[test]
    fn matrices_go_there_and_back(rows in 0usize..40, columns in 0usize..40, cut in 0usize..3) {
        let matrix = Mat::from_fn(rows, columns, |row, column| (row * 100 + column) as f64);
        let x = Tensor::try_from(&matrix)?;
        prop_assert_eq!(x.shape().sizes(), [rows, columns]);
        let row = |row| (0..columns).map(move |column| (row * 100 + column) as f64);
        let by_rows: Vec<f64> = (0..rows).flat_map(row).collect();
        prop_assert_eq!(x.to_vec::<f64>()?, by_rows);
        prop_assert!(Mat::<f64>::try_from(&x)? == matrix);
        // Views: transposed, and without the first rows and columns.
        let view = matrix.transpose();
        prop_assert!(Mat::<f64>::try_from(&Tensor::try_from(view)?)? == view);
        let (row, column) = (cut.min(rows), cut.min(columns));
        let part = matrix.submatrix(row, column, rows - row, columns - column);
        prop_assert!(Mat::<f64>::try_from(&Tensor::try_from(part)?)? == part);
    }
}
