//! The part of JSON (RFC 8259) that headers of safetensors files use: objects, strings, lists of integers.
//! Values of other kinds are skipped where allowed.

use super::malformed;
use crate::error::{Error, Result};

/// The maximum nesting depth of skipped values.
const MAX_DEPTH: usize = 64;

/// A position in a text.
pub(super) struct Json<'a> {
    op: &'static str,
    text: &'a str,
    at: usize,
}

impl<'a> Json<'a> {
    pub(super) fn new(op: &'static str, text: &'a str) -> Json<'a> {
        Json { op, text, at: 0 }
    }

    pub(super) fn refuse(&self, problem: impl std::fmt::Display) -> Error {
        let problem = format!("byte {} of the header: {problem}", self.at);
        malformed(self.op, problem, "it must be JSON as safetensors writes it; the file is damaged")
    }

    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')).count();
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn accept(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    pub(super) fn expect(&mut self, byte: u8) -> Result<()> {
        if self.accept(byte) {
            return Ok(());
        }
        Err(self.refuse(format!("{:?} is missing", char::from(byte))))
    }

    /// Whether only white space is left.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// Reads an object: calls `entry` with each key; `entry` reads the value.
    pub(super) fn object(&mut self, mut entry: impl FnMut(&mut Self, String) -> Result<()>) -> Result<()> {
        self.expect(b'{')?;
        if self.accept(b'}') {
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.expect(b':')?;
            entry(self, key)?;
            if !self.accept(b',') {
                return self.expect(b'}');
            }
        }
    }

    /// A list of integers of at least 0.
    pub(super) fn sizes(&mut self) -> Result<Vec<usize>> {
        let mut sizes = Vec::new();
        self.expect(b'[')?;
        if self.accept(b']') {
            return Ok(sizes);
        }
        loop {
            self.peek();
            let rest = &self.text[self.at..];
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let Ok(size) = rest[..digits].parse() else {
                return Err(self.refuse("there is no integer that fits"));
            };
            self.at += digits;
            sizes.push(size);
            if !self.accept(b',') {
                self.expect(b']')?;
                return Ok(sizes);
            }
        }
    }

    pub(super) fn string(&mut self) -> Result<String> {
        self.expect(b'"')?;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(plain) = rest.find(['"', '\\']) else {
                return Err(self.refuse("a string does not end"));
            };
            if rest[..plain].bytes().any(|byte| byte < 0x20) {
                return Err(self.refuse("a string has a control character"));
            }
            out.push_str(&rest[..plain]);
            self.at += plain + 1;
            if rest.as_bytes()[plain] == b'"' {
                return Ok(out);
            }
            out.push(self.escape()?);
        }
    }

    /// The escape sequence after a backslash.
    fn escape(&mut self) -> Result<char> {
        let Some(&byte) = self.text.as_bytes().get(self.at) else {
            return Err(self.refuse("a string does not end"));
        };
        self.at += 1;
        Ok(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let mut code = self.hex()?;
                // Characters above U+FFFF are two surrogates; a single surrogate is no character.
                if (0xD800..0xDC00).contains(&code) && self.text[self.at..].starts_with("\\u") {
                    self.at += 2;
                    let second = self.hex()?;
                    if (0xDC00..0xE000).contains(&second) {
                        code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
                    }
                }
                char::from_u32(code).ok_or_else(|| self.refuse("an escape is no character"))?
            }
            _ => return Err(self.refuse("an escape is unknown")),
        })
    }

    fn hex(&mut self) -> Result<u32> {
        let digits =
            self.text.get(self.at..self.at + 4).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(digits) = digits else {
            return Err(self.refuse("an escape has no four digits"));
        };
        self.at += 4;
        Ok(u32::from_str_radix(digits, 16).expect("hexadecimal digits"))
    }

    /// Skips any value.
    pub(super) fn skip(&mut self, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(self.refuse("values are nested too deep"));
        }
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'{') => self.object(|json, _| json.skip(depth + 1)),
            Some(b'[') => {
                self.expect(b'[')?;
                if self.accept(b']') {
                    return Ok(());
                }
                loop {
                    self.skip(depth + 1)?;
                    if !self.accept(b',') {
                        return self.expect(b']');
                    }
                }
            }
            _ => {
                let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
                let length = self.text[self.at..].bytes().take_while(|byte| is_word(byte)).count();
                let word = &self.text[self.at..self.at + length];
                if !matches!(word, "true" | "false" | "null") && word.parse::<f64>().is_err() {
                    return Err(self.refuse("there is no value"));
                }
                self.at += length;
                Ok(())
            }
        }
    }
}

/// A JSON string literal.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            control if u32::from(control) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            plain => out.push(plain),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_as_they_are_written() {
        for text in ["", "plain", "a\"b\\c", "line\nfeed\u{1}", "\u{1F600} and ä"] {
            assert_eq!(Json::new("load", &quoted(text)).string().unwrap(), text);
        }
        assert_eq!(Json::new("load", r#""\ud83d\ude00\/\u00e4""#).string().unwrap(), "\u{1F600}/ä");
        for bad in ["\"", "\"\\", "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\n\""] {
            assert!(Json::new("load", bad).string().is_err(), "{bad}");
        }
    }

    #[test]
    fn other_values_are_skipped() {
        for text in ["null", "-1.5e3", "[1, [2], {\"a\": true}]", "{}", "[]", "\"text\""] {
            let mut json = Json::new("load", text);
            json.skip(0).unwrap();
            assert!(json.is_at_end(), "{text}");
        }
        for bad in ["", "nul", "[1", "{\"a\"}", "[1,]", &"[".repeat(100_000)] {
            assert!(Json::new("load", bad).skip(0).is_err());
        }
    }
}
