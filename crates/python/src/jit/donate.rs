//! Donated arguments: arguments whose memory a run may reuse.

use defn_core::device::DeviceError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use smallvec::SmallVec;

use super::signature::Signature;
use crate::compilers::Choice;
use crate::containers::Tree;
use crate::convert;
use crate::error::{Fallible, if_fits};
use crate::misuse::Misuse;

/// A parameter, as the user names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Donated {
    Position(usize),
    Name(String),
}

/// The parameters that are donated: one parameter or a sequence of them, by name or by position.
///
/// # Errors
/// A value that is neither.
pub(super) fn parse(op: &str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Vec<Donated>> {
    let Some(value) = value.filter(|value| !value.is_none()) else {
        return Ok(Vec::new());
    };
    let one = |value: &Bound<'_, PyAny>| -> Fallible<Option<Donated>> {
        if let Ok(name) = value.cast::<PyString>() {
            return Ok(Some(Donated::Name(name.to_str()?.to_owned())));
        }
        Ok(convert::index(value)?.and_then(|at| usize::try_from(at).ok()).map(Donated::Position))
    };
    let required = "names or positions of parameters";
    if let Some(donated) = one(value)? {
        return Ok(vec![donated]);
    }
    let Some(items) = if_fits(value.py(), value.try_iter())? else {
        return Err(convert::bad(op, "donate", value, required)?);
    };
    let mut donated = Vec::new();
    for item in items {
        match one(&item?)? {
            Some(item) => donated.push(item),
            None => return Err(convert::bad(op, "donate", value, required)?),
        }
    }
    Ok(donated)
}

/// Refuses donated parameters that the function does not have.
///
/// # Errors
/// A name or a position that no parameter has.
pub(super) fn check(py: Python<'_>, donated: &[Donated], signature: &Signature) -> Fallible<()> {
    for parameter in donated {
        let is_known = match parameter {
            Donated::Position(position) => signature.has_position(*position),
            Donated::Name(name) => signature.has_name(py, name),
        };
        if !is_known {
            let given = match parameter {
                Donated::Position(position) => position.to_string(),
                Donated::Name(name) => format!("\"{name}\""),
            };
            return Err(Misuse::UnknownDonated { given, known: signature.names(py) }.into());
        }
    }
    Ok(())
}

/// The positions of the leaves of donated arguments among the leaves of a call.
pub(super) fn leaves(
    py: Python<'_>,
    donated: &[Donated],
    signature: &Signature,
    tree: &Tree,
) -> SmallVec<[usize; 8]> {
    if donated.is_empty() {
        return SmallVec::new();
    }
    let arguments = tree.arguments(py);
    let mut leaves = SmallVec::new();
    for parameter in donated {
        let (position, name) = match parameter {
            Donated::Position(position) => (Some(*position), signature.name(py, *position)),
            Donated::Name(name) => (signature.position(py, name), name.clone()),
        };
        let positional = position.and_then(|position| arguments.positional.get(position));
        let named = || arguments.named.iter().find(|(known, _)| *known == name).map(|(_, range)| range);
        if let Some(range) = positional.or_else(named) {
            leaves.extend(range.clone());
        }
    }
    leaves
}

/// Refuses donation to a compiler written in Python, because others may hold the tensors that its programs receive.
///
/// # Errors
/// An argument is donated.
pub(super) fn refuse(compiler: &Choice, donated: &[usize]) -> Fallible<()> {
    if donated.is_empty() {
        return Ok(());
    }
    Err(defn_core::Error::from(DeviceError::no_donation(compiler.name())).into())
}
