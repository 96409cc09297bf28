//! The custom section of a component in which its manifest stands, so that a registry, a scanner or
//! `inspect` can read it without running anything.

use anyhow::{Context as _, bail};

/// Name of the section.
pub(super) const NAME: &str = "pintle.dev/manifest";
/// The annotation of an image with the same text.
pub(super) const ANNOTATION: &str = "pintle.dev/manifest";
/// What a component begins with: magic number, version 13, layer 1.
const HEADER: [u8; 8] = [0, b'a', b's', b'm', 0x0d, 0, 1, 0];

/// The component with its manifest in the section; an older one is replaced.
///
/// # Errors
/// When the bytes are no component.
pub(super) fn with_manifest(component: &[u8], manifest: &str) -> anyhow::Result<Vec<u8>> {
    let mut out = HEADER.to_vec();
    for section in sections(component)? {
        if section.name != Some(NAME) {
            out.extend_from_slice(section.all);
        }
    }
    let mut body = Vec::new();
    put_number(&mut body, NAME.len());
    body.extend_from_slice(NAME.as_bytes());
    body.extend_from_slice(manifest.as_bytes());
    out.push(0);
    put_number(&mut out, body.len());
    out.extend_from_slice(&body);
    Ok(out)
}

/// The manifest in a component's section; nothing where it has none.
///
/// # Errors
/// When the bytes are no component.
pub(super) fn manifest(component: &[u8]) -> anyhow::Result<Option<String>> {
    let found = sections(component)?.into_iter().find(|section| section.name == Some(NAME));
    found
        .map(|section| String::from_utf8(section.data.to_vec()).context("its manifest is no text"))
        .transpose()
}

struct Section<'a> {
    all: &'a [u8],
    name: Option<&'a str>,
    data: &'a [u8],
}

fn sections(component: &[u8]) -> anyhow::Result<Vec<Section<'_>>> {
    let Some(mut rest) = component.strip_prefix(&HEADER) else {
        bail!("it is no WebAssembly component; a core module becomes one with `pintle plugin build`")
    };
    let mut sections = Vec::new();
    while let Some((id, after)) = rest.split_first() {
        let (length, body) = number(after).context("a section has no length")?;
        let (Some(body), Some(next)) = (body.get(..length), body.get(length..)) else {
            bail!("it ends inside of a section; was it cut off on its way?")
        };
        let all = rest.get(..rest.len() - next.len()).unwrap_or_default();
        let named = (*id == 0).then(|| named(body)).flatten();
        let (name, data) = named.map_or((None, body), |(name, data)| (Some(name), data));
        sections.push(Section { all, name, data });
        rest = next;
    }
    Ok(sections)
}

fn named(body: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = number(body)?;
    Some((std::str::from_utf8(rest.get(..length)?).ok()?, rest.get(length..)?))
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

fn put_number(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).unwrap_or_default() | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn a_manifest_is_found_again_and_replaced_not_doubled() {
        let bare = [HEADER.as_slice(), &[0, 5, 1, b'x', 1, 2, 3]].concat();
        assert_eq!(manifest(&bare).unwrap(), None);
        let long = "x".repeat(300);
        let first = with_manifest(&bare, &long).unwrap();
        assert_eq!(manifest(&first).unwrap().unwrap(), long);
        let second = with_manifest(&first, "{}").unwrap();
        assert_eq!(manifest(&second).unwrap().unwrap(), "{}");
        assert_eq!(second, with_manifest(&bare, "{}").unwrap());
    }

    #[test]
    fn what_is_no_component_or_cut_off_is_said() {
        assert!(manifest(b"\0asm\x01\0\0\0").unwrap_err().to_string().contains("no WebAssembly component"));
        let cut = [HEADER.as_slice(), &[0, 9, 1]].concat();
        assert!(manifest(&cut).unwrap_err().to_string().contains("cut off"));
    }
}
