//! How text can be written: plain, quoted, as a block.

use super::resolve::{Scalar, is_base60, resolve};

/// The style a text is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// What the characters of a text allow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Analysis {
    /// It has line breaks.
    pub(super) multiline: bool,
    plain: bool,
    single: bool,
    block: bool,
}

/// The style for a text, in a position where block style is possible or not.
pub(super) fn style(text: &str, analysis: Analysis, simple_key: bool) -> Style {
    let wanted = if text.contains('\n') {
        Style::Literal
    } else if matches!(resolve(text), Scalar::Str) && !is_base60(text) {
        Style::Plain
    } else {
        Style::Double
    };
    allowed(wanted, analysis, simple_key)
}

fn allowed(wanted: Style, analysis: Analysis, simple_key: bool) -> Style {
    match wanted {
        _ if simple_key && analysis.multiline => Style::Double,
        Style::Plain if analysis.plain => Style::Plain,
        Style::Plain | Style::Single if analysis.single => Style::Single,
        Style::Literal if analysis.block && !simple_key => Style::Literal,
        _ => Style::Double,
    }
}

/// What an emitter needs to know of the characters of a text.
///
/// `tabs` says whether a block may hold tabs.
pub(super) fn analyze(text: &str, tabs: bool) -> Analysis {
    if is_simple(text) {
        return Analysis { multiline: false, plain: true, single: true, block: true };
    }
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return analyze_printable(text.as_bytes());
    }
    let document = text.starts_with("---") || text.starts_with("...");
    let mut facts = Facts { indicator: document, ..Facts::default() };
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        facts.indicator |= is_indicator(before, c, next);
        facts.tab |= tabs && c == '\t';
        facts.special |= !(is_printable(c) || (tabs && c == '\t'));
        facts.space(before, c, next);
        before = Some(c);
    }
    let edge = facts.leading || facts.trailing_space || facts.trailing_break;
    let hard = facts.space_break || facts.special;
    let quoted = hard || facts.tab;
    Analysis {
        multiline: facts.breaks,
        plain: !(text.is_empty() || edge || quoted || facts.break_space || facts.breaks || facts.indicator),
        single: !(quoted || facts.break_space),
        block: !(hard || facts.trailing_space),
    }
}

/// [`analyze`] for one line of printable ASCII, which most texts are.
fn analyze_printable(text: &[u8]) -> Analysis {
    let (leading, trailing) = (text.starts_with(b" "), text.ends_with(b" "));
    let starts_as_syntax = match text {
        [first, rest @ ..] => {
            is_indicator(None, char::from(*first), rest.first().map(|next| char::from(*next)))
        }
        [] => true,
    };
    let is_syntax = |pair: &[u8]| matches!(pair, b": " | b" #");
    let indicator = starts_as_syntax
        || text.starts_with(b"---")
        || text.starts_with(b"...")
        || text.ends_with(b":")
        || text.windows(2).any(is_syntax);
    Analysis { multiline: false, plain: !(leading || trailing || indicator), single: true, block: !trailing }
}

/// Whether nothing in a text means anything in YAML: so are names, images without a tag, most keys.
fn is_simple(text: &str) -> bool {
    let simple = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric) && text.as_bytes().iter().all(simple)
}

#[derive(Default)]
struct Facts {
    breaks: bool,
    leading: bool,
    trailing_space: bool,
    trailing_break: bool,
    break_space: bool,
    space_break: bool,
    special: bool,
    tab: bool,
    indicator: bool,
}

impl Facts {
    fn space(&mut self, before: Option<char>, c: char, next: Option<char>) {
        if c == ' ' {
            self.leading |= before.is_none();
            self.trailing_space |= next.is_none();
            self.break_space |= before.is_some_and(is_break);
        } else if is_break(c) {
            self.breaks = true;
            self.leading |= before.is_none();
            self.trailing_break |= next.is_none();
            self.space_break |= before == Some(' ');
        }
    }
}

/// Whether a character would be read as syntax where it stands.
fn is_indicator(before: Option<char>, c: char, next: Option<char>) -> bool {
    let blank_next = next.is_none_or(is_blank);
    match (before, c) {
        (None, c) if "#,[]{}&*!|>'\"%@`".contains(c) => true,
        (None, '?' | ':' | '-') | (Some(_), ':') => blank_next,
        (Some(before), '#') => is_blank(before) || before == '\0',
        _ => false,
    }
}

/// Space, tab or a line break.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t') || is_break(c)
}

/// Whether the character ends a line in YAML 1.1.
pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether Go's library writes the character as it is: nothing above U+FFFF, no tab.
pub(super) fn is_printable(c: char) -> bool {
    matches!(
        c,
        '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}'
    )
}
