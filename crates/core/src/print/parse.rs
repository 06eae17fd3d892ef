//! Parses IR text into a region. Texts are not trusted: everything illegal is an error with its line.

use std::sync::Arc;

use num_complex::Complex;
use smallvec::SmallVec;

use super::text::VERSION;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::form::{self, Attr};
use crate::graph::{Graph, Value, Values};
use crate::location::Location;
use crate::op::{Op, Outputs, Padding};
use crate::region::Region;
use crate::scalar::Number;
use crate::shape::{Name, Shape, TensorType};
use crate::stack;
use crate::verify;

/// The maximum nesting depth of regions. It protects the stack from hostile texts.
const MAX_DEPTH: usize = 128;

impl Region {
    /// Parses the output of [`Region::to_text`] and of [`Region::to_text_with_locations`].
    ///
    /// # Errors
    /// `IrText` with the line: text of another form or version, unknown ops, attributes that an op does not
    /// have, values that are not computed yet, and types other than those of the op's outputs.
    pub fn from_text(text: &str) -> Result<Region> {
        Parser::new(text).program()
    }
}

/// The location in a comment, if there is one.
fn read_location(comment: &str) -> Option<Location> {
    let (file, line) = comment.trim().rsplit_once(':')?;
    Some(Location { file: file.into(), line: line.parse().ok()? })
}

