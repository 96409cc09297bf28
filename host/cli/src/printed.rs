//! Standard output, the one way all commands write to it.

use std::io::{self, ErrorKind, Write};

use anyhow::Context as _;

/// Writes to standard output. Whoever reads it and has seen enough, as `head`, ends it without an error.
///
/// # Errors
/// When it cannot be written for another reason, as a full disk.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    write_to(&mut io::stdout().lock(), text).context("could not print")
}

fn write_to(out: &mut impl Write, text: &str) -> io::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        ended => ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What refuses every byte.
    struct Refuses(ErrorKind);

    impl Write for Refuses {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_has_seen_enough_is_no_error() {
        assert!(write_to(&mut Refuses(ErrorKind::BrokenPipe), "text").is_ok());
        assert!(write_to(&mut Refuses(ErrorKind::StorageFull), "text").is_err());
    }
}
