//! Versions and constraints as Helm reads them: the rules of Masterminds/semver 3.5, which differ from
//! Cargo's in most ways that charts rely on.

use std::{cmp::Ordering, fmt, ops::Range};

/// Longest version that is read, in bytes; the same cap as Masterminds/semver 3.5.
pub const MAX_VERSION: usize = 256;
/// Longest constraint that is read, in bytes; the same cap as Masterminds/semver 3.5.
pub const MAX_CONSTRAINT: usize = 512;
/// Most alternatives between `||`; the same cap as Masterminds/semver 3.5.
pub const MAX_GROUPS: usize = 32;

/// A version: `1.2.3-rc.1+build`, also in the loose forms `v1`, `1.2` and `01.2.3`.
///
/// Equality and order are those of precedence: build metadata and the spelling do not count.
#[derive(Clone, Debug)]
pub struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    pre: String,
    metadata: String,
    original: String,
}

/// What a version must be: alternatives between `||`, each a list of comparisons that must all hold.
#[derive(Clone, Debug)]
pub struct Constraint {
    groups: Vec<Group>,
}

/// What makes a text no version or no constraint. The texts are those that charts' users know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text has another shape.
    #[error("invalid semantic version")]
    Version,
    /// More than [`MAX_VERSION`] bytes.
    #[error("version string is too long (max {MAX_VERSION} bytes)")]
    VersionTooLong,
    /// A number with more digits than 64 bits hold.
    #[error("error parsing version segment: {0} is out of range")]
    SegmentTooLarge(String),
    /// A strict version, or a number in a pre-release, starts with a zero.
    #[error("version segment starts with 0")]
    LeadingZero,
    /// The text between `||` has another shape.
    #[error("improper constraint: {0:?}")]
    Constraint(String),
    /// A part mixes digits and wildcards.
    #[error("constraint parser error")]
    Part,
    /// More than [`MAX_CONSTRAINT`] bytes.
    #[error("constraint string is too long (max {MAX_CONSTRAINT} bytes)")]
    ConstraintTooLong,
    /// More than [`MAX_GROUPS`] alternatives.
    #[error("too many constraint groups (max {MAX_GROUPS})")]
    TooManyGroups,
}

#[derive(Clone, Debug)]
struct Group {
    comparisons: Vec<Comparison>,
    /// One comparison names a pre-release, so pre-releases count for the whole group.
    with_pre: bool,
}

#[derive(Clone, Debug)]
struct Comparison {
    op: Op,
    version: Version,
    open: Open,
}

/// Which parts of a comparison's version were left out or are wildcards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Nothing,
    Patch,
    Minor,
    Major,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterEqual,
    LessEqual,
    Tilde,
    Caret,
}

/// Where the parts of a version-like text lie.
struct Parts {
    major: Range<usize>,
    minor: Option<Range<usize>>,
    patch: Option<Range<usize>>,
    pre: Option<Range<usize>>,
    metadata: Option<Range<usize>>,
    end: usize,
}

// === impl Version ===

