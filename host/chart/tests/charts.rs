//! The charts that come with Pintle, and the recipes of the Special Resource Operator, state by state.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests stop at the first surprise"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use pintle_chart::{
    Capabilities, Chart, Compiled, File, Files, Order, Release, RenderError, RenderInput, Rendered, Values,
    plain,
    release::{Dropped, Record, Status, StoredChart, StoredHook},
    values,
};
use pintle_template::{NoCluster, Run};
use serde_json::{Value, json};

const KERNEL: &str = "4.18.0-305.10.2.el8_4.x86_64";

fn own(name: &str) -> Compiled {
    compiled(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts").join(name))
}

fn compiled(folder: &Path) -> Compiled {
    let mut files = Vec::new();
    collect(folder, folder, &mut files);
    Compiled::new(Arc::new(Chart::from_folder(files).unwrap())).unwrap()
}

fn collect(top: &Path, folder: &Path, files: &mut Vec<File>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(top, &path, files);
        } else {
            let inside = path.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
            files.push(File::new(inside, &fs::read(&path).unwrap()));
        }
    }
}

fn object(json: Value) -> Values {
    json.as_object().unwrap().clone()
}

/// What a SpecialResource called `name` brings besides its `set`.
fn runtime(name: &str) -> Values {
    object(json!({
        "kernelFullVersion": KERNEL,
        "driverToolkitImage": "registry.example/toolkit@sha256:0",
        "groupName": {"driverBuild": "driver-build", "driverContainer": "driver-container"},
        "specialresource": {
            "metadata": {"name": name},
            "spec": {"namespace": name, "driverContainer": {"source": {"git": {"ref": "master", "uri": "https://git.example/k.git"}}}},
        },
    }))
}

fn render(chart: &Compiled, name: &str, values: &Values, files: Files<'_>) -> Result<Rendered, RenderError> {
    let release = Release { name: name.into(), namespace: name.into(), revision: 1, is_upgrade: false };
    chart.render(&RenderInput {
        release: &release,
        values,
        capabilities: &Capabilities::default(),
        files,
        order: Order::SpecialResource,
        run: Run::new(&NoCluster),
    })
}

fn kinds(rendered: &Rendered) -> Vec<&str> {
    rendered.documents.iter().map(|document| document.object.kind()).collect()
}

#[test]
fn simple_kmod_is_two_states_that_are_rendered_for_each_kernel() {
    let chart = own("simple-kmod");
    let states = chart.states();
    let names: Vec<_> = states.iter().map(|state| (state.name.as_str(), state.kernel_affine)).collect();
    assert_eq!(names, [("0000-buildconfig", true), ("1000-driver-container", true)]);
    let set = object(json!({"kind": "Values", "buildArgs": [{"name": "KMODVER", "value": "SRO"}]}));
    let values = values::for_special_resource(&set, &[], &runtime("simple-kmod"));

    let built = render(&chart, "simple-kmod", &values, Files::State(&states[0].template)).unwrap();
    assert_eq!(kinds(&built), ["ImageStream", "BuildConfig"]);
    let build = &built.documents[1].object;
    assert_eq!(build.name(), "simple-kmod-driver-build");
    assert_eq!(build.label("app"), Some("simple-kmod-driver-build"));
    assert_eq!(
        build.str_at("/spec/output/to/name"),
        Some(format!("simple-kmod-driver-container:v{KERNEL}").as_str())
    );
    assert_eq!(
        build.at("/spec/strategy/dockerStrategy/buildArgs"),
        Some(&json!([{"name": "IMAGE", "value": "registry.example/toolkit@sha256:0"},
            {"name": "KMODVER", "value": "SRO"}, {"name": "KVER", "value": KERNEL}]))
    );
    assert_eq!(
        build.at("/spec/source/git"),
        Some(&json!({"ref": "master", "uri": "https://git.example/k.git"}))
    );

    let run = render(&chart, "simple-kmod", &values, Files::State(&states[1].template)).unwrap();
    assert_eq!(kinds(&run), ["ServiceAccount", "Role", "RoleBinding", "DaemonSet"]);
    let daemons = &run.documents[3].object;
    assert_eq!(daemons.annotation("pintle.dev/wait"), Some("builtin && driver-loaded"));
    assert_eq!(daemons.annotation("specialresource.openshift.io/state"), Some("driver-container"));
    let pod = daemons.at("/spec/template/spec").unwrap();
    assert_eq!(
        pod["containers"][0]["image"],
        format!(
            "image-registry.openshift-image-registry.svc:5000/simple-kmod/simple-kmod-driver-container:v{KERNEL}"
        )
    );
    assert_eq!(pod["nodeSelector"]["feature.node.kubernetes.io/kernel-version.full"], "");
    assert!(render(&chart, "simple-kmod", &values, Files::Rest).unwrap().documents.is_empty());
}

