//! `pintle rbac`: the rights that charts, Watches and Plugins need, as a ClusterRole for the operator.

mod kinds;

pub(crate) use kinds::plural;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use pintle_chart::Chart;
use serde_json::{Value, json};

use crate::{Ending, printed, template};

/// What the operator does with objects of a chart.
const APPLIED: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];
/// What it does with objects that it only reads.
const READ: [&str; 3] = ["get", "list", "watch"];

/// Arguments of `pintle rbac`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Charts (folders or archives), and files with Watches, Plugins and CustomResourceDefinitions.
    #[arg(required = true)]
    sources: Vec<PathBuf>,
    /// Name of the ClusterRole; default: `pintle-` and the name of the first chart.
    #[arg(long, value_parser = parse_name)]
    name: Option<String>,
}

/// Rights by group and resource, and what a person must look at.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    rules: BTreeMap<(String, String), BTreeSet<&'static str>>,
    notes: BTreeSet<String>,
    name: Option<String>,
    /// Resources of kinds that the sources define themselves, by group and kind.
    defined: BTreeMap<(String, String), String>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Ending> {
    printed::print(&yaml_of(&args.sources, args.name.as_deref())?)?;
    Ok(Ending::Done)
}

/// The ClusterRole as YAML, with what a person must look at as comments.
pub(crate) fn yaml_of(sources: &[PathBuf], name: Option<&str>) -> anyhow::Result<String> {
    let mut rights = Rights::default();
    let (charts, files): (Vec<_>, Vec<_>) = sources.iter().partition(|path| is_chart(path));
    // Definitions come first: they say what resources of their kinds are called.
    for path in files {
        rights.add_file(path)?;
    }
    for path in charts {
        let chart =
            template::read_chart(path).with_context(|| format!("could not read {}", path.display()))?;
        rights.name.get_or_insert_with(|| chart.name().to_owned());
        rights.add_chart(&chart, "");
    }
    rights.to_yaml(name)
}

/// What these Watches, Plugins and CustomResourceDefinitions and their chart need, and none of the roles gives;
/// definitions come first.
pub(crate) fn lacking(roles: &[&Value], objects: &[&Value], chart: &Chart) -> Vec<String> {
    let mut rights = Rights::default();
    objects.iter().for_each(|object| rights.add_object(object));
    rights.add_chart(chart, "");
    let rules: Vec<&Value> = roles.iter().flat_map(|role| role["rules"].as_array()).flatten().collect();
    let lacking = rights.rules.iter().filter_map(|((group, resource), verbs)| {
        let gives = |verb: &str| {
            rules.iter().any(|rule| {
                has(rule, "apiGroups", group) && has(rule, "resources", resource) && has(rule, "verbs", verb)
            })
        };
        let verbs: Vec<&str> = ordered(verbs).into_iter().filter(|verb| !gives(verb)).collect();
        let of = if group.is_empty() { String::new() } else { format!(".{group}") };
        (!verbs.is_empty()).then(|| format!("no rule gives {} on {resource}{of}", verbs.join(", ")))
    });
    lacking.collect()
}

/// True when a list of a rule names a word, or all.
fn has(rule: &Value, field: &str, word: &str) -> bool {
    rule[field].as_array().into_iter().flatten().any(|found| found == word || found == "*")
}

/// The name of rights for a kind: no other kind has it, whichever charts they share.
pub(crate) fn name_for(group: &str, kind: &str) -> String {
    let kind = kind.to_lowercase();
    if group.is_empty() { format!("pintle-{kind}") } else { format!("pintle-{kind}.{group}") }
}

/// A name that the API server takes for an object: a DNS subdomain.
fn parse_name(text: &str) -> Result<String, String> {
    let is_label = |part: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !part.is_empty() && part.bytes().all(plain) && !part.starts_with('-') && !part.ends_with('-')
    };
    if text.len() <= 253 && text.split('.').all(is_label) {
        return Ok(text.to_owned());
    }
    Err("write lower case letters, digits, dashes and dots, as pintle-memcached".to_owned())
}

fn is_chart(path: &Path) -> bool {
    path.is_dir() || path.extension().is_some_and(|end| end == "tgz" || end == "gz")
}

