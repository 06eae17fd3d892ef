//! Why a call compiled: the differences between its signature and the nearest one that was compiled before.

use std::sync::{Mutex, MutexGuard, PoisonError};

use defn_core::Tensor;
use defn_core::backend::Checks;
use defn_core::vectorize::{NamedAxes, type_text, vectorized_axes_text};
use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::cache::{CallKey, Entry, VersionKey};
use super::guards::{self, Capture, Change, ClosedLabel, ClosedValue, RecordedClosedValue};
use super::leaf;
use super::settings::CompileMode;
use crate::containers::{Aspect, AuxObject, DifferenceSink, Flat, ValuePath, value_text};
use crate::error::Fallible;

/// The number of differences that a message spells out.
const SPELLED: usize = 3;

/// A field that made more versions than this causes a warning.
const STORM: u32 = 8;

/// The part of a signature that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Field {
    /// A property of a value other than the type of a tensor.
    Structure(Aspect),
    /// Whether the value is a number or a tensor.
    Number,
    DType,
    Rank,
    Shape,
    Names,
    VectorizedAxes,
    Compiler,
    Checks,
    CompileMode,
    DefaultFloat,
    NamedAxes,
    Hooks,
}

impl Field {
    /// The words in front of the path, with their preposition.
    fn text(self) -> &'static str {
        match self {
            Field::Structure(aspect) => match aspect {
                Aspect::Kind | Aspect::Object | Aspect::Function => "",
                Aspect::Class => "the type of ",
                Aspect::Length => "the length of ",
                Aspect::Keys => "the keys of ",
                Aspect::Order => "the order of ",
                Aspect::Value => "the value of ",
            },
            Field::DType => "the dtype of ",
            Field::Rank => "the rank of ",
            Field::Shape => "the shape of ",
            Field::Names => "the names of ",
            Field::VectorizedAxes => "the vectorized axes of ",
            Field::Number
            | Field::Compiler
            | Field::Checks
            | Field::CompileMode
            | Field::DefaultFloat
            | Field::NamedAxes
            | Field::Hooks => "",
        }
    }

    /// How the user avoids further versions.
    fn advice(self) -> &'static str {
        match self {
            Field::Structure(aspect) => match aspect {
                Aspect::Kind | Aspect::Class | Aspect::Length | Aspect::Keys | Aspect::Order => {
                    "give it one structure in all calls"
                }
                Aspect::Value => "pass a value that changes as an input, which is no part of the signature",
                Aspect::Object => "keep one object for all calls, or make its class a container",
                Aspect::Function => "keep one function for all calls",
            },
            Field::Number => "pass a number or a tensor in all calls",
            Field::DType => "convert it to one dtype before the call",
            Field::Rank | Field::Shape => "pad it to a few shapes before the call",
            Field::Names => "give its axes the same names in all calls",
            Field::VectorizedAxes => "vectorize it in the same way in all calls",
            Field::Compiler | Field::Checks | Field::CompileMode | Field::DefaultFloat | Field::NamedAxes => {
                "set it once"
            }
            Field::Hooks => "make the function once, or give its hooks by name to jit",
        }
    }
}

/// A difference between two signatures at one path.
struct Difference {
    path: String,
    fields: SmallVec<[Field; 2]>,
    old: String,
    new: String,
}

impl Difference {
    fn one(path: &str, field: Field, old: String, new: String) -> Difference {
        Difference { path: path.to_owned(), fields: smallvec![field], old, new }
    }

    /// The subject of the message: `the dtype and shape of x`.
    fn subject(&self) -> String {
        let last = self.fields.len() - 1;
        let mut text = String::new();
        for (at, field) in self.fields.iter().enumerate() {
            let full = field.text();
            if at == 0 {
                text.push_str(if last == 0 { full } else { full.trim_end_matches(" of ") });
                continue;
            }
            text.push_str(if at == last { " and " } else { ", " });
            let name = full.trim_start_matches("the ");
            text.push_str(if at == last { name } else { name.trim_end_matches(" of ") });
        }
        text + &self.path
    }

    fn text(&self) -> String {
        format!("{} changed from {} to {}", self.subject(), self.old, self.new)
    }
}

/// Why a call compiled.
pub(super) struct Reason {
    differences: Vec<Difference>,
    is_first: bool,
}

