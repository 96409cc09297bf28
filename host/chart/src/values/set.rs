//! The grammar of `--set` and its relatives: `a.b[0].c=value,d={x,y}`.

use serde_json::{Map, Value};

use super::Values;

/// Largest index of a list; Helm's limit.
const MAX_INDEX: usize = 65_536;
/// Most dots in a name; Helm's limit.
const MAX_NESTING: usize = 30;

/// Why a line cannot be read. The texts are Helm's where it has one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// `a` or `a,b=1`.
    #[error("key {0:?} has no value")]
    NoValue(String),
    /// `a,`.
    #[error("key {0:?} has no value (cannot end with ,)")]
    EndsWithComma(String),
    /// `a.=1`.
    #[error("key map {0:?} has no value")]
    EmptyMap(String),
    /// `a={x`.
    #[error("list must terminate with '}}'")]
    OpenList,
    /// `a[x]=1`.
    #[error("error parsing index: {0:?} is no number")]
    Index(String),
    /// `a[99999999]=1`.
    #[error("index of {0} is greater than maximum supported index of {MAX_INDEX}")]
    IndexTooLarge(usize),
    /// `a[0]b=1`.
    #[error("unexpected data at end of array index: {0:?}")]
    AfterIndex(String),
    /// More dots than [`MAX_NESTING`].
    #[error("value name nested level is greater than maximum supported nested level of {MAX_NESTING}")]
    TooDeep,
    /// `a=1,a.b=2`.
    #[error("unable to parse key: {0:?} holds another kind of value")]
    Mismatch(String),
    /// A value of `--set-json` that is no JSON.
    #[error("the value of {key:?} is no JSON: {problem}")]
    Json {
        /// The key before the `=`.
        key: String,
        /// In the reader's words.
        problem: String,
    },
}

/// Sets what a `--set` line says: `true`, `false`, `null` and integers are typed, all else is text.
///
/// # Errors
/// When the line has another grammar; what stood before the fault is set.
pub fn set(line: &str, values: &mut Values) -> Result<(), SetError> {
    Parser::new(line, Mode::Typed(&mut |text| typed(&text))).run(values)
}

/// As [`set`] with every value a text.
///
/// # Errors
/// When the line has another grammar.
pub fn set_string(line: &str, values: &mut Values) -> Result<(), SetError> {
    Parser::new(line, Mode::Typed(&mut Value::String)).run(values)
}

/// As [`set`] where every value names a file, whose content `read` gives.
///
/// # Errors
/// When the line has another grammar.
pub fn set_file(line: &str, read: &dyn Fn(&str) -> String, values: &mut Values) -> Result<(), SetError> {
    Parser::new(line, Mode::Typed(&mut |path| Value::String(read(&path)))).run(values)
}

/// As [`set`] where every value is JSON; no value is null, and every number is a float.
///
/// # Errors
/// When the line has another grammar or a value is no JSON.
pub fn set_json(line: &str, values: &mut Values) -> Result<(), SetError> {
    Parser::new(line, Mode::Json).run(values)
}

/// Sets one key to all that follows its `=`, whatever is in it.
///
/// # Errors
/// When there is no `=`, or the key has another grammar.
pub fn set_literal(line: &str, values: &mut Values) -> Result<(), SetError> {
    Parser::new(line, Mode::Literal).run(values)
}

enum Mode<'a> {
    Typed(&'a mut dyn FnMut(String) -> Value),
    Json,
    Literal,
}

struct Parser<'a> {
    rest: &'a str,
    mode: Mode<'a>,
}

impl<'a> Parser<'a> {
    fn new(line: &'a str, mode: Mode<'a>) -> Self {
        Self { rest: line, mode }
    }

    fn run(mut self, values: &mut Values) -> Result<(), SetError> {
        while !self.rest.is_empty() {
            self.key(values, 0)?;
        }
        Ok(())
    }

