//! One plugin in every language, built by `pintle plugin build` and held to one list of checks through the
//! host. A language whose tools are not on this machine is named and left out.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use pintle_api::{Answer, Facts, Given, Object, ObjectRef, Read, Record, Timestamp, plugin::PluginSpec};
use pintle_dev::polyglot::{BuildError, Language};
use pintle_plugin::{
    Artifact, Call, CallResult, Checked, Engine, LoadError, Operation, Options, Outcome, Plugin, Release,
    StepClock, transcript::told,
};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::pintle::{guest_named, pintle_in, root};

/// A component of the plugin.
struct Guest {
    language: String,
    bytes: Arc<[u8]>,
    plugin: Plugin,
}

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().map_err(|_| io::ErrorKind::Other)?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn lines(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[tokio::test]
async fn a_plugin_answers_the_same_in_every_language() {
    let engine = Engine::new(&Options::default()).unwrap();
    let mut guests = vec![load(&engine, "Rust", guest_named("wait-for").into()).await];
    // Side by side, since most of the first build is waiting for registries.
    let built = std::thread::scope(|scope| {
        let builds = Language::ALL.map(|language| scope.spawn(move || (language, try_build(language))));
        builds.map(|build| build.join().unwrap())
    });
    for (language, built) in built {
        // Straight to the terminal: that a language was left out must be seen in a green run too.
        let told = match built {
            Err(why) => format!("skipped: {why}"),
            Ok((path, seconds, _folder)) => {
                let guest = load(&engine, &language.to_string(), path).await;
                let told = format!("built in {seconds} s ({} KiB)", guest.bytes.len() / 1024);
                guests.push(guest);
                told
            }
        };
        writeln!(io::stderr(), "{language}: {told}").unwrap();
    }
    for guest in &guests {
        conforms(&engine, guest).await;
        writeln!(io::stderr(), "{}: called, conforms", guest.language).unwrap();
    }
}

/// The component in its folder and the seconds it took, or why this machine cannot build the language.
fn try_build(language: Language) -> Result<(PathBuf, u64, TempDir), BuildError> {
    if let Some(why) = language.lacks() {
        return Err(why);
    }
    let (folder, began) = (tempfile::tempdir().unwrap(), Instant::now());
    let path = build(language, folder.path());
    Ok((path, began.elapsed().as_secs(), folder))
}

/// What `new` writes is what was tested: the same files under another name, and none is left out.
#[test]
fn a_new_project_is_the_tested_plugin_under_another_name() {
    for language in Language::ALL {
        let folder = tempfile::tempdir().unwrap();
        let lang = language.to_string().to_lowercase();
        pintle_in(folder.path(), ["new", "my-gpu", "--lang", &lang]).ok();
        let (made, own) = (folder.path().join("my-gpu"), root().join("plugins/guests").join(&lang));
        let listed = Command::new("git").args(["ls-files", "."]).current_dir(&own).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.lines().count() > 8, "{language}: {listed}");
        for path in listed.lines() {
            let text = fs::read_to_string(own.join(path)).unwrap().replace("wait-for", "my-gpu");
            let copy =
                fs::read_to_string(made.join(path)).unwrap_or_else(|_| panic!("{language}: no {path}"));
            assert_eq!(copy, text, "{language}: {path}");
        }
        assert_eq!(Language::of(&made), Some(language));
    }
    let folder = tempfile::tempdir().unwrap();
    let hooks =
        pintle_in(folder.path(), ["new", "my-gpu", "--lang", "python", "--interface", "hooks"]).failed();
    assert!(hooks.contains("in python for readiness only"), "{hooks}");
}

/// The tests that each project brings pass on the machine of its author.
#[test]
fn the_logic_of_each_language_passes_its_own_tests() {
    for (language, program, args) in [
        (Language::C, "sh", &["tests/run.sh"][..]),
        (Language::Go, "go", &["test", "./..."]),
        (Language::JavaScript, "node", &["--test"]),
        (Language::Python, "python3", &["-B", "-m", "unittest"]),
    ] {
        let needs_cc = language == Language::C && Command::new("cc").arg("--version").output().is_err();
        if language.lacks().is_some() || needs_cc {
            writeln!(io::stderr(), "{language}: its own tests are skipped").unwrap();
            continue;
        }
        let project = root().join("plugins/guests").join(language.to_string().to_lowercase());
        let output = Command::new(program).args(args).current_dir(project).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{language}: {}", String::from_utf8_lossy(&said));
    }
}

