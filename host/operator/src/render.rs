//! Render: chart, values and pools become the objects of every state.

pub(crate) mod kept;
pub(crate) mod patience;

use std::collections::BTreeSet;

use pintle_api::{Facts, Gvk, names, watch::CrdPolicy};
use pintle_chart::{
    Capabilities, Document, Files, Order, RenderError, RenderInput,
    manifest::{Error as ManifestError, HookEvent},
    release::StoredChart,
    state::StateFile,
};
use pintle_plan::{
    CRDS, Dress, Flavor, Hook, Memory, Pool, PoolInput, Pools, REST, RenderFault, Rendered, StateInput,
    dress, fnv1a,
};
use pintle_template::{Cancel, ErrorKind, Run};
use serde::{Deserialize, Serialize};

use crate::{
    charts::Loaded,
    error_text::one_line,
    front::{Front, FrontKind},
    lookup::FactsLookup,
    map::{self, Mapping},
};

/// Annotations of `Chart.yaml` that are served.
const CHART_ANNOTATIONS: [&str; 4] = [names::ENGINE, names::VALUE_MAPPER, names::POST_RENDERER, names::HOOKS];

/// What the objects of a release are rendered from.
pub(crate) struct Rendering<'a> {
    pub(crate) front: &'a Front,
    pub(crate) chart: &'a Loaded,
    pub(crate) pools: &'a Pools,
    /// The pools that states fan out over, or why there are none.
    pub(crate) fan: &'a Result<Vec<Pool>, RenderFault>,
    pub(crate) mapping: &'a Mapping,
    pub(crate) memory: &'a Memory,
    pub(crate) capabilities: &'a Capabilities,
    pub(crate) facts: &'a dyn Facts,
    /// Ends all renders when nobody waits for them any more.
    pub(crate) cancel: &'a Cancel,
    /// Whether a kind has namespaces; nothing for kinds nobody serves.
    pub(crate) is_namespaced: &'a (dyn Fn(&Gvk) -> Option<bool> + Sync),
}

/// What a chart becomes.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Objects {
    /// Its states in order.
    pub(crate) states: Vec<StateInput>,
    /// Its hooks.
    pub(crate) hooks: Vec<Hook>,
    /// What its `NOTES.txt` says.
    pub(crate) notes: String,
    /// The chart it was made from, where that is not the one in use: a revision that is gone back to.
    pub(crate) chart: Option<StoredChart>,
}

/// What a chart says, before plugins change it and before it is dressed.
#[derive(Clone, Default)]
pub(crate) struct Raw {
    /// Its states in order; the last may be empty.
    pub(crate) states: Vec<RawState>,
    /// Hooks of the whole chart, where it was rendered as a whole.
    hooks: Vec<pintle_chart::Hook>,
    notes: String,
    /// Definitions under `crds/`: they belong to no release, and no plugin changes them.
    crds: Vec<Rendered>,
}

/// One state.
#[derive(Clone)]
pub(crate) struct RawState {
    /// Its name.
    pub(crate) name: String,
    /// The four digits of SRO's node label.
    label: String,
    /// One entry, or one for each pool.
    pub(crate) pools: Vec<RawPool>,
}

/// One rendering of a state.
#[derive(Clone)]
pub(crate) struct RawPool {
    /// The pool it is for; absent for all nodes.
    pub(crate) pool: Option<Pool>,
    /// What was rendered.
    pub(crate) documents: Result<Vec<Document>, RenderFault>,
    hooks: Vec<pintle_chart::Hook>,
}

/// Documents in the order they are applied, and hooks.
type Documents = (Vec<Document>, Vec<pintle_chart::Hook>, String);

/// Renders every state. A state that cannot be rendered holds its error; the others do not care.
pub(crate) fn run(with: &Rendering<'_>) -> Raw {
    match with.front.release.flavor {
        Flavor::SpecialResource { .. } => special_resource(with),
        Flavor::Watch => watch(with).unwrap_or_else(Raw::failed),
    }
}

