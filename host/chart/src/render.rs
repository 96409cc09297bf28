//! Charts become objects: a function of the chart, the values and what [`Run`] brings.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use pintle_api::names;
use pintle_template::{Program, Run, Source};

use crate::{
    Capabilities, File, annotations,
    chart::Chart,
    dependencies::{self, Node, Tree},
    manifest::{self, Document, Extent, Hook},
    order::Order,
    schema,
    scope::{self, Template},
    state::{self, StateFile},
    values::{self, Values, live},
};

/// The release as templates see it: `.Release`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// `.Release.Name`
    pub name: String,
    /// `.Release.Namespace`
    pub namespace: String,
    /// `.Release.Revision`
    pub revision: u32,
    /// `.Release.IsUpgrade`; `.Release.IsInstall` is the opposite.
    pub is_upgrade: bool,
}

/// Which templates of a chart are rendered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Files<'a> {
    /// All, as Helm does.
    #[default]
    All,
    /// One state, by its path in the chart (`templates/0000-buildconfig.yaml`); named templates of the chart
    /// and of the charts in it can be used, nothing else is read, so a fault elsewhere does not matter.
    State(&'a str),
    /// All that is no state, and the charts inside: the last step of a SpecialResource. (Its predecessor
    /// rendered the charts inside again with each state, so that each of their objects was written, and
    /// their hooks run, once per state: a defect that is not repeated.)
    Rest,
}

/// What a render depends on besides the chart.
#[derive(Clone, Copy, Debug)]
pub struct RenderInput<'a> {
    /// `.Release`
    pub release: &'a Release,
    /// Values over the chart's defaults; see [`values::for_special_resource`] and [`values::for_watch`].
    pub values: &'a Values,
    /// `.Capabilities`
    pub capabilities: &'a Capabilities,
    /// Which templates.
    pub files: Files<'a>,
    /// Order of the documents.
    pub order: Order,
    /// `lookup`, time, seed and limits.
    pub run: Run<'a>,
}

/// What came of a render.
#[derive(Clone, Debug, Default)]
pub struct Rendered {
    /// Objects in the order asked for, without hooks.
    pub documents: Vec<Document>,
    /// Hooks by kind, then file; see [`Hook::weight`].
    pub hooks: Vec<Hook>,
    /// The chart's `NOTES.txt`, empty where it has none.
    pub notes: String,
    /// Helm's manifest: what a stored release holds and `helm template` prints before hooks.
    pub manifest: String,
    /// What could not be merged and the like, in sentences.
    pub warnings: Vec<String>,
}

/// What came of a render as text: what `helm template` prints. Nothing in it was checked to be an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// Helm's manifest, without hooks.
    pub manifest: String,
    /// Hooks, in the same form.
    pub hooks: String,
    /// The chart's `NOTES.txt`, empty where it has none.
    pub notes: String,
}