fn build(language: Language, folder: &Path) -> PathBuf {
    let project = root().join("plugins/guests").join(language.to_string().to_lowercase());
    assert_eq!(Language::of(&project), Some(language));
    let out = folder.join(format!("{language}.wasm"));
    let build = folder.join(format!("{language}.build"));
    let (project, out_text) = (project.to_str().unwrap(), out.to_str().unwrap());
    let args = ["build", project, "--out", out_text, "--target-dir", build.to_str().unwrap(), "-o", "json"];
    let built = pintle_in(folder, args).json();
    assert_eq!((&built["name"], &built["language"]), (&json!("wait-for"), &json!(language.to_string())));
    out
}

async fn load(engine: &Engine, language: &str, path: PathBuf) -> Guest {
    let bytes: Arc<[u8]> = fs::read(path).unwrap().into();
    let artifact =
        Artifact { name: "wait-for".to_owned(), digest: "sha256:0".to_owned(), bytes: Arc::clone(&bytes) };
    let plugin = Plugin::load(engine, artifact, &spec(language, json!({}))).await.unwrap();
    Guest { language: language.to_owned(), bytes, plugin }
}

/// The Plugin object: what the manifest asks for is granted, unless `more` says otherwise.
fn spec(language: &str, more: Value) -> PluginSpec {
    // The standard Go toolchain has no target without WASI.
    let mut spec = json!({"image": "oci://registry.test/wait-for:1", "wasi": language == "Go",
        "grants": {"read": [{"apiGroups": ["apps"], "kinds": ["Deployment"], "namespaces": ["$release"],
            "fields": ["metadata.generation", "status.observedGeneration", "status.conditions"]}]}});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(spec).unwrap()
}

/// The list of checks that every guest must pass.
async fn conforms(engine: &Engine, guest: &Guest) {
    manifest(guest);
    verdicts(guest).await;
    refusals(guest).await;
    config(guest).await;
    odd_objects(guest).await;
    limits(engine, guest).await;
    log(guest).await;
}

fn manifest(Guest { language, plugin, .. }: &Guest) {
    let manifest = plugin.manifest();
    assert_eq!((&*manifest.name, &*manifest.version), ("wait-for", "0.1.0"), "{language}");
    assert_eq!(plugin.missing(), Vec::<String>::new(), "{language}: what it needs is what was granted");
    let wasi = plugin.imports().iter().any(|import| import.starts_with("wasi:"));
    assert_eq!(wasi, language == "Go", "{language}: {:?}", plugin.imports());
    let (config, args) = (manifest.config_schema.as_ref().unwrap(), manifest.args_schema.as_ref().unwrap());
    assert_eq!(config["properties"]["condition"]["default"], "Ready", "{language}");
    assert_eq!(args["properties"].as_object().unwrap().len(), 5, "{language}");
    assert_eq!(manifest.reasons.len(), 5, "{language}");
}

