//! What must be known of plugins that are called around states after a restart.

use pintle_api::{ObjectRef, Timestamp, plugin::ActionVerb};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Declared, Deed, Moment, Site, Wanted};

/// Deeds that are remembered of one site. A plugin that asks for a deed again after that many others is
/// taken to mean a new one.
const DEEDS: usize = 1_000;

/// What plugins that are called around states have begun and own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Around {
    /// The sites of the release: on the way out the chart may not be there any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declared: Vec<Declared>,
    /// What each site owns and does, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<SiteMemory>,
    /// Moments that are over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<Done>,
    /// States whose deletion has begun.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub going: Vec<String>,
}

/// What one site owns and does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SiteMemory {
    /// Which.
    pub site: Site,
    /// Its own objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owned: Vec<Owned>,
    /// What was done for it, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deeds: Vec<DeedRun>,
    /// Since when its plugin could not be called on the way out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent_since: Option<Timestamp>,
}

/// An object of a plugin's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owned {
    /// The plugin's key for it.
    pub key: String,
    /// Which.
    pub object: ObjectRef,
    /// Only some of its fields are the plugin's.
    #[serde(default)]
    pub is_part: bool,
    /// The object as it shall be, until it is so; of a part always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// It is to be brought to what `body` says.
    #[serde(default)]
    pub is_begun: bool,
    /// It shall go, or its fields be given up.
    #[serde(default)]
    pub is_leaving: bool,
    /// Mark of the object as it was wanted when it was applied.
    #[serde(default)]
    pub rendered: String,
    /// Mark of the fields the server holds for us.
    #[serde(default)]
    pub fields: String,
}

/// Something that is done once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeedRun {
    /// The plugin's key for it.
    pub key: String,
    /// What is done.
    pub verb: ActionVerb,
    /// To which object.
    pub target: ObjectRef,
    /// The very object, where it was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// How.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    /// It is known to be done, or to be impossible.
    #[serde(default)]
    pub is_done: bool,
}

/// A moment that is over: its plugin said go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// The revision that was asked for.
    pub revision: u32,
    /// On the way out.
    #[serde(default)]
    pub is_removal: bool,
    /// Where.
    pub site: Site,
    /// When.
    pub moment: Moment,
    /// Why the state is left out, where the plugin said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

// === impl Around ===

impl Around {
    /// True when there is nothing to keep.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What a site owns and does.
    #[must_use]
    pub fn site(&self, site: &Site) -> Option<&SiteMemory> {
        self.sites.iter().find(|memory| memory.site == *site)
    }

    /// The same, to be changed and put back.
    pub(super) fn take(&mut self, site: &Site) -> SiteMemory {
        match self.sites.iter().position(|memory| memory.site == *site) {
            Some(at) => self.sites.remove(at),
            None => {
                SiteMemory { site: site.clone(), owned: Vec::new(), deeds: Vec::new(), absent_since: None }
            }
        }
    }

    /// Keeps what is worth keeping, in the order of sites.
    pub(super) fn put(&mut self, memory: SiteMemory) {
        if memory.is_empty() {
            return;
        }
        let at = self.sites.partition_point(|other| other.site < memory.site);
        self.sites.insert(at, memory);
    }

    /// The moment that is over; nothing when it is not.
    #[must_use]
    pub fn done(&self, revision: u32, is_removal: bool, site: &Site, moment: Moment) -> Option<&Done> {
        let is_it = |done: &&Done| {
            (done.revision, done.is_removal, done.moment) == (revision, is_removal, moment)
                && done.site == *site
        };
        self.done.iter().find(is_it)
    }

    /// True when a plugin had this done already, wherever it was called.
    pub(super) fn has_deed(&self, plugin: &str, key: &str) -> bool {
        let mut sites = self.sites.iter().filter(|memory| memory.site.plugin == plugin);
        sites.any(|memory| memory.has_deed(key))
    }

    /// Every object of plugins' own.
    pub fn owned(&self) -> impl Iterator<Item = &Owned> {
        self.sites.iter().flat_map(|memory| &memory.owned)
    }
}

// === impl SiteMemory ===

impl SiteMemory {
    fn is_empty(&self) -> bool {
        let Self { site: _, owned, deeds, absent_since } = self;
        owned.is_empty() && deeds.is_empty() && absent_since.is_none()
    }

    pub(super) fn has_deed(&self, key: &str) -> bool {
        self.deeds.iter().any(|deed| deed.key == key)
    }

    /// Notes that something begins. The oldest that are over are forgotten when there are too many.
    pub(super) fn begin(&mut self, deed: &Deed, uid: Option<String>) {
        let Deed { key, verb, target, arguments } = deed.clone();
        while self.deeds.len() >= DEEDS
            && let Some(at) = self.deeds.iter().position(|deed| deed.is_done)
        {
            self.deeds.remove(at);
        }
        self.deeds.push(DeedRun { key, verb, target, uid, arguments, is_done: false });
    }
}

// === impl Owned ===

impl Owned {
    /// An object that is to be brought about.
    pub(super) fn begun(wanted: &Wanted) -> Self {
        Self {
            key: wanted.key.clone(),
            object: wanted.object.reference(),
            is_part: wanted.is_part,
            body: Some(wanted.object.to_value()),
            is_begun: true,
            is_leaving: false,
            rendered: String::new(),
            fields: String::new(),
        }
    }
}
