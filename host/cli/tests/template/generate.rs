//! Charts made from a number: each bit switches a feature on.

use std::collections::BTreeMap;

/// What a chart may have. Each entry is a file, or part of one.
const HELPERS: &str = r#"{{- define "h.name" -}}{{ .Chart.Name | trunc 63 | trimSuffix "-" }}{{- end }}
{{- define "h.labels" -}}
app.kubernetes.io/name: {{ include "h.name" . }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Chart.AppVersion }}
app.kubernetes.io/version: {{ . | quote }}
{{- end }}
{{- end }}
{{- define "h.deep" -}}{{- if gt (int .n) 0 }}{{ .n }},{{ include "h.deep" (dict "n" (sub (int .n) 1)) }}{{- end }}{{- end }}
"#;

const PLAIN: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-{{ include "h.name" . }}
  namespace: {{ .Release.Namespace }}
  labels: {{- include "h.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  template:
    spec:
      {{- with .Values.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
      - name: {{ .Chart.Name }}
        image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
        args: [{{ range $i, $a := .Values.args }}{{ if $i }}, {{ end }}{{ $a | quote }}{{ end }}]
        env:
        {{- range $k, $v := .Values.env }}
        - {name: {{ $k | upper }}, value: {{ tpl (toString $v) $ | quote }}}
        {{- else }}
        []
        {{- end }}
"#;

const FUNCTIONS: &str = r#"apiVersion: v1
kind: ConfigMap
metadata:
  name: functions
data:
  deep: {{ include "h.deep" (dict "n" 12) | quote }}
  sha: {{ .Values | toJson | sha256sum }}
  b64: {{ "päß" | b64enc }}
  json: {{ .Values.nested | toPrettyJson | quote }}
  yaml: |
{{ toYaml .Values.nested | indent 4 }}
  semver: {{ semverCompare ">=1.20-0" .Capabilities.KubeVersion.Version | quote }}
  has: {{ .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" | ternary "yes" "no" }}
  list: {{ list 3 1 2 | sortAlpha | join "-" }}
  merged: {{ mergeOverwrite (dict "a" 1 "b" (dict "c" 2)) (dict "b" (dict "d" 3.5)) | toJson | quote }}
  regex: {{ regexReplaceAll "([a-z]+)([0-9]+)" "abc123 x9" "${2}${1}" }}
  lookup: {{ lookup "v1" "Secret" "ns" "name" | toJson | quote }}
  lookups: {{ (lookup "v1" "Secret" "" "").items | default list | len | quote }}
  upgrade: "{{ .Release.IsUpgrade }}/{{ .Release.IsInstall }}/{{ .Release.Revision }}/{{ .Release.Service }}"
  kube: "{{ .Capabilities.KubeVersion }} {{ .Capabilities.KubeVersion.Major }}.{{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.HelmVersion.Version }}"
  template: {{ .Template.Name }} {{ .Template.BasePath }}
  float: {{ 1e21 }} {{ 0.1 }} {{ .Values.big }} {{ int64 .Values.big }} {{ div 7 2 }} {{ divf 7 2 }}
  digs: {{ dig "map" "y" "none" .Values.nested | toJson | quote }} 
  until: {{ range until 3 }}{{ . }}{{ end }}
  nothing: {{ .Values.nothing }} {{ .Values.absent }}
  snake: {{ snakecase "HelloWorld" }} {{ camelcase "hello_world" }} {{ title "ab cd" }} {{ untitle "Ab" }}
  quoteds: {{ printf "%s %s" (quote "a\"b" 1 nil true) (squote "it's") | toJson }}
  date: {{ dateInZone "2006-01-02" (toDate "2006-01-02" "2024-02-29") "UTC" }}
"#;

const FILES: &str = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: files}
data: {{- (.Files.Glob "files/*.txt").AsConfig | nindent 2 }}
  lines: "{{ range .Files.Lines "files/a.txt" }}[{{ . }}]{{ end }}"
  get: {{ .Files.Get "files/deep/c.ini" | quote }}
  none: {{ .Files.Get "nope" | quote }}
---
apiVersion: v1
kind: Secret
metadata: {name: files}
data: {{- (.Files.Glob "files/**").AsSecrets | nindent 2 }}
"#;

const HOOKS: &str = r#"apiVersion: batch/v1
kind: Job
metadata:
  name: before
  annotations: {"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-weight": "5"}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: earlier
  annotations: {helm.sh/hook: pre-install, helm.sh/hook-weight: "-5", helm.sh/hook-delete-policy: "hook-succeeded"}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: unweighted
  annotations:
    helm.sh/hook: post-install
---
apiVersion: v1
kind: Pod
metadata:
  name: unknown-event
  annotations: {helm.sh/hook: whenever}
"#;

const TEST: &str = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Release.Name }}-test\n  annotations:\n    \"helm.sh/hook\": test\n";

/// YAML as people write it: documents of comments, of white space, with odd separators and line ends.
const ODD: &str = "# only a comment\n---\n\n---   \n# comment\napiVersion: v1\nkind: Service\nmetadata: {name: a}\n--- # another\nkind: Unknown\napiVersion: x.example/v1\nmetadata:\n  name: &n odd\nspec:\n  again: *n\n  text: |+\n    kept\n\n  folded: >-\n    one\n    two\n---\r\nkind: Service\r\napiVersion: v1\r\nmetadata: {name: crlf}\r\n---\nkind: List\napiVersion: v1\nitems:\n- {kind: ConfigMap, apiVersion: v1, metadata: {name: in-list}}\n---\n---\nkind: Namespace\napiVersion: v1\nmetadata: {name: ns}   \n\n\n";

const NOTES: &str = "Thank you for {{ .Chart.Name }}, {{ include \"h.name\" . }}.\n{{ required \"replicas!\" .Values.replicas }}\n";

const CRD: &str = "# {{ not a template }}\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: xs.example.com}\n---\n# second\nkind: CustomResourceDefinition\n";

const SCHEMA: &str = r#"{"type": "object", "properties": {"replicas": {"type": "integer", "minimum": 1}}}"#;

/// The features of a chart by their bits.
const BITS: [fn(&str, &mut Chart); 12] = [
    |root, chart| chart.put(&format!("{root}/templates/functions.yaml"), FUNCTIONS),
    |root, chart| {
        chart.put(&format!("{root}/templates/files.yaml"), FILES);
        chart.put(&format!("{root}/files/a.txt"), "alpha\nbeta\n");
        chart.put(&format!("{root}/files/b.txt"), "a: 1\n\"q\": 'x'\n");
        chart.put(&format!("{root}/files/deep/c.ini"), "[c]\r\nx=1");
    },
    |root, chart| chart.put(&format!("{root}/templates/hooks.yaml"), HOOKS),
    |root, chart| chart.put(&format!("{root}/templates/tests/pod.yaml"), TEST),
    |root, chart| chart.put(&format!("{root}/templates/odd.yaml"), ODD),
    |root, chart| chart.put(&format!("{root}/templates/NOTES.txt"), NOTES),
    |root, chart| {
        chart.put(&format!("{root}/crds/one.yaml"), CRD);
        chart.put(&format!("{root}/crds/deep/two.yml"), "kind: CustomResourceDefinition\n");
        chart.put(&format!("{root}/crds/readme.md"), "no manifest");
    },
    sub_charts,
    library,
    |root, chart| {
        chart.put(&format!("{root}/.helmignore"), "# rules\n*.bak\n/docs/\ntemplates/ignored.yaml\n");
        chart.put(&format!("{root}/templates/ignored.yaml"), "{{ fail \"not ignored\" }}");
        chart.put(&format!("{root}/templates/x.bak"), "{{ broken");
        chart.put(&format!("{root}/docs/big.yaml"), "x: 1");
    },
    |root, chart| chart.put(&format!("{root}/values.schema.json"), SCHEMA),
    |root, chart| {
        let many = "{{- range $i := until 12 }}\n---\nkind: {{ index (list \"Secret\" \"Role\" \"Zeta\" \"Service\" \"Alpha\") (mod $i 5) }}\napiVersion: v{{ $i }}\nmetadata: {name: n{{ $i }}}\n{{- end }}\n";
        chart.put(&format!("{root}/templates/many.yaml"), many);
        chart.put(
            &format!("{root}/templates/zz/empty.yaml"),
            "{{- if .Values.never }}\nkind: X\n{{- end }}\n  \n",
        );
    },
];

#[derive(Default)]
struct Chart {
    files: BTreeMap<String, Vec<u8>>,
    dependencies: String,
}

impl Chart {
    fn put(&mut self, path: &str, text: &str) {
        self.files.insert(path.to_owned(), text.as_bytes().to_vec());
    }
}

/// Charts inside: one with an alias and values of its own, one switched off by a condition or a tag.
fn sub_charts(root: &str, chart: &mut Chart) {
    for name in ["first", "second"] {
        let base = format!("{root}/charts/{name}");
        chart.put(
            &format!("{base}/Chart.yaml"),
            &format!("apiVersion: v2\nname: {name}\nversion: 0.{}.0\n", name.len()),
        );
        chart.put(
            &format!("{base}/values.yaml"),
            "enabled: true\nown: child\nexports:\n  data:\n    imported: yes-it-is\nglobal:\n  level: child\n  only: child\n",
        );
        chart.put(
            &format!("{base}/templates/cm.yaml"),
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Chart.Name }}}\ndata:\n  own: {{ .Values.own }}\n  global: {{ .Values.global | toJson | quote }}\n  root: {{ .Chart.IsRoot | quote }}\n  template: {{ .Template.BasePath }}\n",
        );
        chart.put(&format!("{base}/crds/{name}.yaml"), &format!("kind: CustomResourceDefinition # {name}\n"));
        chart.put(&format!("{base}/templates/NOTES.txt"), "of a chart inside\n");
    }
    chart.dependencies.push_str(
        "- {name: first, version: 0.5.0, alias: renamed, import-values: [data]}\n\
         - {name: second, version: '>=0.1', condition: 'second.enabled,global.second', tags: [extra]}\n",
    );
}

