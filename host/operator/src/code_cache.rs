//! The cache for compiled plugins, and the secret its entries are authenticated with: in a Secret, never beside the
//! cache. Without the secret there is no cache, and each start compiles again.

use std::{path::PathBuf, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_api::{Answer, Facts as _, Object, ObjectRef, Read};
use pintle_cluster::{Cause, Holder};
use pintle_plugin::{CacheKey, CacheOptions};
use serde_json::json;

use crate::context::Context;

/// Name of the Secret, in the operator's namespace.
const SECRET: &str = "pintle-plugin-cache";
/// Its key.
const KEY: &str = "key";
/// Under which name the Secret is read.
const HOLDER: Holder = Holder::Part("plugin cache");
/// Rounds until the Secret is read.
const ROUNDS: usize = 4;

/// Why there is no cache.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("Secret {0} cannot be read: {1}; grant it, or take --plugin-cache away")]
    Denied(String, String),
    #[error("Secret {0} cannot be read yet")]
    NotYet(String),
    #[error("Secret {0} has no key {KEY:?} of at least 32 bytes; delete it, and a new one is made")]
    Broken(String),
    #[error("the Secret with the key of the cache cannot be made")]
    Create(#[source] pintle_cluster::ApiError),
}

/// Opens the cache, if one is wanted. What goes wrong is told and costs compiling.
pub(crate) async fn open(ctx: &Context) {
    let Some(folder) = &ctx.options.plugin_cache else { return };
    let found = key(ctx).await;
    ctx.caches.release(&HOLDER);
    match found {
        Ok(key) => {
            ctx.plugins.engine.keep_code(&CacheOptions { folder: code(folder), key });
        }
        Err(problem) => {
            let problem = crate::error_text::one_line(&problem);
            tracing::warn!(problem, "compiled plugins are kept in memory only");
        }
    }
}

/// Where in the cache compiled code is; beside it are the plugins as they were pulled.
fn code(folder: &std::path::Path) -> PathBuf {
    folder.join("code")
}

/// Where in the cache plugins are as they were pulled.
pub(crate) fn pulled(folder: &std::path::Path) -> PathBuf {
    folder.join("pulled")
}

async fn key(ctx: &Context) -> Result<CacheKey, Problem> {
    let target = ObjectRef::new("v1", "Secret", SECRET).within(&ctx.options.namespace);
    if let Some(secret) = read(ctx, &target).await? {
        return of(&target, &secret);
    }
    let key: [u8; 32] = rand::random();
    let mut secret = Object::default_of("v1", "Secret", SECRET);
    secret.map_mut(&["metadata"]).insert("namespace".to_owned(), json!(ctx.options.namespace));
    secret.set("data", json!({KEY: BASE64_STANDARD.encode(key)}));
    match ctx.writer.create(&secret).await {
        Ok(_) => of(&target, &secret),
        // Another operator was quicker: its key is the key.
        Err(err) if matches!(err.cause(), Cause::AlreadyExists) => {
            let secret = read(ctx, &target).await?.ok_or_else(|| Problem::NotYet(target.to_string()))?;
            of(&target, &secret)
        }
        Err(err) => Err(Problem::Create(err)),
    }
}

async fn read(ctx: &Context, target: &ObjectRef) -> Result<Option<Arc<Object>>, Problem> {
    for _ in 0..ROUNDS {
        match ctx.caches.get(target) {
            Answer::Found(secret) => return Ok(Some(secret)),
            Answer::Missing | Answer::KindUnknown => return Ok(None),
            Answer::Denied(why) => return Err(Problem::Denied(target.to_string(), why)),
            Answer::NotYet => ctx.caches.fetch(&[Read::Get(target.clone())], &HOLDER).await,
        }
    }
    Err(Problem::NotYet(target.to_string()))
}

fn of(target: &ObjectRef, secret: &Object) -> Result<CacheKey, Problem> {
    let text = secret.str_at(&format!("/data/{KEY}")).unwrap_or_default();
    let bytes = BASE64_STANDARD.decode(text).unwrap_or_default();
    CacheKey::new(&bytes).map_err(|_| Problem::Broken(target.to_string()))
}
