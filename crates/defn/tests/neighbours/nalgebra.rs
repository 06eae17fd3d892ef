//! Matrices of `nalgebra`. Its own indexing is the oracle.

use defn::prelude::*;
use defn::{Result, Shape};
use nalgebra::{DMatrix, DVector, Matrix1x2, Matrix2x3, SMatrix, Vector3};
use proptest::prelude::*;

use crate::refused;

#[test]
fn matrices_are_transposed_in_memory_only() -> Result<()> {
    let x = Tensor::try_from(Matrix2x3::new(1u8, 2, 3, 4, 5, 6))?;
    assert_eq!(x.shape(), &Shape::new(&[2, 3]));
    assert_eq!(x.to_vec::<u8>()?, [1, 2, 3, 4, 5, 6]);
    assert_eq!(Matrix2x3::<u8>::try_from(&x)?, Matrix2x3::new(1, 2, 3, 4, 5, 6));
    assert_eq!(Tensor::try_from(&Matrix1x2::new(true, false))?.ty().to_string(), "bool[1][2]");
    // A tensor that is a transposed view of another for the compiler is a matrix like any other.
    let transposed = DMatrix::<u8>::try_from(&x.transpose(Axes::All)?)?;
    assert_eq!(transposed, DMatrix::<u8>::try_from(&x)?.transpose());
    Ok(())
}

#[test]
fn vectors_have_one_axis() -> Result<()> {
    let vector = DVector::from_vec(vec![1f32, 2.0, 3.0]);
    let (copy, address) = (vector.clone(), vector.as_ptr());
    assert_ne!(Tensor::try_from(&vector)?.host_slice::<f32>()?.as_ptr(), address);
    let x = Tensor::try_from(vector)?;
    assert_eq!(x.host_slice::<f32>()?.as_ptr(), address);
    assert_eq!(x.ty().to_string(), "f32[3]");
    assert_eq!(DVector::<f32>::try_from(&x)?, copy);
    assert_eq!(Vector3::<f32>::try_from(&x)?, Vector3::new(1.0, 2.0, 3.0));
    // A matrix of one column, whose number is not part of the type, stays a matrix.
    assert_eq!(Tensor::try_from(DMatrix::<f32>::zeros(3, 1))?.ty().to_string(), "f32[3][1]");
    assert_eq!(Vector3::<f32>::try_from(&x.reshape(&[3, 1])?)?, Vector3::new(1.0, 2.0, 3.0));
    assert_eq!(Tensor::try_from(Vector3::new(1f32, 2.0, 3.0))?.ty().to_string(), "f32[3]");
    Ok(())
}

#[test]
fn other_shapes_are_refused() -> Result<()> {
    let x = Tensor::iota(&[2, 3], DType::F32, None)?;
    assert_eq!(
        refused(SMatrix::<f32, 3, 2>::try_from(&x)),
        "nalgebra: the shape is f32[2][3], it must be [3][2] as the matrix; reshape it, or take a DMatrix"
    );
    assert_eq!(
        refused(DVector::<f32>::try_from(&x)),
        "nalgebra: the operand is f32[2][3], a vector must have one axis; reshape it, or take a DMatrix"
    );
    assert!(refused(DMatrix::<f32>::try_from(&x.vectorize(&["a"])?.sum(0, false)?)).contains("two axes"));
    assert!(refused(DMatrix::<f64>::try_from(&x)).contains("it must be f64; convert it with as_type"));
    assert_eq!(DMatrix::<f32>::try_from(&x.vectorize(&["a"])?)?[(1, 2)], 5.0);
    Ok(())
}

proptest! {
    #[test]
    fn matrices_go_there_and_back(rows in 0usize..70, columns in 0usize..70) {
        let matrix = DMatrix::from_fn(rows, columns, |row, column| (row * 100 + column) as i64);
        let x = Tensor::try_from(&matrix)?;
        prop_assert_eq!(x.shape().sizes(), [rows, columns]);
        let by_rows: Vec<i64> = matrix.transpose().iter().copied().collect();
        prop_assert_eq!(x.to_vec::<i64>()?, by_rows);
        prop_assert_eq!(DMatrix::<i64>::try_from(&x)?, matrix.clone());
        prop_assert_eq!(DMatrix::<i64>::try_from(&Tensor::try_from(matrix.clone())?)?, matrix);
    }
}
