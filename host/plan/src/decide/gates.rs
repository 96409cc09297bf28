//! Gates of objects that are in place.

use pintle_api::{Answer, Blocker, LogTail, Object, Query, Verdict};
use regex::Regex;

use super::{InPlace, Run};
use crate::{
    Call, CallKey, PoolInput, Rendered, StateInput, Step, Term, gate::parse_gate, has_rule, judge,
    ready::pods_selector,
};

/// Lines of a log that a `logs()` gate looks at.
const LOG_LINES: u32 = 2_000;
/// Bytes of a log that a `logs()` gate looks at.
const LOG_BYTES: u32 = 256 * 1024;

/// Gates that cannot be read: the state is not touched before the chart is mended.
pub(super) fn refuse_broken(objects: &[Rendered]) -> Option<Verdict> {
    let broken = objects.iter().filter_map(|rendered| {
        let err = parse_gate(&rendered.object, false).err()?;
        let message = format!("{}: {err}", rendered.source);
        Some(Blocker::new("GateInvalid", message).on(rendered.object.reference()))
    });
    let blockers: Vec<_> = broken.collect();
    (!blockers.is_empty()).then_some(Verdict::Fatal(blockers))
}

impl Run<'_> {
    /// The verdict over all terms of an object's gate; every term is evaluated.
    pub(super) fn gate(&mut self, state: &StateInput, pool: &PoolInput, object: &InPlace<'_>) -> Verdict {
        let Ok(gate) = parse_gate(&object.rendered.object, self.is_gated_by_default(object.rendered)) else {
            return Verdict::Ready;
        };
        gate.terms.iter().fold(Verdict::Ready, |verdict, term| {
            verdict.and(match term {
                Term::Builtin { empty_is_ready } => judge(&object.live, self.input.facts, *empty_is_ready),
                Term::Logs { text, pattern } => self.match_logs(state, pool, &object.live, (text, pattern)),
                Term::Plugin { name, args } => self.ask(state, pool, object, name, args),
            })
        })
    }

    fn is_gated_by_default(&self, rendered: &Rendered) -> bool {
        let object = &rendered.object;
        matches!(object.kind(), "CustomResourceDefinition" | "Namespace")
            || (self.input.release.gates_all && has_rule(object))
    }

    fn ask(
        &mut self,
        state: &StateInput,
        pool: &PoolInput,
        object: &InPlace<'_>,
        plugin: &str,
        args: &str,
    ) -> Verdict {
        let key = CallKey {
            plugin: plugin.to_owned(),
            target: object.live.reference(),
            state: state.name.clone(),
            pool: pool.pool.clone(),
            args: args.to_owned(),
        };
        match self.input.answers.calls.get(&key) {
            Some(answer) => {
                if let Some(time) = answer.recheck {
                    self.wake_within(time);
                }
                answer.verdict.clone()
            }
            None => {
                let elapsed_seconds = self.seconds_in(state);
                self.steps.push(Step::Call(Call { key, target: object.live.clone(), elapsed_seconds }));
                Verdict::Pending(Vec::new())
            }
        }
    }

    fn seconds_in(&self, state: &StateInput) -> i64 {
        let before = self.input.before.iter().find(|before| before.name == state.name);
        let since = before.and_then(|before| before.since);
        since.map_or(0, |since| self.input.now.duration_since(since).as_secs())
    }

    /// The log of every pod matches. A match that let the state pass holds for good: logs rotate.
    fn match_logs(
        &mut self,
        state: &StateInput,
        pool: &PoolInput,
        live: &Object,
        pattern: (&str, &Regex),
    ) -> Verdict {
        if self.memory.has_passed(&state.name, &pool.pool) {
            return Verdict::Ready;
        }
        let Some(label_selector) =
            pods_selector(live).or_else(|| live.label("app").map(|app| format!("app={app}")))
        else {
            let message = "it selects no pods whose logs could be read; put the gate on a workload";
            return Verdict::fatal(Blocker::new("GateNotJudgeable", message).on(live.reference()));
        };
        let pods = self.input.facts.list(&Query {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            namespace: live.namespace().map(str::to_owned),
            label_selector: Some(label_selector),
        });
        match pods {
            Answer::Found(pods) if !pods.is_empty() => {
                pods.iter().fold(Verdict::Ready, |verdict, pod| verdict.and(self.match_log(pod, pattern)))
            }
            Answer::Denied(why) => Verdict::transient(Blocker::new("Forbidden", why).on(live.reference())),
            _ => {
                let message = "it has no pods whose logs could match yet";
                Verdict::pending(Blocker::new("NoPods", message).on(live.reference()))
            }
        }
    }

    fn match_log(&self, pod: &Object, (text, pattern): (&str, &Regex)) -> Verdict {
        let containers = pod.at("/spec/containers").and_then(serde_json::Value::as_array);
        let first = containers.and_then(|list| list.first()?.get("name")?.as_str());
        let log = LogTail {
            namespace: pod.namespace().unwrap_or_default().to_owned(),
            pod: pod.name().to_owned(),
            container: first.map(str::to_owned),
            previous: false,
            lines: LOG_LINES,
            max_bytes: LOG_BYTES,
        };
        let (reason, message) = match self.input.facts.tail(&log) {
            Answer::Found(log) if pattern.is_match(&log) => return Verdict::Ready,
            Answer::Found(_) => ("LogNotMatched", format!("its log has no match for `{text}` yet")),
            Answer::Denied(why) => ("Forbidden", why),
            _ => ("NoLog", "its log cannot be read yet".to_owned()),
        };
        let blocker = Blocker::new(reason, message).on(pod.reference());
        Verdict::pending(match pod.str_at("/spec/nodeName") {
            Some(node) => blocker.at_node(node),
            None => blocker,
        })
    }
}
