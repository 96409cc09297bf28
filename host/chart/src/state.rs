//! Which templates are ordered states of a SpecialResource, and in which order.

use crate::{archive::File, chart::Chart};

/// A template that is a state of its own: its base name is four digits, `-` or `_`, and ends in `.yaml` or
/// `.yaml.j2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateFile {
    /// Path inside the chart: `templates/0000-buildconfig.yaml`.
    pub template: String,
    /// Base name without its endings: `0000-buildconfig`.
    pub name: String,
    /// The four digits, which node labels end in.
    pub digits: String,
    /// Whether its text marks an object as one per kernel or pool, so that the state is rendered for each. The
    /// value of the annotation does not count, as in the Special Resource Operator.
    pub kernel_affine: bool,
}

/// The states of a chart in order: by the text of the path, so that a sub-folder counts before the digits.
#[must_use]
pub fn states(chart: &Chart) -> Vec<StateFile> {
    let mut states: Vec<StateFile> = chart.templates.iter().filter_map(StateFile::of).collect();
    states.sort_by(|one, other| one.template.cmp(&other.template));
    states
}

/// True when the template at this path is a state.
#[must_use]
pub fn is_state(path: &str) -> bool {
    digits(base(path)).is_some()
}

/// True for templates that only define names: their base name starts with `_`.
#[must_use]
pub fn is_partial(path: &str) -> bool {
    base(path).starts_with('_')
}

/// The path of a template without the ending that says it is Jinja.
pub(crate) fn without_j2(path: &str) -> &str {
    path.strip_suffix(".j2").unwrap_or(path)
}

// === impl StateFile ===

impl StateFile {
    fn of(file: &File) -> Option<Self> {
        let base = base(&file.path);
        Some(Self {
            template: file.path.clone(),
            name: without_j2(base).strip_suffix(".yaml")?.to_owned(),
            digits: digits(base)?.to_owned(),
            kernel_affine: file.text().lines().any(marks_kernel_affine),
        })
    }
}

/// An indented line that starts with one of the annotations, as block style has it.
fn marks_kernel_affine(line: &str) -> bool {
    const MARKS: [&str; 2] = ["specialresource.openshift.io/kernel-affine:", "pintle.dev/per-pool:"];
    let text = line.trim_start();
    text.len() < line.len() && MARKS.iter().any(|mark| text.starts_with(mark))
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn digits(base: &str) -> Option<&str> {
    let rest = without_j2(base).strip_suffix(".yaml")?;
    let (digits, rest) = rest.split_at_checked(4)?;
    (digits.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with(['-', '_'])).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::tests::chart;

    #[test]
    fn four_digits_and_yaml_make_a_state() {
        for (path, is) in [
            ("templates/0000-buildconfig.yaml", true),
            ("templates/0001_secret.yaml", true),
            ("templates/sub/9999-.yaml", true),
            ("templates/0000-x.yaml.j2", true),
            ("templates/0000-x.j2", false),
            ("templates/000-x.yaml", false),
            ("templates/00000-x.yaml", false),
            ("templates/0000-x.yml", false),
            ("templates/0000x.yaml", false),
            ("templates/a0000-x.yaml", false),
            ("templates/é000-x.yaml", false),
        ] {
            assert_eq!(is_state(path), is, "{path}");
        }
    }

    #[test]
    fn states_come_in_the_order_of_their_paths_as_text() {
        let chart = chart(&[
            ("Chart.yaml", "name: c\nversion: 1.0.0\n"),
            ("templates/1000-b.yaml", "  specialresource.openshift.io/kernel-affine: \"false\""),
            ("templates/0000-a.yaml", "specialresource.openshift.io/kernel-affine: not indented"),
            ("templates/0500/2000-c.yaml", "# none"),
            ("templates/_0000-x.yaml", ""),
            ("templates/rest.yaml", ""),
        ]);
        let states = states(&chart);
        let names: Vec<_> = states
            .iter()
            .map(|state| (state.name.as_str(), state.digits.as_str(), state.kernel_affine))
            .collect();
        assert_eq!(names, [("0000-a", "0000", false), ("2000-c", "2000", false), ("1000-b", "1000", true)]);
    }
}
