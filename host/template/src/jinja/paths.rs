//! Names of templates in `include`, `import` and `extends`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The name that `name` stands for in the file `parent`: the first candidate there is, else itself.
pub(super) fn join<'s>(names: &BTreeSet<Arc<str>>, name: &'s str, parent: &str) -> Cow<'s, str> {
    let found = candidates(name, parent).into_iter().find(|path| names.contains(path.as_str()));
    found.map_or(Cow::Borrowed(name), Cow::Owned)
}

/// What a name may stand for, in order: beside the file, in its chart, in the chart's `templates/`,
/// from the top chart. With `./` or `../` it is beside the file and nothing else.
pub(super) fn candidates(name: &str, parent: &str) -> Vec<String> {
    let folder = parent.rsplit_once('/').map_or("", |(folder, _)| folder);
    let beside = normal(&format!("{folder}/{name}"));
    if name.starts_with("./") || name.starts_with("../") {
        return vec![beside];
    }
    let chart = chart_of(parent);
    vec![beside, format!("{chart}/{name}"), format!("{chart}/templates/{name}"), name.to_owned()]
}

/// The folder of the chart a template belongs to: `top/charts/sub` of `top/charts/sub/templates/x.j2`.
fn chart_of(template: &str) -> &str {
    let mut end = template.find('/').unwrap_or(0);
    while let Some(rest) = template.get(end..).and_then(|rest| rest.strip_prefix("/charts/")) {
        let Some(len) = rest.find('/') else {
            break;
        };
        end += "/charts/".len() + len;
    }
    template.get(..end).unwrap_or_default()
}

/// A path without `.` and `..`; what leads above the top stays at the top.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_for_from_near_to_far() {
        let names: BTreeSet<Arc<str>> = [
            "top/templates/_a.j2",
            "top/templates/deep/_a.j2",
            "top/charts/sub/templates/_a.j2",
            "top/charts/sub/charts/in/templates/_b.j2",
        ]
        .into_iter()
        .map(Arc::from)
        .collect();
        for (parent, name, wanted) in [
            ("top/templates/x.j2", "_a.j2", "top/templates/_a.j2"),
            ("top/templates/deep/x.j2", "_a.j2", "top/templates/deep/_a.j2"),
            ("top/templates/deep/x.j2", "../_a.j2", "top/templates/_a.j2"),
            ("top/templates/deep/x.j2", "templates/_a.j2", "top/templates/_a.j2"),
            ("top/templates/x.j2", "charts/sub/templates/_a.j2", "top/charts/sub/templates/_a.j2"),
            ("top/charts/sub/templates/x.j2", "_a.j2", "top/charts/sub/templates/_a.j2"),
            (
                "top/charts/sub/templates/x.j2",
                "charts/in/templates/_b.j2",
                "top/charts/sub/charts/in/templates/_b.j2",
            ),
            ("top/charts/sub/templates/x.j2", "top/templates/_a.j2", "top/templates/_a.j2"),
            ("top/templates/x.j2", "nobody.j2", "nobody.j2"),
            ("top/templates/x.j2", "../../../../etc/passwd", "../../../../etc/passwd"),
        ] {
            assert_eq!(join(&names, name, parent), wanted, "{name} in {parent}");
        }
    }
}
