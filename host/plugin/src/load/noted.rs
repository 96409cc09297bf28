//! What is told of a plugin before it runs, held against what it says itself.

use super::LoadError;
use crate::Manifest;

/// Name of the custom section with the manifest.
const SECTION: &str = "pintle.dev/manifest";
/// Bytes of magic number, version and layer.
const HEADER: usize = 8;

/// The manifest in the section of a component; nothing where it has none.
pub(super) fn in_section(component: &[u8]) -> Option<&[u8]> {
    let mut rest = component.get(HEADER..)?;
    while let Some((id, after)) = rest.split_first() {
        let (length, body) = number(after)?;
        let (section, next) = body.split_at_checked(length)?;
        if *id == 0
            && let Some((length, named)) = number(section)
            && let Some((name, data)) = named.split_at_checked(length)
            && name == SECTION.as_bytes()
        {
            return Some(data);
        }
        rest = next;
    }
    None
}

/// Compares a manifest that is noted somewhere with the one that the plugin gives.
///
/// # Errors
/// When they differ: the place, and the first field.
pub(super) fn check(place: &'static str, noted: &[u8], given: &Manifest) -> Result<(), LoadError> {
    let mismatch = |difference: String| LoadError::ManifestMismatch { place, difference };
    let text = std::str::from_utf8(noted).map_err(|_| mismatch("it is no text".to_owned()))?;
    let noted = Manifest::parse(text).map_err(|error| mismatch(error.to_string()))?;
    if noted == *given {
        return Ok(());
    }
    let fields = |manifest: &Manifest| serde_json::to_value(manifest).unwrap_or_default();
    let (noted, given) = (fields(&noted), fields(given));
    let names = given.as_object().into_iter().flat_map(|fields| fields.keys());
    let differs = names.into_iter().find(|name| noted.get(name.as_str()) != given.get(name.as_str()));
    Err(mismatch(
        differs.map_or_else(|| "it has other fields".to_owned(), |name| format!("its {name} differs")),
    ))
}

/// A number of WebAssembly (LEB128), and what comes after it.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_usize;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        value |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(at + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn a_section_is_found_behind_others_and_a_broken_component_has_none() {
        let header = b"\0asm\x0d\0\x01\0";
        let section = |name: &str, data: &[u8]| {
            let body = [&[u8::try_from(name.len()).unwrap()], name.as_bytes(), data].concat();
            [&[0, u8::try_from(body.len()).unwrap()], body.as_slice()].concat()
        };
        let component = [header.as_slice(), &section("x", b"y"), &section(SECTION, b"{}")].concat();
        assert_eq!(in_section(&component), Some(b"{}".as_slice()));
        for cut in 0..component.len() {
            assert_eq!(in_section(&component[..cut]), None, "{cut}");
        }
        assert_eq!(in_section(&[header.as_slice(), &[0, 0xff, 0xff, 0xff, 0xff, 0xff]].concat()), None);
    }
}