// === impl Rights ===

impl Rights {
    fn add_file(&mut self, path: &Path) -> anyhow::Result<()> {
        let shown = path.display();
        let text = fs::read_to_string(path).with_context(|| format!("could not read {shown}"))?;
        for part in text.split("\n---") {
            let object: Value = serde_yaml::from_str(part.trim_start_matches('-'))
                .with_context(|| format!("{shown} is no YAML"))?;
            match object["kind"].as_str() {
                None if object.is_null() => {}
                Some("Watch" | "Plugin" | "CustomResourceDefinition") => self.add_object(&object),
                other => bail!(
                    "{shown}: kind {} is none of Watch, Plugin and CustomResourceDefinition; name a chart's folder for its objects",
                    other.unwrap_or("(none)")
                ),
            }
        }
        Ok(())
    }

    fn add_object(&mut self, object: &Value) {
        match object["kind"].as_str() {
            Some("Watch") => self.add_watch(object),
            Some("Plugin") => self.add_plugin(object),
            _ => self.define(object),
        }
    }

    /// Every kind that any branch of a template may render, of a chart and of the charts in it.
    fn add_chart(&mut self, chart: &Chart, within: &str) {
        let place = format!("{within}{}", chart.name());
        for file in chart.crd_files() {
            for part in file.text().split("\n---") {
                if let Ok(object) = serde_yaml::from_str::<Value>(part.trim_start_matches('-')) {
                    self.define(&object);
                }
            }
            self.allow(
                "apiextensions.k8s.io",
                "CustomResourceDefinition",
                &["get", "list", "watch", "create", "patch"],
            );
        }
        for file in &chart.templates {
            let found = kinds::scan(&file.text());
            for (group, kind) in found.rendered {
                self.allow(&group, &kind, &APPLIED);
                self.note_grants(&kind, &format!("{place}/{}", file.path));
            }
            for (group, kind) in found.looked_up {
                self.allow(&group, &kind, &READ);
            }
            for line in found.unknown {
                let place = format!("{place}/{}:{line}", file.path);
                self.notes
                    .insert(format!("{place}: what kind this is depends on values; add its rule by hand"));
            }
        }
        for inner in &chart.dependencies {
            self.add_chart(inner, &format!("{place}/charts/"));
        }
    }

    fn note_grants(&mut self, kind: &str, place: &str) {
        if matches!(kind, "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding") {
            self.notes.insert(format!(
                "{place}: a {kind} gives rights; the operator must have those rights itself to apply it"
            ));
        }
    }

    fn add_watch(&mut self, watch: &Value) {
        let text = |field: &str| watch["spec"][field].as_str().unwrap_or_default().to_owned();
        let (group, kind) = (text("group"), text("kind"));
        let resource = self.resource(&group, &kind);
        self.rule(&group, &resource, &["get", "list", "watch", "patch"]);
        self.rule(&group, &format!("{resource}/status"), &["patch"]);
        self.rule(&group, &format!("{resource}/finalizers"), &["update"]);
    }

    fn add_plugin(&mut self, plugin: &Value) {
        let texts = |value: &Value| -> Vec<String> {
            let list = value.as_array().into_iter().flatten().filter_map(Value::as_str);
            list.map(str::to_owned).collect()
        };
        for (field, verbs) in [("read", &READ[..]), ("objects", &APPLIED[..])] {
            for grant in plugin["spec"]["grants"][field].as_array().into_iter().flatten() {
                for group in texts(&grant["apiGroups"]) {
                    for kind in texts(&grant["kinds"]) {
                        self.allow(&group, &kind, verbs);
                    }
                }
            }
        }
    }

    fn define(&mut self, object: &Value) {
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (group, kind, plural) =
            (text("/spec/group"), text("/spec/names/kind"), text("/spec/names/plural"));
        if !plural.is_empty() {
            self.defined.insert((group, kind), plural);
        }
    }

