//! The grammar of `--set` and its relatives: `a.b[0].c=value,d={x,y}`.

use serde_json::{Map, Value};

use super::Values;

/// Largest index of a list; Helm's limit.
const MAX_INDEX: usize = 65_536;
/// Most dots in a name; Helm's limit.
const MAX_NESTING: usize = 30;
/// Most lists directly inside each other. Helm has no limit here, and no stack that ends.
const MAX_LISTS: usize = 100;
const MAPPING: &str = "map[string]interface {}";
const LIST: &str = "[]interface {}";

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
    #[error("error parsing index: strconv.Atoi: parsing {0:?}: invalid syntax")]
    Index(String),
    /// `a[-1]=1`.
    #[error("negative {0} index not allowed")]
    NegativeIndex(i64),
    /// `a[99999999]=1`.
    #[error("index of {0} is greater than maximum supported index of {MAX_INDEX}")]
    IndexTooLarge(usize),
    /// `a[0]b=1`.
    #[error("unexpected data at end of array index: {}", go_letters(.0))]
    AfterIndex(String),
    /// More dots than [`MAX_NESTING`].
    #[error("value name nested level is greater than maximum supported nested level of {MAX_NESTING}")]
    TooDeep,
    /// More lists directly inside each other than [`MAX_LISTS`].
    #[error("more than {MAX_LISTS} lists inside each other")]
    TooManyLists,
    /// `a=1,a.b=2`.
    #[error("unable to parse key: interface conversion: interface {{}} is {found}, not {wanted}")]
    Mismatch {
        /// What the key holds, as Go calls it.
        found: &'static str,
        /// What it must hold.
        wanted: &'static str,
    },
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

/// Why a key was not read to its end: Go's parser takes the end of the line for the end of its work wherever it
/// meets it, also in the middle of an index.
enum Halt {
    End,
    Fault(SetError),
}

impl From<SetError> for Halt {
    fn from(error: SetError) -> Self {
        Self::Fault(error)
    }
}

/// How deep an item stands.
#[derive(Clone, Copy)]
struct Depth {
    names: usize,
    lists: usize,
}

impl<'a> Parser<'a> {
    fn new(line: &'a str, mode: Mode<'a>) -> Self {
        Self { rest: line, mode }
    }

    fn run(mut self, values: &mut Values) -> Result<(), SetError> {
        loop {
            match self.key(values, 0) {
                Ok(()) => {}
                Err(Halt::End) => return Ok(()),
                Err(Halt::Fault(error)) => return Err(error),
            }
        }
    }

    fn key(&mut self, table: &mut Values, depth: usize) -> Result<(), Halt> {
        let stops: &[char] = if self.is_literal() { &['=', '[', '.'] } else { &['=', '[', ',', '.'] };
        let (key, stop) = self.until(stops);
        match stop {
            None if key.is_empty() => Err(Halt::End),
            None => Err(SetError::NoValue(key).into()),
            Some('[') => self.list(table, key, depth),
            Some('=') => {
                let is_last = self.rest.is_empty() && matches!(self.mode, Mode::Typed(_));
                let value = self.value(&key)?;
                put(table, key, value);
                if is_last { Err(Halt::End) } else { Ok(()) }
            }
            Some('.') => self.nested(table, key, depth),
            Some(_) => {
                put(table, key.clone(), Value::from(""));
                Err(SetError::EndsWithComma(key).into())
            }
        }
    }

    fn nested(&mut self, table: &mut Values, key: String, depth: usize) -> Result<(), Halt> {
        if depth + 1 > MAX_NESTING {
            return Err(SetError::TooDeep.into());
        }
        let mut inner = match table.remove(&key) {
            None => Map::new(),
            Some(Value::Object(inner)) => inner,
            Some(other) => {
                let mismatch = SetError::Mismatch { found: go_type(&other), wanted: MAPPING };
                table.insert(key, other);
                return Err(mismatch.into());
            }
        };
        let result = self.key(&mut inner, depth + 1);
        if inner.is_empty() {
            return result.and(Err(SetError::EmptyMap(key).into()));
        }
        put(table, key, Value::Object(inner));
        result
    }