/// Gives every object what its release asks for. What does not fit is the error of its state.
pub(crate) fn finish(with: &Rendering<'_>, raw: Raw) -> Objects {
    let mut objects = Objects { notes: raw.notes, ..Objects::default() };
    if !raw.crds.is_empty() {
        let pool = PoolInput { pool: String::new(), nodes: with.pools.nodes(), objects: Ok(raw.crds) };
        let (name, label) = (CRDS.to_owned(), String::new());
        objects.states.push(StateInput { name, label, pools: vec![pool] });
    }
    match dress_hooks(with, None, raw.hooks) {
        Ok(hooks) => objects.hooks = hooks,
        Err(fault) => return finish(with, Raw::failed(fault)),
    }
    for RawState { name, label, pools } in raw.states {
        let pools: Vec<_> =
            pools.into_iter().map(|pool| finish_pool(with, &name, pool, &mut objects.hooks)).collect();
        let is_empty = |pool: &PoolInput| pool.objects.as_ref().is_ok_and(Vec::is_empty);
        if name != REST || !pools.iter().all(is_empty) {
            objects.states.push(StateInput { name, label, pools });
        }
    }
    objects
}

fn finish_pool(with: &Rendering<'_>, state: &str, raw: RawPool, hooks: &mut Vec<Hook>) -> PoolInput {
    let RawPool { pool, documents, hooks: own } = raw;
    let pool = pool.as_ref();
    let objects = documents.and_then(|documents| {
        let own = dress_hooks(with, pool, own)?;
        let objects = documents.into_iter().map(|document| dress_one(with, state, pool, document));
        let objects = objects.collect::<Result<_, _>>()?;
        hooks.extend(own);
        Ok(objects)
    });
    match pool {
        Some(pool) => PoolInput { pool: pool.key(), nodes: pool.nodes.clone(), objects },
        None => PoolInput { pool: String::new(), nodes: with.pools.nodes(), objects },
    }
}

/// One render per state file and pool, and one for everything that is no state.
fn special_resource(with: &Rendering<'_>) -> Raw {
    let mut states: Vec<_> = with.chart.states.iter().map(|file| state(with, file)).collect();
    let rest = raw_pool(with, Files::Rest, None);
    states.push(RawState { name: REST.to_owned(), label: String::new(), pools: vec![rest] });
    Raw { states, ..Raw::default() }
}

fn state(with: &Rendering<'_>, file: &StateFile) -> RawState {
    let files = Files::State(&file.template);
    let once = (!file.kernel_affine).then(|| raw_pool(with, files, None));
    let is_single = |once: &RawPool| !once.documents.iter().flatten().any(|one| is_per_pool(with, one));
    let pools = match (once.filter(is_single), with.fan) {
        (Some(once), _) => vec![once],
        (None, Ok(pools)) => pools.iter().map(|pool| raw_pool(with, files, Some(pool))).collect(),
        (None, Err(fault)) => vec![RawPool { pool: None, documents: Err(fault.clone()), hooks: Vec::new() }],
    };
    RawState { name: file.name.clone(), label: file.digits.clone(), pools }
}

/// True when a rendered object says that there is one of it per pool; SRO looked at the text alone.
fn is_per_pool(with: &Rendering<'_>, document: &Document) -> bool {
    pintle_plan::is_per_pool(&document.object, &with.front.release.flavor)
}

fn raw_pool(with: &Rendering<'_>, files: Files<'_>, pool: Option<&Pool>) -> RawPool {
    let (documents, hooks) = match render(with, files, pool) {
        Ok((documents, hooks, _)) => (Ok(documents), hooks),
        Err(fault) => (Err(fault), Vec::new()),
    };
    RawPool { pool: pool.cloned(), documents, hooks }
}

/// One Helm render, split by state: numbered files, `pintle.dev/state`, and the rest. Objects that there is
/// one of per pool come from one more render for each.
fn watch(with: &Rendering<'_>) -> Result<Raw, RenderFault> {
    let (documents, hooks, notes) = render(with, Files::All, None)?;
    let crds = crds(with)?;
    let (per_pool, single): (Vec<_>, Vec<_>) =
        documents.into_iter().partition(|document| is_per_pool(with, document));
    let mut parts: Vec<(Option<Pool>, Vec<Document>)> = vec![(None, single)];
    let mut names: BTreeSet<String> = per_pool.iter().map(state_of).collect();
    if !per_pool.is_empty() {
        for pool in with.fan.as_ref().map_err(RenderFault::clone)? {
            let (documents, ..) = render(with, Files::All, Some(pool))?;
            let own = documents.into_iter().filter(|document| is_per_pool(with, document));
            parts.push((Some(pool.clone()), own.collect()));
        }
    }
    names.extend(parts.iter().flat_map(|(_, documents)| documents).map(state_of));
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_by_key(|name| (name == REST, name.clone()));
    let states = names.into_iter().map(|name| RawState {
        pools: parts
            .iter()
            .filter_map(|(pool, documents)| part_of(&name, pool.as_ref(), documents))
            .collect(),
        label: String::new(),
        name,
    });
    Ok(Raw { states: states.collect(), hooks, notes, crds })
}