/// Why a chart could not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// A library chart.
    #[error("{name} is a chart of type library, which installs nothing: use it as a dependency of another")]
    Library {
        /// Name of the chart.
        name: String,
    },
    /// `kubeVersion` of the chart excludes the cluster.
    #[error("chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {found}")]
    KubeVersion {
        /// As `Chart.yaml` has it.
        wanted: String,
        /// The cluster's.
        found: String,
    },
    /// A dependency of `Chart.yaml` is not under `charts/`.
    #[error("chart {chart} lacks its dependencies {missing}: run `helm dependency build` before packing it")]
    MissingDependencies {
        /// Name of the chart.
        chart: String,
        /// Their names.
        missing: String,
    },
    /// A template language that charts cannot have.
    #[error(
        "{chart}: Chart.yaml: pintle.dev/engine {engine:?} is unknown: write gotpl (the default) or jinja"
    )]
    Engine {
        /// Name of the chart.
        chart: String,
        /// As `Chart.yaml` has it.
        engine: String,
    },
    /// The state asked for is not in the chart.
    #[error("chart {chart} has no template {template:?}")]
    NoTemplate {
        /// Name of the chart.
        chart: String,
        /// Path asked for.
        template: String,
    },
    /// An annotation of `Chart.yaml` that nobody knows.
    #[error(transparent)]
    Annotation(#[from] annotations::UnknownAnnotation),
    /// Values that do not fit the tree of charts.
    #[error("the values do not fit the chart")]
    Values(#[from] values::Error),
    /// Values that a `values.schema.json` refuses.
    #[error(transparent)]
    Schema(#[from] schema::SchemaError),
    /// A template that cannot be read, or failed. It draws itself on `{:#}`.
    #[error(transparent)]
    Template(#[from] pintle_template::Error),
    /// A rendered text that is no list of objects.
    #[error(transparent)]
    Manifest(#[from] manifest::Error),
}

/// A chart that is ready to be rendered, again and again and from any thread. Templates are parsed once for
/// each set of them that values switch on.
#[derive(Debug)]
pub struct Compiled {
    chart: Arc<Chart>,
    /// The chart and those in it with their defaults, before values decide which take part.
    tree: Tree,
    programs: Mutex<HashMap<Vec<String>, Arc<Program>>>,
}

/// Sets of templates whose programs are kept: states, and what conditions switch on and off. Beyond that
/// the cache starts anew.
const MAX_PROGRAMS: usize = 64;

const NOTES: &str = "NOTES.txt";

// === impl Compiled ===

impl Compiled {
    /// Takes a chart that can be installed. Templates are read when they are first used.
    ///
    /// # Errors
    /// When it is a library, lacks charts that `Chart.yaml` names, or has unknown annotations.
    pub fn new(chart: Arc<Chart>) -> Result<Self, RenderError> {
        let metadata = &chart.metadata;
        if metadata.is_library() {
            return Err(RenderError::Library { name: metadata.name.clone() });
        }
        annotations::check("Chart.yaml", metadata.annotations.keys().map(String::as_str))?;
        check_engine(&chart)?;
        let is_there = |name: &str| chart.dependencies.iter().any(|inner| inner.name() == name);
        let named = metadata.dependencies.iter().map(|dependency| dependency.name.as_str());
        let missing: Vec<&str> = named.filter(|name| !is_there(name)).collect();
        if !missing.is_empty() {
            let (chart, missing) = (metadata.name.clone(), missing.join(", "));
            return Err(RenderError::MissingDependencies { chart, missing });
        }
        Ok(Self { tree: Tree::new(&chart), chart, programs: Mutex::default() })
    }

    /// The chart.
    #[must_use]
    pub fn chart(&self) -> &Arc<Chart> {
        &self.chart
    }

    /// The states of the chart, in order.
    #[must_use]
    pub fn states(&self) -> Vec<StateFile> {
        state::states(&self.chart)
    }

    /// Renders, splits and sorts. The same input gives the same result.
    ///
    /// # Errors
    /// When the chart does not want this cluster, values do not fit, a template fails, or what came out is
    /// no list of objects. A template that waits for a `lookup` is
    /// [`pintle_template::ErrorKind::NotYet`]: render again once it is known.
    pub fn render(&self, input: &RenderInput<'_>) -> Result<Rendered, RenderError> {
        let mut rendered = Rendered::default();
        let files = self.render_files(input, &mut rendered)?;
        let sorted = manifest::sort(&files, input.order, Extent::Whole)?;
        for piece in &sorted.pieces {
            rendered.documents.extend(manifest::documents(piece)?);
        }
        for hook in &sorted.hooks {
            rendered.hooks.push(hook.hook()?);
        }
        rendered.manifest = manifest::text_of(sorted.pieces.iter());
        Ok(rendered)
    }

    /// Renders, splits and sorts as [`Compiled::render`], but leaves it at the text: what is no object
    /// passes, as it does in `helm template`.
    ///
    /// # Errors
    /// As [`Compiled::render`], but for documents that are no objects.
    pub fn print(&self, input: &RenderInput<'_>) -> Result<Printed, RenderError> {
        let mut rendered = Rendered::default();
        let files = self.render_files(input, &mut rendered)?;
        let sorted = manifest::sort(&files, input.order, Extent::Head)?;
        Ok(Printed {
            manifest: manifest::text_of(sorted.pieces.iter()),
            hooks: manifest::text_of(sorted.hooks.iter().map(|hook| &hook.piece)),
            notes: rendered.notes,
        })
    }

    /// The objects under `crds/` of the chart and the charts in it that take part. They are no templates.
    ///
    /// # Errors
    /// When values do not fit, or a file is no list of objects.
    pub fn crds(&self, values: &Values) -> Result<Vec<Document>, RenderError> {
        let tree = dependencies::settle(&self.tree, values, &mut Vec::new())?;
        let mut files = Vec::new();
        raw_crds(tree.root(), &mut files);
        let text = |file: &File| (Arc::from(file.path.as_str()), file.text().into_owned());
        let files: Vec<_> = files.iter().map(text).collect();
        let sorted = manifest::sort(&files, Order::Install, Extent::Whole)?;
        let documents: Result<Vec<_>, _> = sorted.pieces.iter().map(manifest::documents).collect();
        Ok(documents?.into_iter().flatten().collect())
    }

    /// The files under `crds/` of the chart and the charts in it that take part, each under its name in the
    /// tree of charts and as it is: what `helm template --include-crds` prints.
    ///
    /// # Errors
    /// When values do not fit.
    pub fn crd_files(&self, values: &Values) -> Result<Vec<File>, RenderError> {
        let tree = dependencies::settle(&self.tree, values, &mut Vec::new())?;
        let mut files = Vec::new();
        raw_crds(tree.root(), &mut files);
        Ok(files)
    }

    /// The values that templates see: the chart's defaults under `values`, sub-charts' under their names.
    ///
    /// # Errors
    /// When values do not fit the tree of charts.
    pub fn values(&self, values: &Values) -> Result<Values, RenderError> {
        let tree = dependencies::settle(&self.tree, values, &mut Vec::new())?;
        let seen = values::coalesce(tree.root(), live::of(values), &mut Vec::new())?;
        Ok(live::to_values(&seen)?)
    }

    /// The text of each template that is more than definitions, sorted by template; notes apart.
    fn render_files(
        &self,
        input: &RenderInput<'_>,
        rendered: &mut Rendered,
    ) -> Result<Vec<(Arc<str>, String)>, RenderError> {
        let tree = dependencies::settle(&self.tree, input.values, &mut rendered.warnings)?;
        let values = values::coalesce(tree.root(), live::of(input.values), &mut rendered.warnings)?;
        schema::check(tree.root(), &values)?;
        self.check_cluster(input.capabilities)?;
        let mut templates = scope::templates(tree.root(), &values, input.release, input.capabilities);
        templates.retain(|template| input.files.take(template));
        if let Files::State(path) = input.files
            && !templates.iter().any(|template| template.is_root && template.path == path)
        {
            let (chart, template) = (self.chart.metadata.name.clone(), path.to_owned());
            return Err(RenderError::NoTemplate { chart, template });
        }
        let program = self.program(&templates)?;
        let mut files = Vec::new();
        for template in templates.iter().filter(|template| !state::is_partial(template.path)) {
            let text = program.render(&template.key, template.dot(), &input.run)?;
            if state::without_j2(&template.key).ends_with(NOTES) {
                if template.is_root && state::without_j2(template.path) == "templates/NOTES.txt" {
                    rendered.notes = text;
                }
            } else {
                files.push((Arc::from(template.key.as_str()), text));
            }
        }
        files.sort();
        Ok(files)
    }

    fn check_cluster(&self, capabilities: &Capabilities) -> Result<(), RenderError> {
        let wanted = &self.chart.metadata.kube_version;
        let found = &capabilities.kube_version;
        if wanted.is_empty() || dependencies::is_compatible(wanted, found.plain()) {
            return Ok(());
        }
        Err(RenderError::KubeVersion { wanted: wanted.clone(), found: found.version().to_owned() })
    }

    fn program(&self, templates: &[Template<'_>]) -> Result<Arc<Program>, RenderError> {
        let key: Vec<String> = templates.iter().map(|template| template.key.clone()).collect();
        if let Some(program) = self.programs().get(&key) {
            return Ok(Arc::clone(program));
        }
        let source = |template: &Template<'_>| Source {
            name: Arc::from(template.key.as_str()),
            text: match str::from_utf8(template.data) {
                Ok(text) => Arc::from(text),
                Err(_) => Arc::from(String::from_utf8_lossy(template.data)),
            },
        };
        let (jinja, go): (Vec<_>, Vec<_>) = templates.iter().partition(|template| template.is_jinja);
        let mut program = Program::parse(&go.into_iter().map(source).collect::<Vec<_>>())?;
        if !jinja.is_empty() {
            program = program.with_jinja(&jinja.into_iter().map(source).collect::<Vec<_>>())?;
        }
        let program = Arc::new(program);
        let mut programs = self.programs();
        if programs.len() >= MAX_PROGRAMS {
            programs.clear();
        }
        programs.insert(key, Arc::clone(&program));
        Ok(program)
    }

    fn programs(&self) -> std::sync::MutexGuard<'_, HashMap<Vec<String>, Arc<Program>>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Files ===

impl Files<'_> {
    fn take(self, template: &Template<'_>) -> bool {
        let is_state = template.is_root && state::is_state(template.path);
        match self {
            Self::All => true,
            Self::State(path) => {
                state::is_partial(template.path) || (template.is_root && template.path == path)
            }
            Self::Rest => !is_state,
        }
    }
}

/// Refuses an engine nobody knows, in the chart and the charts in it.
fn check_engine(chart: &Chart) -> Result<(), RenderError> {
    let annotations = &chart.metadata.annotations;
    match annotations.get(names::ENGINE).filter(|engine| !scope::ENGINES.contains(&engine.as_str())) {
        Some(engine) => Err(RenderError::Engine { chart: chart.name().to_owned(), engine: engine.clone() }),
        None => chart.dependencies.iter().try_for_each(|inner| check_engine(inner)),
    }
}

fn raw_crds(node: Node<'_>, files: &mut Vec<File>) {
    let path = node.path();
    let named = |file: &File| File { path: format!("{path}/{}", file.path), data: file.data.clone() };
    files.extend(node.chart().crd_files().map(named));
    for child in node.children() {
        raw_crds(child, files);
    }
}
