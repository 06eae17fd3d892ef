//! Files that the facade writes and reads, and places.

use std::fs;
use std::path::PathBuf;

use defn::prelude::*;
use defn::{ErrorClass, load, save};

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