    fn list(&mut self, table: &mut Values, key: String, depth: usize) -> Result<(), Halt> {
        let index = self.index()?;
        let list = match table.remove(&key) {
            None => Vec::new(),
            Some(Value::Array(list)) => list,
            Some(other) => {
                let mismatch = SetError::Mismatch { found: go_type(&other), wanted: LIST };
                table.insert(key, other);
                return Err(mismatch.into());
            }
        };
        let (list, result) = self.item(list, index, &key, Depth { names: depth, lists: 0 });
        put(table, key, Value::Array(list));
        result
    }

    /// The list with the item set, and the list as it was when it cannot be.
    fn item(
        &mut self,
        mut list: Vec<Value>,
        index: i64,
        key: &str,
        depth: Depth,
    ) -> (Vec<Value>, Result<(), Halt>) {
        let Ok(index) = usize::try_from(index) else {
            return (list, Err(SetError::NegativeIndex(index).into()));
        };
        let old = list.get_mut(index).map(Value::take);
        let value = self.item_value(old.clone().unwrap_or_default(), key, depth);
        let value = value.and_then(|value| match index {
            ..=MAX_INDEX => Ok(value),
            _ => Err(SetError::IndexTooLarge(index).into()),
        });
        let (value, result) = match value {
            Ok(value) => (Some(value), Ok(())),
            Err(halt) => (old, Err(halt)),
        };
        if let Some(value) = value {
            if list.len() <= index {
                list.resize(index + 1, Value::Null);
            }
            if let Some(slot) = list.get_mut(index) {
                *slot = value;
            }
        }
        (list, result)
    }

    fn item_value(&mut self, old: Value, key: &str, depth: Depth) -> Result<Value, Halt> {
        let (text, stop) = self.until(&['[', '.', '=']);
        if !text.is_empty() {
            return Err(SetError::AfterIndex(text).into());
        }
        match stop {
            Some('=') => Ok(self.value(key)?),
            Some('[') => {
                if depth.lists >= MAX_LISTS {
                    return Err(SetError::TooManyLists.into());
                }
                let index = self.index()?;
                let inner = match old {
                    Value::Array(inner) => inner,
                    Value::Null => Vec::new(),
                    other => {
                        return Err(SetError::Mismatch { found: go_type(&other), wanted: LIST }.into());
                    }
                };
                let depth = Depth { lists: depth.lists + 1, ..depth };
                let (list, result) = self.item(inner, index, key, depth);
                result.map(|()| Value::Array(list))
            }
            Some(_) => {
                let mut inner = if let Value::Object(inner) = old { inner } else { Map::new() };
                self.key(&mut inner, depth.names)?;
                Ok(Value::Object(inner))
            }
            None => Err(Halt::End),
        }
    }

    fn index(&mut self) -> Result<i64, Halt> {
        let (text, stop) = self.until(&[']']);
        if stop.is_none() {
            return Err(Halt::End);
        }
        text.parse().map_err(|_| SetError::Index(text).into())
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

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => LIST,
        Value::Object(_) => MAPPING,
    }
}

/// Letters one by one, as Go quotes a list of them.
fn go_letters(text: &str) -> String {
    let letters: Vec<String> = text.chars().map(|letter| format!("{letter:?}")).collect();
    format!("[{}]", letters.join(" "))
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
            ("a[-1]=1", SetError::NegativeIndex(-1)),
            ("a[65537]=1", SetError::IndexTooLarge(65_537)),
            ("a[0]b=1", SetError::AfterIndex("b".into())),
            ("a=1,a.b=2", SetError::Mismatch { found: "int64", wanted: MAPPING }),
            ("a=1,a[0]=2", SetError::Mismatch { found: "int64", wanted: LIST }),
            ("a.=1", SetError::EmptyMap("a".into())),
        ] {
            assert_eq!(set(line, &mut Values::new()).unwrap_err(), error, "{line}");
        }
        let lists = format!("a{}=1", "[0]".repeat(100_000));
        assert_eq!(set(&lists, &mut Values::new()).unwrap_err(), SetError::TooManyLists);
        let deep = format!("{}a=1", "a.".repeat(31));
        assert_eq!(set(&deep, &mut Values::new()).unwrap_err(), SetError::TooDeep);
        assert!(set(&format!("{}a=1", "a.".repeat(30)), &mut Values::new()).is_ok());
    }
}
