//! Ended after any write of an upgrade, the operator brings it to the same end: by enumeration, one upgrade of a
//! release for each write of the undisturbed one.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context as _, ensure};
use futures::future::try_join_all;
use pintle_dev::{audit::Request, faults::FaultProxy};
use pintle_operator::Reach;
use pintle_tests::{
    requests::{creations, cut_off, object_of, told},
    stage::PATIENCE,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{SHOWN, Vendor, is_ready};

/// Releases that are upgraded at once, each by an operator of its own.
const LANES: u64 = 3;
/// Time in which the writes that follow a Ready status are done.
const AFTERMATH: Duration = Duration::from_millis(600);
/// New with each upgrade: the one before is pruned.
const NAMED: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: '{{ .Release.Name }}-{{ .Values.text }}'}
";
const BEFORE: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: '{{ .Release.Name }}-pre-{{ .Values.text }}'
  annotations: {helm.sh/hook: pre-upgrade, helm.sh/hook-delete-policy: hook-succeeded}
";
const AFTER: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: '{{ .Release.Name }}-post-{{ .Values.text }}'
  annotations: {helm.sh/hook: post-upgrade}
";

/// One release and its operator.
struct Lane {
    vendor: Vendor,
    proxy: FaultProxy,
    reach: Reach,
    upgrades: u32,
}

/// How an upgrade went.
struct Upgrade {
    writes: u64,
    was_disturbed: bool,
}

// === impl Lane ===

impl Lane {
    async fn begin(name: &str) -> anyhow::Result<Self> {
        let chart = [
            ("templates/shown.yaml", SHOWN),
            ("templates/named.yaml", NAMED),
            ("templates/before.yaml", BEFORE),
            ("templates/after.yaml", AFTER),
        ];
        let mut vendor = Vendor::without_operator(name, &json!({"historyMax": 2}), &chart).await;
        let (proxy, reach) = vendor.stage.proxy().await?;
        vendor.stage.start_operator(reach.clone());
        vendor.apply("one", json!({"text": "t0"})).await;
        vendor.ready("one").await;
        Ok(Self { vendor, proxy, reach, upgrades: 0 })
    }

    /// The next upgrade; the operator ends right after its n-th write, and another comes.
    async fn upgrade(&mut self, ends_after: Option<u64>) -> anyhow::Result<Upgrade> {
        // What comes after the Ready status of the upgrade before is not of this one.
        tokio::time::sleep(AFTERMATH).await;
        self.upgrades += 1;
        let before = self.proxy.writes().len();
        let mark = self.vendor.stage.mark().await?;
        let mut ended = self.end_after(ends_after.map(|write| write + before as u64));
        self.vendor.apply("one", json!({"text": format!("t{}", self.upgrades)})).await;
        let was_disturbed = tokio::select! {
            ready = self.ready() => {
                ready?;
                ends_after.is_some() && matches!(tokio::time::timeout(AFTERMATH, &mut ended).await, Ok(Ok(())))
            }
            Ok(()) = &mut ended => true,
        };
        if was_disturbed {
            self.vendor.stage.kill_operator().await;
            self.vendor.stage.start_operator(self.reach.clone());
        }
        self.comes_to_its_end().await?;
        if ends_after.is_none() {
            tokio::time::sleep(AFTERMATH).await;
        }
        self.did_each_thing_once(&self.vendor.stage.requests_since(mark).await?)?;
        Ok(Upgrade { writes: (self.proxy.writes().len() - before) as u64, was_disturbed })
    }

    /// Tells when the operator was ended.
    fn end_after(&self, wanted: Option<u64>) -> oneshot::Receiver<()> {
        let (tell, ended) = oneshot::channel();
        let (Some(wanted), Some(trigger)) = (wanted, self.vendor.stage.trigger()) else { return ended };
        let tell = std::sync::Arc::new(std::sync::Mutex::new(Some(tell)));
        self.proxy.after_write(move |count, _| {
            let (trigger, tell) = (trigger.clone(), std::sync::Arc::clone(&tell));
            async move {
                if count != wanted {
                    return;
                }
                // The request ends with its client: what ends the client must not end with it.
                let ending = tokio::spawn(async move {
                    trigger.pull().await;
                    let tell = tell.lock().unwrap().take();
                    tell.map(|tell| tell.send(()));
                });
                drop(ending.await);
            }
        });
        ended
    }

    async fn ready(&self) -> anyhow::Result<Value> {
        let api = self.vendor.api();
        let is_wanted = |object: Option<&kube::api::DynamicObject>| {
            object.is_some_and(|object| is_ready(&serde_json::to_value(object).unwrap_or_default()))
        };
        let waited = kube::runtime::wait::await_condition(api, "one", is_wanted);
        let found = tokio::time::timeout(PATIENCE, waited).await.context("not Ready in time")??;
        Ok(serde_json::to_value(found)?)
    }

