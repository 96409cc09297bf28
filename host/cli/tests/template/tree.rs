//! Trees of charts made from a number. Names, keys and paths come from small pools, so that they collide: defaults
//! against overrides, maps against texts, conditions against tags, definitions against definitions.

use std::{collections::BTreeMap, fmt::Write as _};

/// Numbers from a seed: xorshift.
pub(crate) struct Random(u64);

const KEYS: [&str; 8] = ["a", "b", "c", "enabled", "global", "tags", "exports", "one"];
const NAMES: [&str; 4] = ["one", "two", "three", "four"];
/// Of charts, which may have dots, that values take for paths.
const CHARTS: [&str; 5] = ["one", "two", "three", "four", "one.two"];
const ALIASES: [&str; 3] = ["", "", "a"];
const VERSIONS: [&str; 5] = ["1.x", ">=1.0.0", "*", "1.3.0", "nonsense"];
/// What `import-values` may hold besides names and pairs of paths.
const ODD_IMPORTS: [&str; 8] = [
    "a",
    "one.b",
    "5",
    "null",
    "[a]",
    "{child: exports}",
    "{child: global, parent: global}",
    "{child: 1.0, parent: [x, {y: 2}]}",
];
const SCHEMAS: [&str; 4] = [
    "{}",
    r#"{"properties": {"global": {"type": "object"}}}"#,
    r#"{"properties": {"b": {"type": ["null", "string", "number", "boolean", "object", "array"]}}}"#,
    r#"{"type": "object", "properties": {"enabled": {"type": ["boolean", "object", "number", "array", "string"]}}}"#,
];
const SCALARS: [&str; 14] = [
    "1",
    "1.5",
    "1000000",
    "text",
    "''",
    "true",
    "false",
    "null",
    "~",
    "[1, a]",
    "[]",
    "{}",
    "'{{ .Release.Name }}'",
    "0",
];

/// A chart and the flags of one call.
pub(crate) struct Tree {
    /// Files below the folder of the call; the chart is `c`.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// Flags.
    pub(crate) flags: Vec<String>,
}

