//! Arrays of `ndarray`. Its own iteration order is the oracle.

use defn::{DType, Result, Tensor};
use ndarray::{
    Array, Array0, Array1, Array2, ArrayD, ArrayViewD, Axis, CowArray, Dimension, IxDyn, ShapeBuilder, Slice,
    s,
};
use proptest::prelude::*;

use crate::refused;

fn counted<D: Dimension>(shape: impl Into<ndarray::StrideShape<D>>) -> Array<i32, D> {
    let shape = shape.into();
    let count = shape.size() as i32;
    Array::from_shape_vec(shape, (0..count).collect()).unwrap()
}

#[test]
fn owned_arrays_move_both_ways() -> Result<()> {
    let array = counted((2, 3, 4));
    let (copy, address) = (array.clone(), array.as_ptr());
    let tensor = Tensor::try_from(array)?;
    assert_eq!(tensor.ty().to_string(), "s32[2][3][4]");
    let slice = tensor.host_slice::<i32>()?;
    let view = slice.view()?;
    assert_eq!((view.as_ptr(), view), (address, copy.view().into_dyn()));
    // The view borrows the slice, which outlives the tensor.
    drop(tensor);
    assert_eq!(slice.view()?.sum(), copy.sum());
    Ok(())
}

#[test]
fn parts_of_owned_arrays_move() -> Result<()> {
    let array = counted((4, 3));
    let address = array.as_ptr();
    let rows = array.slice_move(s![1..3, ..]);
    let tensor = Tensor::try_from(rows)?;
    assert_eq!(tensor.to_vec::<i32>()?, [3, 4, 5, 6, 7, 8]);
    assert_eq!(tensor.host_slice::<i32>()?.as_ptr(), address.wrapping_add(3));
    // None of these is in row-major order.
    let columns = counted((4, 3)).slice_move(s![.., 1..]);
    assert_eq!(Tensor::try_from(columns)?.to_vec::<i32>()?, [1, 2, 4, 5, 7, 8, 10, 11]);
    let reversed = counted(3).slice_move(s![..;-1]);
    assert_eq!(Tensor::try_from(reversed)?.to_vec::<i32>()?, [2, 1, 0]);
    let transposed = counted((2, 2)).reversed_axes();
    assert_eq!(Tensor::try_from(transposed)?.to_vec::<i32>()?, [0, 2, 1, 3]);
    let by_columns = counted((2, 2).f());
    assert_eq!(Tensor::try_from(by_columns)?.to_vec::<i32>()?, [0, 2, 1, 3]);
    Ok(())
}

#[test]
fn other_owners_are_copied() -> Result<()> {
    let array = counted((2, 2));
    let address = array.as_ptr();
    let by_reference = Tensor::try_from(&array)?;
    let of_view = Tensor::try_from(array.view())?;
    let of_cow = Tensor::try_from(CowArray::from(array.view()))?;
    let of_shared = Tensor::try_from(array.clone().into_shared())?;
    for tensor in [by_reference, of_view, of_cow, of_shared] {
        assert_eq!(tensor.to_vec::<i32>()?, [0, 1, 2, 3]);
        assert_ne!(tensor.host_slice::<i32>()?.as_ptr(), address);
    }
    let repeated = array.slice(s![0..1, 0..1]);
    let broadcast = Tensor::try_from(repeated.broadcast((3, 2)).unwrap())?;
    assert_eq!(broadcast.to_vec::<i32>()?, [0; 6]);
    Ok(())
}

#[test]
fn ranks_and_dtypes_must_match() -> Result<()> {
    let tensor = Tensor::from_vec(vec![1f32, 2.0], &[1, 2])?;
    assert_eq!(Array2::<f32>::try_from(&tensor)?, ndarray::arr2(&[[1f32, 2.0]]));
    assert_eq!(
        refused(Array1::<f32>::try_from(&tensor)),
        "ndarray: the operand is f32[1][2], the array must have as many dimensions as it has axes; use ArrayD, or \
         reshape it"
    );
    assert_eq!(
        refused(ArrayD::<f64>::try_from(&tensor)),
        "ndarray: the operand is f32[1][2], it must be f64; convert it with as_type"
    );
    assert!(Array0::<bool>::try_from(&Tensor::scalar(true)?)?.into_scalar());
    let named = tensor.rename(&[Some("row"), None])?;
    assert_eq!(ArrayD::<f32>::try_from(&named)?.shape(), [1, 2]);
    Ok(())
}

#[test]
fn vectorized_axes_lead() -> Result<()> {
    let tensor = Tensor::iota(&[2, 3], DType::S32, None)?.vectorize(&["batch"])?;
    assert_eq!(Array2::<i32>::try_from(&tensor)?, counted((2, 3)));
    assert_eq!(tensor.host_slice::<i32>()?.view()?.shape(), [2, 3]);
    Ok(())
}

#[test]
fn shapes_that_one_side_does_not_take_are_refused() -> Result<()> {
    let tensor = Tensor::from_vec(Vec::<u8>::new(), &[0, usize::MAX / 2, 3])?;
    let slice = tensor.host_slice::<u8>()?;
    let error = refused(slice.view());
    assert!(error.starts_with("ndarray: the shape is [0][9223372036854775807][3], it must be "), "{error}");
    assert!(refused(ArrayD::<u8>::try_from(&tensor)).starts_with("ndarray: the shape is "));
    Ok(())
}

/// A view of an array: axes in another order, with steps in either direction.
fn arranged<'a>(array: &'a ArrayD<i32>, swap: &[usize], steps: &[isize]) -> ArrayViewD<'a, i32> {
    let mut view = array.view();
    for (axis, &step) in steps.iter().enumerate().take(array.ndim()) {
        view.slice_axis_inplace(Axis(axis), Slice::new(0, None, step));
    }
    for pair in swap.chunks_exact(2) {
        if pair[0] < array.ndim() && pair[1] < array.ndim() {
            view.swap_axes(pair[0], pair[1]);
        }
    }
    view
}

proptest! {
    #[test]
    fn any_layout_goes_there_and_back(
        sizes in prop::collection::vec(0usize..5, 0..5),
        swap in prop::collection::vec(0usize..5, 0..6),
        steps in prop::collection::vec(prop::sample::select(vec![1isize, 2, 3, -1, -2]), 5),
    ) {
        let array = counted(IxDyn(&sizes));
        let view = arranged(&array, &swap, &steps);
        let expected: Vec<i32> = view.iter().copied().collect();
        let tensor = Tensor::try_from(view.clone())?;
        prop_assert_eq!(tensor.shape().sizes(), view.shape());
        prop_assert_eq!(tensor.to_vec::<i32>()?, expected);
        let slice = tensor.host_slice::<i32>()?;
        prop_assert_eq!(slice.view()?, view.clone());
        prop_assert_eq!(ArrayD::<i32>::try_from(&tensor)?, view.clone());
        prop_assert_eq!(ArrayD::<i32>::try_from(&Tensor::try_from(view.to_owned())?)?, view);
    }
}

#[test]
fn owned_tensors_are_read_like_borrowed_ones() -> Result<()> {
    let array: Array2<i32> = Tensor::from_slice(&[1, 2, 3, 4], &[2, 2])?.try_into()?;
    assert_eq!(array, ndarray::arr2(&[[1, 2], [3, 4]]));
    let elements: Vec<i32> = Tensor::try_from(array)?.try_into()?;
    assert_eq!(elements, [1, 2, 3, 4]);
    assert!(Array1::<i32>::try_from(Tensor::from_slice(&[1, 2, 3, 4], &[2, 2])?).is_err());
    Ok(())
}