#[test]
fn simple_kmod_in_jinja_gives_the_same_states_and_objects() {
    let (go, jinja) = (own("simple-kmod"), own("simple-kmod-jinja"));
    let set = object(json!({"kind": "Values", "buildArgs": [{"name": "KMODVER", "value": "SRO"}]}));
    let states = |chart: &Compiled| -> Vec<_> {
        chart.states().into_iter().map(|state| (state.name, state.digits, state.kernel_affine)).collect()
    };
    assert_eq!(states(&go), states(&jinja));
    for values in [&set, &Values::new()] {
        let values = values::for_special_resource(values, &[], &runtime("kmod"));
        for (one, other) in go.states().iter().zip(jinja.states()) {
            let one = render(&go, "kmod", &values, Files::State(&one.template)).unwrap();
            let other = render(&jinja, "kmod", &values, Files::State(&other.template)).unwrap();
            let objects = |rendered: &Rendered| -> Vec<_> {
                rendered.documents.iter().map(|document| document.object.to_value()).collect()
            };
            assert_eq!(objects(&one), objects(&other));
        }
        assert!(render(&jinja, "kmod", &values, Files::Rest).unwrap().documents.is_empty());
    }
}

/// A chart of both languages, with a chart inside that is Jinja as a whole.
fn mixed() -> Compiled {
    let file = |path: &str, text: &str| File::new(path, text.as_bytes());
    let chart = Chart::from_folder(vec![
        file("Chart.yaml", "apiVersion: v2\nname: top\nversion: 1.2.3\n"),
        file("values.yaml", "port: 8080\nglobal: {zone: eu}\nsub: {replicas: 2, enabled: true}\n"),
        file("conf/a.txt", "alpha\n"),
        file(
            "templates/_names.tpl",
            "{{ define \"top.name\" }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}",
        ),
        file(
            "templates/a.yaml.j2",
            "{% import 'charts/sub/templates/_lib.j2' as lib %}apiVersion: v1\nkind: ConfigMap\n\
             metadata:\n  name: {{ include('top.name') }}\n  labels: {{ lib.labels('a') }}\n\
             data:\n  port: {{ Values.port|quote }}\n  file: {{ Files.Get('conf/a.txt')|trim }}\n\
             \x20 apps: {{ Capabilities.APIVersions.Has('apps/v1')|string|quote }}\n\
             \x20 me: {{ Template.Name }} of {{ Template.BasePath }}\n\
             \x20 chart: {{ Chart.Version }}\n  sub: {{ Subcharts.sub.Values.replicas|quote }}\n",
        ),
        file(
            "templates/b.yaml",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Values.port | quote }}}\n",
        ),
        file(
            "templates/hook.yaml.j2",
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: h\n  annotations: {helm.sh/hook: pre-install, \
             helm.sh/hook-weight: '{{ 2 + 3 }}'}\n",
        ),
        file("templates/NOTES.txt.j2", "port {{ Values.port }}"),
        file(
            "charts/sub/Chart.yaml",
            "apiVersion: v2\nname: sub\nversion: 1.0.0\nannotations: {pintle.dev/engine: jinja}\n",
        ),
        file("charts/sub/values.yaml", "replicas: 1\nname: s\n"),
        file("charts/sub/templates/_lib.j2", "{% macro labels(app) %}{app: {{ app }}}{% endmacro %}"),
        file(
            "charts/sub/templates/d.yaml",
            "{%- if Values.enabled -%}\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: {{ Values.name }}, \
             namespace: {{ Values.global.zone }}}\nspec: {replicas: {{ Values.replicas }}}\n{% endif %}",
        ),
    ]);
    Compiled::new(Arc::new(chart.unwrap())).unwrap()
}