fn library(root: &str, chart: &mut Chart) {
    let base = format!("{root}/charts/lib");
    chart.put(&format!("{base}/Chart.yaml"), "apiVersion: v2\nname: lib\nversion: 1.0.0\ntype: library\n");
    chart.put(
        &format!("{base}/templates/_lib.tpl"),
        "{{- define \"lib.port\" }}{{ .port | default 80 }}{{ end }}",
    );
    chart.put(&format!("{base}/templates/not.yaml"), "kind: NeverRendered\n");
    chart.put(
        &format!("{root}/templates/with-lib.yaml"),
        "kind: Service\napiVersion: v1\nmetadata: {name: lib}\nspec: {ports: [{port: {{ include \"lib.port\" .Values }}}]}\n",
    );
    chart.dependencies.push_str("- {name: lib, version: 1.0.0}\n");
}

/// The files of chart `chartN`, and of what its flags name.
pub(crate) fn chart(seed: u64) -> BTreeMap<String, Vec<u8>> {
    let root = format!("chart{seed}");
    let mut chart = Chart::default();
    chart.put(&format!("{root}/templates/_helpers.tpl"), HELPERS);
    chart.put(&format!("{root}/templates/deployment.yaml"), PLAIN);
    for (bit, feature) in BITS.iter().enumerate() {
        if mixed(seed) >> bit & 1 == 1 {
            feature(&root, &mut chart);
        }
    }
    let version = ["1.2.3", "0.1.0+build.7", "2.0.0-rc.1"][(seed % 3) as usize];
    let mut metadata = format!(
        "apiVersion: v2\nname: chart{seed}\nversion: {version}\nappVersion: \"1.{seed}\"\nkubeVersion: '>=1.20.0-0'\n"
    );
    if !chart.dependencies.is_empty() {
        metadata.push_str(&format!("dependencies:\n{}", chart.dependencies));
    }
    chart.put(&format!("{root}/Chart.yaml"), &metadata);
    chart.put(
        &format!("{root}/values.yaml"),
        "replicas: 1\nname: n\nbig: 12345678901234\nimage: {repository: registry/app, tag: null}\nargs: [a, 'b c', 3, true, 1.50]\nenv: {one: '{{ .Release.Name }}', two: 2}\nnodeSelector: {kubernetes.io/os: linux}\nnested: {list: [1, 2.5, x], map: {y: 'no', z: null, on: off}, text: \"a\\nb\\n\"}\nnothing: null\nglobal: {level: parent}\n",
    );
    chart.put("values-a.yaml", "replicas: 3\nnodeSelector: null\nargs: []\nsecond: {enabled: false}\nnested:\n  map: {y: ~}\n---\nname: second-document\n");
    chart.put(
        "values-b.yaml",
        "env: {three: '{{ upper \"x\" }}'}\nimage: {tag: v9}\nrenamed: {own: parent}\ntags: {extra: false}\n",
    );
    chart.put("file.txt", "line one\nline two\n");
    chart.files
}