pub(super) struct Parser<'t> {
    text: &'t str,
    at: usize,
    line: usize,
    depth: usize,
    /// The last skipped comment, and its line.
    comment: Option<(usize, &'t str)>,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str) -> Parser<'t> {
        Parser { text, at: 0, line: 1, depth: 0, comment: None }
    }

    /// Parses a region up to the end of the text.
    pub(super) fn program(&mut self) -> Result<Region> {
        self.word("defn-ir")?;
        self.version(VERSION)?;
        let region = self.region()?;
        match self.peek() {
            None => Ok(region),
            Some(c) => Err(self.error(format!("\"{c}\" after the end of the region"))),
        }
    }

    /// Parses the version, which must be `known`.
    pub(super) fn version(&mut self, known: u32) -> Result<()> {
        let version = self.int()?;
        if version == i128::from(known) {
            return Ok(());
        }
        Err(self.error(format!("version {version}, this build reads version {known}")))
    }

    #[cold]
    pub(super) fn error(&self, problem: String) -> Error {
        ErrorKind::IrText { line: self.line, problem }.into()
    }

    #[cold]
    fn expected(&mut self, what: &str) -> Error {
        let got = self.peek().map_or("the end".to_owned(), |c| format!("\"{}\"", c.escape_debug()));
        self.error(format!("{got}, {what} is required"))
    }

    /// The next character after spaces and comments.
    fn peek(&mut self) -> Option<char> {
        loop {
            let rest = &self.text[self.at..];
            let c = rest.chars().next()?;
            if rest.starts_with("//") {
                let end = rest.find('\n').unwrap_or(rest.len());
                self.comment = Some((self.line, &rest[2..end]));
                self.at += end;
            } else if c.is_whitespace() {
                self.line += usize::from(c == '\n');
                self.at += c.len_utf8();
            } else {
                return Some(c);
            }
        }
    }

    /// Consumes a punctuation mark if it is next.
    pub(super) fn take(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(mark);
        if found {
            self.at += mark.len_utf8();
        }
        found
    }

    fn require(&mut self, mark: char) -> Result<()> {
        if self.take(mark) { Ok(()) } else { Err(self.expected(&format!("\"{mark}\""))) }
    }

    /// The next characters that satisfy `has`.
    fn run(&mut self, has: impl Fn(char) -> bool) -> &'t str {
        self.peek();
        let rest = &self.text[self.at..];
        let end = rest.find(|c| !has(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// A word: letters, digits, `_` and `-`.
    pub(super) fn name(&mut self) -> Result<&'t str> {
        let start = self.peek().is_some_and(|c| c.is_ascii_alphabetic());
        if !start {
            return Err(self.expected("a word"));
        }
        Ok(self.run(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'))
    }

    pub(super) fn word(&mut self, word: &str) -> Result<()> {
        let got = self.name()?;
        if got == word { Ok(()) } else { Err(self.error(format!("\"{got}\", \"{word}\" is required"))) }
    }

    fn int(&mut self) -> Result<i128> {
        let digits = self.run(|c| c.is_ascii_digit() || c == '-');
        digits.parse().map_err(|_| self.error(format!("\"{digits}\", an integer is required")))
    }

    pub(super) fn index<T: TryFrom<i128>>(&mut self) -> Result<T> {
        let value = self.int()?;
        T::try_from(value).map_err(|_| self.error(format!("{value} is out of range")))
    }

    /// A name in quotes.
    fn string(&mut self) -> Result<Name> {
        self.require('"')?;
        let mut out = String::new();
        let mut chars = self.text[self.at..].char_indices();
        while let Some((offset, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += offset + 1;
                    return Ok(out.into());
                }
                '\\' => {
                    let escaped = match chars.next() {
                        Some((_, c @ ('"' | '\\'))) => Some(c),
                        Some((_, 'u')) => code_point(&mut chars),
                        Some(_) | None => None,
                    };
                    match escaped {
                        Some(c) => out.push(c),
                        None => return Err(self.error("an escape in a name is unknown".to_owned())),
                    }
                }
                c if c.is_control() => break,
                c => out.push(c),
            }
        }
        Err(self.error("a name has no closing quote on its line".to_owned()))
    }

    fn ty(&mut self) -> Result<TensorType> {
        self.peek();
        let line = self.line;
        let name = self.name()?;
        let dtype: DType = name.parse().map_err(|_| self.error(format!("\"{name}\" is no dtype")))?;
        let mut axes: Vec<(usize, Option<Name>)> = Vec::new();
        while self.take('[') {
            let name = if self.peek() == Some('"') {
                let name = self.string()?;
                self.require(':')?;
                Some(name)
            } else {
                None
            };
            axes.push((self.index()?, name));
            self.require(']')?;
        }
        TensorType::new(dtype, Shape::from_axes(axes)).map_err(|error| {
            // The search for another axis may have moved on to the next line.
            self.line = line;
            self.error(error.to_string())
        })
    }

    fn types(&mut self) -> Result<Outputs> {
        let mut types = Outputs::new();
        loop {
            types.push(self.ty()?);
            if !self.take(',') {
                return Ok(types);
            }
        }
    }

    /// The types of parameters and captures, and how many are parameters.
    pub(super) fn inputs(&mut self) -> Result<(Vec<TensorType>, usize)> {
        self.require('(')?;
        let mut inputs: Vec<TensorType> = Vec::new();
        if self.peek().is_some_and(|c| c.is_ascii_alphabetic()) {
            inputs.extend(self.types()?);
        }
        let parameters = inputs.len();
        if self.take(';') {
            inputs.extend(self.types()?);
        }
        self.require(')')?;
        Ok((inputs, parameters))
    }

    fn region(&mut self) -> Result<Region> {
        stack::require("from_text")?;
        if self.depth == MAX_DEPTH {
            return Err(self.error(format!("regions nest deeper than {MAX_DEPTH}")));
        }
        self.depth += 1;
        let (inputs, parameters) = self.inputs()?;
        self.require('{')?;
        let mut graph = Graph::new();
        while self.peek() == Some('%') {
            self.node(&mut graph, &inputs)?;
        }
        self.word("return")?;
        let results = self.values(&graph)?;
        self.require('}')?;
        self.depth -= 1;
        Ok(Region::new(graph, inputs, parameters, results))
    }

    fn node(&mut self, graph: &mut Graph, inputs: &[TensorType]) -> Result<()> {
        self.require('%')?;
        let number: usize = self.index()?;
        let line = self.line;
        if number != graph.len() {
            return Err(self.error(format!("%{number}, the next value is %{}", graph.len())));
        }
        self.require('=')?;
        let name = self.name()?;
        let operands = self.values(graph)?;
        let attributes = if self.peek() == Some('{') { self.attributes()? } else { Vec::new() };
        self.require(':')?;
        let outputs = if self.take('(') {
            self.require(')')?;
            Outputs::new()
        } else {
            self.types()?
        };
        self.peek();
        let location = self.comment.filter(|(at, _)| *at == line).and_then(|(_, text)| read_location(text));
        let mut regions = Vec::new();
        let mut labels: SmallVec<[&str; 2]> = SmallVec::new();
        while self.at_region_label() {
            labels.push(self.name()?);
            regions.push(Arc::new(self.region()?));
        }
        // Errors from here on are about the whole node: they name its first line.
        let after = std::mem::replace(&mut self.line, line);
        let op = form::build(name, &attributes, regions, &outputs)
            .map_err(|problem| self.error(format!("{name}: {problem}")))?;
        let known = form::form(&op).regions;
        if known != labels {
            let (got, own) = (labels.join(", "), known.join(", "));
            return Err(self.error(format!("{name}: the regions are {got}, they must be {own}")));
        }
        graph.set_location(location);
        self.push(graph, inputs, (op, name), &operands, &outputs)?;
        graph.set_location(None);
        self.line = after;
        Ok(())
    }

    /// Adds a node after checking everything that `infer` relies on.
    fn push(
        &self,
        graph: &mut Graph,
        inputs: &[TensorType],
        (op, name): (Op, &str),
        operands: &[Value],
        outputs: &Outputs,
    ) -> Result<()> {
        if let Op::Parameter { index, ty } = &op
            && inputs.get(*index) != Some(ty)
        {
            return Err(self.error(format!("parameter: input {index} of the region is not {ty}")));
        }
        let types: SmallVec<[&TensorType; 4]> = operands.iter().map(|&value| graph.ty(value)).collect();
        verify::operands(&op, &types).map_err(|problem| self.error(format!("{name}: {problem}")))?;
        drop(types);
        let values = graph.push(op, operands).map_err(|error| self.error(error.to_string()))?;
        let found = values.iter().map(|&value| graph.ty(value));
        if !found.clone().eq(outputs) {
            let list: Vec<String> = found.map(TensorType::to_string).collect();
            let stated: Vec<String> = outputs.iter().map(TensorType::to_string).collect();
            let (inferred, stated) = (list.join(", "), stated.join(", "));
            return Err(self.error(format!("{name}: it gives ({inferred}), the text says ({stated})")));
        }
        Ok(())
    }

    /// Whether a word other than `return` is next: the label of a region.
    fn at_region_label(&mut self) -> bool {
        let word = self.peek().is_some_and(|c| c.is_ascii_alphabetic());
        word && !self.text[self.at..].starts_with("return")
    }

    fn values(&mut self, graph: &Graph) -> Result<Values> {
        let mut values = Values::new();
        while self.take('%') {
            let node: u32 = self.index()?;
            let output: u32 = if self.take('.') { self.index()? } else { 0 };
            let known = graph.nodes().get(node as usize);
            if known.is_none_or(|known| output as usize >= known.outputs.len()) {
                return Err(self.error(format!("%{node}.{output} is no value of an earlier node")));
            }
            values.push(Value { node, output });
        }
        Ok(values)
    }

    fn attributes(&mut self) -> Result<Vec<(String, Attr)>> {
        self.require('{')?;
        let mut attributes = Vec::new();
        loop {
            let name = self.name()?.to_owned();
            self.require(':')?;
            attributes.push((name, self.attribute()?));
            if !self.take(',') {
                self.require('}')?;
                return Ok(attributes);
            }
        }
    }

    fn attribute(&mut self) -> Result<Attr> {
        match self.peek() {
            Some('"') => Ok(Attr::Text(self.string()?)),
            Some('[') => self.list(),
            Some('(') => {
                self.require('(')?;
                let re = self.float()?;
                self.require(',')?;
                let im = self.float()?;
                self.require(')')?;
                Ok(Attr::Number(Number::Complex(Complex::new(re, im))))
            }
            Some('x') => self.bytes(),
            Some(_) | None => {
                let text = self.run(is_number_or_word);
                match text {
                    "none" => Ok(Attr::None),
                    "true" => Ok(Attr::Bool(true)),
                    "false" => Ok(Attr::Bool(false)),
                    "" => Err(self.expected("an attribute")),
                    text if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') => {
                        let value =
                            text.parse().map_err(|_| self.error(format!("\"{text}\" is no integer")))?;
                        Ok(Attr::Number(Number::Int(value)))
                    }
                    text => Ok(Attr::Number(Number::Float(self.float_of(text)?))),
                }
            }
        }
    }

    fn float(&mut self) -> Result<f64> {
        let text = self.run(is_number_or_word);
        self.float_of(text)
    }

    fn float_of(&mut self, text: &str) -> Result<f64> {
        if text == "nan" {
            self.require('(')?;
            let digits = self.run(|c| c.is_ascii_alphanumeric());
            let bits = digits.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
            self.require(')')?;
            let value = bits.map(f64::from_bits).filter(|value| value.is_nan());
            return value.ok_or_else(|| self.error(format!("\"{digits}\" are not the bits of a NaN")));
        }
        text.parse().map_err(|_| self.error(format!("\"{text}\", a number is required")))
    }

    /// Integers, or triples of them.
    fn list(&mut self) -> Result<Attr> {
        self.require('[')?;
        if self.peek() == Some('(') {
            let mut config = SmallVec::new();
            while self.take('(') {
                let low = self.index()?;
                self.require(',')?;
                let high = self.index()?;
                self.require(',')?;
                config.push(Padding { low, high, interior: self.index()? });
                self.require(')')?;
                if !self.take(',') {
                    break;
                }
            }
            self.require(']')?;
            return Ok(Attr::Padding(config));
        }
        let mut values = SmallVec::new();
        while self.peek() != Some(']') {
            values.push(self.int()?);
            if !self.take(',') {
                break;
            }
        }
        self.require(']')?;
        Ok(Attr::Ints(values))
    }

    /// `x"00ff"`.
    fn bytes(&mut self) -> Result<Attr> {
        self.require('x')?;
        self.require('"')?;
        let digits = self.run(|c| c.is_ascii_hexdigit());
        let pairs = digits.as_bytes().chunks_exact(2);
        if !pairs.remainder().is_empty() || !self.take('"') {
            return Err(self.error("bytes must be pairs of hexadecimal digits in quotes".to_owned()));
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default() as u8;
        Ok(Attr::Bytes(pairs.map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()))
    }
}

fn is_number_or_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '.' || c == '-' || c == '+'
}

/// The part after `\u`: a code point in braces.
fn code_point(chars: &mut std::str::CharIndices<'_>) -> Option<char> {
    let rest = chars.as_str();
    let digits = &rest.strip_prefix('{')?[..rest.find('}')?.checked_sub(1)?];
    let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
    // The digits are ASCII, and the braces are one character each.
    for _ in 0..digits.len() + 2 {
        chars.next();
    }
    Some(c)
}
