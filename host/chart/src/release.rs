//! Helm's record of a release: what `helm list`, `history`, `get` and `rollback` read from a Secret.

use std::{collections::BTreeMap, io::Read, io::Write};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use pintle_api::{Object, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::{
    archive::File,
    chart::Chart,
    manifest::{DeletePolicy, Hook, HookEvent},
    metadata::Metadata,
    values::Values,
    yaml,
};

/// Type of the Secrets.
pub const SECRET_TYPE: &str = "helm.sh/release.v1";
/// Bytes that the data of one Secret may have; the API server's limit.
pub const MAX_SECRET: usize = 1 << 20;
/// Bytes a record may unpack to: a Secret of zeros would unpack to a thousand times its size.
const MAX_UNPACKED: u64 = 128 << 20;
/// Labels that Helm keeps for itself.
const OWN_LABELS: [&str; 6] = ["name", "owner", "status", "version", "createdAt", "modifiedAt"];

/// One revision of a release, as Helm stores it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// Name of the release.
    pub name: String,
    /// Where it stands.
    pub info: Info,
    /// The chart, without the charts in it.
    pub chart: StoredChart,
    /// Values of the user, without the chart's defaults.
    #[serde(
        serialize_with = "go_numbers",
        deserialize_with = "or_default",
        skip_serializing_if = "Values::is_empty"
    )]
    pub config: Values,
    /// All objects but hooks, as they were rendered.
    pub manifest: String,
    /// Hooks.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<StoredHook>,
    /// Number of the revision.
    pub version: u32,
    /// Namespace of the release.
    pub namespace: String,
    /// `csa` or `ssa`; empty is `csa`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub apply_method: String,
    /// Labels of the Secret that are not Helm's own.
    #[serde(skip)]
    pub labels: BTreeMap<String, String>,
}

/// Where a revision stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Info {
    /// When the first revision was deployed.
    #[serde(deserialize_with = "time", skip_serializing_if = "Option::is_none")]
    pub first_deployed: Option<Timestamp>,
    /// When this revision was deployed.
    #[serde(deserialize_with = "time", skip_serializing_if = "Option::is_none")]
    pub last_deployed: Option<Timestamp>,
    /// When the release was removed.
    #[serde(deserialize_with = "time", skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Timestamp>,
    /// A sentence: `Install complete`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// In one word.
    pub status: Status,
    /// The revision that this one went back to.
    #[serde(skip_serializing_if = "is_zero")]
    pub rollback_revision: u32,
    /// Rendered `NOTES.txt`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

/// Where a revision stands, in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are Helm's own")]
pub enum Status {
    Deployed,
    Uninstalled,
    Superseded,
    Failed,
    Uninstalling,
    PendingInstall,
    PendingUpgrade,
    PendingRollback,
    /// Also what a later Helm may write.
    #[default]
    #[serde(other)]
    Unknown,
}

/// A chart in a record. Charts inside it are not kept; that is Helm's format.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredChart {
    /// `Chart.yaml`
    pub metadata: Metadata,
    /// `Chart.lock`
    pub lock: Option<Value>,
    /// Its templates.
    #[serde(deserialize_with = "or_default")]
    pub templates: Vec<StoredFile>,
    /// Its defaults.
    #[serde(serialize_with = "go_numbers", deserialize_with = "or_default")]
    pub values: Values,
    /// `values.schema.json` in base64.
    pub schema: Option<String>,
    /// Helm's time of the schema; always its zero time.
    pub schemamodtime: ZeroTime,
    /// Its other files.
    #[serde(deserialize_with = "or_default")]
    pub files: Vec<StoredFile>,
}

/// A file in a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredFile {
    /// Path inside the chart.
    pub name: String,
    /// Content in base64.
    #[serde(deserialize_with = "or_default")]
    pub data: String,
}

/// A hook in a record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredHook {
    /// Name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Kind of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Template it came from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The object as it was rendered.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub manifest: String,
    /// When it runs.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<HookEvent>,
    /// How it last ran.
    pub last_run: HookRun,
    /// Lower runs first.
    #[serde(skip_serializing_if = "is_zero_weight")]
    pub weight: i64,
    /// When it goes.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub delete_policies: Vec<DeletePolicy>,
    /// When its log is kept.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub output_log_policies: Vec<String>,
}

