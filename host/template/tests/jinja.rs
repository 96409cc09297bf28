//! The Jinja dialect: values, functions, files, errors and limits.

#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests stop at the first surprise"
)]

use std::sync::atomic::{AtomicBool, Ordering};

use pintle_template::value::{Entries, Value, natural};
use pintle_template::{Error, ErrorKind, Limits, Lookup, LookupError, NoCluster, Program, Run, Source, yaml};

const VALUES: &str = r#"
Release: {Name: rel, Namespace: ns}
Values:
  name: web
  port: 8080
  ratio: 0.5
  big: 1234567
  ready: true
  gone: false
  nothing: null
  version: "1.10"
  image: {repository: nginx, tag: "1.27"}
  list: [a, b, 3]
  nested: {k: {l: [1, {m: deep}]}}
  text: "hello {{ Values.name }}"
  long: "first\nsecond"
"#;

fn dot() -> Value {
    natural(&yaml::load(VALUES, "values").unwrap())
}

fn sources(files: &[(&str, &str)]) -> Vec<Source> {
    files.iter().map(|(name, text)| Source { name: (*name).into(), text: (*text).into() }).collect()
}

fn program(go: &[(&str, &str)], jinja: &[(&str, &str)]) -> Result<Program, Error> {
    Program::parse(&sources(go)).unwrap().with_jinja(&sources(jinja))
}

fn run(text: &str, run: &Run<'_>) -> Result<String, Error> {
    program(&[], &[("c/templates/t.j2", text)])?.render("c/templates/t.j2", &dot(), run)
}

fn render(text: &str) -> String {
    run(text, &Run::new(&NoCluster)).unwrap_or_else(|err| panic!("{text}: {err:#}"))
}

fn error(text: &str) -> Error {
    match run(text, &Run::new(&NoCluster)) {
        Ok(out) => panic!("{text}: no error but {out:?}"),
        Err(err) => err,
    }
}

