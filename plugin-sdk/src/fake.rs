//! A host for native unit tests of plugins: owner, values, objects, logs, images and config in memory.
//!
//! It answers as the real one does where plugins can tell: fields that were not asked for are not
//! there, selectors select, what is not there is `NotFound`, and what was denied is denied.

mod objects;

use std::cell::RefCell;

use serde_json::{Map, Value};

use crate::{
    Answer, Context, Desired, Edits, Failure, Hooks, Mapping, ObjectQuery, ObjectRef, Operation, Ownership,
    Phase, Plugin, PostRenderer, Readiness, Reconciler, Release, Step, ValueMapper,
    bindings::{
        pintle::plugin::{
            images::Image,
            kube_read::Page,
            log::Level,
            types::{KeyedObject, ReadError},
        },
        renderer,
    },
    hooks, mapper, plugin, readiness, reconciler,
};
use objects::{is_found, is_named, shown};

/// Items on a page when the plugin does not ask for fewer: few, so that tests see more than one.
const PAGE: usize = 2;

thread_local! {
    static CURRENT: RefCell<Host> = RefCell::new(Host::new());
}

/// What the host would answer.
#[derive(Clone, Debug)]
pub struct Host {
    pub(crate) config: Value,
    pub(crate) owner: Value,
    pub(crate) values: Value,
    pub(crate) saved: Option<Value>,
    pub(crate) grants: Value,
    pub(crate) now_ms: u64,
    pub(crate) elapsed_ms: u64,
    pub(crate) attempt: u32,
    context: Context,
    objects: Vec<Value>,
    denied: Vec<String>,
    logs: Vec<(ObjectRef, Option<String>, Result<String, ReadError>)>,
    images: Vec<(String, String)>,
    said: Vec<String>,
}

/// What came of a call and what the plugin logged meanwhile.
pub type Called<T = Answer> = (Result<T, Failure>, Vec<String>);

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

/// What the host knows.
impl Host {
    /// An empty cluster, an empty config, the first attempt at the epoch.
    #[must_use]
    pub fn new() -> Self {
        let empty = Value::Object(Map::new());
        Self {
            config: empty.clone(),
            owner: empty.clone(),
            values: empty.clone(),
            saved: None,
            grants: empty,
            now_ms: 0,
            elapsed_ms: 0,
            attempt: 1,
            context: context(),
            objects: Vec::new(),
            denied: Vec::new(),
            logs: Vec::new(),
            images: Vec::new(),
            said: Vec::new(),
        }
    }

    /// `spec.config` of the Plugin.
    #[must_use]
    pub fn config(mut self, config: Value) -> Self {
        self.config = config;
        self
    }

    /// Arguments in the annotation.
    #[must_use]
    pub fn args(mut self, args: Value) -> Self {
        self.context.args = args.to_string();
        self
    }

    /// What the release is doing; `steady` where a test does not say.
    #[must_use]
    pub fn operation(mut self, operation: Operation) -> Self {
        self.context.operation = operation;
        self
    }

    /// The state and the pool that the call is for.
    #[must_use]
    pub fn state(mut self, state: &str, pool: &str) -> Self {
        (self.context.state, self.context.pool) = (state.to_owned(), pool.to_owned());
        self
    }

    /// The custom resource.
    #[must_use]
    pub fn owner(mut self, owner: Value) -> Self {
        self.owner = owner;
        self
    }

    /// Chart values so far.
    #[must_use]
    pub fn values(mut self, values: Value) -> Self {
        self.values = values;
        self
    }

    /// What the plugin kept earlier.
    #[must_use]
    pub fn saved(mut self, saved: Value) -> Self {
        self.saved = Some(saved);
        self
    }

    /// `spec.grants` of the Plugin, for plugins that look at them.
    #[must_use]
    pub fn grants(mut self, grants: Value) -> Self {
        self.grants = grants;
        self
    }

    /// Time since the epoch, time since the state was entered, and attempt.
    #[must_use]
    pub fn clock(mut self, now_ms: u64, elapsed_ms: u64, attempt: u32) -> Self {
        (self.now_ms, self.elapsed_ms, self.attempt) = (now_ms, elapsed_ms, attempt);
        self
    }

    /// An object of the cluster.
    #[must_use]
    pub fn object(mut self, object: Value) -> Self {
        self.objects.push(object);
        self
    }

