//! Equations: the indices of each operand and of the result.

use crate::error::{Error, ErrorKind, Result};
use crate::shape::TensorType;

/// The most distinct indices of an equation: sets of them are the bits of a `u128`.
const MOST_INDICES: usize = u128::BITS as usize;

/// The axes of operands and of the result, as numbers of indices.
pub(super) struct Equation {
    /// For each operand the index of each axis.
    pub(super) terms: Vec<Vec<usize>>,
    /// The index of each axis of the result.
    pub(super) output: Vec<usize>,
    /// The size of each index.
    pub(super) sizes: Vec<usize>,
}

impl Equation {
    /// Finds the size of each index.
    ///
    /// # Errors
    /// Sizes of one index that differ. Size 1 meets every size, except on two axes of one operand.
    pub(super) fn new(
        op: &'static str,
        types: &[TensorType],
        terms: Vec<Vec<usize>>,
        output: Vec<usize>,
    ) -> Result<Equation> {
        let count = terms.iter().flatten().map(|&index| index + 1).max().unwrap_or(0);
        let mut axes: Vec<Option<(usize, usize)>> = vec![None; count];
        for (operand, term) in terms.iter().enumerate() {
            for (axis, &index) in term.iter().enumerate() {
                let size = types[operand].shape.sizes()[axis];
                let own = term.iter().position(|&other| other == index).unwrap_or(axis);
                let conflict = match axes[index] {
                    _ if types[operand].shape.sizes()[own] != size => Some((operand, own)),
                    Some((other, at)) if size != 1 => {
                        let known = types[other].shape.sizes()[at];
                        (known != 1 && known != size).then_some((other, at))
                    }
                    Some(_) | None => None,
                };
                if let Some((other, left_axis)) = conflict {
                    let (left, right, right_axis) = (types[other].clone(), types[operand].clone(), axis);
                    let what = "paired";
                    return Err(ErrorKind::DotSizes { op, left, left_axis, right, right_axis, what }.into());
                }
                if size != 1 || axes[index].is_none() {
                    axes[index] = Some((operand, axis));
                }
            }
        }
        let size =
            |place: &Option<(usize, usize)>| place.map_or(1, |(at, axis)| types[at].shape.sizes()[axis]);
        let sizes = axes.iter().map(size).collect();
        Ok(Equation { terms, output, sizes })
    }
}

/// The indices of one operand or of the result.
#[derive(Default)]
struct Term {
    letters: Vec<char>,
    /// The number of letters before `...`.
    ellipsis: Option<usize>,
}

/// One index.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Index {
    Letter(char),
    /// An axis that `...` stands for, counted from the last one.
    Unwritten(usize),
}

fn refused(equation: &str, required: impl Into<String>) -> Error {
    let (op, option, given) = ("einsum", "equation", format!("\"{equation}\""));
    ErrorKind::OptionValue { op, option, given, required: required.into() }.into()
}

/// The term of an equation's part.
fn term(equation: &str, part: &str) -> Result<Term> {
    let mut term = Term::default();
    let mut left = part;
    while let Some(first) = left.chars().next() {
        if let Some(after) = left.strip_prefix("...") {
            if term.ellipsis.is_some() {
                return Err(refused(equation, "an equation with at most one \"...\" for each operand"));
            }
            term.ellipsis = Some(term.letters.len());
            left = after;
            continue;
        }
        if first.is_ascii_alphabetic() {
            term.letters.push(first);
        } else if first != ' ' {
            let allowed = "letters, \"...\", \",\", spaces and one \"->\"";
            return Err(refused(equation, format!("an equation of {allowed}; {first:?} is none of these")));
        }
        left = &left[first.len_utf8()..];
    }
    Ok(term)
}

/// The indices of a term for an operand of this rank, or with this number of axes for `...`.
fn indices(term: &Term, unwritten: usize) -> Vec<Index> {
    let at = term.ellipsis.unwrap_or(term.letters.len());
    let letter = |&letter: &char| Index::Letter(letter);
    let before = term.letters[..at].iter().map(letter);
    let between = (0..unwritten).rev().map(Index::Unwritten);
    before.chain(between).chain(term.letters[at..].iter().map(letter)).collect()
}

/// Reads an equation for operands of these types.
///
/// # Errors
/// Other characters than those of equations, another number of terms than operands, terms that do not have the rank of
/// their operand, an index of the result that no operand has or that stands twice, axes of `...` that the result does
/// not have, and sizes that do not fit.
pub(super) fn parse(equation: &str, types: &[TensorType]) -> Result<Equation> {
    let (inputs, output) = match equation.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (equation, None),
    };
    let terms = inputs.split(',').map(|part| term(equation, part)).collect::<Result<Vec<_>>>()?;
    if types.is_empty() {
        return Err(ErrorKind::NoTensors { op: "einsum" }.into());
    }
    if terms.len() != types.len() {
        let (given, required) = (terms.len(), types.len());
        let required =
            format!("an equation for the operands, of which there are {required}; it is for {given}");
        return Err(refused(equation, required));
    }
    let mut widest = 0;
    let mut known: Vec<Index> = Vec::new();
    let mut number = |index: Index| match known.iter().position(|&other| other == index) {
        Some(at) => at,
        None => {
            known.push(index);
            known.len() - 1
        }
    };
    let mut numbered = Vec::with_capacity(terms.len());
    for (at, (term, ty)) in terms.iter().zip(types).enumerate() {
        let (rank, letters) = (ty.shape.rank(), term.letters.len());
        if rank < letters || (rank > letters && term.ellipsis.is_none()) {
            let hint = if rank > letters { "; write \"...\" for the others" } else { "" };
            let required = format!("an equation with an index for each axis of operand {at}, {ty}{hint}");
            return Err(refused(equation, required));
        }
        widest = widest.max(rank - letters);
        numbered.push(indices(term, rank - letters).into_iter().map(&mut number).collect::<Vec<usize>>());
    }
    let output = match output {
        Some(part) => {
            let output = term(equation, part)?;
            if widest > 0 && output.ellipsis.is_none() {
                return Err(refused(
                    equation,
                    "an equation whose result has \"...\", because operands have axes for it; sum over these before",
                ));
            }
            output
        }
        None => {
            let every = || terms.iter().flat_map(|term| &term.letters);
            let mut once: Vec<char> = every()
                .copied()
                .filter(|letter| every().filter(|other| *other == letter).count() == 1)
                .collect();
            once.sort_unstable();
            Term { letters: once, ellipsis: Some(0) }
        }
    };
    for (at, letter) in output.letters.iter().enumerate() {
        if !terms.iter().any(|term| term.letters.contains(letter)) {
            let required =
                format!("an equation whose result has indices of the operands; none has \"{letter}\"");
            return Err(refused(equation, required));
        }
        if output.letters[..at].contains(letter) {
            let required =
                format!("an equation whose result has each index once; \"{letter}\" stands there twice");
            return Err(refused(equation, required));
        }
    }
    let output = indices(&output, widest).into_iter().map(&mut number).collect();
    if known.len() > MOST_INDICES {
        return Err(refused(equation, format!("an equation with at most {MOST_INDICES} indices")));
    }
    Equation::new("einsum", types, numbered, output)
}
