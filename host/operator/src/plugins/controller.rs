//! One pass over a Plugin object: deliver, verify, load, tell how it is.

mod deliver;
mod inputs;
mod place;
mod status;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use pintle_api::{
    Object, ObjectRef, Record,
    plugin::{PluginSpec, PluginStatus, Upgrade},
};
use pintle_plugin::{Artifact, LoadError, Plugin};
use pintle_source::{Store, artifact::PullError, signature::VerifyError};
use serde_json::json;

use self::{
    deliver::{Delivered, Order, pinned, wanted_image},
    inputs::Inputs,
    place::Place,
    status::Standing,
};
use super::{Loaded, Unready};
use crate::{
    context::{Context, Key},
    error_text::one_line,
    report,
};

/// First pause before a registry is asked again; doubles up to [`LONGEST`].
const PAUSE: Duration = Duration::from_secs(2);
/// Longest pause before a registry is asked again.
const LONGEST: Duration = Duration::from_secs(300);
/// The annotation of an image with the manifest of its plugin.
const ANNOTATION: &str = "pintle.dev/manifest";

/// What is kept of plugins besides their code.
pub(crate) struct Shelf {
    store: Option<Store>,
    /// What each Plugin was loaded from, besides its object.
    inputs: Mutex<HashMap<String, Inputs>>,
}

/// How far a plugin came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Spec,
    Pull,
    Verify,
    Load,
}

/// Why a plugin cannot be called, and how far it came.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    stage: Stage,
    unready: Unready,
}

/// Brings a Plugin to where its object says. Owners that call it are woken when something changed.
pub(crate) async fn reconcile(ctx: &Context, name: &str) -> Option<Duration> {
    let key = Key::Plugin(name.to_owned());
    let target = ObjectRef::new("pintle.dev/v1alpha1", "Plugin", name);
    let (object, _) = ctx.know(&key, |facts| facts.get(&target)).await;
    let Some(object) = object.found() else {
        ctx.plugins.forget(name);
        ctx.shelf.forget(name);
        ctx.watches.register(&key.holder(), &Record::default());
        ctx.ledger.callers_of(name).into_iter().for_each(|caller| ctx.queue.wake(caller));
        return None;
    };
    let read = read(ctx, &key, &object).await;
    if is_as_it_was(ctx, name, &object, read.as_ref().map(|(.., inputs)| inputs)) {
        return None;
    }
    let (loaded, is_verified) = match &read {
        Ok((spec, place, inputs)) => {
            ctx.shelf.keep(name, inputs.clone());
            (load(ctx, &object, &Order { ctx, spec, inputs }, place).await, spec.verify.is_some())
        }
        Err(fault) => (Err(fault.clone()), false),
    };
    let unready = loaded.as_ref().err().map(|fault| fault.unready.clone());
    let plugin = loaded.as_ref().map(|standing| standing.plugin.clone());
    let plugin = plugin.map_err(|fault| fault.unready.clone());
    ctx.plugins.keep(name, Loaded { generation: object.generation(), plugin });
    tell(ctx, &object, &loaded, is_verified).await;
    ctx.ledger.callers_of(name).into_iter().for_each(|caller| ctx.queue.wake(caller));
    let tries = ctx.ledger.count_try(&key, unready.is_some());
    unready.filter(|unready| unready.may_pass).map(|_| PAUSE.saturating_mul(1 << tries.min(8)).min(LONGEST))
}

/// The spec, and what it names; a change of what it names wakes the Plugin.
async fn read(ctx: &Context, key: &Key, object: &Object) -> Result<(PluginSpec, Place, Inputs), Fault> {
    let spec = object.at("/spec").cloned().unwrap_or_default();
    let invalid = |message| Unready { reason: "InvalidSpec".to_owned(), message, may_pass: false };
    let spec: PluginSpec = serde_json::from_value(spec)
        .map_err(|err| invalid(format!("spec cannot be read: {err}")))
        .map_err(Fault::at(Stage::Spec))?;
    let place = Place::parse(&spec.image).map_err(Fault::at(Stage::Pull))?;
    let (inputs, record) = ctx.know(key, |facts| inputs::observe(facts, &spec, &place)).await;
    ctx.watches.register(&key.holder(), &record);
    Ok((spec, place, inputs?))
}

