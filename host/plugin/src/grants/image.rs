//! References of images, and patterns of them.

use regex::Regex;

/// Bytes of a reference: what registries take for name, tag and digest together.
const LONGEST: usize = 512;

/// A pattern of references: `*` stands for anything but a slash, `**` for anything. The host has no
/// wildcard, so that no pattern opens registries that nobody thought of.
#[derive(Clone, Debug)]
pub(crate) struct ImagePattern {
    text: String,
    matcher: Regex,
}

impl ImagePattern {
    /// Reads a pattern; nothing when it is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (host, _) = text.split_once('/')?;
        if host.contains('*') || !is_reference(&text.replace('*', "x")) {
            return None;
        }
        let escaped = regex::escape(text).replace(r"\*\*", ".*").replace(r"\*", "[^/]*");
        let matcher = Regex::new(&format!("^{escaped}$")).ok()?;
        Some(Self { text: text.to_owned(), matcher })
    }

    /// True when the reference is one of the pattern's.
    pub(crate) fn matches(&self, reference: &str) -> bool {
        is_reference(reference) && self.matcher.is_match(reference)
    }

    /// True when the other pattern is this one, or a single reference of it.
    pub(crate) fn covers(&self, other: &str) -> bool {
        self.text == other || self.matches(other)
    }
}

/// True for a reference that names its registry and has no characters that registries do not take:
/// what is no such reference is never given to a resolver.
pub(crate) fn is_reference(text: &str) -> bool {
    let Some((host, path)) = text.split_once('/') else { return false };
    let is_host = host == "localhost" || host.contains('.') || host.contains(':');
    let in_host = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | ':');
    let in_path =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_' | '/' | ':' | '@');
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    text.len() <= LONGEST
        && is_host
        && host.chars().all(in_host)
        && path.chars().all(in_path)
        && path.split('/').all(is_plain)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    fn fits(pattern: &str, reference: &str) -> bool {
        ImagePattern::parse(pattern).unwrap().matches(reference)
    }

    #[test]
    fn a_star_stays_between_slashes_and_two_do_not() {
        assert!(fits("r.example/vendor/*", "r.example/vendor/driver"));
        assert!(!fits("r.example/vendor/*", "r.example/vendor/deep/driver"));
        assert!(fits("r.example/vendor/**", "r.example/vendor/deep/driver:1@sha256:aa"));
        assert!(fits("r.example/*/driver:v*", "r.example/a/driver:v12"));
        assert!(!fits("r.example/*/driver:v*", "r.example/a/other:v12"));
        assert!(!fits("r.example/driver", "r.example/driver2"));
        assert!(!fits("r.example/**", "r.example.evil.test/x"));
        assert!(!fits("r.example/**", "rxexample/x"), "a dot is a dot");
    }

    #[test]
    fn a_pattern_with_an_open_host_is_none() {
        for odd in
            ["*/x", "*.example/x", "**", "r.example/", "driver", "oci://r.example/x", "r.example/../x", ""]
        {
            assert!(ImagePattern::parse(odd).is_none(), "{odd}");
        }
    }

    #[test]
    fn what_is_no_reference_never_fits() {
        for odd in [
            "r.example/vendor/../other",
            "r.example/vendor/",
            "r.example/vendor/a b",
            "r.example//a",
            "r.example/a?x=http://169.254.169.254",
            "r.example/vendor/\u{e4}",
            "r.example/a\nb",
        ] {
            assert!(!fits("r.example/**", odd), "{odd}");
        }
        assert!(!fits("r.example/**", &format!("r.example/{}", "a".repeat(LONGEST))));
    }
}