impl Version {
    /// Reads a version in its strict or loose forms; what is left out is 0, leading zeros are dropped.
    ///
    /// # Errors
    /// When the text is no version.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > MAX_VERSION {
            return Err(Error::VersionTooLong);
        }
        let parts = scan(text, 0, is_digit).filter(|parts| parts.end == text.len()).ok_or(Error::Version)?;
        let number = |range: Option<&Range<usize>>| range.map_or(Ok(0), |range| segment(part(text, range)));
        let optional =
            |range: Option<&Range<usize>>| range.map(|range| part(text, range)).unwrap_or_default();
        let pre = optional(parts.pre.as_ref());
        check_pre(pre)?;
        Ok(Self {
            major: number(Some(&parts.major))?,
            minor: number(parts.minor.as_ref())?,
            patch: number(parts.patch.as_ref())?,
            pre: pre.to_owned(),
            metadata: optional(parts.metadata.as_ref()).to_owned(),
            original: text.to_owned(),
        })
    }

    /// Reads a version that has all three numbers, no `v` and no leading zeros.
    ///
    /// # Errors
    /// When the text is no version of that form.
    pub fn parse_strict(text: &str) -> Result<Self, Error> {
        if text.len() > MAX_VERSION {
            return Err(Error::VersionTooLong);
        }
        let parts = scan(text, 0, is_digit).filter(|parts| parts.end == text.len()).ok_or(Error::Version)?;
        let (Some(minor), Some(patch)) = (&parts.minor, &parts.patch) else {
            return Err(Error::Version);
        };
        if text.starts_with('v') {
            return Err(Error::Version);
        }
        let numbers = [&parts.major, minor, patch].map(|range| part(text, range));
        if numbers.iter().any(|number| number.len() > 1 && number.starts_with('0')) {
            return Err(Error::LeadingZero);
        }
        Self::parse(text)
    }

    /// The first number.
    #[must_use]
    pub fn major(&self) -> u64 {
        self.major
    }

    /// The second number.
    #[must_use]
    pub fn minor(&self) -> u64 {
        self.minor
    }

    /// The third number.
    #[must_use]
    pub fn patch(&self) -> u64 {
        self.patch
    }

    /// What follows the `-`, empty for a release.
    #[must_use]
    pub fn pre(&self) -> &str {
        &self.pre
    }

    /// What follows the `+`, empty where there is none.
    #[must_use]
    pub fn metadata(&self) -> &str {
        &self.metadata
    }

    /// The text that was read.
    #[must_use]
    pub fn original(&self) -> &str {
        &self.original
    }

    /// The next version that differs in its last part; the release itself where this is one before it.
    #[must_use]
    pub fn next_patch(&self) -> Self {
        let step = u64::from(self.pre.is_empty());
        self.released(self.major, self.minor, self.patch.saturating_add(step))
    }

    /// The next version that differs in its second part.
    #[must_use]
    pub fn next_minor(&self) -> Self {
        self.released(self.major, self.minor.saturating_add(1), 0)
    }

    /// The next version that differs in its first part.
    #[must_use]
    pub fn next_major(&self) -> Self {
        self.released(self.major.saturating_add(1), 0, 0)
    }

    fn released(&self, major: u64, minor: u64, patch: u64) -> Self {
        let v = if self.original.starts_with('v') { "v" } else { "" };
        let original = format!("{v}{major}.{minor}.{patch}");
        Self { major, minor, patch, pre: String::new(), metadata: String::new(), original }
    }

    fn numbers(&self) -> (u64, u64, u64) {
        (self.major, self.minor, self.patch)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers().cmp(&other.numbers()).then_with(|| compare_pre(&self.pre, &other.pre))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Version {}

// === impl Constraint ===

impl Constraint {
    /// Reads a constraint: comparisons by `= != > < >= => <= =< ~ ~> ^` or none, joined by commas or spaces
    /// (and), `||` (or), `1.2 - 1.4` for a range, `x`, `X`, `*` or nothing for any number.
    ///
    /// # Errors
    /// When the text has another shape, or is longer than the caps.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > MAX_CONSTRAINT {
            return Err(Error::ConstraintTooLong);
        }
        let rewritten = rewrite_ranges(text);
        let alternatives: Vec<&str> = rewritten.split("||").collect();
        if alternatives.len() > MAX_GROUPS {
            return Err(Error::TooManyGroups);
        }
        let groups = alternatives.into_iter().map(Group::parse).collect::<Result<_, _>>()?;
        Ok(Self { groups })
    }

    /// True when the version is one of those asked for. A pre-release only is where a comparison of the same
    /// alternative names one.
    #[must_use]
    pub fn matches(&self, version: &Version) -> bool {
        self.groups.iter().any(|group| group.matches(version))
    }
}

// === impl Group ===

impl Group {
    fn parse(text: &str) -> Result<Self, Error> {
        let improper = || Error::Constraint(text.to_owned());
        let mut comparisons = Vec::new();
        let mut at = skip_space(text, 0);
        loop {
            let (comparison, end) = Comparison::scan(text, at)?.ok_or_else(improper)?;
            comparisons.push(comparison);
            at = skip_space(text, end);
            if at == text.len() {
                break;
            }
            if byte(text, at) == Some(b',') {
                at = skip_space(text, at + 1);
            } else if at == end {
                return Err(improper());
            }
        }
        let with_pre = comparisons.iter().any(|comparison| !comparison.version.pre.is_empty());
        Ok(Self { comparisons, with_pre })
    }

    fn matches(&self, version: &Version) -> bool {
        (version.pre.is_empty() || self.with_pre)
            && self.comparisons.iter().all(|comparison| comparison.matches(version))
    }
}

// === impl Comparison ===

impl Comparison {
    /// The comparison that starts at `at`, and where it ends; nothing when none starts there.
    fn scan(text: &str, at: usize) -> Result<Option<(Self, usize)>, Error> {
        let (op, after) = Op::scan(text, at);
        let from = skip_space(text, after);
        let Some(parts) = scan(text, from, is_digit_or_wild) else {
            return Ok(None);
        };
        let end = parts.end;
        let (spelled, open) = parts.spell(text, from..end);
        let version = Version::parse(&spelled).map_err(|_| Error::Part)?;
        Ok(Some((Self { op, version, open }, end)))
    }

