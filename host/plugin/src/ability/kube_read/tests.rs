#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

use std::{collections::BTreeSet, sync::Arc};

use pintle_api::{Facts, Given, LogTail, Read, Record, plugin::Grants};
use serde_json::{Value, json};

use super::{kube_read::Host as _, *};
use crate::grants::Granted;

/// A cluster that knows its objects and answers lists by kind, namespace and labels.
#[derive(Default)]
struct Cluster(Vec<Arc<Object>>);

impl Facts for Cluster {
    fn get(&self, target: &ObjectRef) -> Answer<Arc<Object>> {
        self.0
            .iter()
            .find(|object| object.reference() == *target)
            .cloned()
            .map_or(Answer::Missing, Answer::Found)
    }

    fn list(&self, query: &Query) -> Answer<Vec<Arc<Object>>> {
        let selector = Selector::parse(query.label_selector.as_deref().unwrap_or_default()).unwrap();
        let is_in = |object: &&Arc<Object>| {
            object.kind() == query.kind
                && (query.namespace.is_none() || object.namespace() == query.namespace.as_deref())
                && selector.selects(object)
        };
        Answer::Found(self.0.iter().filter(is_in).cloned().collect())
    }

    fn tail(&self, _: &LogTail) -> Answer<String> {
        Answer::Missing
    }

    fn resolve(&self, _: &str) -> Answer<String> {
        Answer::Missing
    }
}

fn config_map(namespace: &str, name: &str, app: &str) -> Arc<Object> {
    Arc::new(
        Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}, "other": 1,
            "metadata": {"namespace": namespace, "name": name, "labels": {"app": app}}}))
        .unwrap(),
    )
}

fn cluster() -> Cluster {
    Cluster(vec![
        config_map("n", "a", "x"),
        config_map("n", "b", "x"),
        config_map("n", "c", "y"),
        config_map("far", "d", "x"),
    ])
}

fn scope(read: Value, own: &[ObjectRef]) -> Scope {
    let grants: Grants = serde_json::from_value(json!({"read": read})).unwrap();
    Scope {
        plugin: "p".into(),
        granted: Arc::new(Granted::new(&grants).unwrap()),
        namespace: "n".into(),
        own: Arc::new(own.iter().cloned().collect::<BTreeSet<_>>()),
    }
}

fn all() -> ObjectQuery {
    ObjectQuery {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: None,
        name: None,
        label_selector: None,
    }
}

struct Asked {
    names: Vec<String>,
    pages: usize,
    record: Record,
}

/// Everything a query finds, page by page.
async fn find(scope: &Scope, query: &ObjectQuery, fields: &[&str], max: u32) -> Result<Asked, ReadError> {
    let mut reads = Reads::new(Arc::new(cluster()));
    let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
    let (mut names, mut token, mut pages) = (Vec::new(), None, 0);
    loop {
        let mut host = KubeRead {
            reads: &mut reads,
            scope,
            called: &mut Called::default(),
            asked: &mut memo::Asked::default(),
        };
        let page = host.find(query.clone(), fields.clone(), max, token).await.unwrap()?;
        pages += 1;
        for item in page.items {
            let item: Value = serde_json::from_str(&item).unwrap();
            names.push(item["metadata"]["name"].as_str().unwrap().to_owned());
        }
        match page.next {
            Some(next) => token = Some(next),
            None => return Ok(Asked { names, pages, record: reads.into_record() }),
        }
    }
}

fn denied_text(result: Result<Asked, ReadError>) -> String {
    match result {
        Err(ReadError::Denied(why)) => why,
        Err(other) => panic!("{other:?}"),
        Ok(asked) => panic!("found {:?}", asked.names),
    }
}

