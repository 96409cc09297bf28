//! What plugins want done once. Each can be tried again without being done twice: it names the very object,
//! and what it writes is the same each time.

use pintle_api::ObjectRef;
use pintle_cluster::{ApiError, Delete, Patch};
use pintle_plan::{Act, ActVerb, Deed, fnv1a};
use serde_json::{Value, json};

use crate::context::Context;

/// Annotation on the pods of a workload that a plugin restarted: which of its deeds it was.
const RESTARTED: &str = "pintle.dev/restarted-by";

/// Does it. That the object is gone, or another one of its name is there, is an error of the writer's.
pub(super) async fn run(ctx: &Context, act: &Act) -> Result<(), ApiError> {
    let Act { plugin, deed, uid } = act;
    let target = &deed.target;
    match deed.verb {
        ActVerb::Evict => {
            let grace = deed.arguments.get("gracePeriodSeconds").and_then(Value::as_i64);
            ctx.writer.evict(target, uid.as_deref(), grace).await
        }
        ActVerb::Delete => {
            let how = Delete { uid: uid.clone(), ..Delete::default() };
            ctx.writer.delete(target, &how).await.map(drop)
        }
        ActVerb::Cordon => merge(ctx, target, uid, json!({"spec": {"unschedulable": true}})).await,
        ActVerb::Uncordon => merge(ctx, target, uid, json!({"spec": {"unschedulable": null}})).await,
        ActVerb::Restart => merge(ctx, target, uid, restart(plugin, deed)).await,
    }?;
    tracing::info!(plugin, object = %target, verb = ?deed.verb, key = deed.key, "done for a plugin");
    Ok(())
}

/// A patch of the very object: one of another uid is refused.
async fn merge(
    ctx: &Context,
    target: &ObjectRef,
    uid: &Option<String>,
    mut patch: Value,
) -> Result<(), ApiError> {
    if let (Some(uid), Value::Object(patch)) = (uid, &mut patch) {
        patch.insert("metadata".to_owned(), json!({"uid": uid}));
    }
    ctx.writer.patch(target, None, &Patch::Merge(patch)).await.map(drop)
}

/// New pods are made when their template changes; the mark of the deed is the same however often it is tried.
fn restart(plugin: &str, deed: &Deed) -> Value {
    let mark = format!("{plugin}-{:x}", fnv1a(deed.key.as_bytes()));
    json!({"spec": {"template": {"metadata": {"annotations": {RESTARTED: mark}}}}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deed(key: &str) -> Deed {
        let target = ObjectRef::new("apps/v1", "DaemonSet", "driver").within("ns");
        Deed { key: key.to_owned(), verb: ActVerb::Restart, target, arguments: Default::default() }
    }

    #[test]
    fn a_restart_that_is_tried_again_changes_nothing_more_and_another_does() {
        assert_eq!(restart("p", &deed("a")), restart("p", &deed("a")));
        assert_ne!(restart("p", &deed("a")), restart("p", &deed("b")));
        assert_ne!(restart("p", &deed("a")), restart("q", &deed("a")));
    }
}
