//! What others do to a release: Helm's own client installs, upgrades, rolls back and uninstalls it too.

use std::time::Duration;

use pintle_api::{Answer, Facts, Timestamp, names, watch::Adopt};
use pintle_cluster::NoteKind;
use pintle_plan::{Memory, remedy};

use super::shelf::{self, Entry};
use crate::{
    context::{Context, Key},
    front::Front,
    memory, report,
};

/// How long a `pending-*` or `uninstalling` record may stand before nobody is believed to work on it; Helm's
/// own default for an operation.
const HELM_WORKS: Duration = Duration::from_secs(300);

/// What others do to a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outside {
    /// Nothing.
    Quiet,
    /// Helm is at work; it is believed for this long.
    Busy { status: String, left: Duration },
    /// Helm made a revision of its own.
    Changed { version: u32 },
    /// Helm uninstalled the release.
    Uninstalled { version: u32 },
    /// The name belongs to the release of somebody else.
    Taken { by: String },
}

/// Why a release is left alone for now.
pub(crate) struct Halt {
    /// CamelCase word.
    pub(crate) word: &'static str,
    pub(crate) message: String,
    /// When to look again; absent: on events alone.
    pub(crate) again: Option<Duration>,
}

/// Brings the memory to what others did: their revisions are counted, and what they changed is applied anew
/// as a revision of ours, unless differences are left alone.
pub(crate) async fn visit(ctx: &Context, key: &Key, front: &Front, memory: &mut Memory) -> Result<(), Halt> {
    ctx.caches.settled(&shelf::helm_secrets()).await;
    ctx.ledger.note_release(&front.release.namespace, &front.release.name, key);
    if let Some(by) = remembered_by(ctx, front) {
        return Err(taken(front, &by));
    }
    let entries = shelf::entries(ctx, front);
    let has_objects = || is_anything_live(ctx, memory);
    let seen = judge(&entries, memory, front, Timestamp::now(), &has_objects);
    let is_left = front.release.leaves_drift && memory.revision > 0;
    ctx.ledger.with(key, |entry| {
        entry.outside = match &seen {
            Outside::Changed { version } if is_left => {
                Some(format!("revision {version} was made by somebody else; driftDetection leaves it"))
            }
            Outside::Uninstalled { .. } if is_left => {
                Some("the release was uninstalled by somebody else; driftDetection leaves it".to_owned())
            }
            _ => None,
        };
    });
    match seen {
        Outside::Quiet => {}
        Outside::Busy { status, left } => {
            let message = format!("Helm is at work on the release ({status}); nothing is done meanwhile");
            return Err(Halt { word: "HelmAtWork", message, again: Some(left) });
        }
        Outside::Taken { by } => return Err(taken(front, &by)),
        Outside::Changed { .. } | Outside::Uninstalled { .. } if is_left => {}
        Outside::Changed { version } => changed(ctx, key, front, memory, version).await,
        Outside::Uninstalled { version } => {
            let message = "the release was uninstalled by somebody else; it is installed again";
            tell(ctx, front, "ReleaseChangedOutside", message).await;
            memory.revision = memory.revision.max(version);
            remedy::uninstalled(memory);
            memory.remedy = None;
        }
    }
    Ok(())
}

fn taken(front: &Front, by: &str) -> Halt {
    let message = format!(
        "release {} of namespace {} belongs to {by}; choose another name with releaseName of the Watch",
        front.release.name, front.release.namespace
    );
    Halt { word: "ReleaseNameTaken", message, again: None }
}

/// Who keeps a memory under the name of the release, where that is somebody else. It is the last that goes of a
/// release: who took its name before would lose the own memory with it.
fn remembered_by(ctx: &Context, front: &Front) -> Option<String> {
    let secret = ctx.caches.get(&memory::secret_of(&front.release)).found()?;
    let by = secret.annotation(names::OWNED_BY)?;
    (by != front.release.owner.to_string()).then(|| by.to_owned())
}

/// A revision that Helm made: its objects are ours from now on, and what the owner asks for is the next one.
async fn changed(ctx: &Context, key: &Key, front: &Front, memory: &mut Memory, version: u32) {
    let is_first = memory.revision == 0;
    if let Some(record) = shelf::read(ctx, key, front, version).await {
        for known in super::objects(&record) {
            if memory.known(&known.object).is_none() {
                memory.know(known);
            }
        }
    }
    memory.revision = version;
    memory.revision_mark.clear();
    memory.remedy = None;
    if is_first {
        let message = format!("revision {version} of the release was made by Helm; the release is ours now");
        tell(ctx, front, "ReleaseAdopted", &message).await;
    } else {
        let message = format!(
            "revision {version} was made by somebody else; what this object asks for is applied as a new one"
        );
        tell(ctx, front, "ReleaseChangedOutside", &message).await;
    }
}

async fn tell(ctx: &Context, front: &Front, reason: &str, message: &str) {
    tracing::info!(owner = %front.release.owner, reason, "{message}");
    report::note(ctx, &front.owner, NoteKind::Warning, reason, message).await;
}

/// True when an object of the release is there and not going.
fn is_anything_live(ctx: &Context, memory: &Memory) -> bool {
    memory.objects.values().any(|known| match ctx.caches.get(&known.object) {
        Answer::Found(live) => !live.is_terminating(),
        Answer::NotYet | Answer::Denied(_) => true,
        Answer::Missing | Answer::KindUnknown => false,
    })
}