    fn allow(&mut self, group: &str, kind: &str, verbs: &[&'static str]) {
        let resource = self.resource(group, kind);
        self.rule(group, &resource, verbs);
    }

    fn resource(&mut self, group: &str, kind: &str) -> String {
        if let Some(plural) = self.defined.get(&(group.to_owned(), kind.to_owned())) {
            return plural.clone();
        }
        let plural = kinds::plural(kind);
        if !kinds::is_built_in(group) {
            self.notes.insert(format!(
                "{plural}.{group} is a guess from the kind {kind}; name the file of its CustomResourceDefinition to be sure"
            ));
        }
        plural
    }

    fn rule(&mut self, group: &str, resource: &str, verbs: &[&'static str]) {
        self.rules.entry((group.to_owned(), resource.to_owned())).or_default().extend(verbs);
    }

    fn to_yaml(&self, name: Option<&str>) -> anyhow::Result<String> {
        let own = format!("pintle-{}", self.name.as_deref().unwrap_or("plugins"));
        let rules: Vec<Value> = self
            .rules
            .iter()
            .map(|((group, resource), verbs)| {
                json!({"apiGroups": [group], "resources": [resource], "verbs": ordered(verbs)})
            })
            .collect();
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name.unwrap_or(&own), "labels": {"pintle.dev/aggregate-to-operator": "true"}},
            "rules": rules
        });
        let notes: String = self.notes.iter().map(|note| format!("# {note}\n")).collect();
        Ok(format!("{notes}{}", serde_yaml::to_string(&role).context("could not write the role as YAML")?))
    }
}

/// Verbs in the order people write them.
fn ordered(verbs: &BTreeSet<&'static str>) -> Vec<&'static str> {
    let all = ["get", "list", "watch", "create", "update", "patch", "delete"];
    all.into_iter().filter(|verb| verbs.contains(verb)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn every_branch_of_a_chart_counts_and_what_is_open_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n");
        write(
            "templates/a.yaml",
            "{{- if .Values.ingress }}\n{{- if .Capabilities.APIVersions.Has \"networking.k8s.io/v1\" }}\napiVersion: networking.k8s.io/v1\n{{- else }}\napiVersion: extensions/v1beta1\n{{- end }}\nkind: Ingress\n{{- end }}\n---\napiVersion: v1\nkind: {{ .Values.kind }}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n",
        );
        write(
            "templates/b.yaml",
            "{{ $s := lookup \"v1\" \"Secret\" \"ns\" \"a\" }}\napiVersion: parts.example.com/v1\nkind: Mouse\n",
        );
        write(
            "crds/mouse.yaml",
            "kind: CustomResourceDefinition\nspec: {group: parts.example.com, names: {kind: Mouse, plural: mice}}\n",
        );
        let yaml = yaml_of(&[folder.path().to_owned()], None).unwrap();
        let role: Value = serde_yaml::from_str(&yaml).unwrap();
        assert_eq!(role["metadata"]["name"], "pintle-web");
        let has = |group: &str, resource: &str, verb: &str| {
            role["rules"].as_array().unwrap().iter().any(|rule| {
                rule["apiGroups"][0] == group
                    && rule["resources"][0] == resource
                    && rule["verbs"].as_array().unwrap().iter().any(|found| found == verb)
            })
        };
        for (group, resource, verb, is_there) in [
            ("networking.k8s.io", "ingresses", "create", true),
            ("extensions", "ingresses", "delete", true),
            ("parts.example.com", "mice", "patch", true),
            ("", "secrets", "get", true),
            ("", "secrets", "create", false),
            ("apiextensions.k8s.io", "customresourcedefinitions", "create", true),
            ("apiextensions.k8s.io", "customresourcedefinitions", "delete", false),
        ] {
            assert_eq!(has(group, resource, verb), is_there, "{group}/{resource} {verb}: {yaml}");
        }
        assert!(yaml.contains("templates/a.yaml:11: what kind this is depends on values"), "{yaml}");
        assert!(yaml.contains("a Role gives rights"), "{yaml}");
    }

    #[test]
    fn names_are_those_that_the_api_server_takes() {
        for name in ["a", "pintle-memcached", "pintle-memcached.cache.my.domain"] {
            assert_eq!(parse_name(name).as_deref(), Ok(name));
        }
        for name in ["", "Bad Name", "a_b", "-a", "a.", &"a".repeat(254)] {
            assert!(parse_name(name).is_err(), "{name}");
        }
    }
}
