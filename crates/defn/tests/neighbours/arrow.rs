//! Arrays of Arrow. Its own values are the oracle.

use std::sync::Arc;

use arrow_array::types::{Float16Type, Int16Type, Int64Type, TimestampSecondType};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal32Array, FixedSizeListArray, Float16Array, Float64Array,
    Int32Array, PrimitiveArray, StringArray, TimestampSecondArray, UInt8Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, ScalarBuffer};
use arrow_schema::{DataType, Field};
use defn::Result;
use defn::half::f16;
use defn::prelude::*;
use proptest::prelude::*;

use crate::refused;

#[test]
fn buffers_move_both_ways_and_stay_alive() -> Result<()> {
    let array = Float64Array::from(vec![1.0, 2.0, 3.0, 4.0]);
    let address = array.values().as_ptr();
    let part = array.slice(1, 2);
    let (whole, middle) = (Tensor::try_from(&array)?, Tensor::try_from(part)?);
    assert_eq!(whole.host_slice::<f64>()?.as_ptr(), address);
    assert_eq!(middle.host_slice::<f64>()?.as_ptr(), address.wrapping_add(1));
    drop(array);
    assert_eq!(middle.to_vec::<f64>()?, [2.0, 3.0]);

    let same = Float64Array::try_from(&whole)?;
    assert_eq!(same.values().as_ptr(), address);
    whole.backend_deallocate()?;
    drop((whole, middle));
    assert_eq!(same.values()[..], [1.0, 2.0, 3.0, 4.0]);
    Ok(())
}

#[test]
fn half_floats_and_truths() -> Result<()> {
    let halves = Float16Array::from(vec![f16::from_f32(1.5), f16::NAN]);
    let x = Tensor::try_from(&halves)?;
    assert_eq!(x.ty().to_string(), "f16[2]");
    assert_eq!(PrimitiveArray::<Float16Type>::try_from(&x)?.values()[0], f16::from_f32(1.5));
    // A part that begins within a byte.
    let bits = BooleanArray::new(BooleanBuffer::new(Buffer::from([0b1010_1100u8, 0b11]), 3, 7), None);
    let expected: Vec<bool> = bits.values().iter().collect();
    let truths = Tensor::try_from(&bits)?;
    assert_eq!(truths.to_vec::<bool>()?, expected);
    assert_eq!(BooleanArray::try_from(&truths)?, bits);
    Ok(())
}

#[test]
fn lists_are_two_axes() -> Result<()> {
    let x = Tensor::iota(&[3, 2], DType::S16, None)?;
    let list = FixedSizeListArray::try_from(&x)?;
    let values = list.values().as_any().downcast_ref::<PrimitiveArray<Int16Type>>().unwrap();
    assert_eq!(values.values().as_ptr(), x.host_slice::<i16>()?.as_ptr());
    assert_eq!((list.len(), list.value_length(), list.value_type()), (3, 2, DataType::Int16));
    assert_eq!(Tensor::try_from(&list)?.to_vec::<i16>()?, [0, 1, 2, 3, 4, 5]);
    let part = Tensor::try_from(list.slice(1, 2))?;
    assert_eq!((part.ty().to_string(), part.to_vec::<i16>()?), ("s16[2][2]".to_owned(), vec![2, 3, 4, 5]));
    // Lists of lists of lists.
    let field = Arc::new(Field::new_list_field(list.data_type().clone(), true));
    let nested = FixedSizeListArray::new(field, 3, Arc::new(list), None);
    assert_eq!(Tensor::try_from(&nested)?.ty().to_string(), "s16[1][3][2]");
    let truths = FixedSizeListArray::try_from(&x.greater(2)?)?;
    assert_eq!(Tensor::try_from(&truths)?.to_vec::<bool>()?, [false, false, false, true, true, true]);
    for sizes in [[0, 2], [2, 0], [0, 0]] {
        let empty = Tensor::full(&sizes.map(|size| size as usize), DType::F32, 0)?;
        let same = Tensor::try_from(FixedSizeListArray::try_from(&empty)?)?;
        assert_eq!(same.ty(), empty.ty());
    }
    Ok(())
}

