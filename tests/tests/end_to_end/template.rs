//! `pintle template --dry-run=server` on a real API server, beside `helm template --dry-run=server`.

use std::{path::Path, process::Command};

use pintle_tests::stage;
use serde_json::{Value, json};

const TEMPLATE: &str = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: made}
data:
  serves: {{ .Capabilities.APIVersions.Has "sro.openshift.io/v1beta1/SpecialResource" | quote }}
  apps: {{ .Capabilities.APIVersions.Has "apps/v1" | quote }}
  none: {{ .Capabilities.APIVersions.Has "nobody.example/v1" | quote }}
  version: {{ .Capabilities.KubeVersion.Version }}
  found: {{ (lookup "v1" "ConfigMap" .Release.Namespace "there").data.key | quote }}
  missing: {{ lookup "v1" "ConfigMap" .Release.Namespace "absent" | toJson | quote }}
  all: {{ (lookup "v1" "ConfigMap" .Release.Namespace "").items | len | quote }}
"#;

/// A chart of one template in a folder of its own.
fn chart(folder: &Path, name: &str, template: &str) -> String {
    let root = folder.join(name);
    std::fs::create_dir_all(root.join("templates")).unwrap();
    std::fs::write(root.join("Chart.yaml"), format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n"))
        .unwrap();
    std::fs::write(root.join("templates/x.yaml"), template).unwrap();
    root.display().to_string()
}

async fn apply(namespace: &str, object: Value) {
    let client = stage::plane().await.unwrap().client().unwrap();
    let place = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    pintle::scenario::apply(&client, place).await.unwrap();
    pintle::scenario::apply(&client, object).await.unwrap();
}

fn config_map(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace},
        "data": {"key": "value"}})
}

/// What ours says, after it was held against Helm's where that can be had.
async fn template(chart: &str, namespace: &str) -> Result<String, String> {
    let kubeconfig = stage::plane().await.unwrap().kubeconfig().display().to_string();
    let words =
        ["rel", chart, "--namespace", namespace, "--dry-run=server", "--kubeconfig", kubeconfig.as_str()]
            .map(str::to_owned);
    let own = words.clone();
    let ours = tokio::task::spawn_blocking(move || pintle::template(&own.each_ref().map(String::as_str)));
    let ours = ours.await.unwrap();
    let helm = tokio::task::spawn_blocking(|| pintle_dev::helm::ensure(&mut |line| eprintln!("{line}")));
    match helm.await.unwrap() {
        Err(error) => println!("skipped: what is compared with helm: {error}"),
        Ok(helm) => {
            let output = Command::new(helm).arg("template").args(&words).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            match &ours {
                Ok(text) => assert_eq!(*text, printed, "{said}"),
                Err(text) => assert!(!output.status.success(), "we say {text}, helm prints {printed}"),
            }
        }
    }
    ours
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_answers_lookups_and_says_what_it_serves() {
    apply("template-lookup", config_map("template-lookup", "there")).await;
    let folder = tempfile::tempdir().unwrap();
    let text = template(&chart(folder.path(), "looks", TEMPLATE), "template-lookup").await.unwrap();
    for line in
        ["serves: \"true\"", "apps: \"true\"", "none: \"false\"", "found: \"value\"", "missing: \"{}\""]
    {
        assert!(text.contains(line), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_the_server_would_not_take_are_refused() {
    apply("template-refuses", config_map("template-refuses", "taken")).await;
    let folder = tempfile::tempdir().unwrap();
    for (name, template_text, says) in [
        (
            "unserved",
            "apiVersion: nobody.example/v1\nkind: Gadget\nmetadata: {name: g}\n",
            "no matches for kind \"Gadget\" in version \"nobody.example/v1\"\nensure CRDs are installed first",
        ),
        (
            "unknown",
            "a: {{ lookup \"nobody.example/v1\" \"Thing\" \"\" \"\" | toJson }}\n",
            "unable to get apiresource from unstructured: nobody.example/v1, Kind=Thing: the server could not find",
        ),
        (
            "owned",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: taken}\n",
            "ConfigMap \"taken\" in namespace \"template-refuses\" exists and cannot be imported into the current release: \
             invalid ownership metadata; label validation error: missing key \"app.kubernetes.io/managed-by\": must be \
             set to \"Helm\"; annotation validation error: missing key \"meta.helm.sh/release-name\": must be set to \
             \"rel\"; annotation validation error: missing key \"meta.helm.sh/release-namespace\": must be set to \
             \"template-refuses\"",
        ),
    ] {
        let text =
            template(&chart(folder.path(), name, template_text), "template-refuses").await.unwrap_err();
        assert!(text.contains(says), "{name}: {text}");
    }
}
