//! Logs of pods. What was not yet read is `Unavailable`: go on and read the others too, then the
//! host fetches all of them at once and calls again.

use crate::{ObjectRef, host, kube::ReadError};

/// The end of a container's log.
#[derive(Clone, Debug)]
pub struct Tail<'a> {
    /// Absent: the only container, or the first.
    pub container: Option<&'a str>,
    /// The container that ran before the last restart.
    pub previous: bool,
    /// At most this many lines.
    pub lines: u32,
    /// At most this many bytes; 0 for the host's maximum.
    pub max_bytes: u32,
}

impl Default for Tail<'_> {
    fn default() -> Self {
        Self { container: None, previous: false, lines: 100, max_bytes: 0 }
    }
}

/// Reads the end of a log.
///
/// # Errors
/// When it is not granted, or there is no such pod or container, or nobody could read it.
pub fn tail(namespace: &str, pod: &str, tail: &Tail<'_>) -> Result<String, ReadError> {
    let Tail { container, previous, lines, max_bytes } = *tail;
    let pod = ObjectRef::new("v1", "Pod", pod).within(namespace);
    Ok(host::tail(&pod, container, previous, lines, max_bytes)?)
}

/// The first line that matches a pattern (RE2), nothing when none does.
///
/// # Errors
/// As [`tail`], and when the pattern is none.
pub fn search(
    namespace: &str,
    pod: &str,
    container: Option<&str>,
    pattern: &str,
) -> Result<Option<String>, ReadError> {
    let pod = ObjectRef::new("v1", "Pod", pod).within(namespace);
    Ok(host::search(&pod, container, pattern)?)
}
