//! `pod-logs`: the end of a container's log, within the grants.

use pintle_api::{LogTail, ObjectRef, plugin::Identity};
use regex::{Regex, RegexBuilder};
use wasmtime::component::{HasData, Linker};

use super::kube_read::{denied, found, reference};
use crate::{
    bindings::pintle::plugin::{
        pod_logs,
        types::{ObjectRef as GuestRef, ReadError},
    },
    call::Called,
    grants::Scope,
    limits,
    reads::Reads,
    state::State,
};

/// What a call of this ability works on.
pub(crate) struct PodLogs<'a> {
    reads: &'a mut Reads,
    scope: &'a Scope,
    called: &'a mut Called,
}

impl<'a> PodLogs<'a> {
    pub(crate) fn new(reads: &'a mut Reads, scope: &'a Scope, called: &'a mut Called) -> Self {
        Self { reads, scope, called }
    }
}

impl HasData for PodLogs<'static> {
    type Data<'a> = PodLogs<'a>;
}

pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    pod_logs::add_to_linker::<State, PodLogs<'static>>(linker, |state| {
        PodLogs::new(&mut state.reads, &state.scope, &mut state.called)
    })
}

impl pod_logs::Host for PodLogs<'_> {
    async fn tail(
        &mut self,
        pod: GuestRef,
        container: Option<String>,
        previous: bool,
        lines: u32,
        max_bytes: u32,
    ) -> wasmtime::Result<Result<String, ReadError>> {
        self.reads.count_tail()?;
        self.called.logs = true;
        let lines = lines.clamp(1, limits::TAIL_LINES);
        let max_bytes = if max_bytes == 0 { limits::TAIL_BYTES } else { max_bytes.min(limits::TAIL_BYTES) };
        let read = self.read(&reference(pod), container, previous, (lines, max_bytes));
        self.counted(read)
    }

    async fn search(
        &mut self,
        pod: GuestRef,
        container: Option<String>,
        pattern: String,
    ) -> wasmtime::Result<Result<Option<String>, ReadError>> {
        self.reads.count_tail()?;
        self.called.logs = true;
        let pattern = match compiled(&pattern) {
            Ok(pattern) => pattern,
            Err(error) => return Ok(Err(error)),
        };
        let read = self.read(&reference(pod), container, false, (limits::TAIL_LINES, limits::TAIL_BYTES));
        Ok(self.counted(read)?.and_then(|log| first_match(&log, &pattern)))
    }
}

// === impl PodLogs ===

impl PodLogs<'_> {
    fn read(
        &mut self,
        pod: &ObjectRef,
        container: Option<String>,
        previous: bool,
        (lines, max_bytes): (u32, u32),
    ) -> Result<String, ReadError> {
        let Some(namespace) = pod.namespace.clone().filter(|_| pod.kind == "Pod" && pod.api_version == "v1")
        else {
            return Err(ReadError::Denied(format!("{pod} is not a pod in a namespace")));
        };
        let identity = self.permit(pod, &namespace)?;
        let log = LogTail { namespace, pod: pod.name.clone(), container, previous, lines, max_bytes };
        found(self.reads.tail(&log, identity))
    }

    /// Whose rights the log is read with.
    fn permit(&mut self, pod: &ObjectRef, namespace: &str) -> Result<Identity, ReadError> {
        let rules = self.scope.log_rules(namespace).map_err(denied)?;
        let open = rules.iter().filter(|rule| rule.selector.is_everything()).map(|rule| rule.identity);
        if let Some(identity) = open.max() {
            return Ok(identity);
        }
        let widest = rules.iter().map(|rule| rule.identity).max().unwrap_or_default();
        let object = found(self.reads.get(pod, widest))?;
        let selected = rules.iter().filter(|rule| rule.selector.selects(&object));
        let identity = selected.map(|rule| rule.identity).max();
        identity.ok_or_else(|| denied(self.scope.deny_logs(namespace)))
    }

    fn counted(&mut self, read: Result<String, ReadError>) -> wasmtime::Result<Result<String, ReadError>> {
        match &read {
            Ok(log) => self.reads.count_bytes(log.len())?,
            Err(ReadError::Unavailable(_)) => self.reads.note_unavailable(),
            Err(_) => {}
        }
        Ok(read)
    }
}

fn compiled(pattern: &str) -> Result<Regex, ReadError> {
    if pattern.len() > limits::PATTERN {
        return Err(ReadError::Denied(format!("a pattern has at most {} bytes", limits::PATTERN)));
    }
    let built = RegexBuilder::new(pattern).size_limit(limits::PATTERN_COMPILED).build();
    built.map_err(|error| ReadError::Denied(format!("the pattern cannot be used: {error}")))
}

/// The first line that matches. A log that is longer than the window may have had a match before
/// it, so no match in it proves nothing.
fn first_match(log: &str, pattern: &Regex) -> Result<Option<String>, ReadError> {
    if let Some(line) = log.lines().find(|line| pattern.is_match(line)) {
        return Ok(Some(line.to_owned()));
    }
    let is_cut =
        log.len() >= limits::TAIL_BYTES as usize || log.lines().count() >= limits::TAIL_LINES as usize;
    if is_cut {
        return Err(ReadError::Unavailable("the log is longer than the part that is searched".into()));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn no_match_in_a_cut_log_proves_nothing() {
        let pattern = compiled("^loaded .*$").unwrap();
        assert_eq!(first_match("a\nloaded x\nloaded y", &pattern).unwrap(), Some("loaded x".to_owned()));
        assert_eq!(first_match("a\nb", &pattern).unwrap(), None);
        let long = "x\n".repeat(limits::TAIL_LINES as usize);
        assert!(matches!(first_match(&long, &pattern), Err(ReadError::Unavailable(_))));
    }

    #[test]
    fn a_pattern_that_explodes_is_refused() {
        assert!(matches!(compiled("(a{1000}){1000}"), Err(ReadError::Denied(_))));
        assert!(matches!(compiled("("), Err(ReadError::Denied(_))));
        assert!(matches!(compiled(&"a".repeat(limits::PATTERN + 1)), Err(ReadError::Denied(_))));
    }
}