/// How a hook last ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HookRun {
    /// Absent before the first run.
    #[serde(deserialize_with = "time", skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Absent while it runs.
    #[serde(deserialize_with = "time", skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// `Unknown`, `Running`, `Succeeded`, `Failed`, or empty.
    pub phase: String,
}

/// Go's zero time, whatever was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZeroTime;

/// What a record lacks so that its Secret fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Nothing.
    Nothing,
    /// Templates and files of the chart; `helm list`, `history`, `get manifest` and `rollback` still work.
    ChartFiles,
    /// Everything but what `helm list` and `helm history` show. The whole record is in this many parts.
    Whole(usize),
}

/// Characters of one part of a record that does not fit into one Secret.
const PART: usize = 900 << 10;
/// Annotation on the Secret of a record that is in parts: how many.
pub const PARTS: &str = "pintle.dev/record-parts";
/// Type of the Secrets of parts.
pub const PART_TYPE: &str = "pintle.dev/record-part";
/// No manifest at all would let `helm rollback` delete every object; this one makes it stop.
const NOT_HERE: &str = "# The manifest does not fit into a Secret that Helm reads. Pintle has it.\n---\n{\n";

/// Why a record cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Also without the chart's files it is larger than a Secret may be.
    #[error(
        "revision {version} of release {name} has {size} bytes packed, more than the {MAX_SECRET} of a Secret, \
         even without the files of the chart"
    )]
    TooLarge {
        /// Name of the release.
        name: String,
        /// Number of the revision.
        version: u32,
        /// Bytes it has without the chart's files.
        size: usize,
    },
    /// The Secret has no `data.release`.
    #[error("Secret {0} has no data.release: it is no record of Helm")]
    NoRecord(String),
    /// `data.release` is damaged.
    #[error("Secret {name}: data.release is not {what}: remove the Secret, the release is recorded again")]
    Damaged {
        /// Name of the Secret.
        name: String,
        /// What it should be.
        what: &'static str,
        /// What the reader says.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It cannot be packed.
    #[error("cannot pack the record of release {0}")]
    Pack(String, #[source] std::io::Error),
}

// === impl Record ===

impl Record {
    /// Name of the Secret of this revision.
    #[must_use]
    pub fn secret_name(&self) -> String {
        secret_name(&self.name, self.version)
    }

    /// The Secret that holds this revision, and what had to be left out so that it fits. `now` goes into the
    /// label `createdAt`, or `modifiedAt` where the Secret is there already.
    ///
    /// # Errors
    /// When it does not fit also without the chart's files.
    pub fn to_secret(&self, now: Timestamp, is_update: bool) -> Result<(Object, Dropped), Error> {
        let (data, dropped) = self.pack_to_fit()?;
        let mut labels = self.labels.clone();
        let stamp = if is_update { "modifiedAt" } else { "createdAt" };
        labels.insert(stamp.to_owned(), now.as_second().to_string());
        for (key, value) in [
            ("name", self.name.clone()),
            ("owner", "helm".to_owned()),
            ("status", self.info.status.as_str().to_owned()),
            ("version", self.version.to_string()),
        ] {
            labels.insert(key.to_owned(), value);
        }
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": SECRET_TYPE,
            "metadata": {"name": self.secret_name(), "namespace": self.namespace, "labels": labels},
            // The API wants the bytes of a Secret in base64, and Helm's text is base64 already.
            "data": {"release": BASE64_STANDARD.encode(data)},
        });
        let secret = Object::new(secret)
            .map_err(|error| Error::Pack(self.name.clone(), std::io::Error::other(error)))?;
        Ok((secret, dropped))
    }

    /// The record in a Secret that Helm 3, Helm 4 or we wrote.
    ///
    /// # Errors
    /// When there is none, or it is damaged.
    pub fn from_secret(secret: &Object) -> Result<Self, Error> {
        let name = secret.name().to_owned();
        let data = secret.str_at("/data/release").ok_or_else(|| Error::NoRecord(name.clone()))?;
        let damaged = |what, source: Box<dyn std::error::Error + Send + Sync>| {
            let name = name.clone();
            Error::Damaged { name, what, source }
        };
        let text = BASE64_STANDARD.decode(data).map_err(|error| damaged("base64", error.into()))?;
        let packed = BASE64_STANDARD.decode(text).map_err(|error| damaged("base64", error.into()))?;
        let bytes = unpack(&packed).map_err(|error| damaged("gzip", error.into()))?;
        let mut record: Self =
            serde_json::from_slice(&bytes).map_err(|error| damaged("JSON", error.into()))?;
        let labels = secret.at("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
        record.labels = labels
            .filter(|(key, _)| !OWN_LABELS.contains(&key.as_str()))
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect();
        Ok(record)
    }

    /// The text Helm keeps in `data.release`: JSON, gzip, base64.
    ///
    /// # Errors
    /// When the record is no JSON, which cannot be for one of ours.
    pub fn pack(&self) -> Result<String, Error> {
        let fail = |error| Error::Pack(self.name.clone(), error);
        let json = serde_json::to_vec(self).map_err(|error| fail(error.into()))?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&json).map_err(fail)?;
        Ok(BASE64_STANDARD.encode(encoder.finish().map_err(fail)?))
    }

    /// The Secrets that hold this revision where it does not fit into one: first the one that Helm lists, which
    /// `helm rollback` refuses, then the parts.
    ///
    /// # Errors
    /// When the record cannot be packed, or not even its head fits.
    pub fn to_parts(&self, now: Timestamp, is_update: bool) -> Result<Vec<Object>, Error> {
        let packed = self.pack()?;
        let texts: Vec<&str> = split_text(&packed, PART).collect();
        let head = Self {
            chart: StoredChart { metadata: self.chart.metadata.clone(), ..StoredChart::default() },
            config: Values::new(),
            manifest: NOT_HERE.to_owned(),
            hooks: Vec::new(),
            ..self.clone()
        };
        let (mut secret, _) = head.to_secret(now, is_update)?;
        secret.set_annotation(PARTS, &texts.len().to_string());
        let mut secrets = vec![secret];
        for (number, text) in texts.into_iter().enumerate() {
            let part = json!({
                "apiVersion": "v1", "kind": "Secret", "type": PART_TYPE,
                "metadata": {"name": part_name(&self.name, self.version, number), "namespace": self.namespace},
                "data": {"part": BASE64_STANDARD.encode(text)},
            });
            let part = Object::new(part)
                .map_err(|error| Error::Pack(self.name.clone(), std::io::Error::other(error)))?;
            secrets.push(part);
        }
        Ok(secrets)
    }

    /// The record whose parts are in these Secrets, in order.
    ///
    /// # Errors
    /// When one is damaged.
    pub fn from_parts<'a>(parts: impl IntoIterator<Item = &'a Object>) -> Result<Self, Error> {
        let (mut text, mut name) = (Vec::new(), String::new());
        for part in parts {
            name = part.name().to_owned();
            let data = part.str_at("/data/part").ok_or_else(|| Error::NoRecord(name.clone()))?;
            let damaged = |source: base64::DecodeError| Error::Damaged {
                name: part.name().to_owned(),
                what: "base64",
                source: source.into(),
            };
            text.extend(BASE64_STANDARD.decode(data).map_err(damaged)?);
        }
        let data = json!({"release": BASE64_STANDARD.encode(text)});
        let mut whole = Object::default_of("v1", "Secret", &name);
        whole.set("data", data);
        Self::from_secret(&whole)
    }

    fn pack_to_fit(&self) -> Result<(String, Dropped), Error> {
        let packed = self.pack()?;
        if packed.len() <= MAX_SECRET {
            return Ok((packed, Dropped::Nothing));
        }
        let chart = StoredChart { templates: Vec::new(), files: Vec::new(), ..self.chart.clone() };
        let packed = Self { chart, ..self.clone() }.pack()?;
        if packed.len() <= MAX_SECRET {
            return Ok((packed, Dropped::ChartFiles));
        }
        Err(Error::TooLarge { name: self.name.clone(), version: self.version, size: packed.len() })
    }
}