    /// What the release shall be in the end, with the text of its upgrade as `NOW` and its revision as `REVISION`.
    async fn stands(&self) -> anyhow::Result<Value> {
        let (vendor, text) = (&self.vendor, format!("t{}", self.upgrades));
        let mut maps = vendor.stage.names("ConfigMap").await?;
        let is_earlier = |name: &str| name.starts_with("one-post-") && name != format!("one-post-{text}");
        maps.retain(|name| name.starts_with("one-") && !is_earlier(name));
        let records = vendor.stage.list("Secret").await?.into_iter().filter_map(|secret| {
            let labels = &secret["metadata"]["labels"];
            let version: u32 = labels["version"].as_str()?.parse().ok()?;
            Some(json!([version, labels["status"]]))
        });
        let records: Vec<Value> = records.collect();
        let held = vendor.stage.find("ConfigMap", &format!("one-post-{text}")).await?;
        let widget = vendor.stage.api("test.example.com/v1", "Widget", "widgets").get("one").await?;
        let widget = serde_json::to_value(widget)?;
        Ok(json!({
            "maps": maps, "records": records, "shown": vendor.data("one-shown").await,
            "held": held.map(|hook| hook["metadata"]["finalizers"].clone()),
            "revision": widget["status"]["revision"], "ready": is_ready(&widget)
        }))
    }

    fn shall_stand(&self) -> Value {
        let (text, revision) = (format!("t{}", self.upgrades), self.upgrades + 1);
        let mut maps = vec!["one-shown".to_owned(), format!("one-{text}"), format!("one-post-{text}")];
        maps.sort();
        let mut records = vec![json!([revision - 1, "superseded"]), json!([revision, "deployed"])];
        records.sort_by_key(|record| record[0].to_string());
        json!({
            "maps": maps, "records": records,
            "shown": {"text": text, "revision": revision.to_string(), "operation": "upgrade"},
            "held": null, "revision": revision, "ready": true
        })
    }

    async fn comes_to_its_end(&self) -> anyhow::Result<()> {
        let (wanted, mut last) = (self.shall_stand(), Value::Null);
        let stands = async |_: &pintle_tests::Stage| {
            last = self.stands().await?;
            Ok(last == wanted)
        };
        let waited = self.vendor.stage.eventually("the upgrade is done", stands).await;
        waited.with_context(|| format!("it is {last:#}, not {wanted:#}"))
    }

    /// Each object was made once, and what had to go was deleted once.
    fn did_each_thing_once(&self, requests: &[Request]) -> anyhow::Result<()> {
        let space = &self.vendor.stage.name;
        let text = format!("t{}", self.upgrades);
        let (mut made, cut) = (creations(requests), cut_off(requests));
        let wanted = [
            format!("configmaps {space}/one-{text}"),
            format!("configmaps {space}/one-post-{text}"),
            format!("configmaps {space}/one-pre-{text}"),
            format!("secrets {space}/sh.helm.release.v1.one.v{}", self.upgrades + 1),
        ];
        let wanted: BTreeMap<String, usize> = wanted.into_iter().map(|object| (object, 1)).collect();
        // That they are there is checked apart.
        for object in cut.iter().filter(|object| wanted.contains_key(*object)) {
            made.entry(object.clone()).or_insert(1);
        }
        ensure!(made == wanted, "made {made:?}, not {wanted:?}:\n{}", told(requests));
        let mut gone = BTreeMap::<String, usize>::new();
        for request in requests.iter().filter(|request| request.verb == "delete" && request.code < 300) {
            *gone.entry(object_of(request)).or_default() += 1;
        }
        let before = self.upgrades - 1;
        for object in
            [format!("configmaps {space}/one-t{before}"), format!("configmaps {space}/one-pre-{text}")]
        {
            let times = gone.get(&object).copied().unwrap_or_default();
            ensure!(
                times == 1 || times == 0 && cut.contains(&object),
                "{object}: {gone:?}\n{}",
                told(requests)
            );
        }
        Ok(())
    }

    async fn end(self) {
        self.vendor.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_operator_that_ends_after_any_write_of_an_upgrade_comes_to_the_same_end() {
    let begun = (0..LANES).map(async |lane| Lane::begin(&format!("ended-{lane}")).await);
    let mut lanes = try_join_all(begun).await.unwrap();
    let count = lanes.first_mut().unwrap().upgrade(None).await.unwrap().writes;
    assert!(count >= 10, "{count} writes");
    let runs = (1..=LANES).zip(lanes).map(async |(first, mut lane)| {
        let mut disturbed = 0;
        for write in (first..=count).step_by(LANES as usize) {
            let upgrade = lane.upgrade(Some(write)).await;
            let upgrade =
                upgrade.with_context(|| format!("{}, ended after {write}", lane.vendor.stage.name))?;
            disturbed += u64::from(upgrade.was_disturbed);
        }
        lane.end().await;
        anyhow::Ok(disturbed)
    });
    let disturbed: u64 = try_join_all(runs).await.unwrap().into_iter().sum();
    eprintln!("{count} writes of an upgrade, {disturbed} in which the operator was ended");
    // States that are told between two writes depend on the clock, so an upgrade may have a write or two less.
    assert!(disturbed + 3 >= count, "{disturbed} of {count}");
}
