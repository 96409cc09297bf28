//! Trees of charts made from a number. Names, keys and paths come from small pools, so that they collide: defaults
//! against overrides, maps against texts, conditions against tags, definitions against definitions.

use std::{collections::BTreeMap, fmt::Write as _};

/// Numbers from a seed: xorshift.
pub(crate) struct Random(u64);

const KEYS: [&str; 8] = ["a", "b", "c", "enabled", "global", "tags", "exports", "one"];
const NAMES: [&str; 4] = ["one", "two", "three", "four"];
const ALIASES: [&str; 3] = ["", "", "a"];
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
    random.chart("c", "c", 2, &mut files);
    files.insert("user.yaml".to_owned(), random.mapping(0, 3).into_bytes());
    let mut flags = Vec::new();
    if random.below(2) == 0 {
        flags.extend(["-f".to_owned(), "user.yaml".to_owned()]);
    }
    for _ in 0..random.below(4) {
        let flag = ["--set", "--set", "--set-string", "--set-json"][random.below(4)];
        let path = random.path();
        let value = ["1", "true", "false", "null", "\"x\"", "{}", "[1]"][random.below(7)];
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
        for _ in 0..self.below(3) {
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
            let is_map = matches!(key, "global" | "tags" | "exports") || NAMES.contains(&key);
            if depth > 0 && (is_map && self.below(8) > 0 || self.below(3) == 0) {
                let _ = write!(out, "{:indent$}{key}:\n{}", "", self.mapping(indent + 2, depth - 1));
            } else {
                let _ = writeln!(out, "{:indent$}{key}: {}", "", self.of(&SCALARS));
            }
        }
        out
    }

    fn chart(&mut self, name: &str, folder: &str, depth: usize, files: &mut BTreeMap<String, Vec<u8>>) {
        let children: Vec<&str> = match depth {
            0 => Vec::new(),
            _ => NAMES.into_iter().filter(|_| self.below(5) < 2).collect(),
        };
        let mut put = |path: &str, text: String| files.insert(format!("{folder}/{path}"), text.into_bytes());
        put("Chart.yaml", self.metadata(name, &children));
        put("values.yaml", self.mapping(0, 3));
        put("templates/_defs.tpl", self.definitions());
        put("templates/a.yaml", DUMP.to_owned());
        put("templates/b.yaml", self.template());
        if self.below(3) == 0 {
            put("templates/NOTES.txt", "{{ .Chart.Name }}: {{ include \"shared\" . }}\n".to_owned());
        }
        if self.below(3) == 0 {
            put("files/x.txt", format!("{name}\n{{{{ .Chart.Name }}}}"));
        }
        if self.below(4) == 0 {
            put("crds/x.yaml", format!("kind: CustomResourceDefinition # {name}\n"));
        }
        for child in children {
            self.chart(child, &format!("{folder}/charts/{child}"), depth - 1, files);
        }
    }

    fn metadata(&mut self, name: &str, children: &[&str]) -> String {
        let kind = if name != "c" && self.below(6) == 0 { "type: library\n" } else { "" };
        let mut out = format!("apiVersion: v2\nname: {name}\nversion: 1.{}.0\n{kind}", name.len());
        let mut requirements = String::new();
        for child in children {
            for number in 0..self.below(3) {
                let alias = self.of(&ALIASES);
                let alias =
                    if number > 0 || !alias.is_empty() { format!("{child}{number}") } else { String::new() };
                let _ = write!(
                    requirements,
                    "- name: {child}\n  version: '{}'\n",
                    self.of(&["1.x", ">=1.0.0", "*", "1.3.0"])
                );
                if !alias.is_empty() {
                    let _ = writeln!(requirements, "  alias: {alias}");
                }
                if self.below(2) == 0 {
                    let _ = writeln!(requirements, "  condition: {},{child}.enabled", self.path());
                }
                if self.below(3) == 0 {
                    let _ = writeln!(requirements, "  tags: [{}, {}]", self.of(&KEYS), self.of(&KEYS));
                }
                if self.below(3) == 0 {
                    let (from, to) = (self.path(), self.path());
                    let _ = writeln!(requirements, "  import-values: [a, {{child: {from}, parent: {to}}}]");
                }
            }
        }
        if !requirements.is_empty() {
            let _ = write!(out, "dependencies:\n{requirements}");
        }
        out
    }

    fn definitions(&mut self) -> String {
        let mut out = "{{- define \"shared\" }}{{ .Chart.Name }}{{ end }}\n".to_owned();
        for _ in 0..self.below(3) {
            let name = self.of(&["shared", "x", "y"]);
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
        const LINES: [&str; 12] = [
            "{{ $_ := set .Values \"seen\" .Template.Name }}",
            "l: {{ include \"shared\" . | quote }}",
            "m: {{ tpl (.Values.b | toString) . | quote }}",
            "n: {{ with .Values.one }}{{ toJson . | quote }}{{ end }}",
            "o: {{ range $k, $v := .Values.global }}{{ $k }}={{ kindOf $v }} {{ end }}",
            "p: {{ (.Files.Glob \"files/*\").AsConfig | quote }}",
            "q: {{ tpl (.Files.Get \"files/x.txt\") . | quote }}",
            "r: {{ .Values.seen | default \"nobody\" }}",
            "s: {{ range $n, $c := .Subcharts }}{{ $n }}:{{ $c.Chart.Name }}:{{ $c.Values.seen }} {{ end }}",
            "t: {{ lookup \"v1\" \"Pod\" \"\" \"\" | toJson | quote }}",
            "u: {{ merge (dict \"a\" 1) (.Values.global | default dict) | toJson | quote }}",
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