/// The files under `crds/` of the chart, as they are.
fn crds(with: &Rendering<'_>) -> Result<Vec<Rendered>, RenderFault> {
    let FrontKind::Watch(watch) = &with.front.kind else { return Ok(Vec::new()) };
    if watch.crds.unwrap_or_default() == CrdPolicy::Skip {
        return Ok(Vec::new());
    }
    let values = map::run(with, None)?;
    let documents = with.chart.compiled.crds(&values).map_err(|err| fault(&err))?;
    let own = documents.iter().find(|document| document.object.gvk().group == names::GROUP);
    if let Some(own) = own {
        let message = format!("{}: {} may not come with a chart", own.source, own.object.reference());
        return Err(RenderFault { reason: "ForbiddenKind".to_owned(), message });
    }
    let rendered = documents
        .into_iter()
        .map(|document| Rendered { object: document.object, source: document.source.to_string() });
    Ok(rendered.collect())
}

/// What of a rendering belongs to a state; nothing where that is none of it.
fn part_of(state: &str, pool: Option<&Pool>, documents: &[Document]) -> Option<RawPool> {
    let own: Vec<_> = documents.iter().filter(|document| state_of(document) == state).cloned().collect();
    (!own.is_empty()).then(|| RawPool { pool: pool.cloned(), documents: Ok(own), hooks: Vec::new() })
}

fn state_of(document: &Document) -> String {
    if let Some(state) = document.object.annotation(names::STATE) {
        return state.to_owned();
    }
    let base = document.source.rsplit('/').next().unwrap_or_default();
    if pintle_chart::state::is_state(base) {
        base.trim_end_matches(".yaml").to_owned()
    } else {
        REST.to_owned()
    }
}

fn render(with: &Rendering<'_>, files: Files<'_>, pool: Option<&Pool>) -> Result<Documents, RenderFault> {
    refuse_unserved("Chart.yaml", with.chart.chart.metadata.annotations.keys(), &CHART_ANNOTATIONS)?;
    with.front.around(&with.chart.chart.metadata).map_err(|err| RenderFault {
        reason: "HookInvalid".to_owned(),
        message: format!("Chart.yaml: {err}"),
    })?;
    let values = map::run(with, pool)?;
    let lookup = FactsLookup(with.facts);
    let release = pintle_chart::Release {
        name: with.front.release.name.clone(),
        namespace: with.front.release.namespace.clone(),
        revision: with.memory.seed_revision.max(1),
        is_upgrade: with.memory.seed_revision > with.memory.base.saturating_add(1),
    };
    let order = match with.front.release.flavor {
        Flavor::SpecialResource { .. } => Order::SpecialResource,
        Flavor::Watch => Order::Install,
    };
    let input = RenderInput {
        release: &release,
        values: &values,
        capabilities: with.capabilities,
        files,
        order,
        run: Run { cancel: Some(with.cancel.flag()), ..map::run_options(with.memory, &lookup) },
    };
    let rendered = with.chart.compiled.render(&input).map_err(|err| fault(&err))?;
    for warning in &rendered.warnings {
        tracing::warn!(owner = %with.front.release.owner, "{warning}");
    }
    Ok((rendered.documents, rendered.hooks, rendered.notes))
}

/// Hooks that Helm would run; tests are run by hand alone.
fn dress_hooks(
    with: &Rendering<'_>,
    pool: Option<&Pool>,
    hooks: Vec<pintle_chart::Hook>,
) -> Result<Vec<Hook>, RenderFault> {
    let wanted = hooks.into_iter().filter(|hook| hook.events.iter().any(|event| *event != HookEvent::Test));
    let dressed = wanted.map(|hook| {
        Ok(Hook {
            rendered: dress_one(with, "", pool, hook.document)?,
            events: hook.events,
            weight: hook.weight,
            delete_policies: hook.delete_policies,
        })
    });
    dressed.collect()
}

