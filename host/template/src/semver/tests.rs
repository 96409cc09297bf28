//! Versions and constraints, as Helm reads them.
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
use super::*;

#[track_caller]
fn holds(constraint: &str, version: &str) -> bool {
    Constraint::parse(constraint).unwrap().matches(&Version::parse(version).unwrap())
}

#[test]
fn loose_versions_are_filled_up_and_printed_in_full() {
    for (text, printed) in [
        ("1.2.3", "1.2.3"),
        ("v1.2.3", "1.2.3"),
        ("1", "1.0.0"),
        ("v1.2", "1.2.0"),
        ("01.02.03", "1.2.3"),
        ("1.2-5", "1.2.0-5"),
        ("1.2.3-rc.1+build.5", "1.2.3-rc.1+build.5"),
        ("1.2.3+001", "1.2.3+001"),
        ("1.2.3--", "1.2.3--"),
    ] {
        let version = Version::parse(text).unwrap();
        assert_eq!((version.to_string().as_str(), version.original()), (printed, text));
    }
}

#[test]
fn what_is_no_version_is_refused_with_its_reason() {
    for (text, error) in [
        ("", Error::Version),
        ("banana", Error::Version),
        ("1.2.3.4", Error::Version),
        ("1.2.3-", Error::Version),
        ("V1", Error::Version),
        (" 1", Error::Version),
        ("1.x", Error::Version),
        ("1.2.3-01", Error::LeadingZero),
        ("99999999999999999999.0.0", Error::SegmentTooLarge("99999999999999999999".into())),
    ] {
        assert_eq!(Version::parse(text).unwrap_err(), error, "{text}");
    }
    assert_eq!(Version::parse(&"1".repeat(257)).unwrap_err(), Error::VersionTooLong);
}

#[test]
fn strict_versions_have_three_numbers_and_no_decoration() {
    assert!(Version::parse_strict("1.2.3-rc.1").is_ok());
    for text in ["v1.2.3", "1.2", "01.2.3", "1.2.3.4", "1.2.3-01"] {
        assert!(Version::parse_strict(text).is_err(), "{text}");
    }
}

#[test]
fn versions_are_ordered_by_precedence() {
    let rising = [
        "1.0.0-1",
        "1.0.0-2",
        "1.0.0-10",
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
        "1.0.0",
        "1.0.1",
        "1.10.0",
        "2.0.0",
    ];
    for pair in rising.windows(2) {
        let [low, high] = pair else { continue };
        assert!(Version::parse(low).unwrap() < Version::parse(high).unwrap(), "{low} < {high}");
    }
    assert_eq!(Version::parse("v1.5").unwrap(), Version::parse("1.5.0+meta").unwrap());
}

/// Answers of Masterminds/semver 3.5.
#[test]
fn constraints_hold_as_helm_says() {
    for (constraint, version, expected) in [
        // A full version is meant exactly; an open one is a range.
        ("1.2.3", "1.2.3", true),
        ("1.2.3", "1.2.4", false),
        ("v1.2.3", "1.2.3", true),
        ("=1.2", "1.2.9", true),
        ("1.2", "1.3.0", false),
        ("1", "1.9.9", true),
        ("1", "2.0.0", false),
        ("*", "0.0.1", true),
        ("x", "9.9.9", true),
        ("1.x", "1.5.0", true),
        ("1.2.x", "1.2.7", true),
        ("1.2.X", "1.3.0", false),
        ("0.0.0", "1.0.0", false),
        // Not equal.
        ("!=1.2.3", "1.2.3", false),
        ("!=1.2.3", "1.2.4", true),
        ("!=1.2", "1.2.4", false),
        ("!=1.x", "1.9.0", false),
        ("!=1.x", "2.0.0", true),
        ("!=4.1.x", "4.1.0-beta", false),
        ("!=4.1.0-alpha", "4.1.0-beta", true),
        // Greater and less.
        (">1.2.3", "1.2.4", true),
        (">1", "1.9.0", false),
        (">1", "2.0.0", true),
        (">1.2", "1.2.9", false),
        (">1.2", "1.3.0", true),
        ("<1.2", "1.1.9", true),
        ("<1.2", "1.2.0", false),
        (">=1.19-0", "1.33.1-gke.100", true),
        (">=1.19", "1.33.1-gke.100", false),
        ("=>1.2.0", "1.2.0", true),
        ("<=1.2", "1.2.9", true),
        ("<=1.2", "1.3.0", false),
        ("<=1", "1.9.9", true),
        ("=<1.2.3", "1.2.4", false),
        (">=x", "0.0.0", true),
        // Tilde.
        ("~1.2.3", "1.2.9", true),
        ("~1.2.3", "1.3.0", false),
        ("~1", "1.9.0", true),
        ("~>1.2", "1.2.5", true),
        ("~>1.2", "1.3.0", false),
        ("~0.0.0", "9.0.0", true),
        ("~*", "2.1.1", true),
        ("~0.0", "0.1.0", false),
        // Caret.
        ("^1.2.3", "1.9.0", true),
        ("^1.2.3", "2.0.0", false),
        ("^0.2.3", "0.2.9", true),
        ("^0.2.3", "0.3.0", false),
        ("^0.0.3", "0.0.3", true),
        ("^0.0.3", "0.0.4", false),
        ("^0.0", "0.0.9", true),
        ("^0.0", "0.1.0", false),
        ("^0", "0.9.0", true),
        ("^1.x", "1.4.0", true),
        // Lists, alternatives, ranges.
        (">=1.2, <2", "1.5.0", true),
        (">=1.2 <2", "2.0.0", false),
        (">= 1.2.3, < 2.0.0 || >= 4.2.3", "4.3.0", true),
        (">= 1.2.3, < 2.0.0 || >= 4.2.3", "3.0.0", false),
        ("1.2 - 1.4.5", "1.4.5", true),
        ("1.2 - 1.4.5", "1.4.6", false),
        ("2.3.4 - 4.5", "4.5.9", true),
        ("1 - 2 || 5 - 6", "5.5.0", true),
        // Pre-releases count only where one is named in the same alternative.
        (">=1.2.0", "1.3.0-rc1", false),
        (">=1.2.0-0", "1.3.0-rc1", true),
        (">=1.2.0-0 <2", "1.3.0-rc1", true),
        ("<1 || >=1.2.0-0", "1.3.0-rc1", true),
        ("^1.2.3-alpha", "1.2.3-beta", true),
        ("*", "1.0.0-rc1", false),
        ("*-0", "1.0.0-rc1", true),
        (">0.0.0-0", "1.0.0-rc1", true),
    ] {
        assert_eq!(holds(constraint, version), expected, "{version} in {constraint}");
    }
}

#[test]
fn what_is_no_constraint_is_refused() {
    for text in [
        "",
        " ",
        "||",
        "1 ||",
        "foo",
        ">",
        ">>1",
        ">1<2",
        "1,",
        ",1",
        "1.2.3.4",
        "1x",
        "=<>1",
        "1 - ",
        ">=1 - 2",
        "<5 1 - 2",
        "1 - 2||3 - 4",
    ] {
        assert!(Constraint::parse(text).is_err(), "{text:?}");
    }
    assert_eq!(Constraint::parse(&" ".repeat(513)).unwrap_err(), Error::ConstraintTooLong);
    assert_eq!(Constraint::parse(&["1"; 33].join("||")).unwrap_err(), Error::TooManyGroups);
    assert_eq!(Constraint::parse("foo").unwrap_err().to_string(), "improper constraint: \"foo\"");
}
