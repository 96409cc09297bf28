//! `pintle plugin inspect`: what a component is and wants, before anything is installed.

use anyhow::Context as _;
use pintle_api::plugin::Grants;
use pintle_plugin::Export;
use serde_json::{Value, json};

use super::{Output, loaded, print, progress::Progress, section};

/// Arguments of `pintle plugin inspect`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: loaded::Settings,
}

pub(super) async fn run(args: Args, output: Output, progress: &Progress) -> anyhow::Result<()> {
    let Args { settings } = args;
    let loaded = loaded::load(&settings, progress).await?;
    let about = About::of(&loaded, &settings.plugin)?;
    print(output, &about.text()?, &about.document())
}

/// What is told about a component.
struct About {
    manifest: pintle_plugin::Manifest,
    image: String,
    digest: Option<String>,
    signatures: Vec<String>,
    exports: Vec<&'static str>,
    imports: Vec<String>,
    bytes: usize,
    grants: Grants,
    wasi: bool,
    in_section: &'static str,
}

impl About {
    fn of(loaded: &loaded::Loaded, from: &str) -> anyhow::Result<Self> {
        let image = if from.starts_with("oci://") {
            let bare = from.split('@').next().unwrap_or(from);
            loaded.digest.as_ref().map_or_else(|| from.to_owned(), |digest| format!("{bare}@{digest}"))
        } else {
            "oci://registry.example/NAME:TAG".to_owned()
        };
        Ok(Self {
            manifest: loaded.plugin.manifest().clone(),
            image,
            digest: loaded.digest.clone(),
            signatures: loaded.signatures.clone(),
            exports: loaded.plugin.offers().into_iter().map(Export::as_str).collect(),
            imports: loaded.plugin.imports().to_vec(),
            bytes: loaded.bytes.len(),
            grants: loaded.needs()?,
            wasi: loaded.spec.wasi,
            in_section: in_section(loaded)?,
        })
    }

    /// The Plugin object that installs it, ready to paste.
    fn object(&self) -> Value {
        let mut spec = json!({"image": self.image, "grants": self.grants});
        if self.wasi {
            spec["wasi"] = json!(true);
        }
        json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Plugin",
            "metadata": {"name": self.manifest.name}, "spec": spec})
    }

    fn document(&self) -> Value {
        json!({"name": self.manifest.name, "version": self.manifest.version,
            "description": self.manifest.description, "digest": self.digest, "signatures": self.signatures, "bytes": self.bytes,
            "exports": self.exports, "imports": self.imports, "wasi": self.wasi, "needs": self.manifest.needs,
            "configSchema": self.manifest.config_schema, "argsSchema": self.manifest.args_schema,
            "reasons": self.manifest.reasons, "manifestSection": self.in_section, "plugin": self.object()})
    }

    fn text(&self) -> anyhow::Result<String> {
        let Self { manifest, exports, imports, bytes, .. } = self;
        let mut text = format!("{} {}: {}\n", manifest.name, manifest.version, manifest.description);
        text += &format!("exports   {}\n", exports.join(", "));
        text += &format!(
            "imports   {}\n",
            if imports.is_empty() { "nothing".to_owned() } else { imports.join(", ") }
        );
        text += &format!("size      {} KiB ({bytes} bytes)\n", bytes.div_ceil(1024));
        text += &format!("manifest  {}\n", self.in_section);
        if let Some(digest) = &self.digest {
            text += &format!("digest    {digest}\n");
            text += &match self.signatures.as_slice() {
                [] => "signed    by nobody\n".to_owned(),
                claims => format!("signed    {} (as it says; `verify` tells)\n", claims.join("; ")),
            };
        }
        text += &format!("reasons   {}\n", manifest.reasons.join(", "));
        for (what, schema) in [("config", &manifest.config_schema), ("arguments", &manifest.args_schema)] {
            text += &properties(what, schema.as_ref());
        }
        let object = serde_yaml::to_string(&self.object()).context("could not write the Plugin object")?;
        Ok(text + "\n# Installs it with all that it asks for:\n" + &object)
    }
}

/// Each property of a schema in a line.
fn properties(what: &str, schema: Option<&Value>) -> String {
    let Some(properties) = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object)
    else {
        return String::new();
    };
    let mut text = format!("{what}\n");
    for (name, property) in properties {
        let of = |key: &str| {
            property.get(key).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        };
        let kind = of("type").or_else(|| of("enum")).unwrap_or_else(|| "any".to_owned());
        let default = of("default").map(|default| format!(" = {default}")).unwrap_or_default();
        text += &format!("  {name}: {kind}{default}\n      {}\n", of("description").unwrap_or_default());
    }
    text
}

/// Whether the manifest that can be read without running anything is the one that the plugin gives.
fn in_section(loaded: &loaded::Loaded) -> anyhow::Result<&'static str> {
    let Some(text) = section::manifest(&loaded.bytes)? else {
        return Ok("only when it runs; `pintle plugin build` puts it into the component");
    };
    let noted: Option<pintle_plugin::Manifest> = serde_json::from_str(&text).ok();
    Ok(match noted.as_ref() == Some(loaded.plugin.manifest()) {
        true => "in the component, as the plugin gives it",
        false => "in the component, but the plugin gives another: build it again",
    })
}
