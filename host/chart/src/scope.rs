//! What templates see as `.`: one mapping for each chart of the tree, their `.Values` shared.

use std::sync::Arc;

use pintle_api::names;
use pintle_template::value::{
    Entries, Map as GoMap, MapType, Value, int64, invalid, list_value, map_value, nil, nil_map, retyped,
    typed_map,
};
use serde_json::{Number, Value as Json};

use crate::{
    capabilities::Capabilities,
    dependencies::Node,
    files::FilesObject,
    metadata::{Dependency, Maintainer, Metadata},
    render::Release,
    values::{Values, live},
};

/// A template with the chart it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Template<'a> {
    /// `top/charts/sub/templates/x.yaml`
    pub(crate) key: String,
    /// How many folders it is deep.
    depth: usize,
    /// Path inside its chart.
    pub(crate) path: &'a str,
    /// Content.
    pub(crate) data: &'a [u8],
    /// `.` without `.Template`.
    pub(crate) dot: Value,
    /// `.Template.BasePath`
    pub(crate) base_path: String,
    /// Whether it belongs to the chart that is installed.
    pub(crate) is_root: bool,
    /// Whether it is Jinja: its name ends in `.j2`, or its chart says so.
    pub(crate) is_jinja: bool,
}

/// The values of `pintle.dev/engine`.
pub(crate) const ENGINES: &[&str] = &["gotpl", JINJA];

const JINJA: &str = "jinja";

/// The templates of a tree of charts with what each sees, as the engine runs them: deepest first, then by
/// name downwards, so that a parent's definitions win over its sub-charts'.
pub(crate) fn templates<'a>(
    node: Node<'a>,
    values: &Value,
    release: &Release,
    capabilities: &Capabilities,
) -> Vec<Template<'a>> {
    let shared = Shared { release: release_value(release), capabilities: capabilities.to_value() };
    let mut templates = Vec::new();
    shared.chart(node, of_values(Some(values)), &mut templates);
    // Where charts share a name, the last one's template stands for all.
    templates.reverse();
    templates.sort_by(|one, other| other.depth.cmp(&one.depth).then_with(|| other.key.cmp(&one.key)));
    templates.dedup_by(|later, first| later.key == first.key);
    templates
}

impl Template<'_> {
    /// `.`, with `.Template` set to this template: the mapping is shared by all templates of the chart.
    pub(crate) fn dot(&self) -> &Value {
        let entries = Entries::from([
            (Arc::from("Name"), Value::from(self.key.as_str())),
            (Arc::from("BasePath"), Value::from(self.base_path.as_str())),
        ]);
        if let Some(map) = pintle_template::value::as_map(&self.dot) {
            map.insert("Template", typed_map(entries, MapType::Values));
        }
        &self.dot
    }
}

/// JSON as Go values: integers are `int64`, floats `float64`.
#[must_use]
pub fn to_value(json: &Json) -> Value {
    match json {
        Json::Null => nil(),
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => number_value(number),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => list_value(items.iter().map(to_value).collect()),
        Json::Object(map) => map_value(entries(map)),
    }
}

fn number_value(number: &Number) -> Value {
    match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => int64(integer),
        (None, Some(float)) => Value::from(float),
        (None, None) => invalid(),
    }
}

fn entries(map: &Values) -> Entries {
    map.iter().map(|(key, value)| (Arc::from(key.as_str()), to_value(value))).collect()
}

/// `.Values` of a mapping; an empty one where there is none.
fn of_values(values: Option<&Value>) -> Value {
    let seen = values.and_then(|values| retyped(values, MapType::Values));
    seen.unwrap_or_else(|| typed_map(Entries::new(), MapType::Values))
}

fn depth(key: &str) -> usize {
    key.matches('/').count()
}

struct Shared {
    release: Value,
    capabilities: Value,
}