/// The files of a chart alone, as `helm package` would pack them: without what `.helmignore` leaves out.
pub(crate) fn packed(seed: u64) -> impl Iterator<Item = (String, Vec<u8>)> {
    let root = format!("chart{seed}/");
    let ignored =
        |path: &str| ["x.bak", "ignored.yaml", "docs/big.yaml"].iter().any(|end| path.ends_with(end));
    chart(seed).into_iter().filter(move |(path, _)| path.starts_with(&root) && !ignored(path))
}

/// Two sets of flags for a chart; over all charts every flag is used.
pub(crate) fn flags(seed: u64) -> Vec<Vec<String>> {
    let sets: [&[&str]; 18] = [
        &["-f", "values-a.yaml", "-f", "values-b.yaml"],
        &["--values", "values-b.yaml,values-a.yaml", "--set", "replicas=4"],
        &["--set", "image.tag=x,args={p,q},env.new=7,nested.list[0]=z"],
        &["--set-string", "replicas=5,env.two=true", "--skip-schema-validation"],
        &["--set-json", "nested={\"a\":[1,2.0,null]}", "--set-json", "{\"replicas\":6,\"env\":{\"j\":1.5}}"],
        &["--set-file", "env.text=file.txt"],
        &["--set-literal", "env.literal=a,b={c}.d"],
        &["-n", "other", "--kube-version", "v1.31.4-gke.1"],
        &["--kube-version", "1.25", "-a", "monitoring.coreos.com/v1", "--api-versions", "a/v1,b/v1/Kind"],
        &["--include-crds", "--namespace", "crds"],
        &["--is-upgrade", "--no-hooks"],
        &["--skip-tests", "--include-crds"],
        &["-s", "templates/deployment.yaml"],
        &["--show-only", "templates/*.yaml", "--include-crds"],
        &["--set", "second.enabled=false,renamed.own=set,global.level=cli"],
        &["--set", "tags.extra=false,nodeSelector=null"],
        &["--set", "replicas=0"],
        &["--validate=false", "--dry-run=client"],
    ];
    let usable = sets.len() - 1;
    [seed, seed * 7 + 3].iter().map(|at| sets[*at as usize % usable]).map(owned).collect()
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// The number with its bits mixed, so that neighbours differ in half of them; 0 has none.
fn mixed(seed: u64) -> u64 {
    let once = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (once ^ (once >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 17
}

/// Charts that must fail, and a values file that is none.
const BROKEN: [(&str, &[(&str, &str)]); 12] = [
    ("broken-fail", &[("templates/x.yaml", "a: 1\n  {{ fail \"no\" }}\n")]),
    ("broken-required", &[("templates/x.yaml", "a: {{ required \"say who\" .Values.who }}")]),
    ("broken-function", &[("templates/x.yaml", "a: {{ nope 1 }}")]),
    ("broken-syntax", &[("templates/x.yaml", "a: {{ if }}")]),
    ("broken-end", &[("templates/x.yaml", "{{ if true }}\na: 1\n")]),
    ("broken-nil", &[("templates/x.yaml", "a: {{ .Values.a.b.c }}")]),
    ("broken-yaml", &[("templates/x.yaml", "a: b: c\n")]),
    ("broken-include", &[("templates/x.yaml", "{{ include \"none\" . }}")]),
    (
        "broken-kube",
        &[("Chart.yaml", "apiVersion: v2\nname: broken-kube\nversion: 1.0.0\nkubeVersion: '<1.2'\n")],
    ),
    (
        "broken-library",
        &[("Chart.yaml", "apiVersion: v2\nname: broken-library\nversion: 1.0.0\ntype: library\n")],
    ),
    (
        "broken-dependencies",
        &[(
            "Chart.yaml",
            "apiVersion: v2\nname: x\nversion: 1.0.0\ndependencies:\n- {name: a, version: 1}\n- {name: b, version: 1}\n",
        )],
    ),
    ("broken-schema", &[("values.schema.json", "{\"required\": [\"a\"]}"), ("templates/x.yaml", "a: 1")]),
];

pub(crate) fn broken_names() -> Vec<&'static str> {
    let mut names: Vec<_> = BROKEN.iter().map(|(name, _)| *name).collect();
    names.push("./broken-empty");
    names
}

pub(crate) fn broken() -> BTreeMap<String, Vec<u8>> {
    let mut chart = Chart::default();
    for (name, files) in BROKEN {
        chart.put(&format!("{name}/Chart.yaml"), &format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n"));
        for (path, text) in files {
            chart.put(&format!("{name}/{path}"), text);
        }
    }
    chart.put("broken-empty/values.yaml", "");
    chart.put("bad-values.yaml", "a: [\n");
    chart.files
}