fn dress_one(
    with: &Rendering<'_>,
    state: &str,
    pool: Option<&Pool>,
    document: Document,
) -> Result<Rendered, RenderFault> {
    let release = &with.front.release;
    let served: &[&str] = match release.flavor {
        Flavor::SpecialResource { .. } => {
            &[names::WAIT, names::READY_WHEN, names::PER_POOL, names::PRE, names::POST]
        }
        Flavor::Watch => {
            &[names::WAIT, names::READY_WHEN, names::PER_POOL, names::PRE, names::POST, names::STATE]
        }
    };
    if document.object.gvk().group == names::GROUP {
        let message = format!(
            "{}: {} is of group {}; a chart cannot grant itself rights, an administrator installs it",
            document.source,
            document.object.reference(),
            names::GROUP
        );
        return Err(RenderFault { reason: "ForbiddenKind".to_owned(), message });
    }
    let annotations = document.object.at("/metadata/annotations").and_then(serde_json::Value::as_object);
    let keys = annotations.into_iter().flatten().map(|(key, _)| key);
    refuse_unserved(&format!("{}: {}", document.source, document.object.reference()), keys, served)?;
    let is_namespaced = (with.is_namespaced)(&document.object.gvk()).unwrap_or(true);
    let dress_with = Dress {
        release: &release.name,
        namespace: &release.namespace,
        owner: &release.owner,
        owner_uid: &release.owner_uid,
        flavor: &release.flavor,
        state,
        pool,
    };
    let object = dress(&dress_with, document.object, is_namespaced).map_err(|err| RenderFault {
        reason: "RenderError".to_owned(),
        message: format!("{}: {err}", document.source),
    })?;
    Ok(Rendered { object, source: document.source.to_string() })
}

/// Annotations of ours that charts may carry one day are refused by name until they are served:
/// nothing that a chart's author asked for is left out in silence.
fn refuse_unserved<'a>(
    place: &str,
    mut keys: impl Iterator<Item = &'a String>,
    served: &[&str],
) -> Result<(), RenderFault> {
    let unserved = |key: &&String| key.starts_with(names::PREFIX) && !served.contains(&key.as_str());
    match keys.find(unserved) {
        None => Ok(()),
        Some(key) => Err(RenderFault {
            reason: "AnnotationNotServed".to_owned(),
            message: format!("{place}: annotation {key} is not served by this version, here; take it away"),
        }),
    }
}

/// The error of a rendering as a state's.
pub(crate) fn fault(err: &RenderError) -> RenderFault {
    let reason = match err {
        RenderError::KubeVersion { .. } => "KubeVersion",
        RenderError::Schema(_) | RenderError::Values(_) => "InvalidValues",
        RenderError::Annotation(_) | RenderError::Manifest(ManifestError::Annotation(_)) => {
            "UnknownAnnotation"
        }
        RenderError::Manifest(ManifestError::OwnKind { .. }) => "ForbiddenKind",
        RenderError::Manifest(_) => "InvalidManifest",
        RenderError::Engine { .. }
        | RenderError::Library { .. }
        | RenderError::MissingDependencies { .. }
        | RenderError::NoTemplate { .. }
        | RenderError::Template(_) => "RenderError",
    };
    let message = match err {
        RenderError::Template(err) if err.kind() == ErrorKind::Cancelled => {
            let seconds = patience::PATIENCE.as_secs();
            format!("{}; the time for rendering a release is {seconds} s", located(err))
        }
        RenderError::Template(err) => located(err),
        _ => one_line(err),
    };
    RenderFault { reason: reason.to_owned(), message }
}

/// A template's error with the line it is about; with the column too, where Helm's text has none.
fn located(err: &pintle_template::Error) -> String {
    let mut message = one_line(err);
    if let Some(place) = err.place() {
        let at = format!("{}:{}:{}", place.file(), place.line(), place.column());
        let which = if message.contains(&at) { "that line is".to_owned() } else { format!("see {at}:") };
        message.push_str(&format!("; {which} `{}`", place.source_line()));
    }
    for hint in err.hints() {
        message.push_str(&format!("; {hint}"));
    }
    message
}

// === impl Raw ===

impl Raw {
    /// Nothing but an error.
    fn failed(fault: RenderFault) -> Self {
        let pool = RawPool { pool: None, documents: Err(fault), hooks: Vec::new() };
        let states = vec![RawState { name: REST.to_owned(), label: String::new(), pools: vec![pool] }];
        Self { states, ..Self::default() }
    }

    /// True when every state could be rendered.
    pub(crate) fn is_whole(&self) -> bool {
        self.states.iter().flat_map(|state| &state.pools).all(|pool| pool.documents.is_ok())
    }
}