#[test]
fn columns_of_unknown_types() -> Result<()> {
    let list = FixedSizeListArray::try_from(&Tensor::iota(&[1, 2], DType::U8, None)?)?;
    let columns: [(ArrayRef, &str); 3] = [
        (Arc::new(UInt8Array::from(vec![1, 2])), "u8[2]"),
        (Arc::new(BooleanArray::from(vec![true])), "bool[1]"),
        (Arc::new(list), "u8[1][2]"),
    ];
    for (column, expected) in &columns {
        assert_eq!(Tensor::try_from(&**column)?.ty().to_string(), *expected);
    }
    let texts: &dyn Array = &StringArray::from(vec!["a"]);
    assert!(
        refused(Tensor::try_from(texts))
            .starts_with("arrow: the elements Utf8 have no counterpart here, they must")
    );
    Ok(())
}

#[test]
fn nulls_units_and_other_shapes_are_refused() -> Result<()> {
    let nulls = Int32Array::from(vec![Some(1), None, None]);
    assert_eq!(
        refused(Tensor::try_from(&nulls)),
        "arrow: the number of nulls is 2 in 3 elements, it must be 0; leave them out, or put a number in their place"
    );
    // A part without nulls of an array with nulls.
    assert_eq!(Tensor::try_from(nulls.slice(0, 1))?.to_vec::<i32>()?, [1]);
    assert!(
        refused(Tensor::try_from(BooleanArray::from(vec![None, Some(true)]))).contains("is 1 in 2 elements")
    );
    let row = FixedSizeListArray::from_iter_primitive::<Int64Type, _, _>([None, Some([Some(1), Some(2)])], 2);
    assert!(refused(Tensor::try_from(&row)).contains("the number of nulls is 1 in 2 elements"));
    let inner = FixedSizeListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1), None])], 2);
    assert!(refused(Tensor::try_from(&inner)).contains("the number of nulls is 1 in 2 elements"));

    let times = TimestampSecondArray::from(vec![1, 2]);
    assert!(refused(Tensor::try_from(&times)).starts_with("arrow: the elements Timestamp"));
    assert_eq!(Tensor::try_from(times.reinterpret_cast::<Int64Type>())?.to_vec::<i64>()?, [1, 2]);
    assert!(
        refused(Tensor::try_from(Decimal32Array::from(vec![1]))).starts_with("arrow: the elements Decimal32")
    );
    let x = Tensor::iota(&[2, 2], DType::S64, None)?;
    assert!(
        refused(PrimitiveArray::<TimestampSecondType>::try_from(&x))
            .starts_with("arrow: the elements Timestamp")
    );
    assert_eq!(
        refused(PrimitiveArray::<Int64Type>::try_from(&x)),
        "arrow: the operand is s64[2][2], an array must have one axis; reshape it, or take a FixedSizeListArray"
    );
    assert!(refused(BooleanArray::try_from(&x)).contains("must have one axis"));
    assert!(refused(FixedSizeListArray::try_from(&x.reshape(&[4])?)).contains("must have two axes"));
    assert!(
        refused(Int32Array::try_from(&x.reshape(&[4])?)).contains("it must be s32; convert it with as_type")
    );
    assert_eq!(
        refused(FixedSizeListArray::try_from(&x.as_type(DType::BF16)?)),
        "arrow: elements of bf16 cannot be stored in an array of Arrow; convert them with as_type, or use serialize"
    );
    let wide = Tensor::full(&[0, 1 << 31], DType::U8, 0)?;
    assert!(
        refused(FixedSizeListArray::try_from(&wide))
            .starts_with("arrow: the shape is u8[0][2147483648], it must")
    );
    let batched = Tensor::iota(&[2, 2], DType::S32, None)?.vectorize(&["row"])?;
    assert_eq!(FixedSizeListArray::try_from(&batched)?.len(), 2);
    Ok(())
}

proptest! {
    #[test]
    fn parts_of_arrays_go_there_and_back(
        elements in prop::collection::vec(any::<i64>(), 0..50),
        start in 0usize..50,
    ) {
        let start = start.min(elements.len());
        let whole = PrimitiveArray::<Int64Type>::new(ScalarBuffer::from(elements.clone()), None);
        let part = whole.slice(start, elements.len() - start);
        let x = Tensor::try_from(&part)?;
        prop_assert_eq!(x.to_vec::<i64>()?, &elements[start..]);
        prop_assert_eq!(PrimitiveArray::<Int64Type>::try_from(&x)?, part);
    }
}
