//! The order of keys in written YAML: digits by their number, letters behind everything else.

use std::cmp::Ordering;
use std::sync::LazyLock;

use regex::Regex;

static LETTER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\p{L}$").ok());
static DIGIT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\p{Nd}$").ok());

/// Which version of Go's library sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Letters behind everything else.
    Version2,
    /// The same, but a letter behind a digit comes before other digits.
    Version3,
}

/// Sorts entries by key as Go's library does.
///
/// Its order has cycles (`a2` < `a12` < `a1b` < `a2`), so that the standard sort may panic on it;
/// a merge sort does not mind.
pub(super) fn sort<K: AsRef<str>, V>(entries: Vec<(K, V)>, order: Order) -> Vec<(K, V)> {
    if entries.len() < 2 || entries.windows(2).all(|pair| is_ordered(pair, order)) {
        return entries;
    }
    let mut left = entries;
    let right = left.split_off(left.len() / 2);
    merge(sort(left, order), sort(right, order), order)
}

fn is_ordered<K: AsRef<str>, V>(pair: &[(K, V)], order: Order) -> bool {
    match pair {
        [(a, _), (b, _)] => compare(a.as_ref(), b.as_ref(), order) != Ordering::Greater,
        _ => true,
    }
}

fn merge<K: AsRef<str>, V>(left: Vec<(K, V)>, right: Vec<(K, V)>, order: Order) -> Vec<(K, V)> {
    let mut out = Vec::with_capacity(left.len() + right.len());
    let mut left = left.into_iter().peekable();
    let mut right = right.into_iter().peekable();
    while let (Some((a, _)), Some((b, _))) = (left.peek(), right.peek()) {
        let next = if compare(a.as_ref(), b.as_ref(), order) == Ordering::Greater {
            right.next()
        } else {
            left.next()
        };
        out.extend(next);
    }
    out.extend(left);
    out.extend(right);
    out
}

/// Which of two keys comes first.
fn compare(a: &str, b: &str, order: Order) -> Ordering {
    // Most keys differ in a letter, or one is the start of the other.
    match a.bytes().zip(b.bytes()).find(|(x, y)| x != y) {
        None => return a.len().cmp(&b.len()),
        Some((x, y)) if x.is_ascii_alphabetic() && y.is_ascii_alphabetic() => return x.cmp(&y),
        Some(_) => {}
    }
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    match a.iter().zip(&b).position(|(x, y)| x != y) {
        Some(at) => compare_at(&a, &b, at, order),
        None => a.len().cmp(&b.len()),
    }
}

fn compare_at(a: &[char], b: &[char], at: usize, order: Order) -> Ordering {
    let (Some(x), Some(y)) = (a.get(at), b.get(at)) else {
        return Ordering::Equal;
    };
    match (is_letter(*x), is_letter(*y)) {
        (true, true) => return x.cmp(y),
        (letter, other) if letter != other => {
            let digit = at.checked_sub(1).and_then(|at| a.get(at)).is_some_and(|c| is_digit(*c));
            let first = order == Order::Version3 && digit;
            return if letter == first { Ordering::Less } else { Ordering::Greater };
        }
        _ => {}
    }
    // A zero counts when digits other than zero stand before it.
    let inside = (*x == '0' || *y == '0') && follows_number(a, at);
    let (x_value, x_len) = digits(a, at, i64::from(inside));
    let (y_value, y_len) = digits(b, at, i64::from(inside));
    x_value.cmp(&y_value).then(x_len.cmp(&y_len)).then(x.cmp(y))
}

fn follows_number(chars: &[char], at: usize) -> bool {
    let before = chars.get(..at).unwrap_or_default();
    before.iter().rev().take_while(|c| is_digit(**c)).any(|c| *c != '0')
}

fn digits(chars: &[char], at: usize, start: i64) -> (i64, usize) {
    let digits = chars.get(at..).unwrap_or_default().iter().take_while(|c| is_digit(**c));
    digits.fold((start, 0), |(value, len), digit| {
        let digit = i64::from(u32::from(*digit)) - i64::from(u32::from('0'));
        (value.wrapping_mul(10).wrapping_add(digit), len + 1)
    })
}

fn is_letter(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphabetic() } else { is_in(&LETTER, c) }
}

fn is_digit(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_digit() } else { is_in(&DIGIT, c) }
}

fn is_in(class: &Option<Regex>, c: char) -> bool {
    let mut buffer = [0; 4];
    class.as_ref().is_some_and(|class| class.is_match(c.encode_utf8(&mut buffer)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(keys: &str) -> String {
        let entries = keys.split_whitespace().map(|key| (key, ())).collect();
        sort(entries, Order::Version2).into_iter().map(|(key, ())| key).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn numbers_in_keys_are_numbers() {
        assert_eq!(sorted("a10 a a2 A"), "A a a2 a10");
        assert_eq!(sorted("b-1 b.1 b1 b_1 ba"), "b-1 b.1 b_1 b1 ba");
        assert_eq!(sorted("x01 x1 x001 x10"), "x1 x01 x001 x10");
    }

    #[test]
    fn a_cycle_of_keys_is_sorted_without_a_panic() {
        let keys: Vec<(String, ())> =
            (0..400).map(|n| (["a2", "a12", "a1b", "a1", "a20c"][n % 5].to_owned(), ())).collect();
        assert_eq!(sort(keys, Order::Version2).len(), 400);
    }
}
