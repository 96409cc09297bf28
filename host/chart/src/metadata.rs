//! `Chart.yaml`: who a chart is and what it needs.

use std::collections::BTreeMap;

use pintle_template::{semver, value::float};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::yaml;

/// The content of `Chart.yaml`, with the names that Helm stores.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Name of the chart.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// A page about it.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub home: String,
    /// Where its sources are.
    #[serde(deserialize_with = "texts", skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Version of the chart.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// One sentence.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Words to find it by.
    #[serde(deserialize_with = "texts", skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// Who keeps it.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub maintainers: Vec<Maintainer>,
    /// Address of a picture.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub icon: String,
    /// `v1`, `v2` or `v3`.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kept, without effect.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// Kept, without effect.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub tags: String,
    /// Version of what the chart installs.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub app_version: String,
    /// Whether it should no longer be used.
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub deprecated: bool,
    /// Notes of others, ours among them.
    #[serde(deserialize_with = "text_map", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Versions of Kubernetes it works with.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub kube_version: String,
    /// Charts inside it.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Dependency>,
    /// `application`, `library`, or empty for an application.
    #[serde(rename = "type", deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Whether a list of dependencies was given that is empty: see [`Metadata::lists_dependencies`].
    #[serde(skip)]
    has_empty_list: bool,
}

/// Who keeps a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Maintainer {
    /// A person or an organisation.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Address for mail.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub email: String,
    /// A page.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub url: String,
}

/// A chart that another needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dependency {
    /// Name of the chart.
    #[serde(deserialize_with = "text")]
    pub name: String,
    /// A version or a range.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Where it was taken from.
    #[serde(deserialize_with = "text")]
    pub repository: String,
    /// Paths of values that switch it on or off, the first that is a bool counts.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// Groups that switch it on or off.
    #[serde(deserialize_with = "texts", skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Whether it is on, once that was decided.
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub enabled: bool,
    /// Values that its parent takes from it.
    #[serde(rename = "import-values", deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub import_values: Vec<Value>,
    /// Another name for it.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub alias: String,
    /// Whether `import_values` was carried out, which happens once.
    #[serde(skip)]
    pub(crate) is_imported: bool,
}

/// What is wrong with `Chart.yaml` or `requirements.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not YAML.
    #[error("{file}:{line}: not readable as YAML")]
    Yaml {
        /// Path inside the chart.
        file: String,
        /// Counted from 1.
        line: usize,
        /// What the reader says.
        #[source]
        source: yaml::Error,
    },
    /// A field that is absent, or not what it must be.
    #[error("{file}:{line}: {field}: {problem}")]
    Field {
        /// Path inside the chart.
        file: String,
        /// Counted from 1; the first line for a field that is absent.
        line: usize,
        /// The field.
        field: String,
        /// What is wrong with it and what it should be.
        problem: String,
        /// What Helm says of it.
        helms: Box<str>,
    },
}

// === impl Metadata ===

