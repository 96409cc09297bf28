//! What annotations on an owner ask for: those of the hybrid and the classic Helm operator, under their domain
//! or a vendor's own, and ours.

use std::time::Duration;

use pintle_api::{Object, names};
use pintle_plan::SkipsHooks;

/// What annotations on an owner ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// Operations whose hooks do not run.
    pub(crate) skips_hooks: SkipsHooks,
    /// Objects whose immutable fields changed are deleted and made anew.
    pub(crate) recreates: bool,
    /// Descriptions of revisions, for `helm history`.
    pub(crate) install_description: Option<String>,
    pub(crate) upgrade_description: Option<String>,
    /// How often the release is looked at without an event.
    pub(crate) period: Option<Duration>,
    /// Whether nothing, or nothing but deletion, is done.
    pub(crate) pause: Option<Pause>,
    /// Values that cannot be used, each in a sentence.
    pub(crate) unusable: Vec<String>,
}

/// How far a pause goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Nothing is done.
    All,
    /// Nothing but deletion is done.
    UntilDeleted,
}

/// Reads annotations of one owner.
struct Reader<'a> {
    owner: &'a Object,
    domain: &'a str,
    unusable: Vec<String>,
}

/// What the annotations of an owner ask for. `domain` is the vendor's own; empty: the hybrid operator's.
pub(crate) fn read(owner: &Object, domain: &str, pause_annotation: &str) -> Wishes {
    let domain = if domain.is_empty() { names::HYBRID_DOMAIN } else { domain };
    let mut reader = Reader { owner, domain, unusable: Vec::new() };
    let skips_hooks = SkipsHooks {
        install: reader.flag("install-disable-hooks"),
        upgrade: reader.flag("upgrade-disable-hooks"),
        rollback: reader.flag("rollback-disable-hooks"),
        uninstall: reader.flag("uninstall-disable-hooks"),
    };
    let recreates = reader.flag("upgrade-force");
    // Rolling back always takes fields over, and an owner always waits for what it owns. A description of the
    // uninstallation would go with the records that it is in.
    reader.flag("rollback-force");
    reader.flag("uninstall-wait");
    let period = reader.period();
    let pause = reader.pause(pause_annotation);
    let text = |name: &str| owner.annotation(&format!("{domain}/{name}")).map(str::to_owned);
    Wishes {
        skips_hooks,
        recreates,
        install_description: text("install-description"),
        upgrade_description: text("upgrade-description"),
        period,
        pause,
        unusable: reader.unusable,
    }
}

/// `90s`, `10m`, `1h30m`; the whole text must be read.
pub(crate) fn parse_period(text: &str) -> Option<Duration> {
    let (mut seconds, mut rest) = (0_u64, text);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let (digits, behind) = rest.split_at_checked(end)?;
        let number: u64 = digits.parse().ok()?;
        let mut after = behind.chars();
        let factor = match after.next()? {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        seconds = number.checked_mul(factor).and_then(|more| seconds.checked_add(more))?;
        rest = after.as_str();
    }
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

/// What Go's `strconv.ParseBool` reads.
fn parse_flag(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

impl Reader<'_> {
    fn flag(&mut self, name: &str) -> bool {
        let key = format!("{}/{name}", self.domain);
        let Some(text) = self.owner.annotation(&key) else { return false };
        parse_flag(text).unwrap_or_else(|| {
            self.unusable
                .push(format!("annotation {key}: `{text}` is not true or false; it counts as false"));
            false
        })
    }

    fn period(&mut self) -> Option<Duration> {
        let key = format!("{}/reconcile-period", self.domain);
        let text = self.owner.annotation(&key)?;
        let period = parse_period(text);
        if period.is_none() {
            let message = format!("annotation {key}: `{text}` is not a time; write 90s, 10m or 1h");
            self.unusable.push(message);
        }
        period
    }

    fn pause(&mut self, own: &str) -> Option<Pause> {
        let keys = [names::PAUSE, own];
        let found = keys.into_iter().filter(|key| !key.is_empty()).filter_map(|key| {
            let text = self.owner.annotation(key)?;
            Some((key, text.to_owned()))
        });
        let found: Vec<_> = found.collect();
        found.into_iter().filter_map(|(key, text)| self.read_pause(key, &text)).next()
    }

    fn read_pause(&mut self, key: &str, text: &str) -> Option<Pause> {
        match (text, parse_flag(text)) {
            ("until-deleted", _) => Some(Pause::UntilDeleted),
            (_, Some(true)) => Some(Pause::All),
            (_, Some(false)) => None,
            (_, None) => {
                self.unusable.push(format!(
                    "annotation {key}: `{text}` is not true, false or until-deleted; nothing is paused"
                ));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::{Value, json};

    use super::*;

    fn wishes(annotations: &Value, domain: &str, pause: &str) -> Wishes {
        let metadata = json!({"name": "a", "annotations": annotations});
        let owner = Object::new(json!({"apiVersion": "v1", "kind": "X", "metadata": metadata})).unwrap();
        read(&owner, domain, pause)
    }

    #[test]
    fn a_vendors_own_domain_counts_alone() {
        let annotations = json!({
            "example.com/install-disable-hooks": "T", "example.com/upgrade-force": "1",
            "helm.sdk.operatorframework.io/uninstall-disable-hooks": "true",
            "example.com/upgrade-description": "told", "example.com/reconcile-period": "1h30m"
        });
        let own = wishes(&annotations, "example.com", "");
        assert_eq!(own.skips_hooks, SkipsHooks { install: true, ..SkipsHooks::default() });
        assert!(own.recreates && own.upgrade_description.as_deref() == Some("told"));
        assert_eq!(own.period, Some(Duration::from_secs(5400)));
        assert!(wishes(&annotations, "", "").skips_hooks.uninstall);
    }

    #[test]
    fn what_cannot_be_used_is_told_and_changes_nothing() {
        let told = wishes(
            &json!({"helm.sdk.operatorframework.io/install-disable-hooks": "yes",
                "helm.sdk.operatorframework.io/reconcile-period": "soon", "pintle.dev/pause": "maybe"}),
            "",
            "",
        );
        assert_eq!(told.unusable.len(), 3, "{:?}", told.unusable);
        assert_eq!(Wishes { unusable: Vec::new(), ..told }, Wishes::default());
    }

    #[test]
    fn a_pause_goes_as_far_as_it_says() {
        for (annotations, wanted) in [
            (json!({"pintle.dev/pause": "true"}), Some(Pause::All)),
            (json!({"pintle.dev/pause": "until-deleted"}), Some(Pause::UntilDeleted)),
            (json!({"pintle.dev/pause": "false"}), None),
            (json!({"example.com/stop": "true"}), Some(Pause::All)),
        ] {
            assert_eq!(wishes(&annotations, "", "example.com/stop").pause, wanted, "{annotations}");
        }
    }

    #[test]
    fn periods_are_read_whole() {
        assert_eq!(parse_period("1m30s"), Some(Duration::from_secs(90)));
        for wrong in ["", "0s", "10", "1d", "m", "1ä"] {
            assert_eq!(parse_period(wrong), None, "{wrong}");
        }
    }
}
