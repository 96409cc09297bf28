//! One pass over a Plugin object: pull, load, tell how it is.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_api::{
    Facts, Object, ObjectRef, Timestamp,
    plugin::{PluginSpec, PluginStatus, PullPolicy, SecretName},
};
use pintle_plan::ConditionSet;
use pintle_plugin::{Artifact, LoadError, Plugin};
use pintle_source::artifact::{Component, Credentials, PullError, is_pinned, registry_of};
use serde_json::Value;

use super::{Loaded, Unready};
use crate::{
    context::{Context, Key},
    error_text::one_line,
    report,
};

/// First pause before a registry is asked again; doubles up to [`LONGEST`].
const PAUSE: Duration = Duration::from_secs(2);
/// Longest pause before a registry is asked again.
const LONGEST: Duration = Duration::from_secs(300);

/// Brings a Plugin to where its object says. Owners that call it are woken when something changed.
pub(crate) async fn reconcile(ctx: &Context, name: &str) -> Option<Duration> {
    let key = Key::Plugin(name.to_owned());
    let target = ObjectRef::new("pintle.dev/v1alpha1", "Plugin", name);
    let (object, _) = ctx.know(&key, |facts| facts.get(&target)).await;
    let Some(object) = object.found() else {
        ctx.plugins.forget(name);
        ctx.ledger.callers_of(name).into_iter().for_each(|caller| ctx.queue.wake(caller));
        return None;
    };
    let known = ctx.plugins.find(name).filter(|known| known.generation == object.generation());
    if known.is_some_and(|known| known.plugin.as_ref().err().is_none_or(|unready| !unready.may_pass)) {
        return None;
    }
    let loaded = load(ctx, &key, &object).await;
    let unready = loaded.as_ref().err().cloned();
    ctx.plugins.keep(name, Loaded { generation: object.generation(), plugin: loaded.clone() });
    tell(ctx, &object, &loaded).await;
    ctx.ledger.callers_of(name).into_iter().for_each(|caller| ctx.queue.wake(caller));
    let tries = ctx.ledger.count_try(&key, unready.is_some());
    unready.filter(|unready| unready.may_pass).map(|_| PAUSE.saturating_mul(1 << tries.min(8)).min(LONGEST))
}

async fn load(ctx: &Context, key: &Key, object: &Object) -> Result<Plugin, Unready> {
    let spec = spec_of(object)?;
    let image = wanted_image(ctx, object, &spec)?;
    let credentials = credentials(ctx, key, &spec, &image).await?;
    let pulled = ctx.plugins.registries.pull(&image, credentials.as_ref()).await;
    let Component { digest, bytes } = pulled.map_err(|err| Unready::from_pull(&err))?;
    let artifact = Artifact { name: object.name().to_owned(), digest, bytes };
    Plugin::load(&ctx.plugins.engine, artifact, &spec).await.map_err(|err| Unready::from_load(&err))
}

fn spec_of(object: &Object) -> Result<PluginSpec, Unready> {
    let spec = object.at("/spec").cloned().unwrap_or_default();
    serde_json::from_value(spec).map_err(|err| Unready {
        reason: "InvalidSpec".to_owned(),
        message: format!("spec cannot be read: {err}"),
        may_pass: false,
    })
}

/// A tag is resolved once: the digest that was recorded for the very same text is what is pulled.
fn wanted_image(ctx: &Context, object: &Object, spec: &PluginSpec) -> Result<String, Unready> {
    if is_pinned(&spec.image) {
        return Ok(spec.image.clone());
    }
    if !ctx.options.allow_unsigned {
        return Err(Unready {
            reason: "NotPinned".to_owned(),
            message: format!(
                "`{}` names a tag, and what a tag means may change; write …@sha256:…, or run the operator with \
                 --allow-unsigned",
                spec.image
            ),
            may_pass: false,
        });
    }
    let recorded = object.str_at("/status/digest").filter(|digest| !digest.is_empty());
    let is_same = object.str_at("/status/image") == Some(&spec.image);
    match recorded.filter(|_| is_same && spec.pull_policy != PullPolicy::Always) {
        Some(digest) => Ok(format!("{}@{digest}", without_tag(&spec.image))),
        None => Ok(spec.image.clone()),
    }
}