/// Name of the Secret of a part of a revision; parts are counted from 0.
#[must_use]
pub fn part_name(release: &str, revision: u32, number: usize) -> String {
    format!("pintle.{release}.v{revision}.part-{number}")
}

/// Pieces of so many bytes; the text is base64.
fn split_text(text: &str, size: usize) -> impl Iterator<Item = &str> {
    (0..text.len()).step_by(size).filter_map(move |at| text.get(at..text.len().min(at + size)))
}

/// Name of the Secret of a revision.
#[must_use]
pub fn secret_name(release: &str, revision: u32) -> String {
    format!("sh.helm.release.v1.{release}.v{revision}")
}

// === impl Status ===

impl Status {
    /// As Helm writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Deployed => "deployed",
            Self::Uninstalled => "uninstalled",
            Self::Superseded => "superseded",
            Self::Failed => "failed",
            Self::Uninstalling => "uninstalling",
            Self::PendingInstall => "pending-install",
            Self::PendingUpgrade => "pending-upgrade",
            Self::PendingRollback => "pending-rollback",
        }
    }

    /// True while a revision is being written.
    #[must_use]
    pub fn is_pending(self) -> bool {
        matches!(self, Self::PendingInstall | Self::PendingUpgrade | Self::PendingRollback)
    }
}