    /// Several objects of the cluster.
    #[must_use]
    pub fn objects(mut self, objects: impl IntoIterator<Item = Value>) -> Self {
        self.objects.extend(objects);
        self
    }

    /// Denies all reads of a kind; `Log` denies those of logs, `Image` those of registries.
    #[must_use]
    pub fn deny(mut self, kind: &str) -> Self {
        self.denied.push(kind.to_owned());
        self
    }

    /// The log of a pod's container; none for the only one.
    #[must_use]
    pub fn log(mut self, namespace: &str, pod: &str, container: Option<&str>, log: &str) -> Self {
        let pod = ObjectRef::new("v1", "Pod", pod).within(namespace);
        self.logs.push((pod, container.map(str::to_owned), Ok(log.to_owned())));
        self
    }

    /// A log that is out of reach.
    #[must_use]
    pub fn log_unavailable(mut self, namespace: &str, pod: &str, why: &str) -> Self {
        let pod = ObjectRef::new("v1", "Pod", pod).within(namespace);
        self.logs.push((pod, None, Err(ReadError::Unavailable(why.to_owned()))));
        self
    }

    /// An image that its registry has, with its digest.
    #[must_use]
    pub fn image(mut self, reference: &str, digest: &str) -> Self {
        self.images.push((reference.to_owned(), digest.to_owned()));
        self
    }
}

/// Calls, as the host would make them.
impl Host {
    /// Whether the plugin accepts the config.
    ///
    /// # Errors
    /// With the plugin's own failure.
    pub fn validate<P: Plugin>(self) -> Result<(), Failure> {
        let config = self.config.to_string();
        self.run(|_| plugin::validate::<P>(&config)).0
    }

    /// Calls `check` of a plugin for a target.
    ///
    /// # Errors
    /// With the plugin's own failure.
    pub fn check<P: Readiness>(self, target: Value) -> Result<Answer, Failure> {
        self.check_and_log::<P>(target).0
    }

    /// As [`Host::check`], with what the plugin logged.
    pub fn check_and_log<P: Readiness>(self, target: Value) -> Called {
        self.run(|context| readiness::check::<P>(context, target.to_string()))
    }

    /// Calls `map_values` of a plugin.
    ///
    /// # Errors
    /// With the plugin's own failure.
    pub fn map_values<P: ValueMapper>(self) -> Result<Mapping, Failure> {
        self.run(mapper::map::<P>).0
    }

    /// Calls `post_render` of a plugin: each object under the key `KIND/NAME`, all of one state.
    ///
    /// # Errors
    /// With the plugin's own failure.
    pub fn post_render<P: PostRenderer>(
        self,
        objects: impl IntoIterator<Item = Value>,
    ) -> Result<Edits, Failure> {
        let (state, pool) = (self.context.state.clone(), self.context.pool.clone());
        let rendered = |object: Value| renderer::Rendered {
            key: objects::key(&object),
            state: state.clone(),
            pool: pool.clone(),
            source: "templates/fake.yaml".to_owned(),
            object: object.to_string(),
        };
        let objects = objects.into_iter().map(rendered).collect();
        self.run(|context| crate::renderer::render::<P>(context, objects)).0
    }

    /// Calls `on_phase` of a plugin, with what the state was rendered to and with the keys and objects
    /// that the hook wanted before.
    ///
    /// # Errors
    /// With the plugin's own failure.
    pub fn on_phase<'a, P: Hooks>(
        self,
        phase: Phase,
        rendered: impl IntoIterator<Item = Value>,
        applied: impl IntoIterator<Item = (&'a str, Value)>,
    ) -> Result<Step, Failure> {
        let rendered = rendered.into_iter().map(|object| object.to_string()).collect();
        let applied = keyed(applied);
        self.run(|context| hooks::step::<P>(context, phase, rendered, applied)).0
    }

    /// Calls `reconcile` of a plugin, with the keys and objects that it wanted before.
    ///
    /// # Errors
    /// With the plugin's own failure.
    pub fn reconcile<'a, P: Reconciler>(
        self,
        applied: impl IntoIterator<Item = (&'a str, Value)>,
    ) -> Result<Desired, Failure> {
        let applied = keyed(applied);
        self.run(|context| reconciler::reconcile::<P>(context, applied)).0
    }

