//! `import-values`: what charts take from the defaults of those inside.

use pintle_template::value::{self, Value, as_map};
use serde_json::{Value as Json, json};

use super::Tree;
use crate::{
    metadata::Dependency,
    scope::to_value,
    values::{
        self,
        live::{self, Defaults},
    },
    yaml,
};

/// A path of a chart inside, and where its values go.
struct Import {
    child: String,
    parent: String,
}

impl Tree {
    /// Sets the defaults of all charts that list dependencies to what they and the charts inside have, the
    /// innermost first.
    pub(super) fn import(&mut self, at: usize, warnings: &mut Vec<String>) -> Result<(), values::Error> {
        for child in self.members[at].children.clone() {
            self.import(child, warnings)?;
        }
        if !self.node(at).metadata().lists_dependencies() {
            return Ok(());
        }
        let seen = values::merge(self.node(at), warnings)?;
        let imported = live::empty();
        let mut dependencies = self.node(at).metadata().dependencies.clone();
        for dependency in &mut dependencies {
            take(dependency, &seen, &imported, warnings)?;
        }
        self.metadata_of(at).keep_dependencies(dependencies);
        // The imports share mappings with what was seen, and may have changed it: both count.
        let defaults = live::copy(&seen)?;
        values::merge_tables(&defaults, &imported, warnings)?;
        self.members[at].defaults = Defaults::freeze(&defaults)?;
        Ok(())
    }
}

/// Adds to `imported` what the parent wants of this chart. It is carried out once: where two copies share
/// their metadata, the second gets nothing.
fn take(
    dependency: &mut Dependency,
    seen: &Value,
    imported: &Value,
    warnings: &mut Vec<String>,
) -> Result<(), values::Error> {
    let wanted = std::mem::take(&mut dependency.import_values);
    if std::mem::replace(&mut dependency.is_imported, true) {
        return Ok(());
    }
    for Import { child, parent } in wanted.iter().filter_map(Import::parse) {
        let from = format!("{}.{child}", dependency.name);
        dependency.import_values.push(json!({"child": child, "parent": parent}));
        match live::table(seen, &from) {
            // An empty mapping is not shared.
            Some(table) if as_map(&table).is_some_and(value::Map::is_empty) => {
                values::merge_tables(imported, &live::under(&parent, live::empty()), warnings)?;
            }
            Some(table) => values::merge_tables(imported, &live::under(&parent, table), warnings)?,
            None => warnings.push(format!("import-values: there is no table {from}")),
        }
    }
    Ok(())
}

// === impl Import ===

impl Import {
    fn parse(wanted: &Json) -> Option<Self> {
        match wanted {
            Json::String(name) => Some(Self { child: format!("exports.{name}"), parent: ".".to_owned() }),
            Json::Object(paths) => {
                let path = |key| text(paths.get(key).unwrap_or(&Json::Null));
                Some(Self { child: path("child"), parent: path("parent") })
            }
            _ => None,
        }
    }
}

/// What Go prints for the value.
fn text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Null => "<nil>".to_owned(),
        other => {
            let printed = value::print(&to_value(&yaml::floats(other.clone())));
            printed.ok().and_then(|text| value::as_text(&text).map(String::from)).unwrap_or_default()
        }
    }
}
