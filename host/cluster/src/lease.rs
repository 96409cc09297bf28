//! Who may write: leader election as client-go does it, and the permits that come from it (D34).
//!
//! The clock that decides is this process's own monotonic one: a candidate waits a whole lease from the
//! moment it saw the record change, so clocks of machines need not agree.

mod campaign;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot, watch},
    time::Instant,
};

use crate::link::Link;

/// How long a release waits for writes that have started.
const DRAIN: Duration = Duration::from_secs(5);

/// Name, identity and times of a lease. The defaults are client-go's 15, 10 and 2 s, and 8 s for writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseSettings {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Who we are; two candidates must never have the same.
    pub identity: String,
    /// Others wait this long after our last renewal.
    pub duration: Duration,
    /// We give up after this long without a renewal.
    pub renew_deadline: Duration,
    /// Time between two tries.
    pub retry_period: Duration,
    /// No write starts after this long without a renewal.
    pub write_deadline: Duration,
}

/// The right to write; clones speak of the same election. It ends when the last clone is dropped.
#[derive(Clone)]
pub struct Leadership {
    inner: Option<Arc<Inner>>,
}

/// While it lives, a release of the lease waits.
#[must_use = "a write needs its permit until it has ended"]
pub struct Permit {
    shared: Option<Arc<Shared>>,
}

/// Why there is no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotLeading {
    /// Another process leads, or nobody does yet.
    #[error("another process leads")]
    Standby,
    /// The lease could not be renewed for too long.
    #[error("the lease was not renewed for {} s", .0.as_secs())]
    Unrenewed(Duration),
    /// The lease was lost or released; this process never writes again.
    #[error("the lease was lost or released")]
    Ended,
}

struct Inner {
    shared: Arc<Shared>,
    stop: Mutex<Option<oneshot::Sender<()>>>,
    task: tokio::task::AbortHandle,
}

struct Shared {
    settings: LeaseSettings,
    phase: watch::Sender<Phase>,
    /// When the last successful renewal was sent.
    renewed: Mutex<Option<Instant>>,
    permits: AtomicUsize,
    drained: Notify,
}

/// Where this process is in the election; it never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Standby,
    Leading,
    Ending,
    Ended,
}

// === impl LeaseSettings ===

impl LeaseSettings {
    /// The usual times.
    #[must_use]
    pub fn new(namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            write_deadline: Duration::from_secs(8),
        }
    }
}

// === impl Leadership ===

impl Leadership {
    /// The right to write without an election: for commands a person runs, and for one operator alone.
    #[must_use]
    pub fn always() -> Self {
        Self { inner: None }
    }

    pub(crate) fn campaign(link: Arc<Link>, settings: LeaseSettings) -> Self {
        let (phase, _) = watch::channel(Phase::Standby);
        let (renewed, permits, drained) = Default::default();
        let shared = Arc::new(Shared { settings, phase, renewed, permits, drained });
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(campaign::run(link, Arc::clone(&shared), stopped)).abort_handle();
        Self { inner: Some(Arc::new(Inner { shared, stop: Mutex::new(Some(stop)), task })) }
    }

    /// A permit for one write.
    ///
    /// # Errors
    /// When this process does not lead, or has not renewed its lease for the time of
    /// [`LeaseSettings::write_deadline`].
    pub fn permit(&self) -> Result<Permit, NotLeading> {
        let Some(inner) = &self.inner else { return Ok(Permit { shared: None }) };
        let shared = &inner.shared;
        // Counted first: a release that does not see this permit is seen by the check below.
        shared.permits.fetch_add(1, Ordering::SeqCst);
        let permit = Permit { shared: Some(Arc::clone(shared)) };
        shared.may_write().map(|()| permit)
    }

    /// True when a permit would be given now.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.inner.as_ref().is_none_or(|inner| inner.shared.may_write().is_ok())
    }

    /// Waits until this process leads; an error when the election ended before.
    ///
    /// # Errors
    /// When it was released while it waited.
    pub async fn elected(&self) -> Result<(), NotLeading> {
        let phase = self.reached(Phase::Leading).await;
        if phase == Phase::Leading { Ok(()) } else { Err(NotLeading::Ended) }
    }

    /// Waits until leadership is lost or released; never returns without an election.
    pub async fn ended(&self) {
        if self.inner.is_none() {
            return std::future::pending().await;
        }
        self.reached(Phase::Ended).await;
    }

    /// Gives no more permits, waits at most 5 s for writes that have started, and frees the lease so that
    /// another leads at once.
    pub async fn release(&self) {
        let Some(inner) = &self.inner else { return };
        let stop = inner.stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(stop) = stop {
            // Fails only when the campaign has ended by itself.
            let _ = stop.send(());
        }
        self.reached(Phase::Ended).await;
    }

    async fn reached(&self, least: Phase) -> Phase {
        let Some(inner) = &self.inner else { return Phase::Leading };
        let mut phases = inner.shared.phase.subscribe();
        phases.wait_for(|phase| *phase >= least).await.map_or(Phase::Ended, |phase| *phase)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.task.abort();
        self.shared.phase.send_replace(Phase::Ended);
    }
}

// === impl Shared ===

impl Shared {
    fn may_write(&self) -> Result<(), NotLeading> {
        match *self.phase.borrow() {
            Phase::Standby => return Err(NotLeading::Standby),
            Phase::Ending | Phase::Ended => return Err(NotLeading::Ended),
            Phase::Leading => {}
        }
        let renewed = *self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        let age = renewed.map_or(Duration::MAX, |at| at.elapsed());
        if age < self.settings.write_deadline { Ok(()) } else { Err(NotLeading::Unrenewed(age)) }
    }

    fn renewed_at(&self, at: Instant) {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    /// Forward only.
    fn enter(&self, phase: Phase) {
        self.phase.send_if_modified(|now| {
            let forward = phase > *now;
            if forward {
                *now = phase;
            }
            forward
        });
    }

    async fn drain(&self) {
        let until = Instant::now() + DRAIN;
        loop {
            let drained = self.drained.notified();
            if self.permits.load(Ordering::SeqCst) == 0 {
                return;
            }
            if tokio::time::timeout_at(until, drained).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared
            && shared.permits.fetch_sub(1, Ordering::SeqCst) == 1
        {
            shared.drained.notify_waiters();
        }
    }
}
