//! What an operator asked the API server for, counted from the audit log.

use std::collections::BTreeMap;

use pintle_dev::audit::{Request, Stage};

use crate::workload;

/// Requests of one operator in one span of time. A watch counts by itself and a lease not at all, since both are
/// there whether there are releases or not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    /// All but watches.
    pub requests: usize,
    /// Watches that were begun, by resource.
    pub watches: BTreeMap<String, usize>,
    /// Of the requests, those that asked for a change; events are among them.
    pub writes: usize,
    /// Of the writes, Events.
    pub events: usize,
    /// Of the requests, changes that were only tried. They are no writes.
    pub dry_runs: usize,
    /// Of the writes, those that the API server refused.
    pub refused: usize,
    /// Of the requests, those for no object: which kinds there are, and what they look like.
    pub discovery: usize,
    /// The requests by verb, then by resource.
    pub by_verb: BTreeMap<String, BTreeMap<String, usize>>,
    /// The writes that name an object of the first release, in order.
    pub of_one: Vec<String>,
}

// === impl Traffic ===

impl Traffic {
    pub(crate) fn of(requests: &[Request]) -> Self {
        let mut traffic = Self::default();
        for request in requests.iter().filter(|request| request.resource != "leases") {
            traffic.add(request);
        }
        traffic
    }

    fn add(&mut self, request: &Request) {
        if request.verb == "watch" {
            if request.stage == Stage::Started {
                *self.watches.entry(request.resource.clone()).or_default() += 1;
            }
            return;
        }
        let (is_dry, is_write) = (request.uri.contains("dryRun=All"), request.is_write());
        self.requests += 1;
        self.dry_runs += usize::from(is_dry && is_write);
        self.writes += usize::from(is_write && !is_dry);
        self.refused += usize::from(is_write && !is_dry && request.code >= 300);
        self.events += usize::from(is_write && request.resource == "events");
        self.discovery += usize::from(request.resource.is_empty());
        let slash = if request.subresource.is_empty() { "" } else { "/" };
        let resource = match request.resource.as_str() {
            "" => "(no object)".to_owned(),
            resource => format!("{resource}{slash}{}", request.subresource),
        };
        if is_write && is_of_one(&request.name) {
            let refused = if request.code < 300 { "" } else { " (refused)" };
            self.of_one.push(format!("{resource} {}{refused}", request.name));
        }
        *self.by_verb.entry(request.verb.clone()).or_default().entry(resource).or_default() += 1;
    }

    pub(crate) fn of_verb(&self, verb: &str) -> usize {
        self.by_verb.get(verb).map_or(0, |resources| resources.values().sum())
    }

    pub(crate) fn watches_begun(&self) -> usize {
        self.watches.values().sum()
    }

    /// Whether the operator did anything but watch.
    pub(crate) const fn is_silent(&self) -> bool {
        self.requests == 0
    }
}

/// Objects of a release bear its name, and its records and memories have it between dots.
fn is_of_one(name: &str) -> bool {
    let one = workload::name(0);
    name.split('.').any(|part| part == one)
}