    fn matches(&self, version: &Version) -> bool {
        match self.op {
            Op::Equal if self.open == Open::Nothing => *version == self.version,
            Op::Equal | Op::Tilde => self.tilde(version),
            Op::NotEqual => self.not_equal(version),
            Op::Greater => self.greater(version),
            Op::Less => *version < self.version,
            Op::GreaterEqual => *version >= self.version,
            Op::LessEqual => self.less_equal(version),
            Op::Caret => self.caret(version),
        }
    }

    fn tilde(&self, version: &Version) -> bool {
        if *version < self.version {
            return false;
        }
        let from_zero = self.version.numbers() == (0, 0, 0);
        if from_zero && matches!(self.open, Open::Nothing | Open::Major) {
            return true;
        }
        version.major == self.version.major
            && (version.minor == self.version.minor || self.open == Open::Minor)
    }

    fn not_equal(&self, version: &Version) -> bool {
        let same_major = version.major == self.version.major;
        let same_minor = version.minor == self.version.minor;
        match self.open {
            Open::Nothing => *version != self.version,
            Open::Minor => !same_major,
            Open::Patch if !same_major || !same_minor => true,
            Open::Patch => compare_pre(&version.pre, &self.version.pre).is_ne(),
            // `!=*` compares with 0.0.0 itself, as Masterminds does.
            Open::Major => *version != self.version,
        }
    }

    fn greater(&self, version: &Version) -> bool {
        match self.open {
            Open::Nothing | Open::Major => *version > self.version,
            Open::Minor => version.major > self.version.major,
            Open::Patch => (version.major, version.minor) > (self.version.major, self.version.minor),
        }
    }

    fn less_equal(&self, version: &Version) -> bool {
        match self.open {
            Open::Nothing => *version <= self.version,
            Open::Minor => version.major <= self.version.major,
            Open::Patch | Open::Major => {
                (version.major, version.minor) <= (self.version.major, self.version.minor)
            }
        }
    }

    fn caret(&self, version: &Version) -> bool {
        let wanted = &self.version;
        if *version < *wanted {
            return false;
        }
        if wanted.major > 0 || self.open == Open::Minor {
            return version.major == wanted.major;
        }
        if version.major > 0 {
            return false;
        }
        if wanted.minor > 0 || self.open == Open::Patch {
            return version.minor == wanted.minor;
        }
        version.minor == 0 && version.patch == wanted.patch
    }
}

// === impl Op ===

impl Op {
    /// The operator at `at`, the longest that fits, and where it ends; none is [`Op::Equal`].
    fn scan(text: &str, at: usize) -> (Self, usize) {
        let two = |second| byte(text, at + 1) == Some(second);
        match byte(text, at) {
            Some(b'!') if two(b'=') => (Self::NotEqual, at + 2),
            Some(b'>') if two(b'=') => (Self::GreaterEqual, at + 2),
            Some(b'=') if two(b'>') => (Self::GreaterEqual, at + 2),
            Some(b'<') if two(b'=') => (Self::LessEqual, at + 2),
            Some(b'=') if two(b'<') => (Self::LessEqual, at + 2),
            Some(b'~') if two(b'>') => (Self::Tilde, at + 2),
            Some(b'~') => (Self::Tilde, at + 1),
            Some(b'^') => (Self::Caret, at + 1),
            Some(b'>') => (Self::Greater, at + 1),
            Some(b'<') => (Self::Less, at + 1),
            Some(b'=') => (Self::Equal, at + 1),
            _ => (Self::Equal, at),
        }
    }
}

// === impl Parts ===

impl Parts {
    /// The version a comparison is made with: zeros for what is open, the pre-release kept.
    fn spell(&self, text: &str, whole: Range<usize>) -> (String, Open) {
        let wild = |range: &Range<usize>| matches!(part(text, range), "x" | "X" | "*");
        let open = |range: &Option<Range<usize>>| range.as_ref().is_none_or(&wild);
        let pre = self.pre.as_ref().map(|range| format!("-{}", part(text, range))).unwrap_or_default();
        let major = part(text, &self.major);
        if wild(&self.major) {
            return (format!("0.0.0{pre}"), Open::Major);
        }
        match &self.minor {
            Some(minor) if !wild(minor) => {
                if open(&self.patch) {
                    (format!("{major}.{}.0{pre}", part(text, minor)), Open::Patch)
                } else {
                    (part(text, &whole).to_owned(), Open::Nothing)
                }
            }
            _ => (format!("{major}.0.0{pre}"), Open::Minor),
        }
    }
}