    /// Calls `finalize` of a plugin, with the keys and objects that are still there.
    ///
    /// # Errors
    /// With the plugin's own failure.
    pub fn finalize<'a, P: Reconciler>(
        self,
        applied: impl IntoIterator<Item = (&'a str, Value)>,
    ) -> Result<Desired, Failure> {
        let applied = keyed(applied);
        self.run(|context| reconciler::finalize::<P>(context, applied)).0
    }

    fn run<T>(self, call: impl FnOnce(Context) -> Result<T, Failure>) -> Called<T> {
        let context = self.context.clone();
        let before = CURRENT.with(|current| current.replace(self));
        let answer = call(context);
        let after = CURRENT.with(|current| current.replace(before));
        (answer, after.said)
    }
}

/// Answers to the functions of the host.
impl Host {
    pub(crate) fn get(&self, target: &ObjectRef, fields: &[String]) -> Result<String, ReadError> {
        self.permit(&target.kind)?;
        let found = self.objects.iter().find(|object| is_named(object, target));
        found.map(|object| shown(object, fields).to_string()).ok_or(ReadError::NotFound)
    }

    pub(crate) fn find(
        &self,
        query: &ObjectQuery,
        fields: &[String],
        max_items: u32,
        token: Option<&str>,
    ) -> Result<Page, ReadError> {
        self.permit(&query.kind)?;
        let skip = token.and_then(|token| token.parse().ok()).unwrap_or(0);
        let most = if max_items == 0 { PAGE } else { PAGE.min(max_items as usize) };
        let found: Vec<&Value> = self.objects.iter().filter(|object| is_found(object, query)).collect();
        let items = found.iter().skip(skip).take(most).map(|object| shown(object, fields).to_string());
        let items: Vec<String> = items.collect();
        let end = skip + items.len();
        Ok(Page { items, next: (end < found.len()).then(|| end.to_string()) })
    }

    pub(crate) fn tail(
        &self,
        pod: &ObjectRef,
        container: Option<&str>,
        previous: bool,
        lines: u32,
    ) -> Result<String, ReadError> {
        self.permit("Log")?;
        let is_it = |(of, name, _): &&(ObjectRef, Option<String>, _)| {
            of == pod && !previous && (name.as_deref() == container || name.is_none())
        };
        let (_, _, log) = self.logs.iter().find(is_it).ok_or(ReadError::NotFound)?;
        let log = log.as_ref().map_err(Clone::clone)?;
        let all: Vec<&str> = log.lines().collect();
        let skip = all.len().saturating_sub(usize::try_from(lines).unwrap_or(usize::MAX));
        Ok(all.into_iter().skip(skip).map(|line| format!("{line}\n")).collect())
    }

    pub(crate) fn resolve(&self, reference: &str) -> Result<Image, ReadError> {
        self.permit("Image")?;
        let found = self.images.iter().find(|(known, _)| known == reference);
        let (_, digest) = found.ok_or(ReadError::NotFound)?;
        let media_type = "application/vnd.oci.image.manifest.v1+json".to_owned();
        Ok(Image { digest: digest.clone(), media_type })
    }

    pub(crate) fn emit(&mut self, level: Level, message: &str, fields: &[(String, String)]) {
        let fields: String = fields.iter().map(|(key, value)| format!(" {key}={value}")).collect();
        self.said.push(format!("{level:?} {message}{fields}"));
    }

    fn permit(&self, kind: &str) -> Result<(), ReadError> {
        match self.denied.iter().any(|denied| denied == kind) {
            true => Err(ReadError::Denied(format!("{kind} is not granted"))),
            false => Ok(()),
        }
    }
}

/// Runs something with the host of this thread.
pub(crate) fn with<T>(work: impl FnOnce(&mut Host) -> T) -> T {
    CURRENT.with(|current| work(&mut current.borrow_mut()))
}

fn context() -> Context {
    Context {
        operation: Operation::Steady,
        release: Release {
            name: "release".into(),
            namespace: "namespace".into(),
            chart: "chart".into(),
            chart_version: "0.1.0".into(),
            revision: 1,
        },
        state: String::new(),
        pool: String::new(),
        args: "{}".to_owned(),
    }
}

fn keyed<'a>(objects: impl IntoIterator<Item = (&'a str, Value)>) -> Vec<KeyedObject> {
    let keyed = |(key, object): (&str, Value)| crate::own::keyed(key, Ownership::Whole, &object);
    objects.into_iter().map(keyed).collect()
}
