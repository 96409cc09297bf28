//! How a Plugin stands, as its object tells.

use pintle_api::{
    Object, Timestamp,
    plugin::{PluginStatus, Upgrade},
    plugin_policy::Signer,
};
use pintle_plan::ConditionSet;
use pintle_plugin::Plugin;

use super::{Fault, Stage};

/// A plugin that can be called, and what is told about it.
#[derive(Clone)]
pub(super) struct Standing {
    pub(super) plugin: Plugin,
    /// The image string that it was resolved from.
    pub(super) image: String,
    pub(super) signers: Vec<Signer>,
    /// A version that asks for more and waits.
    pub(super) upgrade: Option<Upgrade>,
}

/// The status after a pass. Conditions of stages that were not reached are taken away: what is not known is not
/// told.
pub(super) fn status(
    object: &Object,
    standing: Result<&Standing, &Fault>,
    is_verified: bool,
    before: &PluginStatus,
) -> PluginStatus {
    let generation = object.generation();
    let mut conditions = ConditionSet::new(&before.conditions, generation, Timestamp::now());
    let mut status = PluginStatus { observed_generation: Some(generation), ..PluginStatus::default() };
    let reached = match standing {
        Ok(standing) => {
            tell(&mut conditions, standing);
            describe(&mut status, standing);
            Stage::Load
        }
        Err(Fault { stage, unready }) => {
            conditions.set("Ready", false, &unready.reason, &unready.message);
            match stage {
                Stage::Pull => conditions.set("Pulled", false, &unready.reason, &unready.message),
                Stage::Verify => conditions.set("Verified", false, &unready.reason, &unready.message),
                Stage::Spec | Stage::Load => {}
            }
            status.image.clone_from(&before.image);
            status.digest.clone_from(&before.digest);
            *stage
        }
    };
    let is_known = |kind: &str| match kind {
        "Pulled" => reached != Stage::Spec && (reached != Stage::Verify || before.digest.is_empty()),
        "Verified" => (is_verified && reached == Stage::Load) || reached == Stage::Verify,
        "Granted" => reached == Stage::Load && standing.is_ok(),
        _ => true,
    };
    let told = conditions.into_conditions().into_iter();
    status.conditions = told.filter(|condition| is_known(&condition.kind)).collect();
    status
}

fn tell(conditions: &mut ConditionSet, standing: &Standing) {
    let Standing { plugin, signers, upgrade, .. } = standing;
    conditions.set("Pulled", true, "Pulled", "");
    let signed: Vec<_> = signers.iter().map(by).collect();
    conditions.set(
        "Verified",
        true,
        "Signed",
        &format!("{} is signed by {}", plugin.digest(), signed.join(" and ")),
    );
    match (upgrade, plugin.missing().first()) {
        (Some(upgrade), _) => conditions.set("Granted", false, "UpgradeAsksForMore", &held(plugin, upgrade)),
        (None, Some(first)) => conditions.set("Granted", false, "GrantMissing", first),
        (None, None) => conditions.set("Granted", true, "Granted", ""),
    }
    match upgrade {
        None => conditions.set("Ready", true, "Loaded", ""),
        Some(upgrade) => conditions.set("Ready", true, "UpgradeHeld", &held(plugin, upgrade)),
    }
}

fn describe(status: &mut PluginStatus, standing: &Standing) {
    let Standing { plugin, image, signers, upgrade } = standing;
    image.clone_into(&mut status.image);
    plugin.digest().clone_into(&mut status.digest);
    status.signers.clone_from(signers);
    status.version = version(plugin);
    status.exports = plugin.offers().iter().map(|export| export.as_str().to_owned()).collect();
    status.imports = plugin.imports().to_vec();
    status.asked = plugin.asked();
    status.granted = plugin.granted().to_vec();
    status.missing = plugin.missing();
    status.upgrade.clone_from(upgrade);
}

/// Name and version in a plugin's manifest.
pub(super) fn version(plugin: &Plugin) -> String {
    format!("{} {}", plugin.manifest().name, plugin.manifest().version).trim().to_owned()
}

fn held(plugin: &Plugin, upgrade: &Upgrade) -> String {
    format!(
        "{} asks for more than {}, which goes on; add what it may have, or name the image before again: {}",
        upgrade.version,
        version(plugin),
        upgrade.missing.join("; ")
    )
}

fn by(signer: &Signer) -> String {
    match signer {
        Signer::Key(key) => format!("key {key}"),
        Signer::Identity { issuer, subject } => format!("{subject} of {issuer}"),
    }
}