impl Metadata {
    /// Reads and checks `Chart.yaml`. A chart without `apiVersion` is of `v1`, as Helm has it.
    ///
    /// # Errors
    /// When it is no YAML, a field is missing or of the wrong kind.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let source = Text { file: "Chart.yaml", text };
        let mut metadata = source.read()?;
        if metadata.api_version.is_empty() {
            "v1".clone_into(&mut metadata.api_version);
        }
        metadata.check(&source)?;
        Ok(metadata)
    }

    /// True for charts that only lend their named templates.
    #[must_use]
    pub fn is_library(&self) -> bool {
        self.kind.eq_ignore_ascii_case("library")
    }

    /// Whether dependencies are given, be it as an empty list: only then are charts inside decided on.
    pub(crate) fn lists_dependencies(&self) -> bool {
        self.has_empty_list || !self.dependencies.is_empty()
    }

    /// Leaves these dependencies, and where there are none no list either.
    pub(crate) fn keep_dependencies(&mut self, kept: Vec<Dependency>) {
        self.dependencies = kept;
        self.has_empty_list = false;
    }

    /// Takes the dependencies of a `requirements.yaml`, where charts of `apiVersion: v1` have them.
    pub(crate) fn add_requirements(&mut self, text: &str) -> Result<(), Error> {
        let source = Text { file: "requirements.yaml", text };
        let read = source.read()?;
        if read.lists_dependencies() {
            self.dependencies = read.dependencies;
            self.has_empty_list = read.has_empty_list;
        }
        self.check(&source)
    }

    fn check(&mut self, source: &Text<'_>) -> Result<(), Error> {
        self.sanitise();
        if !matches!(self.api_version.as_str(), "v1" | "v2" | "v3") {
            return Err(source.field("apiVersion", "must be v1, v2 or v3", "unsupported chart version"));
        }
        if self.name.is_empty() {
            return Err(source.field("name", "is missing: give the chart a name", &required("name")));
        }
        if self.name.contains('/') || matches!(self.name.as_str(), "." | "..") {
            let said = if self.name.contains('/') { "invalid" } else { "not allowed" };
            let said = format!("validation: chart.metadata.name {:?} is {said}", self.name);
            return Err(source.field("name", "must not be a path", &said));
        }
        if self.version.is_empty() {
            let problem = "is missing: give the chart a version such as 0.1.0";
            return Err(source.field("version", problem, &required("version")));
        }
        if let Err(error) = semver::Version::parse(&self.version) {
            let problem = format!("{:?} is no version ({error})", self.version);
            let said = format!("validation: chart.metadata.version {:?} is invalid", self.version);
            return Err(source.field("version", &problem, &said));
        }
        if !matches!(self.kind.as_str(), "" | "application" | "library") {
            let said = "validation: chart.metadata.type must be application or library";
            return Err(source.field("type", "must be application or library", said));
        }
        self.check_dependencies(source)
    }

    fn check_dependencies(&self, source: &Text<'_>) -> Result<(), Error> {
        let mut seen = std::collections::BTreeSet::new();
        for dependency in &self.dependencies {
            let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
            if !dependency.alias.chars().all(plain) {
                let problem = format!("alias {:?} may have letters, digits, - and _", dependency.alias);
                let name = &dependency.name;
                let said = format!("validation: dependency {name:?} has disallowed characters in the alias");
                return Err(source.field("dependencies", &problem, &said));
            }
            let name = if dependency.alias.is_empty() { &dependency.name } else { &dependency.alias };
            if !seen.insert(name) {
                let problem = format!("more than one is named {name:?}: give one an alias");
                let said = format!("validation: more than one dependency with name or alias {name:?}");
                return Err(source.field("dependencies", &problem, &said));
            }
        }
        Ok(())
    }

    /// White space becomes a blank and what cannot be printed goes, as in Helm.
    fn sanitise(&mut self) {
        let fields = [
            &mut self.name,
            &mut self.description,
            &mut self.home,
            &mut self.icon,
            &mut self.condition,
            &mut self.tags,
            &mut self.app_version,
            &mut self.kube_version,
        ];
        fields.into_iter().chain(&mut self.sources).chain(&mut self.keywords).for_each(sanitise);
        for maintainer in &mut self.maintainers {
            [&mut maintainer.name, &mut maintainer.email, &mut maintainer.url].into_iter().for_each(sanitise);
        }
        for dependency in &mut self.dependencies {
            let fields = [
                &mut dependency.name,
                &mut dependency.version,
                &mut dependency.repository,
                &mut dependency.condition,
            ];
            fields.into_iter().chain(&mut dependency.tags).for_each(sanitise);
        }
    }
}

/// A file being read, for errors that name the line.
struct Text<'a> {
    file: &'static str,
    text: &'a str,
}

impl Text<'_> {
    fn read(&self) -> Result<Metadata, Error> {
        let value = yaml::load(self.text).map_err(|source| Error::Yaml {
            file: self.file.to_owned(),
            line: source.line,
            source,
        })?;
        let map = match value {
            Value::Object(map) => map,
            Value::Null => Map::new(),
            other => {
                let said = unmarshal(&other, "value of type chart.Metadata");
                return Err(self.field("", "the file must be a mapping", &said));
            }
        };
        let has_empty_list = map.get("dependencies").and_then(Value::as_array).is_some_and(Vec::is_empty);
        let value = Value::Object(map);
        let read = Metadata::deserialize(&value).map_err(|error| self.misread_field(&value, &error))?;
        Ok(Metadata { has_empty_list, ..read })
    }

    /// The error of the first field that cannot be read: what serde says of the whole does not name the field.
    fn misread_field(&self, value: &Value, error: &serde_json::Error) -> Error {
        for (key, value) in value.as_object().into_iter().flatten() {
            let alone = Map::from_iter([(key.clone(), value.clone())]);
            if let Err(error) = serde_json::from_value::<Metadata>(Value::Object(alone)) {
                return self.field(key, &error.to_string(), &misread(key, value));
            }
        }
        self.field("", &error.to_string(), &error.to_string())
    }

    fn field(&self, field: &str, problem: &str, helms: &str) -> Error {
        Error::Field {
            file: self.file.to_owned(),
            line: self.line_of(field),
            field: field.to_owned(),
            problem: problem.to_owned(),
            helms: helms.into(),
        }
    }

    fn line_of(&self, field: &str) -> usize {
        let is_key = |line: &str| {
            let key = line.split(':').next().unwrap_or_default().trim_end();
            !field.is_empty() && key.trim_matches(['"', '\'']) == field
        };
        self.text.lines().position(is_key).map_or(1, |at| at + 1)
    }
}

fn required(field: &str) -> String {
    format!("validation: chart.metadata.{field} is required")
}

/// What Helm says of a field that holds something else than it must.
fn misread(key: &str, value: &Value) -> String {
    let has_null = |value: &Value| value.as_array().is_some_and(|items| items.iter().any(Value::is_null));
    let ty = match key {
        "maintainers" | "dependencies" if has_null(value) => {
            return format!("validation: {key} must not contain empty or null nodes");
        }
        "maintainers" => "[]*v2.Maintainer",
        "dependencies" => "[]*v2.Dependency",
        "sources" | "keywords" => "[]string",
        "annotations" => "map[string]string",
        "deprecated" => "bool",
        _ => "string",
    };
    unmarshal(value, &format!("struct field Metadata.{key} of type {ty}"))
}