#[tokio::test]
async fn all_means_all_within_the_grants() {
    let release =
        scope(json!([{"apiGroups": [""], "kinds": ["ConfigMap"], "namespaces": ["$release"]}]), &[]);
    assert_eq!(find(&release, &all(), &[], 0).await.unwrap().names, ["a", "b", "c"]);
    let everywhere =
        scope(json!([{"apiGroups": [""], "kinds": ["ConfigMap"], "labelSelector": "app=x"}]), &[]);
    assert_eq!(find(&everywhere, &all(), &[], 0).await.unwrap().names, ["d", "a", "b"]);
    let named = scope(json!([{"apiGroups": [""], "kinds": ["ConfigMap"], "names": ["b", "d"]}]), &[]);
    assert_eq!(find(&named, &all(), &[], 0).await.unwrap().names, ["d", "b"]);
}

#[tokio::test]
async fn a_query_narrows_a_grant_and_never_widens_it() {
    let release =
        scope(json!([{"apiGroups": [""], "kinds": ["ConfigMap"], "namespaces": ["$release"]}]), &[]);
    let y = ObjectQuery { label_selector: Some("app=y".into()), ..all() };
    assert_eq!(find(&release, &y, &[], 0).await.unwrap().names, ["c"]);
    let b = ObjectQuery { name: Some("b".into()), ..all() };
    assert_eq!(find(&release, &b, &[], 0).await.unwrap().names, ["b"]);
    let far = ObjectQuery { namespace: Some("far".into()), ..all() };
    assert!(denied_text(find(&release, &far, &[], 0).await).contains("namespaces: [far]"));
    let odd = ObjectQuery { label_selector: Some("a b".into()), ..all() };
    assert!(denied_text(find(&release, &odd, &[], 0).await).contains("is no label selector"));
}

#[tokio::test]
async fn pages_together_are_one_snapshot_and_one_read_of_the_world() {
    let release = scope(json!([{"apiGroups": [""], "kinds": ["ConfigMap"]}]), &[]);
    let asked = find(&release, &all(), &[], 3).await.unwrap();
    assert_eq!((asked.names.len(), asked.pages), (4, 2));
    assert_eq!(asked.record.iter().count(), 1);
    let mut reads = Reads::new(Arc::new(cluster()));
    let mut host = KubeRead {
        reads: &mut reads,
        scope: &release,
        called: &mut Called::default(),
        asked: &mut memo::Asked::default(),
    };
    let odd = host.find(all(), Vec::new(), 0, Some("x".into())).await.unwrap();
    assert!(matches!(odd, Err(ReadError::Denied(_))));
    let beyond = host.find(all(), Vec::new(), 0, Some("99".into())).await.unwrap().unwrap();
    assert!(beyond.items.is_empty() && beyond.next.is_none());
}

#[tokio::test]
async fn fields_beyond_the_grant_are_denied_by_their_path() {
    let data = json!([{"apiGroups": [""], "kinds": ["ConfigMap"], "fields": ["data"]}]);
    let scope = scope(data, &[]);
    let why = denied_text(find(&scope, &all(), &["data.k", "other"], 0).await);
    assert!(why.starts_with("other of ConfigMap (v1) is not among the fields"), "{why}");
    assert!(find(&scope, &all(), &["data.k"], 0).await.is_ok());
    assert!(denied_text(find(&scope, &all(), &["a..b"], 0).await).contains("is no path"));
}

#[tokio::test]
async fn two_grants_for_one_object_show_both_parts_and_it_comes_once() {
    let both = json!([
        {"apiGroups": [""], "kinds": ["ConfigMap"], "namespaces": ["n"], "fields": ["data"]},
        {"apiGroups": [""], "kinds": ["ConfigMap"], "labelSelector": "app=y", "fields": ["other"]}]);
    let scope = scope(both, &[]);
    let mut reads = Reads::new(Arc::new(cluster()));
    let mut host = KubeRead {
        reads: &mut reads,
        scope: &scope,
        called: &mut Called::default(),
        asked: &mut memo::Asked::default(),
    };
    let page = host.find(all(), Vec::new(), 0, None).await.unwrap().unwrap();
    let items: Vec<Value> = page.items.iter().map(|item| serde_json::from_str(item).unwrap()).collect();
    assert_eq!(items.len(), 3);
    assert_eq!(items[2]["metadata"]["name"], "c");
    assert!(items[2].get("data").is_some() && items[2].get("other").is_some(), "{}", items[2]);
    assert!(items[0].get("data").is_some() && items[0].get("other").is_none(), "{}", items[0]);
}