// === impl RawState ===

impl RawState {
    /// A state of one object that a plugin adds.
    pub(crate) fn of(name: &str, document: Document) -> Self {
        let pool = RawPool { pool: None, documents: Ok(vec![document]), hooks: Vec::new() };
        Self { name: name.to_owned(), label: String::new(), pools: vec![pool] }
    }

    /// The digits its name begins with, as plugins know it.
    pub(crate) fn number(&self) -> &str {
        let end = self.name.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(self.name.len());
        self.name.get(..end).unwrap_or_default()
    }
}

// === impl Objects ===

impl Objects {
    /// True when every state could be rendered.
    pub(crate) fn is_whole(&self) -> bool {
        self.states.iter().flat_map(|state| &state.pools).all(|pool| pool.objects.is_ok())
    }

    /// Every object but those of hooks.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Rendered> {
        let pools = self.states.iter().flat_map(|state| &state.pools);
        pools.flat_map(|pool| pool.objects.iter().flatten())
    }

    /// Mark of everything that was rendered: a revision is another one when it differs.
    pub(crate) fn mark(&self) -> String {
        let mut text = String::new();
        for state in &self.states {
            for pool in &state.pools {
                text.push_str(&state.name);
                text.push_str(&pool.pool);
                for rendered in pool.objects.iter().flatten() {
                    text.push_str(&pintle_plan::rendered_mark(&rendered.object));
                }
            }
        }
        for hook in &self.hooks {
            text.push_str(&pintle_plan::rendered_mark(&hook.rendered.object));
        }
        format!("{:x}", fnv1a(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    fn error_of(template: &str) -> RenderFault {
        let files =
            [("Chart.yaml", "apiVersion: v2\nname: c\nversion: 0.1.0\n"), ("templates/a.yaml", template)];
        let files = files.iter().map(|(path, text)| pintle_chart::File::new(*path, text.as_bytes()));
        let chart = pintle_chart::Chart::from_folder(files.collect()).unwrap();
        let input = RenderInput {
            release: &pintle_chart::Release {
                name: "r".to_owned(),
                namespace: "n".to_owned(),
                revision: 1,
                is_upgrade: false,
            },
            values: &pintle_chart::values::parse("{}").unwrap(),
            capabilities: &Capabilities::default(),
            files: Files::All,
            order: Order::Install,
            run: pintle_template::Run::new(&pintle_template::NoCluster),
        };
        let compiled = pintle_chart::Compiled::new(std::sync::Arc::new(chart));
        fault(&compiled.and_then(|compiled| compiled.render(&input)).unwrap_err())
    }

    #[test]
    fn an_error_of_a_template_shows_place_and_line() {
        let unknown = error_of("kind: A\nname: {{ .Values.a | quoted }}\n");
        assert_eq!(unknown.reason, "RenderError");
        assert!(unknown.message.contains("c/templates/a.yaml:2:"), "{}", unknown.message);
        assert!(unknown.message.ends_with(": `name: {{ .Values.a | quoted }}`; did you mean quote?"));
        let nil = error_of("name: {{ .Values.a.b.c }}\n").message;
        assert_eq!(nil.matches("c/templates/a.yaml:1:").count(), 1, "{nil}");
        assert!(nil.ends_with("; that line is `name: {{ .Values.a.b.c }}`"), "{nil}");
    }

    #[test]
    fn what_a_chart_must_not_have_is_told_apart() {
        let head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";
        let unknown = error_of(&format!("{head}  annotations: {{pintle.dev/wiat: none}}\n"));
        assert_eq!(unknown.reason, "UnknownAnnotation");
        let own = error_of("apiVersion: pintle.dev/v1alpha1\nkind: Plugin\nmetadata:\n  name: a\n");
        assert_eq!(own.reason, "ForbiddenKind");
    }

    #[test]
    fn an_annotation_that_nobody_serves_is_refused_by_name() {
        let keys = ["other/x", names::WAIT, names::TIMEOUT].map(str::to_owned);
        let refused = refuse_unserved("a.yaml: ConfigMap a", keys.iter(), &[names::WAIT]).unwrap_err();
        assert_eq!(refused.reason, "AnnotationNotServed");
        assert!(refused.message.starts_with("a.yaml: ConfigMap a: annotation pintle.dev/timeout is not"));
        assert!(refuse_unserved("", keys.iter(), &[names::WAIT, names::TIMEOUT]).is_ok());
    }
}