impl Shared {
    /// The chart's `.`, which its parent has under `.Subcharts`.
    fn chart<'a>(&self, node: Node<'a>, values: Value, templates: &mut Vec<Template<'a>>) -> Value {
        let (path, is_root) = (node.path(), node.is_root());
        let subcharts = map_value(Entries::new());
        let dot = typed_map(
            Entries::from([
                (Arc::from("Chart"), metadata_value(node.metadata(), is_root)),
                (Arc::from("Files"), FilesObject::value(node.shared_chart())),
                (Arc::from("Release"), self.release.clone()),
                (Arc::from("Capabilities"), self.capabilities.clone()),
                (Arc::from("Values"), values.clone()),
                (Arc::from("Subcharts"), subcharts.clone()),
            ]),
            MapType::Values,
        );
        for child in node.children() {
            // A name with dots is a path here, though its values were laid under it as it is.
            let inner = of_values(live::table(&values, child.name()).as_ref());
            let scope = self.chart(child, inner, templates);
            if let Some(map) = pintle_template::value::as_map(&subcharts) {
                GoMap::insert(map, child.name(), scope);
            }
        }
        let is_library = node.metadata().is_library();
        let taken =
            node.chart().templates.iter().filter(|file| !is_library || crate::state::is_partial(&file.path));
        let all_jinja = node.metadata().annotations.get(names::ENGINE).is_some_and(|engine| engine == JINJA);
        let mut natural = None;
        templates.extend(taken.map(|file| {
            let is_jinja = all_jinja || file.path.ends_with(".j2");
            let dot = match is_jinja {
                true => natural.get_or_insert_with(|| pintle_template::value::natural(&dot)),
                false => &dot,
            };
            let key = format!("{path}/{}", file.path);
            Template {
                depth: depth(&key),
                key,
                path: &file.path,
                data: &file.data,
                dot: dot.clone(),
                base_path: format!("{path}/templates"),
                is_root,
                is_jinja,
            }
        }));
        dot
    }
}

fn release_value(release: &Release) -> Value {
    record([
        ("Name", Value::from(release.name.as_str())),
        ("Namespace", Value::from(release.namespace.as_str())),
        ("Revision", Value::from(i64::from(release.revision))),
        ("IsUpgrade", Value::from(release.is_upgrade)),
        ("IsInstall", Value::from(!release.is_upgrade)),
        ("Service", Value::from("Helm")),
    ])
}

fn metadata_value(metadata: &Metadata, is_root: bool) -> Value {
    let text = |text: &String| Value::from(text.as_str());
    let texts = |texts: &[String]| list_value(texts.iter().map(text).collect());
    let annotations = metadata.annotations.iter().map(|(key, value)| (Arc::from(key.as_str()), text(value)));
    let annotations = match metadata.annotations.is_empty() {
        true => nil_map(MapType::Strings),
        false => typed_map(annotations.collect(), MapType::Strings),
    };
    record([
        ("Name", text(&metadata.name)),
        ("Home", text(&metadata.home)),
        ("Sources", texts(&metadata.sources)),
        ("Version", text(&metadata.version)),
        ("Description", text(&metadata.description)),
        ("Keywords", texts(&metadata.keywords)),
        ("Maintainers", list_value(metadata.maintainers.iter().map(maintainer_value).collect())),
        ("Icon", text(&metadata.icon)),
        ("APIVersion", text(&metadata.api_version)),
        ("Condition", text(&metadata.condition)),
        ("Tags", text(&metadata.tags)),
        ("AppVersion", text(&metadata.app_version)),
        ("Deprecated", Value::from(metadata.deprecated)),
        ("Annotations", annotations),
        ("KubeVersion", text(&metadata.kube_version)),
        ("Dependencies", list_value(metadata.dependencies.iter().map(dependency_value).collect())),
        ("Type", text(&metadata.kind)),
        ("IsRoot", Value::from(is_root)),
    ])
}

fn maintainer_value(maintainer: &Maintainer) -> Value {
    record([
        ("Name", Value::from(maintainer.name.as_str())),
        ("Email", Value::from(maintainer.email.as_str())),
        ("URL", Value::from(maintainer.url.as_str())),
    ])
}

fn dependency_value(dependency: &Dependency) -> Value {
    record([
        ("Name", Value::from(dependency.name.as_str())),
        ("Version", Value::from(dependency.version.as_str())),
        ("Repository", Value::from(dependency.repository.as_str())),
        ("Condition", Value::from(dependency.condition.as_str())),
        ("Tags", list_value(dependency.tags.iter().map(|tag| Value::from(tag.as_str())).collect())),
        ("Enabled", Value::from(dependency.enabled)),
        ("ImportValues", list_value(dependency.import_values.iter().map(to_value).collect())),
        ("Alias", Value::from(dependency.alias.as_str())),
    ])
}

fn record<const N: usize>(fields: [(&str, Value); N]) -> Value {
    map_value(fields.into_iter().map(|(name, value)| (Arc::from(name), value)).collect())
}
