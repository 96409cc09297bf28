//! The loop of one candidate.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::{sync::oneshot, time::Instant};

use super::{LeaseSettings, Phase, Shared};
use crate::{
    link::{Failure, Link},
    write::record,
};

/// Tries of candidates are spread by up to this factor, as client-go spreads them.
const JITTER: f64 = 0.2;

/// One candidate's view of the record.
struct Candidate {
    link: Arc<Link>,
    shared: Arc<Shared>,
    seen: Option<Seen>,
}

/// The record as last read, and when it was first seen so.
struct Seen {
    lease: Value,
    at: Instant,
}

/// Runs until the lease is lost or a release is asked for.
pub(super) async fn run(link: Arc<Link>, shared: Arc<Shared>, stop: oneshot::Receiver<()>) {
    let mut candidate = Candidate { link, shared: Arc::clone(&shared), seen: None };
    let stopped = tokio::select! {
        () = candidate.lead() => false,
        _ = stop => true,
    };
    let led = *shared.phase.borrow() == Phase::Leading;
    shared.enter(Phase::Ending);
    if stopped && led {
        shared.drain().await;
        if let Err(error) = candidate.free().await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "could not free the lease; it runs out by itself"
            );
        }
    }
    shared.enter(Phase::Ended);
}

impl Candidate {
    /// Acquires, then renews; returns when the lease is lost.
    async fn lead(&mut self) {
        let LeaseSettings { retry_period, renew_deadline, identity, .. } = self.shared.settings.clone();
        while !self.try_once().await {
            tokio::time::sleep(retry_period.mul_f64(1.0 + rand::random::<f64>() * JITTER)).await;
        }
        tracing::info!(identity, "leading");
        self.shared.enter(Phase::Leading);
        loop {
            tokio::time::sleep(retry_period).await;
            if !self.renew(renew_deadline, retry_period).await {
                tracing::error!(identity, "the lease was lost");
                return;
            }
        }
    }

    /// False when no try succeeded before the deadline.
    async fn renew(&mut self, deadline: Duration, pause: Duration) -> bool {
        let last = *self.shared.renewed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let until = last.unwrap_or_else(Instant::now) + deadline;
        let renewal = async {
            while !self.try_once().await {
                tokio::time::sleep(pause).await;
            }
        };
        tokio::time::timeout_at(until, renewal).await.is_ok()
    }

    /// True when we hold the lease after it.
    async fn try_once(&mut self) -> bool {
        let sent = Instant::now();
        match self.acquire_or_renew().await {
            Ok(true) => {
                self.shared.renewed_at(sent);
                true
            }
            Ok(false) => false,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "could not acquire or renew the lease"
                );
                false
            }
        }
    }

    async fn acquire_or_renew(&mut self) -> Result<bool, Failure> {
        // A renewal is one request while nobody interferes.
        if self.holds()
            && let Some(seen) = &self.seen
        {
            let lease = self.renewed(&seen.lease);
            if self.put(&lease).await.is_ok() {
                return Ok(true);
            }
        }
        let LeaseSettings { namespace, name, .. } = self.shared.settings.clone();
        let Some(lease) = record::read(&self.link, &namespace, &name).await? else {
            let made = record::create(&self.link, &namespace, &self.first()).await?;
            self.observe(made);
            return Ok(true);
        };
        self.observe(lease.clone());
        if self.is_held_by_another() {
            return Ok(false);
        }
        self.put(&self.renewed(&lease)).await?;
        Ok(true)
    }

    async fn put(&mut self, lease: &Value) -> Result<(), Failure> {
        let LeaseSettings { namespace, name, .. } = &self.shared.settings;
        let stored = record::replace(&self.link, namespace, name, lease).await?;
        self.observe(stored);
        Ok(())
    }

    /// Frees the lease for whoever asks next. A renewal that was cut off may have been stored, so a first
    /// failure reads the record again.
    async fn free(&mut self) -> Result<(), Failure> {
        if self.put_free().await.is_ok() {
            return Ok(());
        }
        let LeaseSettings { namespace, name, .. } = self.shared.settings.clone();
        if let Some(lease) = record::read(&self.link, &namespace, &name).await? {
            self.observe(lease);
        }
        self.put_free().await
    }

    /// Stores a record that nobody holds; transitions stay counted.
    async fn put_free(&mut self) -> Result<(), Failure> {
        let Some(seen) = &self.seen else { return Ok(()) };
        if !self.holds() {
            return Ok(());
        }
        let mut lease = seen.lease.clone();
        set(&mut lease, "holderIdentity", Value::from(""));
        set(&mut lease, "leaseDurationSeconds", Value::from(1));
        set(&mut lease, "renewTime", now());
        self.put(&lease).await
    }

    /// The time of the first sight of a record is kept while its spec stays the same.
    fn observe(&mut self, lease: Value) {
        let at = match &self.seen {
            Some(seen) if seen.lease.get("spec") == lease.get("spec") => seen.at,
            _ => Instant::now(),
        };
        self.seen = Some(Seen { lease, at });
    }

    fn holds(&self) -> bool {
        self.seen.as_ref().is_some_and(|seen| holder(&seen.lease) == self.shared.settings.identity)
    }

    fn is_held_by_another(&self) -> bool {
        let Some(seen) = &self.seen else { return false };
        let holder = holder(&seen.lease);
        let seconds = seen.lease.pointer("/spec/leaseDurationSeconds").and_then(Value::as_u64);
        let valid = seconds.map_or(self.shared.settings.duration, Duration::from_secs);
        !holder.is_empty() && holder != self.shared.settings.identity && seen.at.elapsed() < valid
    }

    fn first(&self) -> Value {
        let LeaseSettings { namespace, name, identity, .. } = &self.shared.settings;
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {
                "holderIdentity": identity,
                "leaseDurationSeconds": self.seconds(),
                "acquireTime": now(),
                "renewTime": now(),
                "leaseTransitions": 0,
            },
        })
    }

    /// The record with us as its holder, from now.
    fn renewed(&self, lease: &Value) -> Value {
        let mut lease = lease.clone();
        let identity = &self.shared.settings.identity;
        if holder(&lease) != *identity {
            let transitions =
                lease.pointer("/spec/leaseTransitions").and_then(Value::as_i64).unwrap_or_default();
            set(&mut lease, "leaseTransitions", Value::from(transitions + 1));
            set(&mut lease, "acquireTime", now());
        }
        set(&mut lease, "holderIdentity", Value::from(identity.as_str()));
        set(&mut lease, "leaseDurationSeconds", Value::from(self.seconds()));
        set(&mut lease, "renewTime", now());
        lease
    }

    /// Whole seconds, as the API counts them, at least one.
    fn seconds(&self) -> u64 {
        self.shared.settings.duration.as_secs().max(1)
    }
}

fn holder(lease: &Value) -> &str {
    lease.pointer("/spec/holderIdentity").and_then(Value::as_str).unwrap_or_default()
}

fn set(lease: &mut Value, field: &str, value: Value) {
    let Some(lease) = lease.as_object_mut() else { return };
    let spec = lease.entry("spec").or_insert_with(|| json!({}));
    if let Some(spec) = spec.as_object_mut() {
        spec.insert(field.to_owned(), value);
    }
}

fn now() -> Value {
    Value::from(Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string())
}
