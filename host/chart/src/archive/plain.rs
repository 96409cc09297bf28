//! The entries of a tar that lies in memory: regular files, folders and links with names that fit their header,
//! which is all that most charts have.
//!
//! Whatever else an archive holds (long names, numbers in another form, damage) makes this reader give up, and
//! the crate `tar` reads the archive from its start: so what is read here must be what the crate reads.

use std::{borrow::Cow, ops::Range};

/// Bytes of a header; contents are filled up to a multiple of it.
const BLOCK: usize = 512;

const NAME: Range<usize> = 0..100;
const SIZE: Range<usize> = 124..136;
const CHECKSUM: Range<usize> = 148..156;
const MAGIC: Range<usize> = 257..265;
const PREFIX: Range<usize> = 345..500;

/// An entry as it lies in the archive.
pub(super) struct Entry<'a> {
    header: &'a [u8; BLOCK],
    /// Its content.
    pub(super) data: &'a [u8],
}

/// An archive that is not in the subset.
pub(super) struct GivenUp;

/// The entries of an archive, in order. After [`GivenUp`] there is nothing more.
pub(super) struct Entries<'a> {
    rest: &'a [u8],
}

impl<'a> Entries<'a> {
    pub(super) fn of(tar: &'a [u8]) -> Self {
        Self { rest: tar }
    }

    /// The next entry; `None` for damage and what is not in the subset.
    fn entry(&mut self) -> Option<Entry<'a>> {
        let (header, rest) = self.rest.split_first_chunk::<BLOCK>()?;
        let size = usize::try_from(number(header.get(SIZE)?)?).ok()?;
        let data = rest.get(..size)?;
        self.rest = rest.get(size.checked_next_multiple_of(BLOCK)?..)?;
        let is_known = matches!(header.get(CHECKSUM.end)?, 0 | b'0'..=b'2' | b'5' | b'7');
        (is_known && number(header.get(CHECKSUM)?)? == checksum(header)).then_some(Entry { header, data })
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, GivenUp>;

    fn next(&mut self) -> Option<Self::Item> {
        // A block of zeros ends an archive, whatever comes behind it.
        if self.rest.iter().take(BLOCK).all(|byte| *byte == 0) && !matches!(self.rest.len(), 1..BLOCK) {
            return None;
        }
        let entry = self.entry();
        if entry.is_none() {
            self.rest = &[];
        }
        Some(entry.ok_or(GivenUp))
    }
}

impl<'a> Entry<'a> {
    /// Whether it is no folder and no link.
    pub(super) fn is_file(&self) -> bool {
        matches!(self.header.get(CHECKSUM.end), Some(0 | b'0' | b'7'))
    }

    /// Its path as it is written.
    pub(super) fn path(&self) -> Cow<'a, [u8]> {
        let field = |range: Range<usize>| until_zero(self.header.get(range).unwrap_or_default());
        let (name, prefix) = (field(NAME), field(PREFIX));
        if prefix.is_empty() || self.header.get(MAGIC) != Some(b"ustar\x0000") {
            return Cow::Borrowed(name);
        }
        Cow::Owned([prefix, b"/", name].concat())
    }
}

/// The sum of a header's bytes, those of the sum itself counted as blanks.
fn checksum(header: &[u8; BLOCK]) -> u64 {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    let own = header.get(CHECKSUM).unwrap_or_default();
    sum(header) - sum(own) + u64::from(b' ') * own.len() as u64
}

/// A number in octal digits with blanks around them.
fn number(field: &[u8]) -> Option<u64> {
    let digits = until_zero(field).trim_ascii();
    let add = |number: u64, digit: &u8| match digit {
        b'0'..=b'7' => number.checked_mul(8)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, add) }
}

fn until_zero(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}
