//! Plugins that are called around a state or around the whole release, and those that reconcile.
//!
//! What such a plugin answers is written down before anything of it is done: what it keeps, the objects it
//! wants, what shall be done once. What was written down is carried out first whenever the release is
//! looked at, so an operator that ends anywhere goes on where it was, and nothing is done twice.

mod carry;
mod declared;
mod objects;
mod record;
mod visit;

use std::{sync::Arc, time::Duration};

use pintle_api::{Object, ObjectRef, Verdict};
pub use pintle_api::{plugin::ActionVerb as ActVerb, watch::MissingPolicy};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::record::{Around, DeedRun, Done, Owned, SiteMemory};
pub(crate) use self::{
    declared::{declare, of_release, of_state},
    visit::{Course, Visitor},
};
use crate::{Named, fnv1a};

/// How long a deletion waits for a plugin that is not there, where nothing else is said.
const PATIENCE: Duration = Duration::from_secs(600);

/// Where a plugin is called: which, with what arguments, for which state and pool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Site {
    /// What it is called as.
    pub role: Role,
    /// Name of the Plugin.
    pub plugin: String,
    /// Config over that of the Plugin, as JSON text; empty where a Watch gives none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub config: String,
    /// Its arguments as JSON text with sorted keys.
    pub args: String,
    /// Name of the state; empty for the whole release.
    #[serde(default)]
    pub state: String,
    /// Key of the pool; empty for all nodes.
    #[serde(default)]
    pub pool: String,
}

/// What a plugin is called as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    /// A hook.
    Hook,
    /// The reconciler of its owner; it is always in [`Moment::Waiting`].
    Reconciler,
}

/// When a hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Moment {
    /// Before the first write; at deletion before the first delete.
    Pre,
    /// While the gate is pending; at deletion while objects go.
    Waiting,
    /// The gate is ready; at deletion all objects are gone.
    Post,
}

/// A plugin that is called around the whole release, as a chart or a Watch names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Which, with what arguments.
    pub named: Named,
    /// Config over that of the Plugin, as JSON text; empty where a Watch gives none.
    pub config: String,
    /// What becomes of a deletion when it is not there.
    pub missing: Option<MissingPolicy>,
}

/// A site of a release, and at which moments it is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Declared {
    /// Where.
    pub site: Site,
    /// Before the state.
    pub pre: bool,
    /// While it is waited for, and after it.
    pub post: bool,
    /// What becomes of a deletion when the plugin is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<MissingPolicy>,
}

/// A question to a plugin that is called around something.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Names the question in the answers of a pass.
    pub key: AskKey,
    /// Objects of the state, as rendered; at deletion as they are in the cluster.
    pub rendered: Vec<Arc<Object>>,
    /// Its own objects as they are in the cluster.
    pub applied: Vec<Held>,
    /// Seconds since the state was entered.
    pub elapsed_seconds: i64,
}

/// Names one question. The same question in one pass is asked once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskKey {
    /// Where.
    pub site: Site,
    /// When.
    pub moment: Moment,
    /// The release is on its way out.
    pub is_removal: bool,
    /// Nothing new was asked of a reconciler since it was ready.
    pub is_steady: bool,
    /// Mark of its own objects as they are in the cluster: once they change it is asked again.
    pub applied: u64,
}

/// An object of a plugin's own as it is in the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The plugin's key for it.
    pub key: String,
    /// Only some of its fields are the plugin's.
    pub is_part: bool,
    /// The object; of a part the fields that are the plugin's.
    pub object: Arc<Object>,
}

/// What a plugin answered, or why it did not.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// What becomes of the state.
    pub outcome: ToldOutcome,
    /// The whole set of its own objects from now on, dressed; absent: it stays as it is.
    pub want: Option<Vec<Wanted>>,
    /// What shall be done, once for each key.
    pub deeds: Vec<Deed>,
    /// Ask again after this long at the latest; absent: on events alone.
    pub recheck: Option<Duration>,
    /// It could not be called, since its Plugin is not there or not ready.
    pub is_absent: bool,
}

/// What becomes of a state.
#[derive(Clone, Debug, PartialEq)]
pub enum ToldOutcome {
    /// It goes on; a reconciler is ready.
    Go,
    /// It waits, or has failed.
    Wait(Verdict),
    /// It is left out of this revision, for this reason.
    LeaveOut(String),
}

/// An object that a plugin wants there to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The plugin's key for it.
    pub key: String,
    /// Only the fields given are set, of an object that exists.
    pub is_part: bool,
    /// The object.
    pub object: Object,
}

/// Something a plugin wants done once.
#[derive(Clone, Debug, PartialEq)]
pub struct Deed {
    /// It is done at most once for this key, the plugin and the release.
    pub key: String,
    /// What is done.
    pub verb: ActVerb,
    /// To which object.
    pub target: ObjectRef,
    /// How.
    pub arguments: Map<String, Value>,
}

/// Fields to set on an object that others own.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Field manager of the release and the plugin.
    pub manager: String,
    /// The fields, and what names the object; nothing more gives all of them up.
    pub object: Object,
    /// The very object: an apply never makes one.
    pub uid: String,
    /// Mark that [`crate::Answers::applied`] holds once it is done.
    pub mark: String,
}

/// Something to do once.
#[derive(Clone, Debug, PartialEq)]
pub struct Act {
    /// Plugin that wants it.
    pub plugin: String,
    /// What is to be done.
    pub deed: Deed,
    /// The very object, where it was there.
    pub uid: Option<String>,
}

/// Something to tell as an event about the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tell {
    /// CamelCase word.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
    /// True for a warning.
    pub is_warning: bool,
}

// === impl Site ===

impl Site {
    /// Field manager of parts that this site sets; it begins with ours, so that the caches keep its fields.
    #[must_use]
    pub fn manager(&self, owner_uid: &str) -> String {
        let Self { role, plugin, config: _, args, state, pool } = self;
        let whole = format!("{owner_uid}|{role:?}|{plugin}|{args}|{state}|{pool}");
        let short: String = plugin.chars().take(40).collect();
        format!("{}-{short}-{:x}", pintle_api::names::MANAGER, fnv1a(whole.as_bytes()))
    }

    /// Digits of the state, as a plugin is told it.
    #[must_use]
    pub fn state_number(&self) -> String {
        self.state.chars().take_while(char::is_ascii_digit).collect()
    }
}

// === impl Moment ===

impl Moment {
    /// The word for it in annotations and messages.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pre => "pre",
            Self::Waiting => "waiting",
            Self::Post => "post",
        }
    }
}