impl Reason {
    /// The reason as one sentence.
    pub(super) fn text(&self) -> String {
        if self.is_first {
            return "nothing was compiled before".to_owned();
        }
        if self.differences.is_empty() {
            return "what was different is no longer so".to_owned();
        }
        let mut texts: Vec<String> = self.differences.iter().take(SPELLED).map(Difference::text).collect();
        let more = self.differences.len().saturating_sub(SPELLED);
        if more > 0 {
            let s = if more == 1 { "" } else { "s" };
            texts.push(format!("{more} more difference{s}"));
        }
        texts.join(", and ")
    }
}

/// Collects differences, until there are more than the nearest version has.
struct Differences<'a> {
    py: Python<'a>,
    differences: Vec<Difference>,
    fields: usize,
    limit: usize,
    old: &'a [Tensor],
    new: &'a [Tensor],
}

impl Differences<'_> {
    fn add(&mut self, difference: Difference) {
        self.fields += difference.fields.len();
        self.differences.push(difference);
    }
}

impl DifferenceSink for Differences<'_> {
    fn is_full(&self) -> bool {
        self.fields >= self.limit
    }

    fn leaves(&mut self, path: &ValuePath<'_>, old: usize, new: usize) {
        let (old, new) = (&self.old[old], &self.new[new]);
        if leaf::same_model(old, new) {
            return;
        }
        let path = path.text(self.py);
        let shown = if old.is_weak() == new.is_weak() { type_text } else { leaf::text };
        let (fields, old, new) = (fields(old, new), shown(old), shown(new));
        self.add(Difference { path, fields, old, new });
    }

    fn differ(&mut self, path: &ValuePath<'_>, aspect: Aspect, leaves: usize, (old, new): (String, String)) {
        let path = path.text(self.py);
        self.add(Difference::one(&path, Field::Structure(aspect), old, new));
        // A container of another structure counts as many differences as it has leaves.
        self.fields += leaves.saturating_sub(1);
    }

    fn old_leaf(&self, leaf: usize) -> String {
        type_text(&self.old[leaf])
    }

    fn new_leaf(&self, leaf: usize) -> String {
        type_text(&self.new[leaf])
    }
}

/// The fields in which the types of two tensors differ.
fn fields(old: &Tensor, new: &Tensor) -> SmallVec<[Field; 2]> {
    let mut fields = SmallVec::new();
    let (a, b) = (old.ty(), new.ty());
    if old.is_weak() != new.is_weak() {
        fields.push(Field::Number);
        return fields;
    }
    if a.dtype != b.dtype {
        fields.push(Field::DType);
    }
    if a.shape.rank() != b.shape.rank() {
        fields.push(Field::Rank);
    } else if a.shape.sizes() != b.shape.sizes() {
        fields.push(Field::Shape);
    }
    // The names of tensors of different rank are not compared, because they add nothing to the difference in rank.
    if a.shape.rank() == b.shape.rank() && !a.shape.names().eq(b.shape.names()) {
        fields.push(Field::Names);
    }
    if old.vectorized_axes() != new.vectorized_axes() {
        fields.push(Field::VectorizedAxes);
    }
    fields
}

/// The call that is compared with the compiled versions.
pub(super) struct ComparedCall<'a, 'py> {
    pub(super) fun: &'a Bound<'py, PyAny>,
    pub(super) flat: &'a Flat<'py>,
    pub(super) key: &'a CallKey,
    /// Returns the name of a positional argument.
    pub(super) name: &'a dyn Fn(usize) -> String,
    /// The names of the closed-over values in messages.
    pub(super) labels: &'a [ClosedLabel],
}

impl ComparedCall<'_, '_> {
    /// The differences from the nearest of some versions. The nearest version has the fewest fields that differ. Of
    /// several such versions, the newest is chosen.
    pub(super) fn explain(
        &self,
        mut versions: Vec<(std::sync::Arc<VersionKey>, Option<std::sync::Arc<Entry>>)>,
    ) -> Fallible<Reason> {
        versions.sort_by_key(|(known, _)| std::cmp::Reverse(known.number()));
        let types: Vec<Tensor> =
            self.flat.leaves.iter().map(|leaf| leaf::model("jit", leaf)).collect::<Fallible<_>>()?;
        let (mut nearest, mut limit) = (None, usize::MAX);
        for (known, entry) in &versions {
            let found = self.differences(known, entry.as_deref(), &types, limit)?;
            // A version without any difference is one that this call could not use, for a reason that has no name.
            if found.fields > 0 && found.fields < limit {
                limit = found.fields;
                nearest = Some(found.differences);
            }
        }
        Ok(Reason { differences: nearest.unwrap_or_default(), is_first: versions.is_empty() })
    }

