//! Patterns for lines: text, and `*` for anything.

/// True when the pattern occurs somewhere in the line. It takes time in proportion to the line for
/// each part between two stars.
pub(crate) fn is_in(pattern: &str, line: &str) -> bool {
    let mut rest = Some(line);
    for part in pattern.split('*') {
        // The earliest place of a part leaves the most for those after it.
        rest = rest.and_then(|rest| rest.split_once(part)).map(|(_, after)| after);
    }
    rest.is_some() && !pattern.is_empty()
}

#[cfg(test)]
mod tests {
    use super::is_in;

    #[test]
    fn stars_stand_for_anything_and_the_rest_for_itself() {
        for (pattern, line) in [
            ("insmod *.ko", "+ insmod /lib/modules/4.18.0/extra/simple-kmod.ko max=1"),
            ("a*b*a", "xx a b b a"),
            ("loaded", "driver loaded"),
            ("*loaded*", "driver loaded"),
        ] {
            assert!(is_in(pattern, line), "{pattern} {line}");
        }
        for (pattern, line) in [
            ("insmod *.ko", "rmmod simple-kmod"),
            ("a*b", "b a"),
            ("ab*b", "ab"),
            ("", "anything"),
            ("Loaded", "loaded"),
        ] {
            assert!(!is_in(pattern, line), "{pattern} {line}");
        }
    }
}
