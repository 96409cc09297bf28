//! JSON as Go's `encoding/json` reads it, with its texts for what is wrong.

use std::sync::Arc;

use minijinja::Value;

use crate::value::{Entries, list_value, map_value, nil};

/// Nesting that is still read. Go allows 10,000; printing a value ends at 1,000.
const MAX_DEPTH: usize = 900;

/// A text that is not JSON, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReadError(String);

/// The value of a JSON text; all numbers are `float64`.
///
/// # Errors
/// When the text is not JSON.
pub fn from_json(text: &[u8]) -> Result<Value, ReadError> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    match reader.peek_token() {
        None => Ok(value),
        Some(byte) => Err(unexpected(byte, "after top-level value")),
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

fn unexpected(byte: u8, context: &str) -> ReadError {
    ReadError(format!("invalid character {} {context}", quoted(byte)))
}

fn end() -> ReadError {
    ReadError("unexpected end of JSON input".to_owned())
}

/// A byte as Go quotes it: bytes beyond ASCII are Latin-1.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        7 => r"'\a'".to_owned(),
        8 => r"'\b'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        11 => r"'\v'".to_owned(),
        12 => r"'\f'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        0..=0x1f | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..=0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Result<u8, ReadError> {
        let byte = self.peek().ok_or_else(end)?;
        self.at += 1;
        Ok(byte)
    }

    /// The next byte that is no space, not taken.
    fn peek_token(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
        self.peek()
    }

    fn value(&mut self, depth: usize) -> Result<Value, ReadError> {
        match self.peek_token().ok_or_else(end)? {
            b'{' | b'[' if depth >= MAX_DEPTH => Err(ReadError("exceeded max depth".to_owned())),
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => Ok(Value::from(self.string()?)),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.literal("true", Value::from(true)),
            b'f' => self.literal("false", Value::from(false)),
            b'n' => self.literal("null", nil()),
            byte => Err(unexpected(byte, "looking for beginning of value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, ReadError> {
        self.at += 1;
        let mut entries = Entries::new();
        let mut first = true;
        loop {
            match self.peek_token().ok_or_else(end)? {
                b'}' if first => break,
                b'"' => {}
                byte => {
                    return Err(unexpected(byte, "looking for beginning of object key string"));
                }
            }
            let key: Arc<str> = self.string()?.into();
            match self.peek_token().ok_or_else(end)? {
                b':' => self.at += 1,
                byte => return Err(unexpected(byte, "after object key")),
            }
            entries.insert(key, self.value(depth + 1)?);
            first = false;
            match self.peek_token().ok_or_else(end)? {
                b',' => self.at += 1,
                b'}' => break,
                byte => return Err(unexpected(byte, "after object key:value pair")),
            }
        }
        self.at += 1;
        Ok(map_value(entries))
    }

    fn array(&mut self, depth: usize) -> Result<Value, ReadError> {
        self.at += 1;
        let mut items = Vec::new();
        if self.peek_token() == Some(b']') {
            self.at += 1;
            return Ok(list_value(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            match self.peek_token().ok_or_else(end)? {
                b',' => self.at += 1,
                b']' => break,
                byte => return Err(unexpected(byte, "after array element")),
            }
        }
        self.at += 1;
        Ok(list_value(items))
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Value, ReadError> {
        for (index, expected) in word.bytes().enumerate() {
            let byte = self.next()?;
            if byte != expected {
                let known = word.get(..index).unwrap_or_default();
                let context = match known {
                    "" => "looking for beginning of value".to_owned(),
                    _ => format!("in literal {word} (expecting '{}')", char::from(expected)),
                };
                return Err(unexpected(byte, &context));
            }
        }
        Ok(value)
    }

    fn number(&mut self) -> Result<Value, ReadError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.digit("in numeric literal")? != b'0' {
            self.digits();
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digit("after decimal point in numeric literal")?;
            self.digits();
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digit("in exponent of numeric literal")?;
            self.digits();
        }
        let text = String::from_utf8_lossy(self.text.get(start..self.at).unwrap_or_default());
        match text.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Value::from(float)),
            _ => {
                Err(ReadError(format!("json: cannot unmarshal number {text} into Go value of type float64")))
            }
        }
    }

    fn digit(&mut self, context: &str) -> Result<u8, ReadError> {
        match self.next()? {
            byte @ b'0'..=b'9' => Ok(byte),
            byte => Err(unexpected(byte, context)),
        }
    }

    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
    }

    fn string(&mut self) -> Result<String, ReadError> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            match self.next()? {
                b'"' => break,
                b'\\' => self.escape(&mut out)?,
                byte @ 0..=0x1f => return Err(unexpected(byte, "in string literal")),
                byte => out.push(byte),
            }
        }
        Ok(super::json::lossy(&out).into_owned())
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), ReadError> {
        let byte = match self.next()? {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            byte @ (b'"' | b'\\' | b'/') => byte,
            b'u' => {
                let c = self.unicode()?;
                out.extend(c.encode_utf8(&mut [0; 4]).bytes());
                return Ok(());
            }
            byte => return Err(unexpected(byte, "in string escape code")),
        };
        out.push(byte);
        Ok(())
    }

    fn unicode(&mut self) -> Result<char, ReadError> {
        let high = self.hex()?;
        if let Some(c) = char::from_u32(high) {
            return Ok(c);
        }
        let after = self.at;
        if (0xd800..0xdc00).contains(&high) && self.text.get(after..after + 2) == Some(b"\\u") {
            self.at += 2;
            let low = self.hex()?;
            if (0xdc00..0xe000).contains(&low) {
                let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            // Half a pair is U+FFFD, and what follows is read again on its own.
            self.at = after;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex(&mut self) -> Result<u32, ReadError> {
        let mut code = 0;
        for _ in 0..4 {
            let byte = self.next()?;
            let digit = char::from(byte).to_digit(16);
            let digit = digit.ok_or_else(|| unexpected(byte, "in \\u hexadecimal character escape"))?;
            code = code * 16 + digit;
        }
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

    use super::super::json::{Layout, to_json};
    use super::*;

    #[test]
    fn json_is_read_and_written_back() {
        let text = r#"{"a":[1,-2.5,1e+21,true,false,null],"b":{"c":"é\u2028\\"},"d":"😀"}"#;
        let value = from_json(text.as_bytes()).unwrap();
        assert_eq!(to_json(&value, Layout::default()).unwrap(), text);
        let pair = from_json(br#""\ud83d\ude00 \ud83d \ud83dx""#).unwrap();
        assert_eq!(pair.as_str(), Some("\u{1f600} \u{fffd} \u{fffd}x"));
    }

    #[test]
    fn errors_are_gos() {
        let cases = [
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("{a", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\" 1", "invalid character '1' after object key"),
            ("{\"a\":1 2", "invalid character '2' after object key:value pair"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("[1 2", "invalid character '2' after array element"),
            ("1 2", "invalid character '2' after top-level value"),
            ("01", "invalid character '1' after top-level value"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1ex", "invalid character 'x' in exponent of numeric literal"),
            ("nul!", "invalid character '!' in literal null (expecting 'l')"),
            ("\"\\x", "invalid character 'x' in string escape code"),
            ("\"\\u12g", "invalid character 'g' in \\u hexadecimal character escape"),
            ("\"a\nb\"", "invalid character '\\n' in string literal"),
            ("'a'", "invalid character '\\'' looking for beginning of value"),
            ("1e400", "json: cannot unmarshal number 1e400 into Go value of type float64"),
        ];
        for (text, expected) in cases {
            assert_eq!(from_json(text.as_bytes()).unwrap_err().to_string(), expected, "{text}");
        }
    }
}