/// Ready, pending with a blocker that names its object, and what each is called.
async fn verdicts(Guest { language, plugin, .. }: &Guest) {
    let condition = |status: &str| {
        json!([{"type": "Progressing", "status": "True"},
        {"type": "Available", "status": status, "message": "\u{e4} \"quoted\"\n"}])
    };
    let of = |generation: i64, status: Value| found(&deployment(generation, status));
    let cases = [
        (of(2, json!({"observedGeneration": 2, "conditions": condition("True")})), None),
        (Answer::Missing, Some(("ObjectMissing", "Deployment n/web does not exist yet"))),
        (
            Answer::KindUnknown,
            Some(("KindNotInstalled", "the cluster does not serve Deployment of apps/v1 yet")),
        ),
        (
            of(3, json!({"observedGeneration": 2, "conditions": condition("True")})),
            Some(("StatusIsOld", "the status of Deployment n/web is of generation 2, not 3")),
        ),
        (of(1, json!({})), Some(("ConditionMissing", "Deployment n/web has no condition Available yet"))),
        (
            of(1, json!({"conditions": condition("False")})),
            Some(("ConditionNotMet", "Available of Deployment n/web is False: \u{e4} \"quoted\"")),
        ),
    ];
    for (answer, expected) in cases {
        let result = check(plugin, &web(), answer.clone(), json!({"condition": "Available"})).await;
        let told = told(&result.clone().map(Into::into));
        let Some((reason, message)) = expected else {
            assert_eq!(told["verdict"], "ready", "{language}: {told}");
            continue;
        };
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "n", "name": "web"});
        assert_eq!(told["verdict"], "pending", "{language}: {told}");
        assert_eq!(told["blockers"].as_array().map(Vec::len), Some(1), "{language}: {told}");
        let blocker = &told["blockers"][0];
        assert_eq!((&blocker["reason"], &blocker["object"]), (&json!(reason), &object), "{language}: {told}");
        // The host says whose words they are.
        let said = blocker["message"].as_str().and_then(|said| said.strip_prefix("wait-for: "));
        assert_eq!(said.map(str::trim), Some(message), "{language}");
        // The same call has the same answer.
        let again = check(plugin, &web(), answer, json!({"condition": "Available"})).await;
        assert_eq!(again.outcome, result.outcome, "{language}");
    }
}

/// A read that is denied names the line that would grant it; one that nobody has looked up is asked for.
async fn refusals(Guest { language, plugin, .. }: &Guest) {
    let elsewhere = json!({"namespace": "other", "condition": "Available"});
    let denied = failure(&check(plugin, &web(), Answer::Missing, elsewhere).await);
    assert!(denied.contains("Deployment other/web cannot be read: "), "{language}: {denied}");
    assert!(denied.contains("spec.grants.read"), "{language}: {denied}");
    let unknown = check(plugin, &web(), Answer::NotYet, json!({})).await;
    assert_eq!(unknown.outcome, Outcome::NeedsFacts(vec![Read::Get(web())]), "{language}");
    let refused = check(plugin, &web(), Answer::Denied("no right".to_owned()), json!({})).await;
    assert!(failure(&refused).contains("no right"), "{language}: {}", failure(&refused));
}

/// The config decides where the annotation does not, and a wrong one is refused when it is bound.
async fn config(Guest { language, plugin, .. }: &Guest) {
    let spec_of = |condition: &str| spec(language, json!({"config": {"condition": condition}}));
    let ready = deployment(1, json!({"conditions": [{"type": "Complete", "status": "True"}]}));
    let configured = plugin.rebind(&spec_of("Complete")).await.unwrap();
    for (plugin, expected) in [(plugin, "pending"), (&configured, "ready")] {
        let told = told(&check(plugin, &web(), found(&ready), json!({})).await.map(Into::into));
        assert_eq!(told["verdict"], expected, "{language}: {told}");
    }
    let Err(LoadError::Config(why)) = plugin.rebind(&spec_of("")).await else {
        panic!("{language}: an empty condition was accepted")
    };
    assert_eq!(why, "spec.config.condition is empty", "{language}");
}

/// What no author thought of ends in words and never in a trap.
async fn odd_objects(Guest { language, plugin, .. }: &Guest) {
    for status in [json!({"conditions": 7}), json!({"conditions": [7, {}]}), json!([]), json!("odd")] {
        let result = check(plugin, &web(), found(&deployment(1, status.clone())), json!({})).await;
        let told = told(&result.map(Into::into));
        let ends_well = match told["verdict"].as_str() {
            Some("pending") => true,
            Some("failed") => told["message"].as_str().is_some_and(|why| !why.contains("trapped")),
            _ => false,
        };
        assert!(ends_well, "{language}: {status}: {told}");
    }
}

