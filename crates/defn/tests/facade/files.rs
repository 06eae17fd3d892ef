//! Files that the facade writes and reads, and places.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use defn::prelude::*;
use defn::{ErrorClass, Leaf, Visit, load, load_tree, named_leaves, save, save_tree};
use defn_core::format::Array;
use defn_core::format::native::{Form, Object, Value, write};

/// A path of a file that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        Scratch(std::env::temp_dir().join(format!("defn-files-{}-{name}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

#[test]
fn every_format_holds_tensors() -> Result<(), defn::Error> {
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    let y = Tensor::from_slice(&[7i64], &[])?;
    for suffix in ["npz", "safetensors", "defn"] {
        let file = Scratch::new(&format!("two.{suffix}"));
        save(&file.0, &[("x", &x), ("y", &y)])?;
        let mut back = load(&file.0)?;
        back.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(back.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!((back[0].1.ty(), back[1].1.ty()), (x.ty(), y.ty()), "{suffix}");
        assert_eq!(back[0].1.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(back[1].1.item::<i64>()?, 7);
    }
    let file = Scratch::new("one.npy");
    save(&file.0, &[("", &x)])?;
    let back = load(&file.0)?;
    assert_eq!(back[0].1.to_vec::<f32>()?, x.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn what_is_wrong_is_an_error() {
    let x = Tensor::from_slice(&[1f32], &[1]).unwrap();
    let class = |result: Result<(), defn::Error>| result.unwrap_err().class();
    let file = Scratch::new("wrong.npy");
    assert_eq!(class(save(&file.0, &[("x", &x), ("y", &x)])), ErrorClass::Option);
    assert_eq!(class(save(Scratch::new("wrong.csv").0.clone(), &[("x", &x)])), ErrorClass::Option);
    assert!(!file.0.exists());
    let error = load(&file.0).unwrap_err();
    assert!(error.location().is_some_and(|location| location.to_string().contains("files.rs")));
    for bytes in [&b"noise"[..], b"", b"\x93NUMPY\x01\x00\xff\xff", b"PK\x03\x04"] {
        fs::write(&file.0, bytes).unwrap();
        assert_eq!(class(load(&file.0).map(drop)), ErrorClass::Format, "{bytes:?}");
    }
}

#[test]
fn tensors_are_copied_moved_and_freed() -> Result<(), defn::Error> {
    let backend = defn::default_backend()?;
    let x = Tensor::from_slice(&[1f32, 2.0], &[2])?;
    let y = x.backend_copy(&backend)?;
    assert_eq!(x.backend_transfer(&backend)?.to_vec::<f32>()?, [1.0, 2.0]);
    assert!(x.backend_deallocate()?);
    assert!(!x.backend_deallocate()?);
    assert_eq!(x.to_vec::<f32>().unwrap_err().class(), ErrorClass::Backend);
    assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0]);
    Ok(())
}

#[derive(Tree)]
struct Layer<T> {
    weight: T,
    bias: Option<T>,
    #[tree(static)]
    slope: f64,
}

#[derive(Tree)]
enum Head<T> {
    Linear(T),
    Mixed { r#in: BTreeMap<String, T>, out: (T, [T; 2]) },
}

/// Parts without names, as a container that is written by hand may have.
struct Bare<T>(T, T);

impl<T: Leaf> Tree<T> for Bare<T> {
    type Of<U: Leaf> = Bare<U>;

    fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> Bare<U> {
        Bare(self.0.visit(visit), self.1.visit(visit))
    }
}

fn names<A: Tree<Tensor>>(tree: &A) -> Vec<String> {
    named_leaves(tree).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn leaves_have_the_names_of_their_parts() -> Result<(), defn::Error> {
    let x = Tensor::scalar(1)?;
    assert_eq!(names(&x), [""]);
    assert_eq!(names(&(x.clone(), vec![x.clone()])), ["0", "1.0"]);
    let layer = |bias| Layer { weight: x.clone(), bias, slope: 1.0 };
    assert_eq!(names(&[layer(None), layer(Some(x.clone()))]), ["0.weight", "1.weight", "1.bias"]);
    assert_eq!(names(&Head::Linear(x.clone())), ["0"]);
    let keys = BTreeMap::from([("b".to_owned(), x.clone()), ("a".to_owned(), x.clone())]);
    let mixed = Head::Mixed { r#in: keys, out: (x.clone(), [x.clone(), x.clone()]) };
    assert_eq!(names(&mixed), ["in.a", "in.b", "out.0", "out.1.0", "out.1.1"]);
    assert_eq!(names(&(Bare(x.clone(), x.clone()),)), ["0", "0"]);
    Ok(())
}

#[test]
fn every_format_holds_containers() -> Result<(), defn::Error> {
    let layer = Layer { weight: tensor![[1.0, 2.0]]?, bias: Some(tensor![3, 4]?), slope: 0.5 };
    let tree = (vec![layer], Tensor::from_slice(&[5i64], &[])?);
    let template = |sizes: &[usize], dtype| Tensor::template(sizes, dtype);
    let like_layer = Layer {
        weight: Tensor::full(&[1, 2], DType::F32, 0)?.rename(&[None, Some("in")])?,
        bias: Some(template(&[2], DType::S32)?),
        slope: 0.25,
    };
    let like = (vec![like_layer], template(&[], DType::S64)?);
    for suffix in ["npz", "safetensors", "defn"] {
        let file = Scratch::new(&format!("tree.{suffix}"));
        save_tree(&file.0, &tree)?;
        let (layers, last) = load_tree(&file.0, &like)?;
        assert_eq!(layers[0].weight.ty().to_string(), "f32[1][in: 2]", "{suffix}");
        assert_eq!(layers[0].weight.to_vec::<f32>()?, [1.0, 2.0]);
        assert_eq!(layers[0].bias.as_ref().expect("a bias").to_vec::<i32>()?, [3, 4]);
        assert_eq!((layers[0].slope, last.item::<i64>()?), (0.25, 5));
        let mut found: Vec<String> = load(&file.0)?.into_iter().map(|(name, _)| name).collect();
        found.sort();
        assert_eq!(found, ["0.0.bias", "0.0.weight", "1"]);
    }
    // One leaf, whose name the file does not hold.
    let file = Scratch::new("tree.npy");
    save_tree(&file.0, &[tensor![1.5]?])?;
    let [x] = load_tree(&file.0, &[template(&[1], DType::F32)?])?;
    assert_eq!(x.to_vec::<f32>()?, [1.5]);
    Ok(())
}

#[test]
fn containers_that_do_not_fit_are_refused() -> Result<(), defn::Error> {
    let file = Scratch::new("strict.npz");
    let x = tensor![1.0, 2.0]?;
    save_tree(&file.0, &(x.clone(), x.clone()))?;
    let place = format!("in {}, ", file.0.display());
    let text = |result: Result<(), defn::Error>| {
        let text = result.unwrap_err().to_string();
        // Errors about the content of a file name it.
        assert_eq!(text.starts_with("load_tree"), text.contains(&place), "{text}");
        text.replace(&place, "")
    };
    let template = |size| Tensor::template(&[size], DType::F32);
    let cases = [
        (
            text(load_tree(&file.0, &(x.clone(), (x.clone(), x.clone()))).map(drop)),
            "load_tree: the file has no tensor `1.0`, one for each leaf of the container is required",
        ),
        (
            text(load_tree(&file.0, &(x.clone(),)).map(drop)),
            "load_tree: the file has a tensor `1`, the container has no leaf of this name",
        ),
        (
            text(load_tree(&file.0, &(template(2)?, template(3)?)).map(drop)),
            "load_tree: `1` of the file is f32[2], the container has f32[3] there",
        ),
        (
            text(load_tree(&file.0, &(x.clone(), x.as_type(DType::F64)?)).map(drop)),
            "load_tree: `1` of the file is f32[2], the container has f64[2] there",
        ),
        (
            text(save_tree(&file.0, &Bare(x.clone(), x.clone()))),
            "save_tree: the name of two leaves is ``, it must be that of one; name the parts with Visit::part",
        ),
    ];
    for (text, expected) in cases {
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("files.rs"), "{text}");
    }
    // The file is as it was.
    assert_eq!(load(&file.0)?.len(), 2);
    // Other names of axes.
    let file = Scratch::new("strict.defn");
    save_tree(&file.0, &x.rename(&[Some("row")])?)?;
    assert_eq!(load_tree(&file.0, &x)?.ty().to_string(), "f32[row: 2]");
    let other = load_tree(&file.0, &x.rename(&[Some("column")])?).unwrap_err();
    assert_eq!(other.class(), ErrorClass::Format);
    // Vectorized axes, which a type does not show.
    let rows = tensor![[1.0, 2.0], [3.0, 4.0]]?.vectorize(&["row"])?;
    save_tree(&file.0, &rows)?;
    assert_eq!(load_tree(&file.0, &rows)?.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    let error = load_tree(&file.0, &x).map(drop).unwrap_err().to_string();
    let expected = "`` of the file is vectorized[row: 2] f32[2], the container has f32[2] there";
    assert!(error.contains(expected), "{error}");
    Ok(())
}

/// A file as Python writes it: containers within others, and values that are no tensors.
#[test]
fn containers_of_python_are_read() -> Result<(), defn::Error> {
    let tensor = |number: f32| -> Result<Value, defn::Error> {
        Ok(Value::Tensor(Box::new(Array::of("test", Tensor::scalar(number)?.core())?)))
    };
    let text = |text: &str| Value::Text(text.to_owned());
    let object = |form, parts| {
        let (module, class) = ("models".to_owned(), "Layer".to_owned());
        Value::Object(Box::new(Object { module, class, form, parts }))
    };
    let fields = vec![("weight".to_owned(), tensor(1.0)?), ("name".to_owned(), text("dense"))];
    let ordered = Value::Dict(vec![(Value::Integer("-a".to_owned()), tensor(2.0)?)]);
    let registered = vec![(String::new(), Value::Bool(true)), (String::new(), tensor(3.0)?)];
    let value = Value::Dict(vec![
        (text("layers"), Value::List(vec![object(Form::Fields, fields), Value::None])),
        (text("ordered"), object(Form::Ordered, vec![(String::new(), ordered)])),
        (text("own"), object(Form::Registered, registered)),
        (
            text("named"),
            object(Form::Named, vec![(String::new(), tensor(4.0)?), (String::new(), tensor(5.0)?)]),
        ),
        (text("member"), object(Form::Member, vec![(String::new(), text("RELU"))])),
    ]);
    let bytes = write("test", &value)?;
    let read = defn::deserialize(bytes)?;
    let mut numbers = Vec::new();
    for (name, x) in &read {
        numbers.push((name.as_str(), x.item::<f32>()?));
    }
    assert_eq!(
        numbers,
        [("layers.0.weight", 1.0), ("ordered.-10", 2.0), ("own.0", 3.0), ("named.0", 4.0), ("named.1", 5.0)]
    );
    // Two ways to one name.
    let inner = Value::Dict(vec![(text("b"), tensor(1.0)?)]);
    let value = Value::Dict(vec![(text("a.b"), tensor(2.0)?), (text("a"), inner)]);
    let file = Scratch::new("twice.defn");
    fs::write(&file.0, write("test", &value)?).expect("a file");
    let like = BTreeMap::from([("a.b".to_owned(), Tensor::scalar(0.0)?)]);
    let error = load_tree(&file.0, &like).map(drop).unwrap_err();
    assert!(error.to_string().contains("the file has two tensors `a.b`, "), "{error}");
    let odd = Value::Dict(vec![(Value::Float(0.5), tensor(1.0)?)]);
    assert_eq!(defn::deserialize(write("test", &odd)?).unwrap_err().class(), ErrorClass::Format);
    Ok(())
}

#[test]
fn a_file_is_replaced_at_once() -> Result<(), defn::Error> {
    let directory = std::env::temp_dir().join(format!("defn-replaced-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join("x.defn");
    let x = tensor![1.0, 2.0]?;
    save(&path, &[("x", &x)])?;
    // A reader that has the old file keeps it.
    let mut old = fs::File::open(&path).expect("a file");
    save(&path, &[("x", &tensor![3.0]?)])?;
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut old, &mut bytes).expect("the old file");
    assert_eq!(defn::deserialize(bytes)?[0].1.to_vec::<f32>()?, [1.0, 2.0]);
    assert_eq!(load(&path)?[0].1.to_vec::<f32>()?, [3.0]);
    // What cannot be written leaves nothing behind.
    assert!(save(directory.join("nowhere").join("x.defn"), &[("x", &x)]).is_err());
    assert!(save(directory.join("x.npy"), &[("x", &x.as_type(DType::U4)?)]).is_err());
    fs::create_dir(directory.join("full.npy")).expect("a directory");
    assert!(save(directory.join("full.npy"), &[("x", &x)]).is_err());
    let mut names: Vec<_> = fs::read_dir(&directory).expect("the directory").flatten().collect();
    names.retain(|entry| entry.file_name().to_string_lossy().ends_with(".tmp"));
    assert!(names.is_empty(), "{names:?}");
    // Every bit that is damaged is found, and the error names the file.
    let whole = fs::read(&path).expect("a file");
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&path, damaged).expect("a file");
        let error = load(&path).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Format);
        assert!(error.to_string().contains(&format!("in {}, ", path.display())), "{error}");
    }
    fs::remove_dir_all(directory).expect("the directory");
    Ok(())
}

#[test]
fn the_size_of_an_axis_that_does_not_exist_is_an_error() -> Result<(), defn::Error> {
    let x = tensor![[1.0, 2.0, 6.0]]?;
    let mean = |axis: i64| jit(move |x: Expr| x.sum(1, false) / x.axis_size(axis) as i32);
    assert_eq!(mean(-1).call(x.clone())?.to_vec::<f32>()?, [3.0]);
    for error in [x.axis_size(2).unwrap_err(), mean(2).call(x).unwrap_err()] {
        assert!(error.to_string().starts_with("axis_size: "), "{error}");
        assert!(error.location().is_some_and(|location| location.to_string().contains("files.rs")));
    }
    Ok(())
}