    fn key(&mut self, table: &mut Values, depth: usize) -> Result<(), SetError> {
        let stops: &[char] = if self.is_literal() { &['=', '[', '.'] } else { &['=', '[', ',', '.'] };
        let (key, stop) = self.until(stops);
        match stop {
            None if key.is_empty() => Ok(()),
            None => Err(SetError::NoValue(key)),
            Some('[') => self.list(table, key, depth),
            Some('=') => {
                let value = self.value(&key)?;
                put(table, key, value);
                Ok(())
            }
            Some('.') => self.nested(table, key, depth),
            Some(_) => {
                put(table, key.clone(), Value::from(""));
                Err(SetError::EndsWithComma(key))
            }
        }
    }

    fn nested(&mut self, table: &mut Values, key: String, depth: usize) -> Result<(), SetError> {
        if depth + 1 > MAX_NESTING {
            return Err(SetError::TooDeep);
        }
        let mut inner = match table.remove(&key) {
            None => Map::new(),
            Some(Value::Object(inner)) => inner,
            Some(other) => {
                table.insert(key.clone(), other);
                return Err(SetError::Mismatch(key));
            }
        };
        let result = self.key(&mut inner, depth + 1);
        if inner.is_empty() {
            return result.and(Err(SetError::EmptyMap(key)));
        }
        put(table, key, Value::Object(inner));
        result
    }

    fn list(&mut self, table: &mut Values, key: String, depth: usize) -> Result<(), SetError> {
        let index = self.index()?;
        let list = match table.remove(&key) {
            None => Vec::new(),
            Some(Value::Array(list)) => list,
            Some(other) => {
                table.insert(key.clone(), other);
                return Err(SetError::Mismatch(key));
            }
        };
        let (list, result) = self.item(list, index, &key, depth);
        put(table, key, Value::Array(list));
        result
    }

    /// The list with the item set, and the list as it was when it cannot be.
    fn item(
        &mut self,
        mut list: Vec<Value>,
        index: usize,
        key: &str,
        depth: usize,
    ) -> (Vec<Value>, Result<(), SetError>) {
        let old = list.get_mut(index).map(Value::take);
        match self.item_value(old.clone().unwrap_or_default(), key, depth) {
            Ok(value) => {
                if list.len() <= index {
                    list.resize(index + 1, Value::Null);
                }
                if let Some(slot) = list.get_mut(index) {
                    *slot = value;
                }
                (list, Ok(()))
            }
            Err(error) => {
                if let (Some(slot), Some(old)) = (list.get_mut(index), old) {
                    *slot = old;
                }
                (list, Err(error))
            }
        }
    }

    fn item_value(&mut self, old: Value, key: &str, depth: usize) -> Result<Value, SetError> {
        let (text, stop) = self.until(&['[', '.', '=']);
        if !text.is_empty() {
            return Err(SetError::AfterIndex(text));
        }
        match stop {
            Some('=') => self.value(key),
            Some('[') => {
                let index = self.index()?;
                let inner = match old {
                    Value::Array(inner) => inner,
                    Value::Null => Vec::new(),
                    _ => return Err(SetError::Mismatch(key.to_owned())),
                };
                let (list, result) = self.item(inner, index, key, depth + 1);
                result.map(|()| Value::Array(list))
            }
            Some(_) => {
                let mut inner = if let Value::Object(inner) = old { inner } else { Map::new() };
                if depth + 1 > MAX_NESTING {
                    return Err(SetError::TooDeep);
                }
                self.key(&mut inner, depth + 1)?;
                Ok(Value::Object(inner))
            }
            None => Err(SetError::NoValue(key.to_owned())),
        }
    }

    fn index(&mut self) -> Result<usize, SetError> {
        let (text, stop) = self.until(&[']']);
        let index: usize =
            text.parse().ok().filter(|_| stop.is_some()).ok_or_else(|| SetError::Index(text.clone()))?;
        if index > MAX_INDEX { Err(SetError::IndexTooLarge(index)) } else { Ok(index) }
    }