impl From<&Chart> for StoredChart {
    fn from(chart: &Chart) -> Self {
        let files = |files: &[File]| files.iter().map(StoredFile::from).collect();
        Self {
            metadata: Metadata::clone(&chart.metadata),
            lock: chart.lock.clone(),
            templates: files(&chart.templates),
            values: chart.values(),
            schema: chart.schema.as_ref().map(|schema| BASE64_STANDARD.encode(schema.bytes())),
            schemamodtime: ZeroTime,
            files: files(&chart.files),
        }
    }
}

impl From<&File> for StoredFile {
    fn from(file: &File) -> Self {
        Self { name: file.path.clone(), data: BASE64_STANDARD.encode(&file.data) }
    }
}

impl From<&Hook> for StoredHook {
    fn from(hook: &Hook) -> Self {
        Self {
            name: hook.document.object.name().to_owned(),
            kind: hook.document.object.kind().to_owned(),
            path: hook.document.source.to_string(),
            manifest: hook.document.text.to_string(),
            events: hook.events.clone(),
            last_run: HookRun::default(),
            weight: hook.weight,
            delete_policies: hook.delete_policies.clone(),
            output_log_policies: hook.output_log_policies.clone(),
        }
    }
}

impl Serialize for ZeroTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("0001-01-01T00:00:00Z")
    }
}

impl<'de> Deserialize<'de> for ZeroTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

