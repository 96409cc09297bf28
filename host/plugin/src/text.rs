//! Text of guests, made harmless before anybody sees it.

use crate::limits;

/// The text without control characters and characters that change the direction of writing, cut at
/// `most` bytes.
pub(crate) fn clean(text: &str, most: usize) -> String {
    let mut clean = String::with_capacity(text.len().min(most));
    for letter in text.chars() {
        let letter = if is_harmless(letter) { letter } else { ' ' };
        if clean.len() + letter.len_utf8() > most {
            break;
        }
        clean.push(letter);
    }
    clean
}

/// A message for people: clean, and begun with the name of the plugin that says it.
pub(crate) fn said(plugin: &str, message: &str) -> String {
    clean(&format!("{plugin}: {message}"), limits::MESSAGE)
}

/// The reason if it is one word of letters and digits, as Kubernetes wants it; else `Other`.
pub(crate) fn reason(reason: &str) -> String {
    let is_word = reason.starts_with(|first: char| first.is_ascii_alphabetic())
        && reason.len() <= limits::REASON
        && reason.chars().all(|letter| letter.is_ascii_alphanumeric());
    if is_word { reason.to_owned() } else { "Other".to_owned() }
}

fn is_harmless(letter: char) -> bool {
    let turns = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !letter.is_control() && !turns && !matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_turned_writing_do_not_reach_a_terminal() {
        assert_eq!(clean("a\u{1b}[31mred\r\nb\u{202e}c", 100), "a [31mred  b c");
    }

    #[test]
    fn a_cut_never_splits_a_letter() {
        assert_eq!(clean("ää", 3), "ä");
    }

    #[test]
    fn a_reason_is_one_word_or_other() {
        assert_eq!(reason("DriverNotLoaded"), "DriverNotLoaded");
        for odd in ["", "two words", "1st", "ünfug", "a\"b"] {
            assert_eq!(reason(odd), "Other");
        }
    }
}