fn without_tag(image: &str) -> &str {
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

async fn credentials(
    ctx: &Context,
    key: &Key,
    spec: &PluginSpec,
    image: &str,
) -> Result<Option<Credentials>, Unready> {
    if spec.pull_secrets.is_empty() {
        return Ok(None);
    }
    let registry = registry_of(image).map_err(|err| Unready::from_pull(&err))?;
    let refs: Vec<_> = spec.pull_secrets.iter().map(secret_ref).collect();
    let read = |facts: &dyn Facts| refs.iter().map(|secret| facts.get(secret).found()).collect::<Vec<_>>();
    let (secrets, _) = ctx.know(key, read).await;
    for (secret, name) in secrets.iter().zip(&refs) {
        let Some(secret) = secret else {
            let message = format!("{name}, named in spec.pullSecrets, is not there; create it");
            return Err(Unready { reason: "PullSecretMissing".to_owned(), message, may_pass: true });
        };
        if let Some(found) = credentials_in(secret, &registry) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn secret_ref(name: &SecretName) -> ObjectRef {
    ObjectRef::new("v1", "Secret", &name.name).within(&name.namespace)
}

/// User and password for a registry in a Secret of type `kubernetes.io/dockerconfigjson`.
fn credentials_in(secret: &Arc<Object>, registry: &str) -> Option<Credentials> {
    let text = BASE64_STANDARD.decode(secret.str_at("/data/.dockerconfigjson")?).ok()?;
    let config: Value = serde_json::from_slice(&text).ok()?;
    let entry =
        config.get("auths")?.as_object()?.iter().find(|(host, _)| host.trim_end_matches('/') == registry)?.1;
    let field = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
    if let (Some(user), Some(password)) = (field("username"), field("password")) {
        return Some(Credentials { user, password });
    }
    let both = String::from_utf8(BASE64_STANDARD.decode(field("auth")?).ok()?).ok()?;
    let (user, password) = both.split_once(':')?;
    Some(Credentials { user: user.to_owned(), password: password.to_owned() })
}

async fn tell(ctx: &Context, object: &Object, loaded: &Result<Plugin, Unready>) {
    let before: PluginStatus = object
        .at("/status")
        .and_then(|status| serde_json::from_value(status.clone()).ok())
        .unwrap_or_default();
    let status = status(object, loaded, &before);
    if status != before {
        report::write_status(ctx, object, &serde_json::json!(status)).await;
    }
}

fn status(object: &Object, loaded: &Result<Plugin, Unready>, before: &PluginStatus) -> PluginStatus {
    let generation = object.generation();
    let mut conditions = ConditionSet::new(&before.conditions, generation, Timestamp::now());
    let mut status = PluginStatus { observed_generation: Some(generation), ..PluginStatus::default() };
    match loaded {
        Ok(plugin) => {
            let missing = plugin.missing();
            conditions.set("Pulled", true, "Pulled", "");
            match missing.first() {
                None => conditions.set("Granted", true, "Granted", ""),
                Some(first) => conditions.set("Granted", false, "GrantMissing", first),
            }
            conditions.set("Ready", true, "Loaded", "");
            status.image = object.str_at("/spec/image").unwrap_or_default().to_owned();
            status.digest = plugin.digest().to_owned();
            status.version =
                format!("{} {}", plugin.manifest().name, plugin.manifest().version).trim().to_owned();
            status.exports = plugin.offers().iter().map(|export| export.as_str().to_owned()).collect();
            status.imports = plugin.imports().to_vec();
            status.missing = missing;
        }
        Err(unready) => {
            conditions.set("Ready", false, &unready.reason, &unready.message);
            status.image.clone_from(&before.image);
            status.digest.clone_from(&before.digest);
        }
    }
    status.conditions = conditions.into_conditions();
    status
}

// === impl Unready ===

impl Unready {
    fn from_pull(err: &PullError) -> Self {
        Self { reason: err.reason().to_owned(), message: one_line(err), may_pass: err.may_pass() }
    }

    fn from_load(err: &LoadError) -> Self {
        Self { reason: err.reason().to_owned(), message: one_line(err), may_pass: false }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    #[test]
    fn credentials_are_those_of_the_registry_and_no_other() {
        let config = json!({"auths": {
            "other": {"username": "x", "password": "y"},
            "127.0.0.1:5000": {"auth": BASE64_STANDARD.encode("me:secret:with:colons")}
        }});
        let secret = Object::new(json!({
            "apiVersion": "v1", "kind": "Secret",
            "data": {".dockerconfigjson": BASE64_STANDARD.encode(config.to_string())}
        }));
        let secret = Arc::new(secret.unwrap());
        let found = credentials_in(&secret, "127.0.0.1:5000").unwrap();
        assert_eq!((found.user.as_str(), found.password.as_str()), ("me", "secret:with:colons"));
        assert!(credentials_in(&secret, "third").is_none());
    }

    #[test]
    fn a_tag_is_cut_and_a_port_is_not() {
        assert_eq!(without_tag("oci://127.0.0.1:5000/a:1.0"), "oci://127.0.0.1:5000/a");
        assert_eq!(without_tag("oci://127.0.0.1:5000/a"), "oci://127.0.0.1:5000/a");
    }
}