fn unmarshal(value: &Value, place: &str) -> String {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!(
        "cannot load Chart.yaml: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go \
         {place}"
    )
}

fn sanitise(text: &mut String) {
    if text.chars().any(|letter| letter.is_control() || letter.is_whitespace()) {
        let kept = text.chars().filter_map(|letter| match letter {
            letter if letter.is_whitespace() => Some(' '),
            letter if letter.is_control() => None,
            letter => Some(letter),
        });
        *text = kept.collect();
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// A text; numbers and bools are taken as the text Go prints for them, as sigs yaml does for string fields.
#[derive(Default)]
struct Lenient(String);

impl<'de> Deserialize<'de> for Lenient {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match Value::deserialize(deserializer)? {
            Value::String(text) => text,
            Value::Null => String::new(),
            Value::Bool(flag) => flag.to_string(),
            Value::Number(number) if number.is_f64() => {
                float::float_text(number.as_f64().unwrap_or_default())
            }
            Value::Number(number) => number.to_string(),
            Value::Array(_) => return Err(serde::de::Error::custom("must be a text, not a list")),
            Value::Object(_) => return Err(serde::de::Error::custom("must be a text, not a mapping")),
        };
        Ok(Self(text))
    }
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Lenient::deserialize(deserializer).map(|text| text.0)
}

fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let texts = Option::<Vec<Lenient>>::deserialize(deserializer)?;
    Ok(texts.unwrap_or_default().into_iter().map(|text| text.0).collect())
}

fn text_map<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let map = Option::<BTreeMap<String, Lenient>>::deserialize(deserializer)?;
    Ok(map.unwrap_or_default().into_iter().map(|(key, text)| (key, text.0)).collect())
}

fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default())
}

fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<bool>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn fields_of_any_scalar_become_text() {
        let read = Metadata::parse(
            "apiVersion: v2\nname: c\nversion: 1.10\nappVersion: 3\nannotations: {a: true, b: 1.5}\ndeprecated: true\n",
        )
        .unwrap();
        assert_eq!((read.version.as_str(), read.app_version.as_str()), ("1.1", "3"));
        assert_eq!(read.annotations.get("a").map(String::as_str), Some("true"));
        assert_eq!(read.annotations.get("b").map(String::as_str), Some("1.5"));
        assert!(read.deprecated);
    }

    #[test]
    fn a_chart_without_api_version_is_of_v1() {
        assert_eq!(Metadata::parse("name: c\nversion: 1.0.0\n").unwrap().api_version, "v1");
    }

    #[test]
    fn faults_name_file_line_and_field() {
        for (text, says) in [
            ("apiVersion: v2\nversion: 1.0.0\n", "Chart.yaml:1: name: is missing"),
            ("apiVersion: v2\nname: a/b\nversion: 1.0.0\n", "Chart.yaml:2: name: must not be a path"),
            ("apiVersion: v2\nname: c\nversion: banana\n", "Chart.yaml:3: version: \"banana\" is no version"),
            ("apiVersion: v9\nname: c\nversion: 1.0.0\n", "Chart.yaml:1: apiVersion: must be"),
            ("apiVersion: v2\nname: c\nversion: 1.0.0\ntype: thing\n", "Chart.yaml:4: type: must be"),
            ("name: c\nkeywords: 7\nversion: 1.0.0\n", "Chart.yaml:2: keywords: "),
            ("name: {a: b}\nversion: 1.0.0\n", "Chart.yaml:1: name: must be a text, not a mapping"),
            (
                "name: c\nversion: 1.0.0\ndependencies:\n- {name: a}\n- {name: a}\n",
                "Chart.yaml:3: dependencies: more than one is named \"a\"",
            ),
            (
                "name: c\nversion: 1.0.0\ndependencies: [{name: a, alias: 'x.y'}]\n",
                "Chart.yaml:3: dependencies: alias \"x.y\" may have",
            ),
            ("name: c\n  x: :\nversion\n", "Chart.yaml:"),
        ] {
            let error = Metadata::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error:?} starts with {says:?}");
        }
    }

    #[test]
    fn a_stored_chart_has_helms_names() {
        let read = Metadata::parse(
            "apiVersion: v2\nname: c\nversion: 1.0.0\nkubeVersion: '>=1'\ntype: application\ndependencies:\n\
             - {name: d, version: 1.x, repository: '', import-values: [x]}\n",
        )
        .unwrap();
        let json = serde_json::to_value(&read).unwrap();
        assert_eq!(
            json,
            serde_json::json!({"apiVersion": "v2", "name": "c", "version": "1.0.0", "kubeVersion": ">=1",
                "type": "application", "dependencies": [
                    {"name": "d", "version": "1.x", "repository": "", "import-values": ["x"]}]})
        );
    }
}