/// Memory and time that were not given are named.
async fn limits(engine: &Engine, Guest { language, plugin, bytes }: &Guest) {
    let little = spec(language, json!({"limits": {"memory": "64Ki"}}));
    let artifact =
        Artifact { name: "wait-for".to_owned(), digest: "sha256:0".to_owned(), bytes: Arc::clone(bytes) };
    let refused = Plugin::load(engine, artifact, &little).await.unwrap_err().to_string();
    assert!(refused.contains("memory"), "{language}: {refused}");
    let short = plugin.rebind(&spec(language, json!({"limits": {"timeout": "1ms"}}))).await.unwrap();
    let conditions: Vec<Value> =
        (0..40_000).map(|at| json!({"type": format!("c{at}"), "status": "True", "message": "m"})).collect();
    let long = deployment(1, json!({"conditions": conditions}));
    let late = failure(&check(&short, &web(), found(&long), json!({})).await);
    assert!(late.contains("did not end within 1ms"), "{language}: {late}");
}

/// What it logs is in our log with its fields, and what went wrong as an error.
async fn log(Guest { language, plugin, .. }: &Guest) {
    let kept = Kept::default();
    let writer = kept.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(move || writer.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    // Another generation than above, so that no kept answer is given again.
    let met = json!({"conditions": [{"type": "Available", "status": "True"}]});
    check(plugin, &web(), found(&deployment(77, met)), json!({"condition": "Available"})).await;
    check(plugin, &web(), found(&deployment(77, json!({"conditions": 8}))), json!({})).await;
    drop(guard);
    let lines = kept.lines();
    let entries: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = |entry: &&Value| entry["fields"]["message"] == "Available of Deployment n/web is met";
    let entry = entries.iter().find(said).unwrap_or_else(|| panic!("{language}: {lines}"));
    assert_eq!((&entry["level"], &entry["fields"]["plugin"]), (&json!("DEBUG"), &json!("wait-for")));
    assert_eq!(entry["fields"]["fields"], "{\"name\":\"web\"}", "{language}");
    // In C and Rust an odd object is an ordinary case.
    let has_error = entries.iter().any(|entry| entry["level"] == "ERROR");
    assert_eq!(has_error, !matches!(&**language, "C" | "Rust"), "{language}: {lines}");
}

fn failure(result: &CallResult<Checked>) -> String {
    match &result.outcome {
        Outcome::Failed(failure) => failure.to_string(),
        other => panic!("{other:?}"),
    }
}

fn web() -> ObjectRef {
    ObjectRef::new("apps/v1", "Deployment", "web").within("n")
}

fn deployment(generation: i64, status: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1}, "status": status,
        "metadata": {"name": "web", "namespace": "n", "generation": generation}})
}

fn found(json: &Value) -> Answer<Arc<Object>> {
    Answer::Found(Arc::new(Object::new(json.clone()).unwrap()))
}

/// One call: `target` is answered with `answer`, the annotation asks for it and says `more`.
async fn check(
    plugin: &Plugin,
    target: &ObjectRef,
    answer: Answer<Arc<Object>>,
    more: Value,
) -> CallResult<Checked> {
    let mut record = Record::default();
    if !answer.is_not_yet() {
        record.insert(Read::Get(target.clone()), Given::Object(answer));
    }
    let mut args = json!({"apiVersion": target.api_version, "kind": target.kind, "name": target.name});
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let annotated =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "t", "namespace": "n"}});
    plugin.check(call(Arc::new(record), args), Arc::new(Object::new(annotated).unwrap())).await
}

fn call(facts: Arc<dyn Facts>, args: Value) -> Call {
    let args: Map<String, Value> = args.as_object().unwrap().clone();
    Call {
        facts,
        operation: Operation::Steady,
        release: Release { name: "r".into(), namespace: "n".into(), revision: 1, ..Release::default() },
        state: "1000".into(),
        pool: String::new(),
        args,
        owner: Arc::new(Object::default_of("a/v1", "Owner", "o")),
        host_fields: Arc::new([]),
        values: Arc::new(json!({})),
        saved: None,
        own: Arc::new(BTreeSet::new()),
        clock: StepClock { now: Timestamp::UNIX_EPOCH, elapsed: Duration::ZERO, attempt: 1 },
    }
}
