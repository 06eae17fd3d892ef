//! Checkpoints: what stays, what is refused, and damage.

use std::fs;
use std::path::PathBuf;

use defn::checkpoints::{self, Damaged, Retention};
use defn::prelude::*;
use defn::{ErrorClass, random};

/// A directory that is removed in the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let directory = format!("defn-checkpoints-{}-{name}", std::process::id());
        Directory(std::env::temp_dir().join(directory))
    }

    fn save(&self, steps: &[u64], retention: Retention) -> Result<(), defn::Error> {
        for &step in steps {
            let state = (Tensor::from_slice(&[step], &[])?, tensor![0.5, 1.5]?);
            checkpoints::save(&self.0, step, &state, retention)?;
        }
        Ok(())
    }

    fn load(&self, step: Option<u64>, damaged: Damaged) -> Result<(u64, Vec<u64>), defn::Error> {
        let like = (Tensor::template(&[], DType::U64)?, Tensor::template(&[2], DType::F32)?);
        let found = checkpoints::load(&self.0, &like, step, damaged)?;
        assert_eq!(found.state.0.item::<u64>()?, found.step);
        Ok((found.step, found.skipped.into_iter().map(|(step, _)| step).collect()))
    }

    fn file(&self, step: u64) -> PathBuf {
        self.0.join(format!("step_{step:010}.defn"))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

#[test]
fn the_last_ones_stay() -> Result<(), defn::Error> {
    let runs = Directory::new("last");
    assert_eq!(checkpoints::steps(&runs.0)?, [0u64; 0]);
    runs.save(&[0, 5, 100, 101], Retention::default())?;
    assert_eq!(checkpoints::steps(&runs.0)?, [5, 100, 101]);
    assert_eq!(runs.load(None, Damaged::Refuse)?, (101, vec![]));
    assert_eq!(runs.load(Some(5), Damaged::Refuse)?, (5, vec![]));
    runs.save(&[10_u64.pow(12)], Retention::all())?;
    assert_eq!(checkpoints::steps(&runs.0)?, [5, 100, 101, 10_u64.pow(12)]);
    // Other files stay, and what an interrupted save has left does not.
    let leftover = runs.0.join(".step_0000000100.defn.0123456789abcdef.tmp");
    for path in [&leftover, &runs.0.join("step_7.defn"), &runs.0.join("notes.tmp")] {
        fs::write(path, "part").expect("a file");
    }
    runs.save(&[10_u64.pow(12) + 1], Retention::last(1))?;
    assert_eq!(checkpoints::steps(&runs.0)?, [10_u64.pow(12) + 1]);
    assert!(!leftover.exists());
    assert!(runs.0.join("step_7.defn").exists() && runs.0.join("notes.tmp").exists());
    Ok(())
}

#[test]
fn later_steps_are_refused_or_removed() -> Result<(), defn::Error> {
    let runs = Directory::new("later");
    runs.save(&[1, 2, 3, 3], Retention::default())?;
    let error = runs.save(&[2], Retention::default()).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Option);
    assert!(error.to_string().starts_with("save: the step is 2, it must be after 3, "), "{error}");
    runs.save(&[2], Retention::default().overwriting())?;
    assert_eq!(checkpoints::steps(&runs.0)?, [1, 2]);
    for missing in [runs.load(Some(3), Damaged::Refuse), Directory::new("none").load(None, Damaged::Skip)] {
        assert_eq!(missing.unwrap_err().class(), ErrorClass::Option);
    }
    Ok(())
}

#[test]
fn damage_is_named_and_skipped_only_when_asked() -> Result<(), defn::Error> {
    let runs = Directory::new("damage");
    runs.save(&[1, 2, 3], Retention::default())?;
    let bytes = fs::read(runs.file(3)).expect("a file");
    fs::write(runs.file(3), bytes.get(..bytes.len() / 2).expect("a half")).expect("a file");
    let error = runs.load(None, Damaged::Refuse).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Format);
    assert!(error.to_string().contains(&runs.file(3).display().to_string()), "{error}");
    assert_eq!(runs.load(None, Damaged::Skip)?, (2, vec![3]));
    fs::write(runs.file(2), "").expect("a file");
    assert_eq!(runs.load(None, Damaged::Skip)?, (1, vec![3, 2]));
    fs::write(runs.file(1), "none").expect("a file");
    let error = runs.load(None, Damaged::Skip).unwrap_err();
    assert!(error.to_string().contains(&runs.file(3).display().to_string()), "{error}");
    // A state of another structure is no damage.
    runs.save(&[3], Retention::default())?;
    let other = Tensor::template(&[2], DType::F32)?;
    assert!(checkpoints::load(&runs.0, &other, None, Damaged::Skip).is_err());
    Ok(())
}

/// A run that begins anew from each checkpoint has the bits of one that does not.
#[test]
fn a_run_goes_on_where_it_was() -> Result<(), defn::Error> {
    let step = jit(|(w, key): (Expr, Expr)| {
        let (noise, key) = random::normal(&key, 0.0, 1.0, [3]);
        (0.9 * &w + noise, key)
    });
    let start = (Tensor::full(&[3], DType::F32, 0)?, random::key(3)?);
    let mut whole = start.clone();
    for _ in 0..8 {
        whole = step.call(whole)?;
    }
    let runs = Directory::new("run");
    let mut at = 0;
    while at < 8 {
        let state = match checkpoints::latest(&runs.0)? {
            Some(last) => checkpoints::load(&runs.0, &start, Some(last), Damaged::Refuse)?.state,
            None => start.clone(),
        };
        at += 1;
        checkpoints::save(&runs.0, at, &step.call(state)?, Retention::last(2))?;
    }
    let last = checkpoints::load(&runs.0, &start, None, Damaged::Refuse)?;
    assert_eq!(last.step, 8);
    assert_eq!(last.state.0.to_binary()?, whole.0.to_binary()?);
    assert_eq!(last.state.1.to_binary()?, whole.1.to_binary()?);
    Ok(())
}
