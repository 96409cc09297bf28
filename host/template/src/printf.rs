//! Go's `Sprintf`.

mod verbs;

use std::fmt::Write as _;

use crate::value::print::{MAX_TEXT, PrintError};
use crate::value::{Value, is_nil, type_of};
use verbs::print_arg;

/// Beyond this a number of a format, as an argument or before its last digit, is none to Go.
const MAX_NUMBER: usize = 1_000_000;

/// The flags of one verb.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spec {
    pub(crate) minus: bool,
    pub(crate) plus: bool,
    pub(crate) sharp: bool,
    pub(crate) space: bool,
    pub(crate) zero: bool,
    pub(crate) width: Option<usize>,
    pub(crate) precision: Option<usize>,
    /// `%+v`: names of fields.
    pub(crate) plus_v: bool,
    /// `%#v`: Go syntax.
    pub(crate) sharp_v: bool,
}

/// Formats arguments; mistakes in the format become Go's markers in the text.
///
/// # Errors
/// For values deeper or longer than the limits of printing.
pub(crate) fn sprintf(format: &[u8], args: &[Value]) -> Result<Vec<u8>, PrintError> {
    let mut out = Vec::new();
    sprintf_into(format, args, &mut out)?;
    Ok(out)
}

/// Appends what [`sprintf`] gives.
///
/// # Errors
/// As [`sprintf`]; what was appended by then stays.
pub(crate) fn sprintf_into(format: &[u8], args: &[Value], out: &mut Vec<u8>) -> Result<(), PrintError> {
    Printer { rest: format, args, next: 0, reordered: false, index_ok: true, out }.run()
}

struct Printer<'f> {
    rest: &'f [u8],
    args: &'f [Value],
    next: usize,
    reordered: bool,
    index_ok: bool,
    out: &'f mut Vec<u8>,
}

impl Printer<'_> {
    fn run(&mut self) -> Result<(), PrintError> {
        while let Some(percent) = self.rest.iter().position(|byte| *byte == b'%') {
            let (text, rest) = self.rest.split_at(percent);
            self.out.extend_from_slice(text);
            self.rest = rest.get(1..).unwrap_or_default();
            self.directive()?;
            if self.out.len() > MAX_TEXT {
                return Err(PrintError::TooLong);
            }
        }
        self.out.extend_from_slice(self.rest);
        self.extra()
    }

    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn skip(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }

    fn directive(&mut self) -> Result<(), PrintError> {
        let mut spec = Spec::default();
        self.index_ok = true;
        self.flags(&mut spec);
        let mut after_index = self.index();
        if self.peek() == Some(b'*') {
            self.skip();
            self.star_width(&mut spec);
            after_index = false;
        } else if let Some(width) = self.number() {
            spec.width = Some(width);
            self.index_ok &= !after_index;
        }
        if self.peek() == Some(b'.') && self.rest.len() > 1 {
            self.skip();
            self.index_ok &= !after_index;
            after_index = self.index() & !self.precision(&mut spec);
        }
        if !after_index {
            self.index();
        }
        self.verb(spec)
    }

    fn flags(&mut self, spec: &mut Spec) {
        loop {
            match self.peek() {
                Some(b'#') => spec.sharp = true,
                Some(b'0') => spec.zero = true,
                Some(b'+') => spec.plus = true,
                Some(b'-') => spec.minus = true,
                Some(b' ') => spec.space = true,
                _ => return,
            }
            self.skip();
        }
    }

    fn star_width(&mut self, spec: &mut Spec) {
        match self.star() {
            Some(width) => {
                spec.minus |= width < 0;
                spec.width = Some(usize::try_from(width.unsigned_abs()).unwrap_or(0));
            }
            None => self.out.extend(b"%!(BADWIDTH)"),
        }
    }

    /// Whether it was an argument, so that an index before it is used up.
    fn precision(&mut self, spec: &mut Spec) -> bool {
        if self.peek() != Some(b'*') {
            spec.precision = Some(self.number().unwrap_or(0));
            return false;
        }
        self.skip();
        match self.star().map(usize::try_from) {
            Some(Ok(precision)) => spec.precision = Some(precision),
            Some(Err(_)) | None => self.out.extend(b"%!(BADPREC)"),
        }
        true
    }

    /// An `int` argument for `*`.
    fn star(&mut self) -> Option<i64> {
        let value = self.args.get(self.next)?;
        self.next += 1;
        let int = crate::value::number::as_int(value)?;
        (int.unsigned_abs() <= MAX_NUMBER as u64).then_some(int)
    }

    /// The digits that come next. One too large swallows the rest of the format, as in Go.
    fn number(&mut self) -> Option<usize> {
        let mut number = None;
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            let known = number.unwrap_or(0);
            if known > MAX_NUMBER {
                self.rest = &[];
                return None;
            }
            number = Some(known * 10 + usize::from(digit - b'0'));
            self.skip();
        }
        number
    }

    /// `[n]`: the argument to use next. Returns whether there was one.
    fn index(&mut self) -> bool {
        if self.peek() != Some(b'[') {
            return false;
        }
        self.reordered = true;
        let Some(end) = self.rest.iter().position(|byte| *byte == b']') else {
            self.index_ok = false;
            self.skip();
            return false;
        };
        let (inner, rest) = self.rest.split_at(end);
        self.rest = inner.get(1..).unwrap_or_default();
        let number = self.number().filter(|_| self.rest.is_empty());
        self.rest = rest.get(1..).unwrap_or_default();
        match number.and_then(|number| number.checked_sub(1)) {
            Some(index) if index < self.args.len() => self.next = index,
            _ => self.index_ok = false,
        }
        number.is_some()
    }

    fn verb(&mut self, mut spec: Spec) -> Result<(), PrintError> {
        let Some(verb) = first_char(self.rest) else {
            self.out.extend(b"%!(NOVERB)");
            return Ok(());
        };
        self.rest = self.rest.get(verb.len_utf8()..).unwrap_or_default();
        if verb == '%' {
            self.out.push(b'%');
            return Ok(());
        }
        if !self.index_ok {
            self.marker(verb, "BADINDEX");
            return Ok(());
        }
        let Some(arg) = self.args.get(self.next) else {
            self.marker(verb, "MISSING");
            return Ok(());
        };
        self.next += 1;
        if verb == 'v' {
            spec.sharp_v = std::mem::take(&mut spec.sharp);
            spec.plus_v = std::mem::take(&mut spec.plus);
        }
        print_arg(arg, verb, &spec, self.out)
    }

    fn marker(&mut self, verb: char, what: &str) {
        self.out.extend(format!("%!{verb}({what})").bytes());
    }

    /// Arguments nobody asked for.
    fn extra(&mut self) -> Result<(), PrintError> {
        let extra = self.args.get(self.next..).unwrap_or_default();
        if self.reordered || extra.is_empty() {
            return Ok(());
        }
        let mut text = String::from("%!(EXTRA ");
        for (index, arg) in extra.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            let _ = match is_nil(arg) {
                true => write!(text, "{comma}<nil>"),
                false => write!(text, "{comma}{}=", type_of(arg)),
            };
            self.out.extend(std::mem::take(&mut text).bytes());
            if !is_nil(arg) {
                print_arg(arg, 'v', &Spec::default(), self.out)?;
            }
        }
        self.out.push(b')');
        Ok(())
    }
}