pub(crate) fn tree(seed: u64) -> Tree {
    let mut random = Random(0x2545_f491_4f6c_dd1d ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut files = BTreeMap::new();
    let depth = if random.below(4) == 0 { 3 } else { 2 };
    random.chart("c", depth, &mut |path, data| drop(files.insert(format!("c/{path}"), data)));
    let mut flags = Vec::new();
    for name in ["user.yaml", "more.yaml"] {
        files.insert(name.to_owned(), random.mapping(0, 3).into_bytes());
        if random.below(2) == 0 {
            flags.extend(["-f".to_owned(), name.to_owned()]);
        }
    }
    for _ in 0..random.below(5) {
        let flag = ["--set", "--set", "--set-string", "--set-json", "--set-literal"][random.below(5)];
        let path = random.path();
        let value = ["1", "true", "false", "null", "\"x\"", "{}", "[1]"][random.below(7)];
        // A chart's own key with a text is only the same error again and again.
        let path = if path.contains('.') { path } else { format!("{path}.a") };
        flags.extend([flag.to_owned(), format!("{path}={value}")]);
    }
    flags.extend(
        [&["--include-crds"][..], &["--is-upgrade"], &["--no-hooks"], &[]][random.below(4)]
            .iter()
            .map(|&flag| flag.to_owned()),
    );
    Tree { files, flags }
}

// === impl Random ===

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below as u64).unwrap()
    }

    fn of(&mut self, items: &[&'static str]) -> &'static str {
        items[self.below(items.len())]
    }

    fn path(&mut self) -> String {
        let first = if self.below(2) == 0 { self.of(&NAMES) } else { self.of(&KEYS) };
        let mut path = first.to_owned();
        for _ in 0..self.below(4) {
            path.push('.');
            path.push_str(if self.below(3) == 0 { self.of(&NAMES) } else { self.of(&KEYS) });
        }
        path
    }

    fn mapping(&mut self, indent: usize, depth: usize) -> String {
        let mut keys = std::collections::BTreeSet::new();
        let mut out = String::new();
        for _ in 0..=self.below(4) {
            let key = if self.below(3) == 0 { self.of(&NAMES) } else { self.of(&KEYS) };
            if !keys.insert(key) {
                continue;
            }
            // Where a chart's values belong nothing else does, mostly.
            let is_map =
                (matches!(key, "global" | "tags" | "exports") || NAMES.contains(&key)) && self.below(12) > 0;
            if depth == 0 && is_map {
                let _ = writeln!(out, "{:indent$}{key}: {{}}", "");
            } else if depth > 0 && (is_map || self.below(3) == 0) {
                let _ = write!(out, "{:indent$}{key}:\n{}", "", self.mapping(indent + 2, depth - 1));
            } else {
                let _ = writeln!(out, "{:indent$}{key}: {}", "", self.of(&SCALARS));
            }
        }
        out
    }

    fn chart(&mut self, name: &str, depth: usize, put: &mut dyn FnMut(&str, Vec<u8>)) {
        let children: Vec<&str> = match depth {
            0 => Vec::new(),
            _ => CHARTS
                .into_iter()
                .filter(|name| self.below(5) < 2 && (name.len() < 6 || self.below(4) == 0))
                .collect(),
        };
        self.metadata(name, &children, put);
        if self.below(8) > 0 {
            put("values.yaml", self.mapping(0, 3).into_bytes());
        }
        put("templates/_defs.tpl", self.definitions().into_bytes());
        put("templates/a.yaml", DUMP.to_owned().into_bytes());
        put("templates/b.yaml", self.template().into_bytes());
        self.extras(name, put);
        for child in children {
            // Of two folders with one chart, Helm loads one first, drawn by lot: only their number shows.
            let folder = if self.below(6) == 0 { format!("{child}-old") } else { child.to_owned() };
            if self.below(5) == 0 {
                let mut files = BTreeMap::new();
                self.chart(child, depth - 1, &mut |path, data| {
                    drop(files.insert(format!("{child}/{path}"), data))
                });
                put(&format!("charts/{folder}.tgz"), super::tgz(files.into_iter()));
            } else {
                self.chart(child, depth - 1, &mut |path, data| put(&format!("charts/{folder}/{path}"), data));
            }
        }
    }

    /// Files that some charts have.
    fn extras(&mut self, name: &str, put: &mut dyn FnMut(&str, Vec<u8>)) {
        let texts = [
            (3, "templates/NOTES.txt", "{{ .Chart.Name }}: {{ include \"shared\" . }}\n".to_owned()),
            (3, "files/x.txt", format!("{name}\n{{{{ .Chart.Name }}}}")),
            (4, "crds/x.yaml", format!("kind: CustomResourceDefinition # {name}\n")),
            (8, "crds/deep/y.yml", format!("kind: CustomResourceDefinition\n---\n# {name}\n")),
            (8, "crds/deep-z.json", format!("{{\"kind\": \"{name}\"}}")),
            (9, ".helmignore", "crds/deep\n".to_owned()),
            (9, "charts/README.prov", "no chart\n".to_owned()),
            (9, "charts/_off/Chart.yaml", "no chart\n".to_owned()),
        ];
        for (rare, path, text) in texts {
            if self.below(rare) == 0 {
                put(path, text.into_bytes());
            }
        }
        if self.below(5) == 0 {
            put("values.schema.json", self.of(&SCHEMAS).as_bytes().to_vec());
        }
    }

    fn metadata(&mut self, name: &str, children: &[&str], put: &mut dyn FnMut(&str, Vec<u8>)) {
        let kind = if name != "c" && self.below(6) == 0 { "type: library\n" } else { "" };
        let version = if self.below(6) == 0 { "v1" } else { "v2" };
        let mut out = format!("apiVersion: {version}\nname: {name}\nversion: 1.{}.0\n{kind}", name.len());
        let mut requirements = String::new();
        for (at, child) in children.iter().enumerate() {
            // Helm draws by lot which of several that nobody requires comes first: one is enough.
            let least = usize::from(at > 0);
            for number in 0..least + self.below(3 - least) {
                let alias = self.of(&ALIASES);
                let alias = if number > 0 || !alias.is_empty() {
                    format!("{}{number}", child.replace('.', "-"))
                } else {
                    String::new()
                };
                self.requirement(child, &alias, at == 0, &mut requirements);
            }
        }
        if requirements.is_empty() && self.below(3) == 0 {
            out.push_str("dependencies: []\n");
        } else if !requirements.is_empty() && self.below(6) == 0 {
            put("requirements.yaml", format!("dependencies:\n{requirements}").into_bytes());
        } else if !requirements.is_empty() {
            let _ = write!(out, "dependencies:\n{requirements}");
        }
        put("Chart.yaml", out.into_bytes());
    }

    fn requirement(&mut self, child: &str, alias: &str, may_miss: bool, out: &mut String) {
        let fits = VERSIONS[self.below(3)];
        let version = if may_miss && self.below(6) == 0 { VERSIONS[3 + self.below(2)] } else { fits };
        let _ = write!(out, "- name: {child}\n  version: '{version}'\n");
        if !alias.is_empty() {
            let _ = writeln!(out, "  alias: {alias}");
        }
        if self.below(2) == 0 {
            let blank = if self.below(6) == 0 { " " } else { "" };
            let _ = writeln!(out, "  condition: '{},{blank}{child}.enabled'", self.path());
        }
        if self.below(3) == 0 {
            let _ = writeln!(out, "  tags: [{}, {}]", self.of(&KEYS), self.of(&KEYS));
        }
        let imports: Vec<String> = (0..self.below(4)).map(|_| self.import()).collect();
        if !imports.is_empty() {
            let _ = writeln!(out, "  import-values: [{}]", imports.join(", "));
        }
    }

    fn import(&mut self) -> String {
        if self.below(3) == 0 {
            return self.of(&ODD_IMPORTS).to_owned();
        }
        let parent = if self.below(4) == 0 { "'.'".to_owned() } else { self.path() };
        format!("{{child: {}, parent: {parent}}}", self.path())
    }

    fn definitions(&mut self) -> String {
        let mut out = "{{- define \"shared\" }}{{ .Chart.Name }}{{ end }}\n".to_owned();
        for name in ["x", "y"].into_iter().take(self.below(3)) {
            let body = self.of(&[
                "plain",
                "{{ .Chart.Name }}-{{ .Template.Name }}",
                "{{ .Values.a | toJson }}",
                " ",
            ]);
            let _ = writeln!(out, "{{{{- define \"{name}\" }}}}{body}{{{{ end }}}}");
        }
        out
    }

    fn template(&mut self) -> String {
        const LINES: [&str; 15] = [
            "{{ $_ := set .Values \"seen\" .Template.Name }}",
            "l: {{ include \"shared\" . | quote }}",
            "m: {{ tpl (.Values.b | toString) . | quote }}",
            "n: {{ with .Values.one }}{{ toJson . | quote }}{{ end }}",
            "o: {{ range $k, $v := .Values.global }}{{ $k }}={{ kindOf $v }} {{ end }}",
            "p: {{ (.Files.Glob \"files/*\").AsConfig | quote }}",
            "q: {{ tpl (.Files.Get \"files/x.txt\") . | quote }}",
            "r: {{ .Values.seen | default \"nobody\" }}",
            "s: {{ range $n, $c := .Subcharts }}{{ $n }}/{{ $c.Chart.Name }}/{{ $c.Values.seen }} {{ end }}",
            "t: {{ lookup \"v1\" \"Pod\" \"\" \"\" | toJson | quote }}",
            "u: {{ merge (dict \"a\" 1) (.Values.global | default dict) | toJson | quote }}",
            "{{ range .Values.global }}{{ if kindIs \"map\" . }}{{ $_ := set . \"met\" $.Template.Name }}{{ end }}{{ end }}",
            "{{ range .Values.global }}{{ if kindIs \"map\" . }}{{ range . }}{{ if kindIs \"map\" . }}{{ $_ := set . \"met\" $.Template.Name }}{{ end }}{{ end }}{{ end }}{{ end }}",
            "w: {{ typeOf .Values }} {{ typeOf .Values.global }} {{ len .Chart.Dependencies }} {{ .Chart.IsRoot }}",
            "v: {{ .Values.c | default \"none\" | toString | trunc 8 | quote }}",
        ];
        let mut out =
            format!("kind: {}\napiVersion: v1\n", self.of(&["ConfigMap", "Secret", "Zeta", "Service"]));
        if self.below(4) == 0 {
            let _ = writeln!(
                out,
                "metadata: {{annotations: {{helm.sh/hook: {}, helm.sh/hook-weight: '{}'}}}}",
                self.of(&["pre-install", "test", "post-upgrade"]),
                self.below(3)
            );
        }
        for line in LINES {
            if self.below(2) == 0 {
                out.push_str(line);
                out.push('\n');
            }
        }
        out
    }
}

const DUMP: &str = "kind: Dump\nname: {{ .Template.Name }}\nvalues: {{ .Values | toJson }}\nchart: {{ .Chart | toJson }}\nsubs: {{ .Subcharts | keys | sortAlpha | toJson }}\n";