#[tokio::test]
async fn objects_of_the_release_are_found_without_a_grant_secrets_excepted() {
    let own = ObjectRef::new("v1", "ConfigMap", "a").within("n");
    let secret = ObjectRef::new("v1", "Secret", "s").within("n");
    let scope = scope(json!([]), &[own, secret.clone()]);
    assert_eq!(find(&scope, &all(), &[], 0).await.unwrap().names, ["a"]);
    let far = ObjectQuery { namespace: Some("far".into()), ..all() };
    assert!(denied_text(find(&scope, &far, &[], 0).await).contains("is not granted"));
    let mut reads = Reads::new(Arc::new(cluster()));
    let mut host = KubeRead {
        reads: &mut reads,
        scope: &scope,
        called: &mut Called::default(),
        asked: &mut memo::Asked::default(),
    };
    let target = GuestRef {
        api_version: secret.api_version,
        kind: secret.kind,
        namespace: secret.namespace,
        name: secret.name,
    };
    let read = host.get(target, Vec::new()).await.unwrap();
    assert!(matches!(read, Err(ReadError::Denied(_))), "{read:?}");
    assert!(reads.into_record().is_empty(), "a denied read must not reach the world");
}

#[tokio::test]
async fn what_is_not_known_yet_is_asked_for_in_one_round() {
    let two = json!([{"apiGroups": [""], "kinds": ["ConfigMap"], "namespaces": ["n", "far"]}]);
    let scope = scope(two, &[]);
    let mut reads = Reads::new(Arc::new(Record::default()));
    let mut host = KubeRead {
        reads: &mut reads,
        scope: &scope,
        called: &mut Called::default(),
        asked: &mut memo::Asked::default(),
    };
    let page = host.find(all(), Vec::new(), 0, None).await.unwrap();
    assert!(matches!(page, Err(ReadError::Unavailable(_))));
    assert_eq!(reads.needs().len(), 2);
    assert!(reads.was_unavailable());
    assert!(
        reads.into_record().iter().all(|(read, given)| matches!(read, Read::List(_)) && given.is_not_yet())
    );
}

#[tokio::test]
async fn an_object_larger_than_a_call_may_read_is_named_by_its_size() {
    let large = "x".repeat(limits::READ_BYTES + 1);
    let target = ObjectRef::new("v1", "ConfigMap", "a").within("n");
    let object = Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": large},
        "metadata": {"namespace": "n", "name": "a"}}))
    .unwrap();
    let mut facts = Record::default();
    facts.insert(Read::Get(target.clone()), Given::Object(Answer::Found(Arc::new(object))));
    let scope = scope(json!([]), std::slice::from_ref(&target));
    let mut reads = Reads::new(Arc::new(facts));
    let mut host = KubeRead {
        reads: &mut reads,
        scope: &scope,
        called: &mut Called::default(),
        asked: &mut memo::Asked::default(),
    };
    let asked = GuestRef {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: Some("n".into()),
        name: "a".into(),
    };
    let read = host.get(asked.clone(), Vec::new()).await.unwrap();
    assert!(matches!(read, Err(ReadError::TooLarge(size)) if size > limits::READ_BYTES as u64));
    let mut host = KubeRead {
        reads: &mut reads,
        scope: &scope,
        called: &mut Called::default(),
        asked: &mut memo::Asked::default(),
    };
    assert!(host.get(asked, vec!["metadata".into()]).await.unwrap().is_ok(), "a part of it can be read");
}