#[test]
fn jinja_and_go_templates_live_in_one_chart_and_its_subcharts() {
    let chart = mixed();
    let rendered = render(&chart, "r", &Values::new(), Files::All).unwrap();
    let mut objects: Vec<_> = rendered.documents.iter().map(|document| document.object.to_value()).collect();
    objects.sort_by_key(|object| object["kind"].to_string());
    assert_eq!(kinds(&rendered).len(), 3);
    assert_eq!(
        objects[0],
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "r-top", "labels": {"app": "a"}},
            "data": {"port": "8080", "file": "alpha", "apps": "true", "chart": "1.2.3",
                "me": "top/templates/a.yaml.j2 of top/templates", "sub": "2"}})
    );
    assert_eq!(objects[1]["spec"]["replicas"], 2);
    assert_eq!(objects[1]["metadata"]["namespace"], "eu");
    assert_eq!(objects[2]["metadata"]["name"], "8080");
    assert_eq!((rendered.hooks.len(), rendered.hooks[0].weight), (1, 5));
    assert_eq!(rendered.notes, "port 8080");
    let off = object(json!({"sub": {"enabled": false}}));
    assert_eq!(kinds(&render(&chart, "r", &off, Files::All).unwrap()).len(), 2);
}

#[test]
fn memcached_is_a_vendors_chart_that_takes_the_spec_of_its_owner() {
    let chart = own("memcached");
    let spec = object(json!({"replicaCount": 5, "maxConnections": 2_000_000, "extraArgs": ["-v"]}));
    let overrides = object(json!({"image.repository": "registry.example/memcached"}));
    let values = values::for_watch(&[], &spec, &[], &overrides).unwrap();
    let rendered = render(&chart, "cache", &values, Files::All).unwrap();
    assert_eq!(kinds(&rendered), ["ServiceAccount", "Service", "Deployment"]);
    let deployment = &rendered.documents[2].object;
    assert_eq!(deployment.name(), "cache-memcached");
    assert_eq!(deployment.at("/spec/replicas"), Some(&json!(5)));
    let container = deployment.at("/spec/template/spec/containers/0").unwrap();
    assert_eq!(container["image"], "registry.example/memcached:1.6.38");
    assert_eq!(container["args"], json!(["--memory-limit=64", "--conn-limit=2000000", "-v"]));
    assert_eq!(
        rendered.notes,
        "5 memcached server(s) answer in namespace cache at\n\n  cache-memcached.cache.svc:11211\n"
    );
    let wrong = object(json!({"replicaCount": "many"}));
    let error = render(&chart, "cache", &wrong, Files::All).unwrap_err().to_string();
    assert!(error.ends_with("memcached:\n- at '/replicaCount': got string, want integer\n"), "{error}");
}