/// True when nothing that a plugin is made from has changed, and time alone mends nothing.
fn is_as_it_was(ctx: &Context, name: &str, object: &Object, inputs: Result<&Inputs, &Fault>) -> bool {
    let Some(known) = ctx.plugins.find(name).filter(|known| known.generation == object.generation()) else {
        return false;
    };
    match (known.plugin, inputs) {
        (Ok(_), Ok(inputs)) => ctx.shelf.has(name, inputs),
        (Err(unready), Ok(inputs)) => !unready.may_pass && ctx.shelf.has(name, inputs),
        (Err(unready), Err(fault)) => !unready.may_pass && unready == fault.unready,
        (Ok(_), Err(_)) => false,
    }
}

/// Loads what the object names. A version that asks for more than the one before, and was not granted it, waits:
/// the one before goes on.
async fn load(ctx: &Context, object: &Object, order: &Order<'_>, place: &Place) -> Result<Standing, Fault> {
    let spec = order.spec;
    let delivered = order.fill(place, &wanted_image(object, spec)).await?;
    let new = load_delivered(ctx, object.name(), delivered, spec, &spec.image).await?;
    let Some(old) = before(ctx, object, order, &new.plugin).await else { return Ok(new) };
    let missing = new.plugin.asks_beyond(&old.plugin);
    if missing.is_empty() {
        return Ok(new);
    }
    let (image, digest) = (new.image, new.plugin.digest().to_owned());
    let upgrade = Some(Upgrade { image, digest, version: status::version(&new.plugin), missing });
    Ok(Standing { upgrade, ..old })
}

/// The version before, where the status tells of another one that can still be had, and be verified.
async fn before(ctx: &Context, object: &Object, order: &Order<'_>, new: &Plugin) -> Option<Standing> {
    let (image, digest) = (object.str_at("/status/image")?, object.str_at("/status/digest")?);
    if digest.is_empty() || digest == new.digest() || new.missing().is_empty() {
        return None;
    }
    let place = Place::parse(image).ok().filter(|place| *place == Place::Registry)?;
    let old = PluginSpec { image: pinned(image, digest), ..order.spec.clone() };
    let delivered = Order { spec: &old, ..*order }.fill(&place, &old.image).await.ok()?;
    load_delivered(ctx, object.name(), delivered, order.spec, image).await.ok()
}

async fn load_delivered(
    ctx: &Context,
    name: &str,
    delivered: Delivered,
    spec: &PluginSpec,
    image: &str,
) -> Result<Standing, Fault> {
    let Delivered { plugin: bundle, signers } = delivered;
    let artifact =
        Artifact { name: name.to_owned(), digest: bundle.digest(), bytes: bundle.component().into() };
    let failed = |err: LoadError| Fault { stage: Stage::Load, unready: Unready::from_load(&err) };
    let plugin = super::load(ctx, artifact, spec).await.map_err(failed)?;
    if let Some(text) = bundle.annotations().get(ANNOTATION) {
        plugin.check_annotation(text).map_err(failed)?;
    }
    Ok(Standing { plugin, image: image.to_owned(), signers, upgrade: None })
}

async fn tell(ctx: &Context, object: &Object, loaded: &Result<Standing, Fault>, is_verified: bool) {
    let before: PluginStatus = object
        .at("/status")
        .and_then(|status| serde_json::from_value(status.clone()).ok())
        .unwrap_or_default();
    let status = status::status(object, loaded.as_ref(), is_verified, &before);
    if status != before {
        report::write_status(ctx, object, &json!(status)).await;
    }
}

// === impl Shelf ===

impl Shelf {
    /// Plugins are kept in `folder`, where there is one.
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        Self { store: folder.map(Store::new), inputs: Mutex::default() }
    }

    fn keep(&self, name: &str, inputs: Inputs) {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), inputs);
    }

    fn forget(&self, name: &str) {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    fn has(&self, name: &str, inputs: &Inputs) -> bool {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).get(name) == Some(inputs)
    }
}

// === impl Fault ===

impl Fault {
    fn at(stage: Stage) -> impl Fn(Unready) -> Self {
        move |unready| Self { stage, unready }
    }
}

// === impl Unready ===

impl Unready {
    pub(super) fn from_pull(err: &PullError) -> Self {
        Self { reason: err.reason().to_owned(), message: one_line(err), may_pass: err.may_pass() }
    }

    /// Somebody may still sign it; nobody tells us when.
    fn from_verify(err: &VerifyError) -> Self {
        let may_pass = matches!(err, VerifyError::Unsigned { .. } | VerifyError::Refused { .. });
        Self { reason: err.reason().to_owned(), message: one_line(err), may_pass }
    }

    pub(super) fn from_load(err: &LoadError) -> Self {
        Self { reason: err.reason().to_owned(), message: one_line(err), may_pass: false }
    }
}
