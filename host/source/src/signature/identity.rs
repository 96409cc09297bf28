//! Identities: who, and who vouched for it.

use std::fmt;

/// Whom a certificate must name. `*` stands for anything but a slash, `**` for anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityPattern {
    issuer: String,
    subject: String,
}

/// Why a pattern is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Everybody on the Internet can have a certificate of a public authority.
    #[error("the {0} of an identity is empty or only wildcards, which would be anybody; name it")]
    Anybody(&'static str),
    /// The host of an issuer decides who vouches.
    #[error("the issuer of an identity has a wildcard in its host; name the host")]
    Host,
}

// === impl IdentityPattern ===

impl IdentityPattern {
    /// Takes patterns of issuer (an address) and subject (an address or an email).
    ///
    /// # Errors
    /// When one of them would be anybody.
    pub fn new(issuer: &str, subject: &str) -> Result<Self, PatternError> {
        for (field, text) in [("issuer", issuer), ("subject", subject)] {
            if text.chars().all(|letter| letter == '*' || letter == '/') {
                return Err(PatternError::Anybody(field));
            }
        }
        let host = issuer.split_once("://").map_or(issuer, |(_, rest)| rest).split('/').next();
        if issuer.starts_with('*') || host.is_some_and(|host| host.contains('*')) {
            return Err(PatternError::Host);
        }
        Ok(Self { issuer: issuer.to_owned(), subject: subject.to_owned() })
    }

    /// True for the identity of a certificate.
    #[must_use]
    pub fn matches(&self, issuer: &str, subject: &str) -> bool {
        fits(self.issuer.as_bytes(), issuer.as_bytes()) && fits(self.subject.as_bytes(), subject.as_bytes())
    }
}

impl fmt::Display for IdentityPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.subject, self.issuer)
    }
}

/// Compares from left to right and keeps the last wildcard to come back to, so that no pattern takes more
/// than its length times that of the text. A `*` cannot give back what a `**` before it has to take.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    let mut rest = pattern;
    while let Some((first, after)) = rest.split_first() {
        if *first == b'*' {
            let is_any = after.first() == Some(&b'*');
            rest = if is_any { after.get(1..).unwrap_or_default() } else { after };
            for (at, byte) in text.iter().enumerate() {
                let may_take = is_any || *byte != b'/';
                if may_take
                    && reached.get(at) == Some(&true)
                    && let Some(next) = reached.get_mut(at + 1)
                {
                    *next = true;
                }
            }
            continue;
        }
        rest = after;
        for at in (0..=text.len()).rev() {
            let came = at > 0 && reached.get(at - 1) == Some(&true) && text.get(at - 1) == Some(first);
            if let Some(slot) = reached.get_mut(at) {
                *slot = came;
            }
        }
    }
    reached.last() == Some(&true)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn a_star_stays_between_slashes_and_two_cross_them() {
        let issuer = "https://issuer.example";
        for (pattern, subject, expected) in [
            ("ann@example.org", "ann@example.org", true),
            ("ann@example.org", "ann@example.orgs", false),
            ("*@example.org", "ann@example.org", true),
            ("*@example.org", "ann@evil.example/@example.org", false),
            ("https://git.example/o/r/*@refs/tags/*", "https://git.example/o/r/w.yml@refs/tags/v1", true),
            ("https://git.example/o/r/*@refs/tags/*", "https://git.example/o/r/a/w.yml@refs/tags/v1", false),
            ("https://git.example/o/r/**@refs/tags/*", "https://git.example/o/r/a/w.yml@refs/tags/v1", true),
            ("https://git.example/o/**", "https://git.example/o2/x", false),
            ("a*b*c", "axbxbxc", true),
            ("a*b*c", "axbxbx", false),
        ] {
            let found = IdentityPattern::new(issuer, pattern).unwrap().matches(issuer, subject);
            assert_eq!(found, expected, "{pattern} {subject}");
        }
        let exact = IdentityPattern::new(issuer, "ann").unwrap();
        assert!(!exact.matches("https://issuer.example.evil", "ann"));
    }

    #[test]
    fn a_pattern_for_anybody_is_refused() {
        let refused = |issuer, subject| IdentityPattern::new(issuer, subject).unwrap_err();
        assert_eq!(refused("https://i.example", "**"), PatternError::Anybody("subject"));
        assert_eq!(refused("", "ann"), PatternError::Anybody("issuer"));
        for issuer in ["https://*.example", "**i.example", "https://*"] {
            assert_eq!(refused(issuer, "ann"), PatternError::Host, "{issuer}");
        }
    }

    #[test]
    fn many_wildcards_take_no_time() {
        let pattern = IdentityPattern::new("https://i.example", &format!("{}b", "a**".repeat(200))).unwrap();
        assert!(!pattern.matches("https://i.example", &"a".repeat(5000)));
    }
}