#[test]
fn a_fault_in_a_later_state_does_not_hold_an_earlier_one() {
    let file = |path: &str, text: &str| File::new(path, text.as_bytes());
    let sub = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: {{ include \"sub.name\" . }}}\n";
    let chart = Chart::from_folder(vec![
        file("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        file("templates/_names.tpl", "{{ define \"n\" }}one{{ end }}"),
        file(
            "templates/0000-a.yaml",
            "kind: Pod\napiVersion: v1\nmetadata: {name: {{ include \"n\" . }}-{{ include \"sub.name\" . }}}\n",
        ),
        file("templates/1000-b.yaml", "{{ nofunction }}"),
        file("templates/2000-c.yaml", "{{ fail \"later\" }}"),
        file("templates/rest.yaml", "kind: Secret\napiVersion: v1\nmetadata: {name: rest}\n"),
        file("charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0\n"),
        file("charts/sub/templates/_names.tpl", "{{ define \"sub.name\" }}sub{{ end }}"),
        file("charts/sub/templates/0000-sub.yaml", sub),
    ]);
    let chart = Compiled::new(Arc::new(chart.unwrap())).unwrap();
    let none = Values::new();
    let first = render(&chart, "r", &none, Files::State("templates/0000-a.yaml")).unwrap();
    assert_eq!(first.documents[0].object.name(), "one-sub");
    assert_eq!(first.documents.len(), 1, "charts inside are rendered once, with the rest");
    let second = render(&chart, "r", &none, Files::State("templates/1000-b.yaml")).unwrap_err().to_string();
    assert!(second.contains("c/templates/1000-b.yaml:1") && second.contains("nofunction"), "{second}");
    let third = render(&chart, "r", &none, Files::State("templates/2000-c.yaml")).unwrap_err().to_string();
    assert!(third.starts_with("execution error at (c/templates/2000-c.yaml:1:3): later"), "{third}");
    let rest = render(&chart, "r", &none, Files::Rest).unwrap();
    assert_eq!(kinds(&rest), ["Secret", "ConfigMap"]);
    let error = render(&chart, "r", &none, Files::State("templates/9999-x.yaml")).unwrap_err();
    assert_eq!(error.to_string(), "chart c has no template \"templates/9999-x.yaml\"");
}

#[test]
fn charts_that_cannot_be_installed_are_refused_before_anything_is_rendered() {
    let refused = |metadata: &str| {
        let chart = Chart::from_folder(vec![File::new("Chart.yaml", metadata.as_bytes())]).unwrap();
        Compiled::new(Arc::new(chart)).unwrap_err().to_string()
    };
    assert!(refused("name: l\nversion: 1.0.0\ntype: library\n").starts_with("l is a chart of type library"));
    assert_eq!(
        refused(
            "name: c\nversion: 1.0.0\ndependencies: [{name: a, version: '1'}, {name: b, version: '1'}]\n"
        ),
        "chart c lacks its dependencies a, b: run `helm dependency build` before packing it"
    );
    assert_eq!(
        refused("name: c\nversion: 1.0.0\nannotations: {pintle.dev/gate: all}\n"),
        "Chart.yaml: annotation \"pintle.dev/gate\" is unknown: did you mean \"pintle.dev/gates\"?"
    );
    assert_eq!(
        refused("name: c\nversion: 1.0.0\nannotations: {pintle.dev/engine: mustache}\n"),
        "c: Chart.yaml: pintle.dev/engine \"mustache\" is unknown: write gotpl (the default) or jinja"
    );
}

#[test]
fn a_chart_that_wants_another_kubernetes_is_refused() {
    let metadata = "apiVersion: v2\nname: c\nversion: 1.0.0\nkubeVersion: '>=9.0'\n";
    let chart = Chart::from_folder(vec![File::new("Chart.yaml", metadata.as_bytes())]).unwrap();
    let error =
        render(&Compiled::new(Arc::new(chart)).unwrap(), "r", &Values::new(), Files::All).unwrap_err();
    assert_eq!(
        error.to_string(),
        "chart requires kubeVersion: >=9.0 which is incompatible with Kubernetes v1.37.0"
    );
}

#[test]
fn templates_of_a_chart_and_its_sub_charts_share_values_that_they_change() {
    let file = |path: &str, text: &str| File::new(path, text.as_bytes());
    let map = |name: &str, value: &str| {
        format!("kind: ConfigMap\napiVersion: v1\nmetadata: {{name: {name}}}\ndata: {{k: {value:?}}}\n")
    };
    let chart = Chart::from_folder(vec![
        file("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        file(
            "templates/a.yaml",
            &map("a", "{{ .Values.sub.k }} {{ .Subcharts.sub.Chart.Name }} {{ .Template.Name }}"),
        ),
        file("charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0\n"),
        file("charts/sub/values.yaml", "k: 1\n"),
        file(
            "charts/sub/templates/s.yaml",
            &map(
                "s",
                "{{ .Values.k }}{{ $_ := set .Values `k` `changed` }} {{ .Chart.IsRoot }} {{ .Template.BasePath }}",
            ),
        ),
    ]);
    let chart = Compiled::new(Arc::new(chart.unwrap())).unwrap();
    // The chart inside is rendered first, as Helm does; a second render starts from fresh values.
    for _ in 0..2 {
        let rendered = render(&chart, "r", &Values::new(), Files::All).unwrap();
        let data: Vec<_> =
            rendered.documents.iter().map(|document| document.object.str_at("/data/k").unwrap()).collect();
        assert_eq!(data, ["1 false c/charts/sub/templates", "changed sub c/templates/a.yaml"]);
    }
}

#[test]
fn files_and_capabilities_are_there_for_templates() {
    let file = |path: &str, text: &str| File::new(path, text.as_bytes());
    let text = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\ndata:\n  get: {{ .Files.Get \"conf/a.txt\" | quote }}\n  lines: {{ .Files.Lines \"conf/a.txt\" | join \"+\" }}\n  none: {{ .Files.Get \"nope\" | quote }}\n  paths: {{ range $path, $_ := .Files.Glob \"conf/*\" }}{{ $path }} {{ end }}\n  has: {{ .Capabilities.APIVersions.Has \"apps/v1\" | quote }}\n  version: {{ .Capabilities.KubeVersion.Version }} {{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.KubeVersion }}\n{{ (.Files.Glob \"conf/*\").AsConfig | indent 2 }}\n  secret: {{ (.Files.Glob \"**/b.txt\").AsSecrets | quote }}\n";
    let chart = Chart::from_folder(vec![
        file("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        file("templates/a.yaml", text),
        file("conf/a.txt", "one\ntwo\n"),
        file("conf/b.txt", "bee"),
    ]);
    let chart = Compiled::new(Arc::new(chart.unwrap())).unwrap();
    let rendered = render(&chart, "r", &Values::new(), Files::All).unwrap();
    assert_eq!(
        rendered.documents[0].object.at("/data"),
        Some(&json!({"get": "one\ntwo\n", "lines": "one+two", "none": "", "paths": "conf/a.txt conf/b.txt",
            "has": "true", "version": "v1.37.0 37 v1.37.0", "a.txt": "one\ntwo\n", "b.txt": "bee",
            "secret": "b.txt: YmVl"}))
    );
}

#[test]
fn crds_come_from_the_charts_that_take_part() {
    let file = |path: &str, text: &str| File::new(path, text.as_bytes());
    let crd = |name: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {name}}}\n# {{{{ not a template }}}}\n"
        )
    };
    let chart = Chart::from_folder(vec![
        file(
            "Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies: [{name: sub, version: '1', condition: sub.on}]\n",
        ),
        file("crds/a.yaml", &crd("a")),
        file("charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0\n"),
        file("charts/sub/crds/b.yaml", &crd("b")),
    ]);
    let chart = Compiled::new(Arc::new(chart.unwrap())).unwrap();
    let names = |values: Value| -> Vec<String> {
        let crds = chart.crds(&object(values)).unwrap();
        crds.iter().map(|document| format!("{} {}", document.source, document.object.name())).collect()
    };
    assert_eq!(names(json!({})), ["c/crds/a.yaml a", "c/charts/sub/crds/b.yaml b"]);
    assert_eq!(names(json!({"sub": {"on": false}})), ["c/crds/a.yaml a"]);
}

#[test]
fn a_rendered_chart_is_stored_as_helm_stores_it() {
    let chart = own("memcached");
    let values = object(json!({"replicaCount": 1}));
    let rendered = render(&chart, "cache", &values, Files::All).unwrap();
    let record = Record {
        name: "cache".into(),
        namespace: "cache".into(),
        version: 1,
        chart: StoredChart::from(&**chart.chart()),
        config: values,
        manifest: rendered.manifest.clone(),
        hooks: rendered.hooks.iter().map(StoredHook::from).collect(),
        apply_method: "csa".into(),
        info: pintle_chart::release::Info {
            status: Status::PendingInstall,
            notes: rendered.notes,
            ..Default::default()
        },
        ..Record::default()
    };
    let (secret, dropped) = record.to_secret(pintle_api::Timestamp::UNIX_EPOCH, false).unwrap();
    assert_eq!(dropped, Dropped::Nothing);
    let read = Record::from_secret(&secret).unwrap();
    assert_eq!((read.manifest, read.config), (rendered.manifest, record.config));
    assert_eq!(read.chart.templates.len(), 5);
}

/// The recipes, where they are present beside the checkout.
fn recipe(name: &str) -> Option<(Compiled, Value)> {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().unwrap();
    let beside = || checkout.ancestors().map(|folder| folder.join("shared")).find(|shared| shared.is_dir());
    let shared = std::env::var_os("PINTLE_SHARED").map(PathBuf::from).or_else(beside).unwrap_or_default();
    let folder = shared.join(format!("conformance/sro-recipes/{name}-0.0.1"));
    if !folder.is_dir() {
        eprintln!("skipped: {name} is in conformance/sro-recipes of PINTLE_SHARED, which is absent");
        return None;
    }
    let owner = fs::read_to_string(folder.join(format!("{name}.yaml"))).unwrap();
    Some((compiled(&folder), pintle_template::yaml::load_json(&owner).unwrap()))
}

/// Each state of a recipe with the kinds and names of its objects.
fn states(name: &str) -> Option<Vec<(String, Vec<String>)>> {
    let (chart, owner) = recipe(name)?;
    let mut facts = runtime(name);
    facts.insert("specialresource".into(), owner.clone());
    let owner = plain::fill_in(name, &owner, &facts).unwrap();
    let set = owner.pointer("/spec/set").and_then(Value::as_object).cloned().unwrap_or_default();
    let values = values::for_special_resource(&set, &[], &facts);
    let state = |template: &str| {
        let rendered = render(&chart, name, &values, Files::State(template)).unwrap();
        rendered
            .documents
            .iter()
            .map(|document| format!("{} {}", document.object.kind(), document.object.name()))
            .collect()
    };
    Some(chart.states().iter().map(|file| (file.name.clone(), state(&file.template))).collect())
}

#[track_caller]
fn expect(name: &str, expected: &[(&str, &[&str])]) {
    let Some(found) = states(name) else { return };
    let found: Vec<(&str, Vec<&str>)> = found
        .iter()
        .map(|(state, objects)| (state.as_str(), objects.iter().map(String::as_str).collect()))
        .collect();
    let expected: Vec<(&str, Vec<&str>)> =
        expected.iter().map(|(state, objects)| (*state, objects.to_vec())).collect();
    assert_eq!(found, expected);
}

#[test]
fn the_recipe_simple_kmod_gives_the_objects_it_always_gave() {
    expect(
        "simple-kmod",
        &[
            (
                "0000-buildconfig",
                &["ImageStream simple-kmod-driver-container", "BuildConfig simple-kmod-driver-build"],
            ),
            (
                "1000-driver-container",
                &[
                    "ServiceAccount simple-kmod-driver-container",
                    "Role simple-kmod-driver-container",
                    "RoleBinding simple-kmod-driver-container",
                    "DaemonSet simple-kmod-driver-container",
                ],
            ),
        ],
    );
}

#[test]
fn the_recipe_ping_pong_writes_its_service_before_its_server() {
    expect(
        "ping-pong",
        &[
            ("0001_secret", &["Secret ping-pong-ca-key-pair"]),
            ("0002_issuer", &["Issuer ping-pong-ca-issuer"]),
            (
                "0003_certificates",
                &["Certificate ping-pong-server-cert", "Certificate ping-pong-client-cert"],
            ),
            ("0004_server", &["Service ping-pong-service", "Deployment ping-pong-server"]),
            ("0005_client", &["Deployment ping-pong-client"]),
        ],
    );
}

#[test]
fn the_recipe_for_plain_kubernetes_builds_with_shipwright() {
    expect(
        "centos-simple-kmod",
        &[
            ("0000-secret", &["Secret centos-simple-kmod-driver-container"]),
            ("1000-build", &["Build centos-simple-kmod-driver-container"]),
            ("2000-buildrun", &["BuildRun centos-simple-kmod-driver-container"]),
            (
                "3000-driver-container",
                &[
                    "ServiceAccount centos-simple-kmod-driver-container",
                    "Role centos-simple-kmod-driver-container",
                    "RoleBinding centos-simple-kmod-driver-container",
                    "DaemonSet centos-simple-kmod-driver-container",
                ],
            ),
        ],
    );
}