    fn value(&mut self, key: &str) -> Result<Value, SetError> {
        match &mut self.mode {
            Mode::Literal => Ok(Value::from(std::mem::take(&mut self.rest))),
            Mode::Json => self.json(key),
            Mode::Typed(_) => match self.rest.strip_prefix('{') {
                Some(rest) => {
                    self.rest = rest;
                    self.braces()
                }
                None if self.rest.is_empty() => Ok(Value::from("")),
                None => {
                    let (text, _) = self.until(&[',']);
                    Ok(self.typed(text))
                }
            },
        }
    }

    fn braces(&mut self) -> Result<Value, SetError> {
        let mut list = Vec::new();
        loop {
            let (text, stop) = self.until(&[',', '}']);
            let end = match stop {
                None => return Err(SetError::OpenList),
                Some(stop) => stop == '}',
            };
            list.push(self.typed(text));
            if end {
                self.rest = self.rest.strip_prefix(',').unwrap_or(self.rest);
                return Ok(Value::Array(list));
            }
        }
    }

    fn json(&mut self, key: &str) -> Result<Value, SetError> {
        if self.skip_to_value() {
            return Ok(Value::Null);
        }
        let mut stream = serde_json::Deserializer::from_str(self.rest).into_iter::<Value>();
        let value = match stream.next() {
            Some(Ok(value)) => value,
            Some(Err(error)) => {
                return Err(SetError::Json { key: key.to_owned(), problem: error.to_string() });
            }
            None => Value::Null,
        };
        self.rest = self.rest.get(stream.byte_offset()..).unwrap_or_default();
        self.skip_to_value();
        Ok(crate::yaml::floats(value))
    }

    /// Skips blanks, and a comma after them; true when there was a comma or the end.
    fn skip_to_value(&mut self) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(',') {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => self.rest.is_empty(),
        }
    }

    fn typed(&mut self, text: String) -> Value {
        match &mut self.mode {
            Mode::Typed(make) => make(text),
            Mode::Json | Mode::Literal => Value::String(text),
        }
    }

    /// The text up to one of `stops`, which is consumed; a `\` takes the next character as it is.
    fn until(&mut self, stops: &[char]) -> (String, Option<char>) {
        let mut text = String::new();
        let mut chars = self.rest.chars();
        while let Some(next) = chars.next() {
            if stops.contains(&next) {
                self.rest = chars.as_str();
                return (text, Some(next));
            }
            if next == '\\' && !self.is_literal() {
                text.extend(chars.next());
            } else {
                text.push(next);
            }
        }
        self.rest = "";
        (text, None)
    }

    fn is_literal(&self) -> bool {
        matches!(self.mode, Mode::Literal)
    }
}

fn put(table: &mut Values, key: String, value: Value) {
    if !key.is_empty() {
        table.insert(key, value);
    }
}