fn first_char(bytes: &[u8]) -> Option<char> {
    let chunk = bytes.utf8_chunks().next()?;
    chunk.valid().chars().next().or_else(|| bytes.first().map(|byte| char::from(*byte)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;
    use crate::value::{Entries, int64, list_value, map_value, nil, string_list};

    fn check(format: &str, args: &[Value], expected: &str) {
        let text = sprintf(format.as_bytes(), args).unwrap();
        assert_eq!(String::from_utf8_lossy(&text), expected, "{format}");
    }

    #[test]
    fn verbs_format_what_they_fit() {
        let v = |n: i64| Value::from(n);
        let six = |n| [n; 6].map(v);
        let ten = |n| [n; 10].map(v);
        check("%d|%5d|%-5d|%05d|%+d|% d", &six(42), "42|   42|42   |00042|+42| 42");
        check("%x|%X|%#x|%o|%#o|%O|%b|%c|%q|%U", &ten(65), "41|41|0x41|101|0101|0o101|1000001|A|'A'|U+0041");
        check("%.3d|%8.3d|%.0d|", &[v(7), v(-7), v(0)], "007|    -007||");
        check("%t|%v", &[Value::from(true), Value::from(false)], "true|false");
        check(
            "%s|%q|%x|%.2s|%5s|%-5s|",
            &["añb"; 6].map(Value::from),
            "añb|\"añb\"|61c3b162|añ|  añb|añb  |",
        );
        let f = Value::from(1234.5678);
        check(
            "%v|%f|%.2f|%e|%g|%8.1f|%+.1f|%08.2f",
            &[f.clone(), f.clone(), f.clone(), f.clone(), f.clone(), f.clone(), f.clone(), f],
            "1234.5678|1234.567800|1234.57|1.234568e+03|1234.5678|  1234.6|+1234.6|01234.57",
        );
        check("%d", &[int64(-3)], "-3");
    }

    #[test]
    fn containers_are_formatted_item_by_item() {
        let list = list_value(vec![Value::from(1.5), "a".into(), nil()]);
        let map = map_value(Entries::from([("b".into(), list.clone()), ("a".into(), 1.into())]));
        check("%v", std::slice::from_ref(&map), "map[a:1 b:[1.5 a <nil>]]");
        check("%s", std::slice::from_ref(&list), "[%!s(float64=1.5) a <nil>]");
        check(
            "%#v",
            &[map],
            "map[string]interface {}{\"a\":1, \"b\":[]interface {}{1.5, \"a\", interface {}(nil)}}",
        );
        check("%q", &[string_list(["x", "y"])], "[\"x\" \"y\"]");
        check("%T %T", &[list, nil()], "[]interface {} <nil>");
    }

    #[test]
    fn mistakes_become_markers() {
        check("%d", &["x".into()], "%!d(string=x)");
        check("%s %d", &[Value::from(1), nil()], "%!s(int=1) %!d(<nil>)");
        check("%s %s", &["a".into()], "a %!s(MISSING)");
        check("a", &[1.into(), nil(), "b".into()], "a%!(EXTRA int=1, <nil>, string=b)");
        check("%", &[], "%!(NOVERB)");
        check("100%%|%[3]d|%[x]d", &[1.into()], "100%|%!d(BADINDEX)|%!d(BADINDEX)");
        check("%[2]*[1]d|", &[42.into(), 5.into()], "   42|");
        check("%*d", &["x".into(), 1.into()], "%!(BADWIDTH)1");
        check("%z", &[1.into()], "%!z(int=1)");
    }
}
