//! Tensors, dtypes and shapes in JSON and in postcard, and what damages them.

use std::collections::BTreeMap;
use std::sync::Arc;

use defn::core;
use defn::core::backend::HostMemory;
use defn::prelude::*;
use defn::{Result, Shape, TensorType, default_backend};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

fn of_bytes(dtype: DType, sizes: &[usize], bytes: Vec<u8>) -> Result<Tensor> {
    let ty = TensorType::new(dtype, Shape::new(sizes))?;
    let buffer = default_backend()?.from_host(&ty, HostMemory::new(Arc::new(bytes)))?;
    Ok(core::Tensor::concrete(ty, buffer).into())
}

fn bytes(tensor: &Tensor) -> Result<Vec<u8>> {
    Ok(tensor.core().host_bytes("test")?.bytes().to_vec())
}

/// The value by way of JSON, of JSON with its fields in another order, and of postcard.
fn again<T: Serialize + DeserializeOwned>(value: &T) -> [T; 3] {
    let text = serde_json::to_string(value).unwrap();
    let sorted = serde_json::to_value(value).unwrap();
    let binary = postcard::to_allocvec(value).unwrap();
    let read = |result: serde_json::Result<T>| result.unwrap_or_else(|error| panic!("{error}: {text}"));
    [
        read(serde_json::from_str(&text)),
        read(serde_json::from_value(sorted)),
        postcard::from_bytes(&binary).unwrap(),
    ]
}

fn is_kept(tensor: &Tensor) -> Result<()> {
    for same in again(tensor) {
        assert_eq!(same.ty(), tensor.ty());
        assert_eq!(same.vectorized_axes(), tensor.vectorized_axes());
        assert_eq!(bytes(&same)?, bytes(tensor)?, "{}", tensor.ty());
    }
    Ok(())
}