    fn differences<'a>(
        &'a self,
        known: &'a VersionKey,
        entry: Option<&Entry>,
        types: &'a [Tensor],
        limit: usize,
    ) -> Fallible<Differences<'a>> {
        let py = self.fun.py();
        let mut found =
            Differences { py, differences: Vec::new(), fields: 0, limit, old: &known.models, new: types };
        if !known.compiler.is_same(py, &self.key.compiler)? {
            let (path, old, new) = known.compiler.difference(py, &self.key.compiler)?;
            found.add(Difference::one(path, Field::Compiler, old, new));
        }
        if known.checks != self.key.checks {
            let (old, new) = (checks_text(known.checks), checks_text(self.key.checks));
            found.add(Difference::one("the set of checks", Field::Checks, old, new));
        }
        if known.mode != self.key.mode {
            let quoted = |mode: CompileMode| format!("\"{}\"", mode.name());
            let (old, new) = (quoted(known.mode), quoted(self.key.mode));
            found.add(Difference::one("the option compile", Field::CompileMode, old, new));
        }
        if known.default_float != self.key.default_float {
            let (old, new) = (known.default_float.to_string(), self.key.default_float.to_string());
            found.add(Difference::one("the option default_float", Field::DefaultFloat, old, new));
        }
        if known.named_axes != self.key.named_axes {
            let text = |axes: &NamedAxes| match axes.is_empty() {
                true => "none".to_owned(),
                false => vectorized_axes_text(axes),
            };
            let (old, new) = (text(&known.named_axes), text(&self.key.named_axes));
            let what = "the named axes of enclosing vmaps";
            found.add(Difference::one(what, Field::NamedAxes, old, new));
        }
        known.arguments.compare_calls(py, &self.flat.tree, self.name, &mut found)?;
        self.compare_closed_values(known, &mut found)?;
        for guard in known.guards.iter() {
            if found.is_full() {
                return Ok(found);
            }
            match guard.change(py)? {
                Some((path, Change::Meaning(aspect, old, new))) => {
                    found.add(Difference::one(&path, Field::Structure(aspect), old, new));
                }
                Some((path, Change::Inside(old, new))) => {
                    let (differences, limit) = (Vec::new(), found.limit);
                    let (before, now) = (&old.models[..], &new.models[..]);
                    let mut inner =
                        Differences { py, differences, fields: found.fields, limit, old: before, new: now };
                    old.tree.compare_values(py, &new.tree, &|| path.clone(), &mut inner)?;
                    let (differences, fields) = (inner.differences, inner.fields);
                    found.differences.extend(differences);
                    found.fields = fields;
                }
                None => {}
            }
        }
        let captures = entry.map(|entry| &entry.program.captures[..]).unwrap_or_default();
        for capture in captures {
            if found.is_full() {
                return Ok(found);
            }
            // A capture may also be a closed-over value, whose difference is in the list already.
            if let Some(difference) = self.compare_capture(capture)
                && !found.differences.iter().any(|known| known.path == difference.path)
            {
                found.add(difference);
            }
        }
        if known.is_owned && found.fields == 0 {
            let name = guards::short_name(self.fun);
            let old = format!("those of {name}");
            found.add(Difference::one(
                "the set of hooks",
                Field::Hooks,
                old,
                format!("those of another {name}"),
            ));
        }
        Ok(found)
    }

    fn compare_closed_values(&self, known: &VersionKey, found: &mut Differences<'_>) -> Fallible<()> {
        let py = self.fun.py();
        let now = &self.key.closed_values;
        if known.closed_values.len() != now.len() {
            if !found.is_full() {
                let (old, new) = (known.closed_values.len().to_string(), now.len().to_string());
                let path = "the number of values that the function closes over";
                found.add(Difference::one(path, Field::Structure(Aspect::Kind), old, new));
            }
            return Ok(());
        }
        for (position, (recorded, now)) in known.closed_values.iter().zip(now).enumerate() {
            if found.is_full() {
                return Ok(());
            }
            if !recorded.holds(py, now)? {
                self.compare_closed_value(recorded, now, self.labels.get(position), found)?;
            }
        }
        Ok(())
    }

    /// The differences in one cell or in the defaults.
    fn compare_closed_value(
        &self,
        recorded: &RecordedClosedValue,
        now: &ClosedValue,
        label: Option<&ClosedLabel>,
        found: &mut Differences<'_>,
    ) -> Fallible<()> {
        let py = self.fun.py();
        let whole = || match label {
            Some(ClosedLabel::Whole(text)) => text.clone(),
            Some(ClosedLabel::Defaults { of, .. }) => format!("the defaults{of}"),
            None => "what the function closes over".to_owned(),
        };
        let (structure, old) = match recorded {
            RecordedClosedValue::Value(known) => (&known.0, &known.1[..]),
            RecordedClosedValue::SameObject(_) | RecordedClosedValue::Ignored => {
                let text = value_text(now.object.bind(py));
                let field = Field::Structure(Aspect::Object);
                found.add(Difference::one(&whole(), field, text, "another object".to_owned()));
                return Ok(());
            }
        };
        let new = now.models(py)?;
        let mut inner = Differences {
            py,
            differences: Vec::new(),
            fields: found.fields,
            limit: found.limit,
            old,
            new: &new,
        };
        match label {
            Some(ClosedLabel::Defaults { names, of }) => {
                let entry = |position: usize, key: Option<&AuxObject>| {
                    let name = match key {
                        Some(key) => key.object().bind(py).to_string(),
                        None => names.get(position).cloned().unwrap_or_default(),
                    };
                    format!("{name}'s default{of}")
                };
                structure.tree.compare_entries(py, &now.structure.tree, &whole, &entry, &mut inner)?;
            }
            Some(ClosedLabel::Whole(_)) | None => {
                structure.tree.compare_values(py, &now.structure.tree, &whole, &mut inner)?;
            }
        }
        let (differences, fields) = (inner.differences, inner.fields);
        found.differences.extend(differences);
        found.fields = fields;
        Ok(())
    }

    fn compare_capture(&self, capture: &Capture) -> Option<Difference> {
        let Capture::Found { path, model } = capture else { return None };
        let py = self.fun.py();
        let kind = Field::Structure(Aspect::Kind);
        let old = type_text(model);
        let Ok(value) = path.read(self.fun, &self.flat.tree) else {
            return Some(Difference::one(&path.text(py), kind, old, "not there".to_owned()));
        };
        match leaf::captured_model(&value) {
            Ok(Some(now)) if leaf::same_model(&now, model) => None,
            Ok(Some(now)) => Some(Difference {
                path: path.text(py),
                fields: fields(model, &now),
                old,
                new: type_text(&now),
            }),
            Ok(None) | Err(_) => {
                Some(Difference::one(&path.text(py), kind, old, guards::describe_value(&value)))
            }
        }
    }
}