#[test]
fn values_print_as_yaml_reads_them() {
    for (text, wanted) in [
        ("{{ Values.name }}", "web"),
        ("{{ Values.port }}", "8080"),
        ("{{ Values.ratio }} {{ 1.5 + 1 }} {{ 3 / 2 }} {{ 4 // 2 }}", "0.5 2.5 1.5 2"),
        ("{{ Values.big }} {{ Values.big * 10 }}", "1234567 12345670"),
        ("{{ Values.ready }} {{ Values.gone }} {{ 1 == 1 }} {{ not true }}", "true false true false"),
        ("{{ Values.nothing }} {{ none }}", "null null"),
        ("{{ Values.version }}", "1.10"),
        ("{{ Values.list }}", r#"["a","b",3]"#),
        ("{{ Values.nested }}", r#"{"k":{"l":[1,{"m":"deep"}]}}"#),
        (r#"{{ {"b": 1, "a": [true, none, "x"]} }}"#, r#"{"a":[true,null,"x"],"b":1}"#),
        ("{{ Values.name ~ '-' ~ Values.port ~ true ~ none }}", "web-8080truenull"),
        (r#"{{ "a\tb \"q\" \\ é" }}"#, "a\tb \"q\" \\ é"),
        ("{{ '<a href=\"x\">&' }}", "<a href=\"x\">&"),
    ] {
        assert_eq!(render(text), wanted, "{text}");
    }
}

#[test]
fn statements_do_what_jinja_s_do() {
    for (text, wanted) in [
        ("{% if Values.ready and not Values.gone %}y{% elif 1 %}z{% else %}n{% endif %}", "y"),
        (
            "{% for x in Values.list %}{{ loop.index }}{{ x }}{{ ',' if not loop.last }}{% endfor %}",
            "1a,2b,33",
        ),
        ("{% for x in [] %}x{% else %}none{% endfor %}", "none"),
        ("{% for k, v in Values.image|items %}{{ k }}={{ v }};{% endfor %}", "repository=nginx;tag=1.27;"),
        ("{% for k, v in Values.image.items() %}{{ k }}={{ v }};{% endfor %}", "repository=nginx;tag=1.27;"),
        ("{% for k in Values.image %}{{ k }};{% endfor %}", "repository;tag;"),
        ("{% for i in range(10) if i % 3 == 0 %}{{ i }}{% endfor %}", "0369"),
        (
            "{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}",
            "02",
        ),
        ("{% set x = 1 %}{% set y, z = 2, 3 %}{{ x }}{{ y }}{{ z }}", "123"),
        (
            "{% set ns = namespace(n=0) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}",
            "6",
        ),
        ("{% set b %}a{{ 1 }}b{% endset %}[{{ b }}]", "[a1b]"),
        ("{% set b | upper %}abc{% endset %}{{ b }}", "ABC"),
        ("{% filter indent(2) %}a\nb{% endfilter %}", "a\n  b"),
        ("{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}", "3"),
        ("{% macro f(a, b=2) %}{{ a }}-{{ b }};{% endmacro %}{{ f(1) }}{{ f(3, b=4) }}", "1-2;3-4;"),
        ("{% macro f() %}<{{ caller(1) }}>{% endmacro %}{% call(x) f() %}in{{ x }}{% endcall %}", "<in1>"),
        (
            "{% for n in [1, [2, [3]]] recursive %}{% if n is sequence %}({{ loop(n) }}){% else %}{{ n }}{% endif %}{% endfor %}",
            "1(2(3))",
        ),
        ("{% raw %}{{ x }} {% if %}{% endraw %}", "{{ x }} {% if %}"),
        ("a {#- no -#} b", "ab"),
        ("{% do set(Values.image, 'new', 1) %}{{ Values.image.new }}", "1"),
        ("{% set d = {'a': 1} %}{% do set(d, 'b', 2) %}{{ d }}", r#"{"a":1,"b":2}"#),
        (
            "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' in Values.list }} {{ 'z' not in Values.list }}",
            "true false true true",
        ),
        ("{{ 'eb' in Values.name }} {{ 'tag' in Values.image }}", "true true"),
        ("{{ Values.list[0] }}{{ Values.list[-1] }}{{ Values.list[1:] }}{{ 'abcd'[1:3] }}", r#"a3["b",3]bc"#),
        ("{{ 'x' if Values.gone }}|{{ (1, 2)|join('+') }}", "|1+2"),
        (
            "{{ Values.nosuch is defined }} {{ Values.name is defined }} {{ Values.port is divisibleby(81) }}",
            "false true false",
        ),
        ("{{ Values.nosuch|default('d') }}", "d"),
        ("{{ Values.image.get('tag') }} {{ Values.image.get('nosuch', 'd') }}", "1.27 d"),
        ("one\n", "one\n"),
    ] {
        assert_eq!(render(text), wanted, "{text}");
    }
}

#[test]
fn the_function_library_is_there_as_functions_and_as_filters() {
    for (text, wanted) in [
        ("{{ quote(Values.port) }} {{ Values.name|quote }}", r#""8080" "web""#),
        ("{{ Values.image|toYaml|nindent(2) }}", "\n  repository: nginx\n  tag: \"1.27\""),
        ("{{ toYaml(Values.list) }}", "- a\n- b\n- 3"),
        ("{{ Values.name|trunc(2) }} {{ trunc(2, Values.name) }}", "we we"),
        ("{{ Values.name|b64enc|b64dec }} {{ 'a'|sha256sum|trunc(8) }}", "web ca978112"),
        ("{{ 5|add(3) }} {{ sub(5, 3) }} {{ 7|mod(4) }}", "8 2 4"),
        ("{{ default('d', '') }} {{ default('d', Values.nosuch) }} {{ coalesce(none, '', 'c') }}", "d d c"),
        ("{{ Values.name|required('must') }}", "web"),
        ("{{ ternary('y', 'n', Values.ready) }} {{ Values.gone|ternary('y', 'n') }}", "y n"),
        ("{{ '1.28.0'|semverCompare('>=1.27') }}", "true"),
        (
            "{{ Values.image|get('tag') }} {{ Values.image|hasKey('tag') }} {{ Values.image|pick('tag') }}",
            r#"1.27 true {"tag":"1.27"}"#,
        ),
        ("{{ dict('a', 1, 'b', [2])|toJson }} {{ dict(a=1, b=2) }}", r#"{"a":1,"b":[2]} {"a":1,"b":2}"#),
        ("{{ list(1, 'a', none)|toJson }} {{ [1, 2]|append(3) }}", r#"[1,"a",null] [1,2,3]"#),
        ("{{ fromYaml('a: 1\nb: [x]').a + 1 }}", "2"),
        ("{{ 'a.b.c'|splitList('.')|last }} {{ 'A-B'|lower|replace('-', '_') }}", "c a_b"),
        ("{{ printf('%s-%d', 'a', 5) }} {{ '%03d'|format(7) }}", "a-5 007"),
        ("{{ seq(1, 3) }} {{ until(3)|join(',') }}", "1 2 3 0,1,2"),
        ("{{ semver('1.2.3').Major }} {{ semver('1.2.3-rc.1').Prerelease }}", "1 rc.1"),
        ("{{ 'hello_world'|camelcase }} {{ 'ab'|upper }} {{ title('ab cd') }}", "HelloWorld AB Ab Cd"),
        ("{{ merge({'a': 1}, {'a': 2, 'b': 3})|toJson }}", r#"{"a":1,"b":3}"#),
        ("{{ tpl(Values.text) }} {{ Values.text|tpl }}", "hello web hello web"),
        ("{{ [3, 1, 2]|sort|join }} {{ ['b', 'a']|sortAlpha|join }} {{ [1, 1]|unique|length }}", "123 ab 1"),
        ("{{ {'a': 1}|tojson }} {{ '<'|tojson }}", r#"{"a":1} "<""#),
        ("{{ Values.long|indent(2) }}", "first\n  second"),
        (
            "{{ Values.name.upper() }} {{ Values.name.startswith('w') }} {{ 'a,b'.split(',') }}",
            r#"WEB true ["a","b"]"#,
        ),
    ] {
        assert_eq!(render(text), wanted, "{text}");
    }
}

#[test]
fn every_function_of_go_templates_but_its_keywords_can_be_called() {
    let names = pintle_template::Dialect::Helm.functions();
    assert!(names.iter().count() > 230);
    for entry in names.iter().filter(|entry| !["and", "or", "not", "call"].contains(&entry.name)) {
        let err = match run(&format!("{{{{ {}(*range(500)) }}}}", entry.name), &Run::new(&NoCluster)) {
            Ok(_) => continue,
            Err(err) => err.to_string(),
        };
        assert!(!err.contains("is unknown"), "{}: {err}", entry.name);
        let filter = run(&format!("{{{{ 1|{} }}}}", entry.name), &Run::new(&NoCluster));
        let err = filter.err().map(|err| err.to_string()).unwrap_or_default();
        assert!(!err.contains("not defined"), "{}: {err}", entry.name);
    }
}

#[test]
fn files_include_import_and_extend_each_other_by_path() {
    let jinja = [
        ("c/templates/_m.j2", "{% macro label(x) %}app: {{ x }} of {{ Release.Name }}{% endmacro %}"),
        ("c/templates/_base.j2", "kind: {% block kind %}None{% endblock %}\n{% block body %}{% endblock %}"),
        ("c/templates/deep/a.j2", "{% from '../_m.j2' import label %}{{ label(Values.name) }}"),
        ("c/templates/b.j2", "{% import '_m.j2' as m %}{{ m.label('b') }}"),
        (
            "c/templates/c.j2",
            "{% extends '_base.j2' %}{% block kind %}{{ super() }}!{% endblock %}{% block body %}x: {{ Values.port }}{% endblock %}",
        ),
        ("c/templates/d.j2", "{% include 'templates/deep/a.j2' %} {% include 'nobody.j2' ignore missing %}"),
        ("c/templates/e.j2", "{% include ['nobody.j2', 'charts/s/templates/_s.j2'] %}"),
        ("c/charts/s/templates/_s.j2", "sub {{ Values.name }}{% include './_t.j2' %}"),
        ("c/charts/s/templates/_t.j2", "+t"),
        (
            "c/templates/f.j2",
            "{{ include('go.name') }}/{{ include('go.name', {'Values': {'name': 'own'}}) }}/{{ include('_inc.j2', {'x': 1}) }}",
        ),
        ("c/templates/_inc.j2", "x={{ x }}"),
    ];
    let go = [
        (
            "c/templates/_h.tpl",
            r#"{{ define "go.name" }}<{{ .Values.name | upper }}{{ .Values.port | default "" }}>{{ end }}"#,
        ),
        ("c/templates/g.yaml", r#"{{ include "c/templates/_inc.j2" (dict "x" 2.0) }}"#),
    ];
    let program = program(&go, &jinja).unwrap();
    for (name, wanted) in [
        ("c/templates/deep/a.j2", "app: web of rel"),
        ("c/templates/b.j2", "app: b of rel"),
        ("c/templates/c.j2", "kind: None!\nx: 8080"),
        ("c/templates/d.j2", "app: web of rel "),
        ("c/templates/e.j2", "sub web+t"),
        ("c/templates/f.j2", "<WEB8080>/<OWN>/x=1"),
        ("c/templates/g.yaml", "x=2"),
    ] {
        let text = program.render(name, &dot(), &Run::new(&NoCluster));
        assert_eq!(text.unwrap_or_else(|err| panic!("{name}: {err:#}")), wanted, "{name}");
    }
}

#[test]
fn what_is_not_there_is_an_error_with_place_and_what_was_meant() {
    for (text, line, column, message, hint) in [
        ("a\n  b: {{ Values.imgae.tag }}", 2, 8, "", "did you mean image?"),
        ("{{ Values.image.tga | quote }}", 1, 3, "undefined", "did you mean tag?"),
        ("x\n{% if Values.prot > 1 %}{% endif %}", 2, 6, "undefined", "did you mean port?"),
        ("{{ nosuch }}", 1, 3, "`nosuch` is undefined", ""),
        ("{{ 'a' ~ Values.nam }}", 1, 3, "undefined", "did you mean name?"),
        ("\n\n{{ qoute(1) }}", 3, 3, "qoute is unknown", "did you mean quote?"),
        ("{{ 1 | nindnt(2) }}", 1, 7, "filter \"nindnt\" not defined", "did you mean nindent?"),
        ("{{ 1 is evn }}", 1, 8, "test \"evn\" not defined", "did you mean even?"),
        ("{{ trunc('a', 'b') }}", 1, 3, "argument 1 of trunc must be an integer, not string", ""),
        ("{{ trunc(1) }}", 1, 3, "trunc takes 2 arguments and was given 1", ""),
        ("{{ 'x'|required(Values.nosuch) }}", 1, 3, "argument 1 of required must be a string", ""),
        ("{% include '_helpers.j2' %}", 1, 0, "_helpers.j2", ""),
    ] {
        let err = error(text);
        let place = err.place().unwrap_or_else(|| panic!("{text}: no place in {err}"));
        assert_eq!((place.file(), place.line()), ("c/templates/t.j2", line), "{text}: {err}");
        assert!(place.column() == column || column == 0, "{text}: column {} in {err:#}", place.column());
        assert!(err.to_string().contains(message), "{text}: {err}");
        assert!(hint.is_empty() || err.hints().iter().any(|own| own == hint), "{text}: {:?}", err.hints());
    }
    let drawn = format!("{:#}", error("kind: X\nport: {{ Values.prot }}\n"));
    assert!(drawn.contains("2 | port: {{ Values.prot }}") && drawn.contains("^^^^^^^^^^^"), "{drawn}");
    let path: Vec<_> =
        error("{{ Values.image.tga }}").values_path().iter().map(ToString::to_string).collect();
    assert_eq!(path, ["image", "tga"]);
}

#[test]
fn an_error_in_an_included_file_names_all_files() {
    let files = [
        ("c/templates/a.j2", "one\n{% include '_b.j2' %}"),
        ("c/templates/_b.j2", "\n\n{{ fail('no ' ~ Values.name) }}"),
        ("c/templates/d.j2", "{{ include('_b.j2') }}"),
    ];
    let program = program(&[], &files).unwrap();
    for (name, callers) in [("c/templates/a.j2", 1), ("c/templates/d.j2", 1)] {
        let err = program.render(name, &dot(), &Run::new(&NoCluster)).unwrap_err();
        assert_eq!(err.kind(), ErrorKind::Author, "{err}");
        assert_eq!(err.message(), "no web");
        let files: Vec<_> =
            err.frames().iter().map(|frame| (frame.file().to_owned(), frame.line())).collect();
        assert_eq!(files[0], ("c/templates/_b.j2".to_owned(), 3), "{err:#}");
        assert_eq!(files[callers].0, name, "{err:#}");
    }
}

#[test]
fn a_mistake_in_the_syntax_names_file_and_line() {
    for (text, line) in [("\n{% if %}", 2), ("{{ 1 +", 1), ("a\nb\n{% endif %}", 3), ("{% for x in %}", 1)] {
        let err = program(&[], &[("c/templates/t.j2", text)]).unwrap_err();
        assert_eq!(err.kind(), ErrorKind::Parse);
        let start = format!("parse error at (c/templates/t.j2:{line}): ");
        assert!(err.to_string().starts_with(&start), "{text}: {err}");
    }
}

#[test]
fn a_lookup_is_answered_by_the_run() {
    struct One;
    impl Lookup for One {
        fn lookup(&self, _: &str, kind: &str, ns: &str, name: &str) -> Result<Value, LookupError> {
            match kind {
                "Later" => Err(LookupError::NotYet(format!("{kind} {ns}/{name}"))),
                _ => Ok(pintle_template::value::map_value(Entries::from([(
                    "found".into(),
                    Value::from(name),
                )]))),
            }
        }
    }
    let text = "{{ lookup('v1', 'Secret', Release.Namespace, 'x').found }}";
    assert_eq!(run(text, &Run::new(&One)).unwrap(), "x");
    let err = run("{{ lookup('v1', 'Later', 'a', 'b') }}", &Run::new(&One)).unwrap_err();
    assert_eq!((err.kind(), err.message()), (ErrorKind::NotYet, "Later a/b is not known yet"));
}

#[test]
fn random_functions_depend_on_the_seed() {
    let draw =
        |seed| run("{{ randAlphaNum(20) }}", &Run { seed: [seed; 32], ..Run::new(&NoCluster) }).unwrap();
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}

fn limited(text: &str) -> Error {
    let limits = Limits { steps: 2_000_000, output: 1 << 20, ..Limits::default() };
    match run(text, &Run { limits, ..Run::new(&NoCluster) }) {
        Ok(out) => panic!("{text}: no error but {} bytes", out.len()),
        Err(err) => err,
    }
}

#[test]
fn every_way_to_an_endless_or_huge_render_ends_at_a_limit_with_a_name() {
    let loops = "{% for a in range(10000) %}{% for b in range(10000) %}";
    let ends = "{% endfor %}{% endfor %}";
    let doubling = |step: &str| {
        format!(
            "{{% set ns = namespace(x='0123456789') %}}{{% for i in range(60) %}}{{% set ns.x = {step} %}}{{% endfor %}}"
        )
    };
    for (text, name) in [
        (format!("{loops}{ends}"), "steps"),
        (format!("{loops}text{ends}"), "output"),
        (format!("{{% set x %}}{loops}0123456789012345678901234567890123456789{ends}{{% endset %}}"), "steps"),
        (doubling("ns.x ~ ns.x"), "output"),
        (doubling("ns.x + ns.x"), "output"),
        (doubling("ns.x * 1000"), "output"),
        (doubling("ns.x|replace('0', ns.x)"), "output"),
        (doubling("[ns.x, ns.x]|join"), "output"),
        (doubling("printf('%s%s', ns.x, ns.x)"), "output"),
        (doubling("repeat(100, ns.x)"), "output"),
        (doubling("(ns.x, ns.x)|toJson"), "output"),
        (doubling("'%s%s'|format(ns.x, ns.x)"), "output"),
        ("{{ range(1000000000) }}".into(), "items"),
        ("{{ until(1000000000) }}".into(), "items"),
        ("{{ '%999999d'|format(1) ~ '%999999d'|format(1) }}".into(), "output"),
        ("{% macro f(x) %}{{ f(x ~ x) }}{% endmacro %}{{ f('a') }}".into(), ""),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}".into(), "template depth"),
        ("{% include 't.j2' %}".into(), "template depth"),
        ("{{ tpl('{{ tpl(x) }}', {'x': '{{ 1 }}'}) }}{{ include('t.j2') }}".into(), ""),
        ("{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}{% endfor %}".into(), "value depth"),
        ("{% set ns = namespace(x={}) %}{% for i in range(100000) %}{% set ns.x = {'x': ns.x} %}{% endfor %}".into(), "value depth"),
        ("{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = list(ns.x) %}{% endfor %}".into(), "value depth"),
        ("{% set d = {} %}{% do set(d, 'd', d) %}{{ d }}".into(), "value depth"),
    ] {
        let err = limited(&text);
        match err.kind() {
            ErrorKind::Limit(own) => assert!(own == name || name.is_empty(), "{text}: {err}"),
            _ => assert!(name.is_empty() || err.to_string().contains("limit"), "{text}: {err}"),
        }
        assert!(err.to_string().contains("limit"), "{text}: {err}");
    }
}

#[test]
fn a_thousand_nested_includes_work() {
    let text =
        "{% if n < 1000 %}{% with n = n + 1 %}{% include 'r.j2' %}{% endwith %}{% else %}end{% endif %}";
    let start = "{% set n = 1 %}{% include 'r.j2' %}";
    let program = program(&[], &[("c/templates/r.j2", text), ("c/templates/t.j2", start)]).unwrap();
    assert_eq!(program.render("c/templates/t.j2", &dot(), &Run::new(&NoCluster)).unwrap(), "end");
    let text = "{% if n < 1000 %}{{ include('r.j2', {'n': n + 1}) }}{% else %}end{% endif %}";
    let program = self::program(
        &[],
        &[("c/templates/r.j2", text), ("c/templates/t.j2", "{{ include('r.j2', {'n': 1}) }}")],
    );
    assert_eq!(program.unwrap().render("c/templates/t.j2", &dot(), &Run::new(&NoCluster)).unwrap(), "end");
}

#[test]
fn a_render_is_cancelled() {
    struct Cancels<'a>(&'a AtomicBool);
    impl Lookup for Cancels<'_> {
        fn lookup(&self, _: &str, _: &str, _: &str, _: &str) -> Result<Value, LookupError> {
            self.0.store(true, Ordering::Relaxed);
            Ok(Value::from(1))
        }
    }
    let flag = AtomicBool::new(false);
    let lookup = Cancels(&flag);
    let text = "{{ lookup('v1', 'X', '', 'x') }}{% for i in range(100000) %}{{ quote(i) }}{% endfor %}";
    let err = run(text, &Run { cancel: Some(&flag), ..Run::new(&lookup) }).unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Cancelled);
}