/// Turns `1.2 - 1.4` into `>= 1.2, <= 1.4 `, white space around it included, before `||` counts.
fn rewrite_ranges(text: &str) -> String {
    let mut rewritten = String::with_capacity(text.len() + 8);
    let mut at = 0;
    while at < text.len() {
        if let Some((low, high, end)) = scan_range(text, at) {
            rewritten.push_str(&format!(">= {}, <= {} ", part(text, &low), part(text, &high)));
            at = end;
        } else {
            let width = text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
            rewritten.push_str(part(text, &(at..at + width)));
            at += width;
        }
    }
    rewritten
}

/// Both ends of the range that starts at `at`, white space included, and where it ends.
fn scan_range(text: &str, at: usize) -> Option<(Range<usize>, Range<usize>, usize)> {
    let low = skip_space(text, at);
    let low_end = scan(text, low, is_range_digit)?.end;
    let dash = skip_space(text, low_end);
    if dash == low_end || byte(text, dash) != Some(b'-') {
        return None;
    }
    let high = skip_space(text, dash + 1);
    if high == dash + 1 {
        return None;
    }
    let high_end = scan(text, high, is_range_digit)?.end;
    Some((low..low_end, high..high_end, skip_space(text, high_end)))
}

/// The parts of what looks like a version at `at`, the longest that fits.
fn scan(text: &str, at: usize, digit: fn(u8) -> bool) -> Option<Parts> {
    let start = if byte(text, at) == Some(b'v') { at + 1 } else { at };
    let major = run(text, start, digit)?;
    let after_dot = |at: usize| {
        if byte(text, at) == Some(b'.') { run(text, at + 1, digit) } else { None }
    };
    let minor = after_dot(major.end);
    let patch = minor.as_ref().and_then(|minor| after_dot(minor.end));
    let mut end = patch.as_ref().or(minor.as_ref()).unwrap_or(&major).end;
    let pre = identifiers(text, end, b'-');
    end = pre.as_ref().map_or(end, |pre| pre.end);
    let metadata = identifiers(text, end, b'+');
    end = metadata.as_ref().map_or(end, |metadata| metadata.end);
    Some(Parts { major, minor, patch, pre, metadata, end })
}

/// Dotted identifiers behind `mark`.
fn identifiers(text: &str, at: usize, mark: u8) -> Option<Range<usize>> {
    if byte(text, at) != Some(mark) {
        return None;
    }
    let first = run(text, at + 1, is_identifier)?;
    let mut end = first.end;
    while byte(text, end) == Some(b'.') {
        let Some(next) = run(text, end + 1, is_identifier) else {
            break;
        };
        end = next.end;
    }
    Some(first.start..end)
}

/// The longest run of bytes from `at` that fit; nothing when the first does not.
fn run(text: &str, at: usize, fits: fn(u8) -> bool) -> Option<Range<usize>> {
    let rest = text.as_bytes().get(at..)?;
    let length = rest.iter().position(|byte| !fits(*byte)).unwrap_or(rest.len());
    (length > 0).then(|| at..at + length)
}

fn skip_space(text: &str, at: usize) -> usize {
    run(text, at, |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)).map_or(at, |space| space.end)
}

fn byte(text: &str, at: usize) -> Option<u8> {
    text.as_bytes().get(at).copied()
}

fn part<'a>(text: &'a str, range: &Range<usize>) -> &'a str {
    text.get(range.clone()).unwrap_or_default()
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

fn is_digit_or_wild(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'x' | b'X' | b'*')
}

/// Ranges are looked for before `||` is split at, and Masterminds counts `|` as a digit there: `1 - 2||3`
/// without spaces is a range up to `2||3`.
fn is_range_digit(byte: u8) -> bool {
    is_digit_or_wild(byte) || byte == b'|'
}

fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

fn segment(digits: &str) -> Result<u64, Error> {
    digits.parse().map_err(|_| Error::SegmentTooLarge(digits.to_owned()))
}

fn check_pre(pre: &str) -> Result<(), Error> {
    let zero = |id: &str| id.len() > 1 && id.starts_with('0') && id.bytes().all(is_digit);
    if pre.split('.').any(zero) { Err(Error::LeadingZero) } else { Ok(()) }
}

fn compare_pre(left: &str, right: &str) -> Ordering {
    match (left.is_empty(), right.is_empty()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => left
            .split('.')
            .zip(right.split('.'))
            .map(|(left, right)| compare_identifier(left, right))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| left.split('.').count().cmp(&right.split('.').count())),
    }
}

fn compare_identifier(left: &str, right: &str) -> Ordering {
    match (left.parse::<u64>(), right.parse::<u64>()) {
        (Ok(left), Ok(right)) => left.cmp(&right),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => left.cmp(right),
    }
}

#[cfg(test)]
mod tests;