fn checks_text(checks: Checks) -> String {
    let names: Vec<&str> = [(checks.nan, "\"nan\""), (checks.inf, "\"inf\""), (checks.index, "\"index\"")]
        .iter()
        .filter(|(on, _)| *on)
        .map(|(_, name)| *name)
        .collect();
    if names.is_empty() { "none".to_owned() } else { names.join(" and ") }
}

/// How often each field of each path caused a version. A warning is issued once when this is too often.
#[derive(Default)]
pub(super) struct RecompileStorm {
    state: Mutex<StormCounts>,
}

#[derive(Default)]
struct StormCounts {
    by_subject: FxHashMap<(Field, String), u32>,
    is_reported: bool,
}

impl RecompileStorm {
    fn lock(&self) -> MutexGuard<'_, StormCounts> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a version. Returns the text of a warning, once, where one field has caused too many versions.
    pub(super) fn note(&self, fun: &str, reason: &Reason) -> Option<String> {
        let mut counts = self.lock();
        if counts.is_reported {
            return None;
        }
        for difference in &reason.differences {
            for field in &difference.fields {
                // A number and a tensor at one path cause only two versions.
                if *field == Field::Number {
                    continue;
                }
                let count = counts.by_subject.entry((*field, difference.path.clone())).or_default();
                *count += 1;
                let count = *count;
                if count > STORM {
                    counts.is_reported = true;
                    counts.by_subject = FxHashMap::default();
                    let subject = format!("{}{}", field.text(), difference.path);
                    return Some(format!(
                        "jit: {fun} was compiled {count} times because of {subject}, last when {}; {}",
                        reason.text(),
                        field.advice()
                    ));
                }
            }
        }
        None
    }

    /// Forgets the counts. A warning that was issued is not issued again.
    pub(super) fn clear(&self) {
        self.lock().by_subject.clear();
    }
}
