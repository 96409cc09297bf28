//! Which request meets which fault.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};

use super::Request;

/// Requests of a kind, the n-th of them, and what happens to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Which requests are counted.
    pub matching: Matching,
    /// Which of those meet the fault.
    pub nth: Nth,
    /// What happens.
    pub fault: Fault,
}

/// A pattern of requests; what is not given matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matching {
    /// One of these verbs.
    pub verbs: Vec<&'static str>,
    /// This plural resource.
    pub resource: Option<String>,
    /// This subresource, empty for the resource itself.
    pub subresource: Option<String>,
    /// This namespace.
    pub namespace: Option<String>,
    /// This object.
    pub name: Option<String>,
}

impl Matching {
    /// All requests.
    pub fn any() -> Self {
        Self::default()
    }

    /// Requests with one of these verbs.
    pub fn verbs(verbs: &[&'static str]) -> Self {
        Self { verbs: verbs.to_vec(), ..Self::default() }
    }

    /// Requests that write, as [`Request::is_write`] has it.
    pub fn writes() -> Self {
        Self::verbs(&["create", "update", "patch", "delete", "deletecollection"])
    }

    /// Of those, the ones for a resource.
    #[must_use]
    pub fn of(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// Of those, the ones in a namespace.
    #[must_use]
    pub fn within(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Of those, the ones for an object.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    fn holds(&self, request: &Request) -> bool {
        let same = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|wanted| wanted == is);
        (self.verbs.is_empty() || self.verbs.contains(&request.verb.as_str()))
            && same(&self.resource, &request.resource)
            && same(&self.subresource, &request.subresource)
            && same(&self.namespace, &request.namespace)
            && same(&self.name, &request.name)
    }
}

/// Which of the matching requests, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nth {
    /// This one.
    Only(u64),
    /// This one and all before it.
    First(u64),
    /// This one and all after it.
    From(u64),
    /// All.
    All,
}

impl Nth {
    const fn holds(self, count: u64) -> bool {
        match self {
            Self::Only(wanted) => count == wanted,
            Self::First(wanted) => count <= wanted,
            Self::From(wanted) => count >= wanted,
            Self::All => true,
        }
    }
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The API server never sees it.
    Answer(Answer),
    /// The API server does it, and its answer is lost: the client gets this one.
    Lose(Answer),
    /// It is held back this long.
    Delay(Duration),
    /// A watch breaks after this many events.
    CutWatch {
        /// Events that still arrive.
        after_events: u64,
    },
    /// Every event of a watch arrives this much later, in order.
    DelayWatch(Duration),
    /// A watch stays open and shows nothing more after this many events: what happens meanwhile is seen only by the
    /// next watch or list.
    MuteWatch {
        /// Events that still arrive.
        after_events: u64,
    },
    /// A list is answered as the same path was when this rule last let it pass: a stale cache of the API server.
    StaleList,
}

/// An answer in the API server's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    code: StatusCode,
    reason: &'static str,
    retry_after: Option<u32>,
}

impl Answer {
    /// 409: somebody else has changed the object.
    pub const fn conflict() -> Self {
        Self { code: StatusCode::CONFLICT, reason: "Conflict", retry_after: None }
    }

    /// 422: the object is not valid.
    pub const fn invalid() -> Self {
        Self { code: StatusCode::UNPROCESSABLE_ENTITY, reason: "Invalid", retry_after: None }
    }

    /// 429: too many requests; try again after these seconds.
    pub const fn too_many(retry_after: u32) -> Self {
        Self {
            code: StatusCode::TOO_MANY_REQUESTS,
            reason: "TooManyRequests",
            retry_after: Some(retry_after),
        }
    }

    /// 500: the API server failed inside.
    pub const fn internal() -> Self {
        Self { code: StatusCode::INTERNAL_SERVER_ERROR, reason: "InternalError", retry_after: None }
    }

    /// 504: the API server did not answer in time, and may or may not have done it.
    pub const fn timeout() -> Self {
        Self { code: StatusCode::GATEWAY_TIMEOUT, reason: "Timeout", retry_after: None }
    }

    /// 410: the version a watch starts from is too old.
    pub const fn expired() -> Self {
        Self { code: StatusCode::GONE, reason: "Expired", retry_after: None }
    }

    pub(super) const fn code(&self) -> StatusCode {
        self.code
    }

    pub(super) const fn retry_after(&self) -> Option<u32> {
        self.retry_after
    }

    /// The `Status` object clients read.
    pub(super) fn body(&self) -> Value {
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("injected fault: {}", self.reason), "reason": self.reason, "code": self.code.as_u16(),
            "details": {"retryAfterSeconds": self.retry_after.unwrap_or_default()},
        })
    }
}

/// The rules of a proxy and how often each has matched.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    rules: Vec<(Rule, u64)>,
}

impl Schedule {
    pub(super) fn add(&mut self, rule: Rule) {
        self.rules.push((rule, 0));
    }

    pub(super) fn clear(&mut self) {
        self.rules.clear();
    }

    /// Counts the request for every rule it matches, and returns the fault of the first that applies.
    pub(super) fn decide(&mut self, request: &Request) -> Decision {
        let mut decision = Decision::default();
        for (rule, count) in self.rules.iter_mut().filter(|(rule, _)| rule.matching.holds(request)) {
            *count += 1;
            let applies = rule.nth.holds(*count);
            decision.remember |= rule.fault == Fault::StaleList && !applies;
            if decision.fault.is_none() && applies {
                decision.fault = Some(rule.fault.clone());
            }
        }
        decision
    }
}

/// What is done with one request.
#[derive(Debug, Default)]
pub(super) struct Decision {
    pub(super) fault: Option<Fault>,
    /// A later request will be answered with this one's answer.
    pub(super) remember: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_matching_request_meets_its_fault_and_no_other_does() {
        let mut schedule = Schedule::default();
        let rule = |nth, fault| Rule { matching: Matching::verbs(&["patch"]).of("pods"), nth, fault };
        schedule.add(rule(Nth::Only(2), Fault::Answer(Answer::conflict())));
        schedule.add(rule(Nth::From(4), Fault::Answer(Answer::internal())));
        let request = |verb: &str, resource: &str| Request {
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            ..Request::default()
        };
        let mut code = |verb: &str, resource: &str| match schedule.decide(&request(verb, resource)) {
            Decision { fault: Some(Fault::Answer(answer)), .. } => answer.code().as_u16(),
            _ => 0,
        };
        let codes =
            [code("patch", "pods"), code("get", "pods"), code("patch", "nodes"), code("patch", "pods")];
        assert_eq!(codes, [0, 0, 0, 409]);
        assert_eq!([code("patch", "pods"), code("patch", "pods"), code("patch", "pods")], [0, 500, 500]);
    }
}