fn judge(
    entries: &[Entry],
    memory: &Memory,
    front: &Front,
    now: Timestamp,
    has_objects: &dyn Fn() -> bool,
) -> Outside {
    if let Some(by) = entries.iter().find_map(|entry| taken_by(entry, front, memory)) {
        return Outside::Taken { by };
    }
    let foreign = || entries.iter().filter(|entry| !entry.is_ours && entry.version >= memory.revision);
    let works = |entry: &&Entry| entry.status.starts_with("pending-") || entry.status == "uninstalling";
    if let Some(entry) = foreign().filter(works).max_by_key(|entry| entry.version) {
        let passed: Duration =
            entry.at.and_then(|at| now.duration_since(at).try_into().ok()).unwrap_or(HELM_WORKS);
        if let Some(left) = HELM_WORKS.checked_sub(passed).filter(|left| !left.is_zero()) {
            return Outside::Busy { status: entry.status.clone(), left };
        }
        if entry.status == "uninstalling" {
            return Outside::Uninstalled { version: entry.version };
        }
    }
    if let Some(entry) =
        foreign().filter(|entry| entry.status == "uninstalled").max_by_key(|entry| entry.version)
    {
        return Outside::Uninstalled { version: entry.version };
    }
    let newest = entries.iter().map(|entry| entry.version).max().unwrap_or_default();
    if newest > memory.revision && (memory.revision == 0 || foreign().any(|entry| entry.version == newest)) {
        return Outside::Changed { version: newest };
    }
    let was_deployed = memory.revision > 0 && !memory.passes.is_empty() && !memory.objects.is_empty();
    if entries.is_empty() && was_deployed && !has_objects() {
        return Outside::Uninstalled { version: memory.revision };
    }
    Outside::Quiet
}

/// Who the release of this name belongs to, where that is somebody else.
fn taken_by(entry: &Entry, front: &Front, memory: &Memory) -> Option<String> {
    let release = &front.release;
    match (&entry.owner, &entry.owned_by) {
        // An owner that was deleted and made anew has another uid and the same name.
        (_, Some(owned_by)) => (*owned_by != release.owner.to_string()).then(|| owned_by.clone()),
        (Some(owner), None) if *owner != release.owner_uid => Some(format!("another object (uid {owner})")),
        (None, None) if release.adopt == Adopt::Never && memory.revision == 0 => {
            Some("Helm, and adopt is Never".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use std::sync::Arc;

    use pintle_api::{Object, watch::WatchSpec};
    use serde_json::json;

    use super::*;

    fn front() -> Front {
        let owner = Object::new(json!({
            "apiVersion": "cache.example.com/v1", "kind": "Memcached",
            "metadata": {"name": "a", "namespace": "ns", "uid": "u"}
        }));
        Front::of_watched(Arc::new(owner.unwrap()), Arc::new(WatchSpec::default())).unwrap()
    }

    fn entry(version: u32, status: &str, is_ours: bool, second: i64) -> Entry {
        let owned_by = is_ours.then(|| front().release.owner.to_string());
        let at = Timestamp::from_second(second).ok();
        let owner = is_ours.then(|| "u".to_owned());
        Entry { version, status: status.to_owned(), is_ours, owner, owned_by, at, parts: 0 }
    }

    fn at(entries: &[Entry], revision: u32, has_objects: bool) -> Outside {
        let mut memory = Memory { revision, ..Memory::default() };
        memory.pass("rest", "", Timestamp::UNIX_EPOCH);
        let known = json!({"object": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "ns"},
            "state": "rest", "rendered": "", "fields": ""});
        memory.know(serde_json::from_value(known).unwrap());
        judge(entries, &memory, &front(), Timestamp::from_second(1_000).unwrap(), &|| has_objects)
    }

    #[test]
    fn what_helm_did_is_told_from_what_we_did() {
        let ours = [entry(1, "superseded", true, 0), entry(2, "deployed", true, 0)];
        assert_eq!(at(&ours, 2, true), Outside::Quiet);
        let rolled_back = [
            entry(1, "superseded", true, 0),
            entry(2, "superseded", false, 990),
            entry(3, "deployed", false, 990),
        ];
        assert_eq!(at(&rolled_back, 2, true), Outside::Changed { version: 3 });
        assert_eq!(at(&[entry(4, "deployed", false, 0)], 0, true), Outside::Changed { version: 4 });
        assert_eq!(at(&[entry(2, "uninstalled", false, 0)], 2, true), Outside::Uninstalled { version: 2 });
        assert_eq!(at(&[], 2, false), Outside::Uninstalled { version: 2 });
        assert_eq!(at(&[], 2, true), Outside::Quiet, "only the records were deleted");
        assert_eq!(
            at(&[entry(3, "deployed", true, 0)], 0, true),
            Outside::Changed { version: 3 },
            "a lost memory"
        );
    }

    #[test]
    fn helm_is_left_to_work_and_what_it_left_behind_is_taken_up() {
        let fresh = [entry(2, "deployed", true, 0), entry(3, "pending-upgrade", false, 900)];
        let busy = Outside::Busy { status: "pending-upgrade".into(), left: Duration::from_secs(200) };
        assert_eq!(at(&fresh, 2, true), busy);
        let stuck = [entry(2, "deployed", true, 0), entry(3, "pending-upgrade", false, 100)];
        assert_eq!(at(&stuck, 2, true), Outside::Changed { version: 3 });
        let stuck = [entry(2, "uninstalling", false, 100)];
        assert_eq!(at(&stuck, 2, true), Outside::Uninstalled { version: 2 });
    }

    #[test]
    fn a_name_that_another_owner_has_is_refused() {
        let other = Entry { owned_by: Some("Redis ns/a".into()), ..entry(1, "deployed", true, 0) };
        assert_eq!(at(&[other], 0, true), Outside::Taken { by: "Redis ns/a".into() });
        let before = Entry { owner: Some("old uid".into()), ..entry(1, "deployed", true, 0) };
        assert_eq!(at(&[before], 0, true), Outside::Changed { version: 1 }, "an owner that was made anew");
    }
}