fn unpack(packed: &[u8]) -> std::io::Result<Vec<u8>> {
    if !packed.starts_with(&[0x1f, 0x8b, 0x08]) {
        return Ok(packed.to_vec());
    }
    let mut bytes = Vec::new();
    GzDecoder::new(packed).take(MAX_UNPACKED).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A time; Helm 3 writes an empty text for none, and Go's zero time is none too.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
    if text.is_empty() || text.starts_with("0001-01-01T00:00:00") {
        return Ok(None);
    }
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

/// Go writes null for an empty list, mapping or text.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

fn go_numbers<S: Serializer>(values: &Values, serializer: S) -> Result<S::Ok, S::Error> {
    yaml::integers(&Value::Object(values.clone())).serialize(serializer)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero_weight(weight: &i64) -> bool {
    *weight == 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;
    use crate::chart::tests::chart;

    fn record() -> Record {
        let chart = chart(&[
            ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.2.3\n"),
            ("values.yaml", "port: 80\nshare: 0.5\n"),
            ("templates/x.yaml", "kind: X"),
            ("values.schema.json", "{}"),
        ]);
        Record {
            name: "rel".into(),
            namespace: "ns".into(),
            version: 2,
            info: Info {
                first_deployed: Some("2026-01-01T10:00:00Z".parse().unwrap()),
                status: Status::PendingUpgrade,
                ..Info::default()
            },
            chart: StoredChart::from(&chart),
            config: json!({"a": 1}).as_object().unwrap().clone(),
            manifest: "---\n# Source: c/templates/x.yaml\nkind: X\n".into(),
            apply_method: "csa".into(),
            labels: [("team".to_owned(), "x".to_owned())].into(),
            ..Record::default()
        }
    }

    #[test]
    fn a_record_survives_its_secret() {
        let now = "2026-01-02T00:00:00Z".parse().unwrap();
        let (secret, dropped) = record().to_secret(now, false).unwrap();
        assert_eq!(dropped, Dropped::Nothing);
        assert_eq!(secret.name(), "sh.helm.release.v1.rel.v2");
        assert_eq!(secret.str_at("/type"), Some(SECRET_TYPE));
        for (key, value) in [
            ("name", "rel"),
            ("owner", "helm"),
            ("status", "pending-upgrade"),
            ("version", "2"),
            ("createdAt", "1767312000"),
            ("team", "x"),
        ] {
            assert_eq!(secret.label(key), Some(value), "{key}");
        }
        let mut read = Record::from_secret(&secret).unwrap();
        // Numbers are written as Go writes them, so a float that is an integer comes back as one.
        assert_eq!(read.chart.values["port"], json!(80));
        read.chart.values = record().chart.values;
        assert_eq!(read, record());
    }

    #[test]
    fn what_helm_3_wrote_is_read() {
        let json = json!({"name": "old", "info": {"first_deployed": "2024-05-01T12:00:00.123456789+02:00",
            "last_deployed": "2024-05-01T12:00:00.5Z", "deleted": "", "description": "Install complete",
            "status": "deployed", "notes": "n"},
            "chart": {"metadata": {"name": "c", "version": "0.1.0", "apiVersion": "v2"}, "lock": null,
                "templates": [{"name": "templates/x", "data": "a2luZDogWA=="}], "values": {"a": 1},
                "schema": null, "files": null},
            "manifest": "m", "hooks": [{"name": "h", "kind": "Job", "path": "c/templates/h", "manifest": "m",
                "events": ["pre-install"], "last_run": {"started_at": "", "completed_at": "", "phase": ""},
                "delete_policies": ["hook-succeeded"]}],
            "version": 1, "namespace": "ns"});
        for packed in [Some(()), None] {
            let bytes = match packed {
                Some(()) => {
                    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
                    encoder.write_all(json.to_string().as_bytes()).unwrap();
                    encoder.finish().unwrap()
                }
                None => json.to_string().into_bytes(),
            };
            let data = BASE64_STANDARD.encode(BASE64_STANDARD.encode(bytes));
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"release": data}});
            let read = Record::from_secret(&Object::new(secret).unwrap()).unwrap();
            assert_eq!(read.info.status, Status::Deployed);
            assert_eq!(read.info.first_deployed.unwrap().to_string(), "2024-05-01T10:00:00.123456789Z");
            assert_eq!(
                (read.info.deleted, read.hooks[0].events.as_slice()),
                (None, &[HookEvent::PreInstall][..])
            );
            assert!(read.chart.files.is_empty());
        }
    }

    #[test]
    fn a_record_that_is_too_large_loses_the_charts_files_first() {
        let noise = |n: usize| {
            (0..n as u64)
                .map(|at| {
                    format!("{:016x}", (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) ^ at)
                })
                .collect::<String>()
        };
        let mut large = record();
        large.chart.files.push(StoredFile { name: "noise".into(), data: noise(200_000) });
        let now = Timestamp::UNIX_EPOCH;
        let (secret, dropped) = large.to_secret(now, true).unwrap();
        assert_eq!(dropped, Dropped::ChartFiles);
        assert_eq!(secret.label("modifiedAt"), Some("0"));
        let read = Record::from_secret(&secret).unwrap();
        assert!(read.chart.files.is_empty() && read.chart.templates.is_empty());
        assert_eq!(read.manifest, large.manifest);
        large.manifest = noise(400_000);
        let error = large.to_secret(now, true).unwrap_err().to_string();
        assert!(error.contains("revision 2 of release rel has"), "{error}");
        let parts = large.to_parts(now, false).unwrap();
        assert_eq!((parts[0].name(), parts[0].annotation(PARTS)), ("sh.helm.release.v1.rel.v2", Some("8")));
        let head = Record::from_secret(&parts[0]).unwrap();
        assert_eq!((head.chart.metadata.version.as_str(), head.manifest.as_str()), ("1.2.3", NOT_HERE));
        let mut whole = Record::from_parts(&parts[1..]).unwrap();
        whole.chart.values = large.chart.values.clone();
        whole.labels = large.labels.clone();
        assert_eq!(whole, large);
        assert!(Record::from_parts(&parts[1..3]).is_err(), "a part that is lost is no record");
    }

    #[test]
    fn damage_names_the_secret() {
        let secret = |data: Value| {
            Object::new(
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": data}),
            )
            .unwrap()
        };
        let says = |data| Record::from_secret(&secret(data)).unwrap_err().to_string();
        assert_eq!(says(json!({})), "Secret s has no data.release: it is no record of Helm");
        assert!(says(json!({"release": "%"})).starts_with("Secret s: data.release is not base64"));
        let packed = BASE64_STANDARD.encode(BASE64_STANDARD.encode("{"));
        assert!(says(json!({"release": packed})).starts_with("Secret s: data.release is not JSON"));
    }
}