fn typed(text: &str) -> Value {
    if text.eq_ignore_ascii_case("true") {
        Value::Bool(true)
    } else if text.eq_ignore_ascii_case("false") {
        Value::Bool(false)
    } else if text.eq_ignore_ascii_case("null") {
        Value::Null
    } else if text == "0" {
        Value::from(0)
    } else if text.starts_with('0') {
        Value::from(text)
    } else {
        text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    type Set = fn(&str, &mut Values) -> Result<(), SetError>;

    #[track_caller]
    fn check(set: Set, line: &str, expected: Value) {
        let mut values = Values::new();
        set(line, &mut values).unwrap();
        assert_eq!(Value::Object(values), expected, "{line}");
    }

    #[test]
    fn lines_of_set_are_read_as_helm_reads_them() {
        for (line, expected) in [
            ("a=1", json!({"a": 1})),
            ("a=1,b=two,c=", json!({"a": 1, "b": "two", "c": ""})),
            (
                "a=true,b=FALSE,c=Null,d=0,e=007,f=1.5,g=-3",
                json!({"a": true, "b": false, "c": null, "d": 0, "e": "007", "f": "1.5", "g": -3}),
            ),
            ("a.b.c=x", json!({"a": {"b": {"c": "x"}}})),
            ("a.b=1,a.c=2", json!({"a": {"b": 1, "c": 2}})),
            ("a={x,1,true}", json!({"a": ["x", 1, true]})),
            ("a={x},b=1", json!({"a": ["x"], "b": 1})),
            ("a={}", json!({"a": [""]})),
            ("a[0]=x,a[2]=y", json!({"a": ["x", null, "y"]})),
            ("a[0].b=1,a[0].c=2", json!({"a": [{"b": 1, "c": 2}]})),
            ("a[1][0]=z", json!({"a": [null, ["z"]]})),
            ("a\\.b=1", json!({"a.b": 1})),
            ("a=b\\,c", json!({"a": "b,c"})),
            ("a=b=c", json!({"a": "b=c"})),
            ("a.b[0]={x,y}", json!({"a": {"b": [["x", "y"]]}})),
            ("", json!({})),
            ("a=9223372036854775808", json!({"a": "9223372036854775808"})),
            ("a=é,ü=ß", json!({"a": "é", "ü": "ß"})),
        ] {
            check(set, line, expected);
        }
        check(set_string, "a=1,b=true,c={0,null}", json!({"a": "1", "b": "true", "c": ["0", "null"]}));
        check(set_literal, "a.b=x,{y}=\\z", json!({"a": {"b": "x,{y}=\\z"}}));
        check(set_literal, "a[1].b=,", json!({"a": [null, {"b": ","}]}));
    }

    #[test]
    fn json_values_are_typed_by_themselves() {
        check(
            set_json,
            "a={\"b\":[1,2]},c=\"x\",d=,e=null",
            json!({"a": {"b": [1.0, 2.0]}, "c": "x", "d": null, "e": null}),
        );
        check(set_json, "a[0].b= {\"x\": 1.5} ,c=true", json!({"a": [{"b": {"x": 1.5}}], "c": true}));
        let error = set_json("a={x}", &mut Values::new()).unwrap_err();
        assert!(matches!(error, SetError::Json { key, .. } if key == "a"));
    }

    #[test]
    fn files_are_given_by_the_caller() {
        let mut values = Values::new();
        set_file("a=one.txt,b.c=two.txt", &|path| format!("<{path}>"), &mut values).unwrap();
        assert_eq!(Value::Object(values), json!({"a": "<one.txt>", "b": {"c": "<two.txt>"}}));
    }

    #[test]
    fn what_was_set_before_stays() {
        let mut values = json!({"a": {"b": 1}, "l": [1, 2]}).as_object().unwrap().clone();
        set("a.c=2,l[1]=9,l[2]=3", &mut values).unwrap();
        assert_eq!(Value::Object(values), json!({"a": {"b": 1, "c": 2}, "l": [1, 9, 3]}));
    }

    #[test]
    fn faults_are_named() {
        for (line, error) in [
            ("a", SetError::NoValue("a".into())),
            ("a,b=1", SetError::EndsWithComma("a".into())),
            ("a={x", SetError::OpenList),
            ("a[x]=1", SetError::Index("x".into())),
            ("a[-1]=1", SetError::Index("-1".into())),
            ("a[65537]=1", SetError::IndexTooLarge(65_537)),
            ("a[0]b=1", SetError::AfterIndex("b".into())),
            ("a=1,a.b=2", SetError::Mismatch("a".into())),
            ("a=1,a[0]=2", SetError::Mismatch("a".into())),
            ("a.=1", SetError::EmptyMap("a".into())),
        ] {
            assert_eq!(set(line, &mut Values::new()).unwrap_err(), error, "{line}");
        }
        let deep = format!("{}a=1", "a.".repeat(31));
        assert_eq!(set(&deep, &mut Values::new()).unwrap_err(), SetError::TooDeep);
        assert!(set(&format!("{}a=1", "a.".repeat(30)), &mut Values::new()).is_ok());
    }
}