#[test]
fn every_bit_pattern_of_a_byte_or_two_is_kept() -> Result<()> {
    for &dtype in DType::ALL {
        let elements: Vec<u8> = match dtype.storage_bytes() {
            1 => (0..=255).collect(),
            2 => (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect(),
            _ => continue,
        };
        is_kept(&of_bytes(dtype, &[elements.len() / dtype.storage_bytes()], elements)?)?;
    }
    Ok(())
}

#[test]
fn special_floats_are_kept() -> Result<()> {
    let singles = [
        0x7f80_0000u32,
        0xff80_0000,
        0x7fc0_0000,
        0xffc0_0000,
        0x7f80_0001,
        0x7fc0_0123,
        0x8000_0000,
        1,
        0x7f7f_ffff,
    ];
    // The shortest text of the last one, read as an f64 and rounded, is another f32.
    let singles: Vec<f32> = singles.map(f32::from_bits).into_iter().chain([0.1, 7.038531e-26]).collect();
    is_kept(&Tensor::from_slice(&singles, &[singles.len()])?)?;
    let doubles = [
        0x7ff0_0000_0000_0000u64,
        0xfff0_0000_0000_0000,
        0x7ff8_0000_0000_0000,
        0xfff8_0000_0000_0001,
        0x7ff0_0000_0000_0001,
        0x8000_0000_0000_0000,
        1,
    ];
    let doubles: Vec<f64> =
        doubles.map(f64::from_bits).into_iter().chain([0.1, 1.0 / 3.0, f64::MAX, 5e-324]).collect();
    is_kept(&Tensor::from_slice(&doubles, &[doubles.len()])?)?;
    is_kept(&Tensor::from_slice(&[u64::MAX, 0, 1 << 63], &[3])?)?;
    is_kept(&Tensor::from_slice(&[i64::MIN, i64::MAX, -1], &[3, 1])?)
}

#[test]
fn json_is_what_it_looks_like() -> Result<()> {
    let text = |tensor: &Tensor| serde_json::to_string(tensor).unwrap();
    let x = tensor![1.5, f64::NAN, f64::NEG_INFINITY, -0.0, 0.1]?;
    let head = r#"{"dtype":"f32","shape":{"sizes":[5],"names":[]},"vectorized":[],"#;
    assert_eq!(text(&x), format!(r#"{head}"elements":[1.5,"nan","-inf",-0.0,0.1]}}"#));
    let batched = tensor![[true], [false]]?.rename(&[None, Some("x")])?.vectorize(&["batch"])?;
    assert_eq!(
        text(&batched),
        r#"{"dtype":"bool","shape":{"sizes":[1],"names":["x"]},"vectorized":[["batch",2]],"elements":[true,false]}"#
    );
    is_kept(&batched)?;
    assert!(text(&tensor![1, 2]?.as_type(DType::C64)?).ends_with(r#""elements":[[1.0,0.0],[2.0,0.0]]}"#));
    assert!(
        text(&Tensor::from_slice(&[f32::from_bits(0xffc0_0000)], &[])?).ends_with(r#"["nan:ffc00000"]}"#)
    );
    // Integers for floats, as other programs write them, and any text of a float.
    let read = head.replace('5', "3") + r#""elements":[1,-2,"1e3"]}"#;
    assert_eq!(serde_json::from_str::<Tensor>(&read).unwrap().to_vec::<f32>()?, [1.0, -2.0, 1000.0]);
    Ok(())
}

#[test]
fn dtypes_and_shapes_are_kept() {
    for &dtype in DType::ALL {
        assert_eq!(again(&dtype), [dtype; 3]);
        assert_eq!(serde_json::to_string(&dtype).unwrap(), format!("\"{dtype}\""));
    }
    let named = Shape::named(&[2, 0, 3], &[Some("a"), None, Some("a")]).unwrap();
    for shape in [Shape::scalar(), Shape::new(&[3, usize::MAX]), named] {
        again(&shape).iter().for_each(|same| assert_eq!(*same, shape));
    }
}

#[derive(Tree, Serialize, Deserialize)]
struct Layer<T> {
    weight: T,
    bias: Option<T>,
    #[tree(static)]
    slope: f64,
}

#[derive(Tree, Serialize, Deserialize)]
enum Model<T> {
    Deep { layers: Vec<Layer<T>>, tables: BTreeMap<String, T> },
    Empty,
}

#[test]
fn containers_are_kept_by_derived_implementations() -> Result<()> {
    let layer =
        |bias| -> Result<Layer<Tensor>> { Ok(Layer { weight: tensor![[1.0, 2.0]]?, bias, slope: 0.5 }) };
    let layers = vec![layer(None)?, layer(Some(tensor![3.0]?))?];
    let model = Model::Deep { layers, tables: BTreeMap::from([("ids".to_owned(), tensor![1, 2; u8]?)]) };
    for same in again(&model) {
        let Model::Deep { layers, tables } = &same else { panic!("another variant") };
        assert_eq!(layers[1].bias.as_ref().unwrap().to_vec::<f32>()?, [3.0]);
        assert_eq!((layers.len(), layers[0].slope, layers[0].bias.is_none()), (2, 0.5, true));
        assert_eq!(tables["ids"].ty().to_string(), "u8[2]");
        let doubled = jit(|model: Model<Expr>| each([&model], |[x]| x + x)).call(same)?;
        let Model::Deep { layers, .. } = doubled else { panic!("another variant") };
        assert_eq!(layers[0].weight.to_vec::<f32>()?, [2.0, 4.0]);
    }
    assert!(matches!(again(&Model::<Tensor>::Empty)[0], Model::Empty));
    Ok(())
}

#[test]
fn a_tensor_without_elements_is_refused() -> Result<()> {
    let x = tensor![1.0]?;
    x.backend_deallocate()?;
    assert!(
        serde_json::to_string(&x)
            .unwrap_err()
            .to_string()
            .contains("serialize: the tensor's memory was freed")
    );
    assert!(postcard::to_allocvec(&x).is_err());
    Ok(())
}

/// What reading a text as a tensor says.
fn json_error(text: &str) -> String {
    serde_json::from_str::<Tensor>(text).err().unwrap_or_else(|| panic!("{text} was read")).to_string()
}

#[test]
fn damaged_texts_are_refused() {
    let text = |dtype: &str, sizes: &str, vectorized: &str, elements: &str| {
        format!(
            r#"{{"dtype":"{dtype}","shape":{{"sizes":{sizes},"names":[]}},"vectorized":{vectorized},"elements":{elements}}}"#
        )
    };
    let cases = [
        (text("f99", "[1]", "[]", "[1]"), "\"f99\" is no dtype"),
        (text("f32", "[2]", "[]", "[1]"), "there are 1 elements, f32[2] must have 2"),
        (text("f32", "[]", "[]", "[1,2]"), "there are 2 elements, f32 must have 1"),
        (text("f32", "[9223372036854775807,9]", "[]", "[1]"), "more bytes than memory can address"),
        (text("f32", "[1000000000000]", "[]", "[1]"), "there are 1 elements, f32[1000000000000] must have"),
        (text("f32", "[-1]", "[]", "[1]"), "invalid value"),
        (text("f32", "[1]", "[]", "[null]"), "invalid type: null"),
        (
            text("f32", "[1]", "[]", "[\"one\"]"),
            "the element \"one\" is none of f32, all must be, for f32[1]",
        ),
        (text("f32", "[1]", "[]", "[\"nan:3f800000\"]"), "none of f32"),
        (text("f32", "[1]", "[]", "[\"nan:1ffffffff\"]"), "none of f32"),
        (text("f32", "[1]", "[]", "[\"nan:\"]"), "none of f32"),
        (text("f32", "[1]", "[]", "[true]"), "the element true is none of f32"),
        (text("f8_e4m3fn", "[1]", "[]", "[\"inf\"]"), "the element \"inf\" is none of f8_e4m3fn"),
        (text("f32", "[1]", "[]", "[[1,2]]"), "1 of 1 elements have two parts, f32[1] must have 0"),
        (text("c64", "[1]", "[]", "[1]"), "0 of 1 elements have two parts, c64[1] must have 1"),
        (text("c64", "[1]", "[]", "[[1]]"), "invalid length 1"),
        (text("c64", "[1]", "[]", "[[1,2,3]]"), "invalid length 3"),
        (text("c64", "[1]", "[]", "[[1,[2]]]"), "a part of a complex number is a list"),
        (text("u8", "[1]", "[]", "[256]"), "the integer 256 does not fit u8"),
        (text("s2", "[1]", "[]", "[2]"), "the integer 2 does not fit s2"),
        (text("u8", "[1]", "[]", "[1.0]"), "the element 1.0 is none of u8"),
        (text("bool", "[1]", "[]", "[1]"), "the element 1 is none of bool"),
        (text("u8", "[1]", "[[\"b\",2]]", "[1]"), "there are 1 elements, u8[2][1] must have 2"),
        (text("u8", "[1]", "[[\"b\",1],[\"b\",1]]", "[1]"), "the name \"b\" would stand on two axes"),
        (text("u8", "[1]", "[]", "{}"), "invalid type: map"),
        (text("u8", "[1]", "[]", &"[".repeat(100_000)), "is a list"),
        (text("u8", "[1]", "[]", "[1],\"more\":1"), "unknown field"),
        (r#"{"dtype":"u8"}"#.to_owned(), "missing field"),
    ];
    for (text, expected) in cases {
        let error = json_error(&text);
        assert!(error.contains(expected), "{error}: {}", &text[..text.len().min(200)]);
    }
    let names = r#"{"dtype":"u8","shape":{"sizes":[1],"names":["b"]},"vectorized":[["b",1]],"elements":[1]}"#;
    assert!(json_error(names).contains("the name \"b\" would stand on two axes"));
    assert!(
        json_error(&names.replace(r#"["b"]}"#, r#"["b",null]}"#))
            .contains("one entry for each of its 1 axes")
    );
}

#[test]
fn damaged_bytes_are_refused() -> Result<()> {
    /// The fields of a tensor in postcard.
    #[derive(Serialize)]
    struct Fields<'a> {
        dtype: &'a str,
        shape: (Vec<u64>, Vec<Option<&'a str>>),
        vectorized: Vec<(&'a str, u64)>,
        elements: &'a [u8],
    }
    let read = |dtype, sizes: &[u64], elements| {
        let fields = Fields { dtype, shape: (sizes.to_vec(), Vec::new()), vectorized: Vec::new(), elements };
        postcard::from_bytes::<Tensor>(&postcard::to_allocvec(&fields).unwrap())
    };
    assert_eq!(read("u8", &[2], &[1, 2]).unwrap().to_vec::<u8>()?, [1, 2]);
    assert_eq!(read("bool", &[2], &[0, 1]).unwrap().to_vec::<bool>()?, [false, true]);
    assert_eq!(read("s4", &[3], &[0x1f, 0x70]).unwrap().as_type(DType::S8)?.to_vec::<i8>()?, [1, -1, 7]);
    assert!(read("bool", &[2], &[0, 2]).is_err());
    assert!(read("u8", &[2], &[1]).is_err());
    assert!(read("u8", &[2], &[1, 2, 3]).is_err());
    assert!(read("s4", &[3], &[1]).is_err());
    assert!(read("s4", &[u64::MAX], &[1]).is_err());
    assert!(read("f32", &[u64::MAX / 4, 4], &[]).is_err());
    assert!(read("f32", &[1 << 40], &[0; 4]).is_err());
    assert!(read("f33", &[], &[0; 4]).is_err());
    assert_eq!(read("s4", &[1; 1000], &[0x10]).unwrap().shape().rank(), 1000);
    // Every prefix, and every change of a byte of the head, is an error or a tensor.
    let whole = postcard::to_allocvec(&tensor![[1.0, 2.0], [3.0, 4.0]]?).unwrap();
    for end in 0..whole.len() {
        assert!(postcard::from_bytes::<Tensor>(&whole[..end]).is_err());
    }
    for at in 0..whole.len() {
        for byte in [0, 1, 127, 128, 255] {
            let mut changed = whole.clone();
            changed[at] = byte;
            let _ = postcard::from_bytes::<Tensor>(&changed);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn random_tensors_are_kept(
        dtype in prop::sample::select(DType::ALL),
        sizes in prop::collection::vec(0usize..4, 0..4),
        seed in prop::collection::vec(any::<u8>(), 64 * 16),
        lead in 0usize..3,
    ) {
        let count = sizes.iter().product::<usize>() * dtype.storage_bytes();
        let tensor = of_bytes(dtype, &sizes, seed[..count].to_vec())?;
        let names: Vec<&str> = ["a", "b"].into_iter().take(lead.min(sizes.len())).collect();
        is_kept(&tensor.vectorize(&names)?)?;
    }

    #[test]
    fn random_bytes_are_no_danger(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = postcard::from_bytes::<Tensor>(&bytes);
        let _ = postcard::from_bytes::<Shape>(&bytes);
    }
}
