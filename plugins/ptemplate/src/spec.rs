//! The spec of a Ptemplate with every default filled in, whichever spelling it came in.

use std::collections::BTreeMap;

use pintle_plugin_sdk::Failure;
use serde::Deserialize;
use serde_json::{Value, json};

/// Name of the condition that tells fields under their old names.
pub(crate) const DEPRECATED: &str = "DeprecatedField";

/// As the resource has it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    #[serde(default)]
    maxdev: i64,
    #[serde(default)]
    defaultmsg: String,
    #[serde(default)]
    consumer: String,
    /// `consumer`, as a published example has it.
    #[serde(default)]
    consumerimage: String,
    #[serde(default)]
    deviceplugin: String,
    #[serde(default)]
    required_devices: i64,
    image_pull_secret: Option<Secret>,
    /// `imagePullSecret`, as a published example has it.
    image_repo_secret: Option<Secret>,
    selector: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Secret {
    #[serde(default)]
    name: String,
}

/// With every default.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spec {
    pub(crate) max_devices: i64,
    pub(crate) message: String,
    pub(crate) consumer: String,
    pub(crate) device_plugin: String,
    pub(crate) required_devices: i64,
    pub(crate) pull_secret: Option<String>,
    pub(crate) selector: BTreeMap<String, String>,
}

// === impl Spec ===

impl Spec {
    /// The spec, and a sentence for each field under an old name. The new name wins where both are given.
    ///
    /// # Errors
    /// When a field is not of its type, is negative, or the selector is missing.
    pub(crate) fn read(spec: &Value) -> Result<(Self, Vec<&'static str>), Failure> {
        let given = Given::deserialize(spec)
            .map_err(|error| Failure::until_changed(format!("the spec of the Ptemplate: {error}")))?;
        let deprecated = given.deprecated();
        let Some(selector) = given.selector else {
            return Err(Failure::until_changed("spec.selector is missing; name labels of the nodes to use"));
        };
        let name = |secret: Option<Secret>| secret.map(|secret| secret.name).filter(|name| !name.is_empty());
        let spec = Self {
            max_devices: positive("maxdev", given.maxdev, 5)?,
            message: given.defaultmsg,
            consumer: first([given.consumer, given.consumerimage, image("consumer-latest")]),
            device_plugin: first([given.deviceplugin, image("latest")]),
            required_devices: positive("requiredDevices", given.required_devices, 1)?,
            pull_secret: name(given.image_pull_secret).or_else(|| name(given.image_repo_secret)),
            selector,
        };
        Ok((spec, deprecated))
    }

    /// As the chart takes it. Old names are taken away, so that both spellings are one set of values.
    pub(crate) fn values(&self) -> Value {
        json!({
            "maxdev": self.max_devices,
            "defaultmsg": self.message,
            "consumer": self.consumer,
            "consumerimage": null,
            "deviceplugin": self.device_plugin,
            "requiredDevices": self.required_devices,
            "imagePullSecret": self.pull_secret.as_ref().map(|name| json!({"name": name})),
            "imageRepoSecret": null,
            "selector": self.selector,
        })
    }
}

// === impl Given ===

impl Given {
    fn deprecated(&self) -> Vec<&'static str> {
        let old = [
            (!self.consumerimage.is_empty(), "spec.consumerimage is now spec.consumer"),
            (self.image_repo_secret.is_some(), "spec.imageRepoSecret is now spec.imagePullSecret"),
        ];
        old.into_iter().filter(|(is_given, _)| *is_given).map(|(_, message)| message).collect()
    }
}

/// Zero stands for the default, as it always did.
fn positive(field: &str, given: i64, default: i64) -> Result<i64, Failure> {
    match given {
        0 => Ok(default),
        1.. => Ok(given),
        _ => Err(Failure::until_changed(format!("spec.{field} is {given}; it must not be negative"))),
    }
}

fn first<const N: usize>(texts: [String; N]) -> String {
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

fn image(tag: &str) -> String {
    format!("quay.io/chrisp262/pt-device-plugin:{tag}")
}
