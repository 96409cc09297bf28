//! What a plugin is asked, out of files: each function of each interface.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use pintle_api::{Object, plugin::Identity};
use pintle_plugin::{Export, Keyed, Ownership, Phase, Plugin, Rendered, transcript::Ask};

use super::facts::{self, Inputs};

/// Name of an object that a plugin has returned, where it is not its own; on objects of `--applied`.
const KEY: &str = "pintle.dev/key";

/// Which function, and what belongs to its question.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Question {
    /// The function; without it the first that the plugin has.
    #[arg(long, value_enum)]
    function: Option<Function>,
    /// When a hook is called.
    #[arg(long, value_enum, default_value = "pre")]
    phase: When,
    /// Rendered objects (YAML), for post-renderers and hooks. Without it `samples/rendered`.
    #[arg(long, value_name = "PATH")]
    rendered: Option<PathBuf>,
    /// Live objects that the plugin has returned before (YAML), for hooks and reconcilers; the annotation
    /// `pintle.dev/key` is the key of one that is not its name. Without it `samples/applied`.
    #[arg(long, value_name = "PATH")]
    applied: Option<PathBuf>,
}

/// A function of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Function {
    MapValues,
    PostRender,
    Check,
    OnPhase,
    Reconcile,
    Finalize,
}

/// When a hook is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum When {
    /// Before the first write.
    #[default]
    Pre,
    /// While the gate is pending.
    Waiting,
    /// The gate is ready.
    Post,
}

impl Question {
    /// The question to this plugin.
    pub(super) fn ask(&self, plugin: &Plugin, inputs: &Inputs) -> anyhow::Result<Ask> {
        let function = match self.function {
            Some(function) => function,
            None => Function::first_of(plugin)?,
        };
        if !plugin.offers().contains(&function.export()) {
            let offers: Vec<&str> = plugin.offers().into_iter().map(Export::as_str).collect();
            bail!("{} offers {}, not {}", plugin.name(), offers.join(", "), function.export().as_str())
        }
        Ok(match function {
            Function::MapValues => Ask::MapValues,
            Function::Check => Ask::Check {
                target: inputs.target()?.context(
                    "there is no target: name one with --target FILE, or write samples/target.yaml",
                )?,
            },
            Function::PostRender => Ask::PostRender { objects: self.rendered(inputs)? },
            Function::OnPhase => Ask::OnPhase {
                phase: self.phase.into(),
                rendered: self.rendered(inputs)?.into_iter().map(|one| one.object).collect(),
                applied: self.applied(inputs)?,
            },
            Function::Reconcile => Ask::Reconcile { applied: self.applied(inputs)? },
            Function::Finalize => Ask::Finalize { applied: self.applied(inputs)? },
        })
    }

    fn rendered(&self, inputs: &Inputs) -> anyhow::Result<Vec<Rendered>> {
        let objects = objects(inputs, self.rendered.as_deref(), "rendered")?.context(
            "there are no rendered objects: name them with --rendered PATH, or write them to samples/rendered",
        )?;
        let rendered = objects.into_iter().map(|object| Rendered {
            key: format!("{}/{}", object.kind(), object.name()),
            state: inputs.state().to_owned(),
            pool: String::new(),
            source: "samples".to_owned(),
            object,
        });
        Ok(rendered.collect())
    }

    fn applied(&self, inputs: &Inputs) -> anyhow::Result<Vec<Keyed>> {
        let objects = objects(inputs, self.applied.as_deref(), "applied")?.unwrap_or_default();
        let keyed = objects.into_iter().map(|object| Keyed {
            key: object.annotation(KEY).unwrap_or_else(|| object.name()).to_owned(),
            ownership: Ownership::Whole,
            object,
            identity: Identity::Owner,
        });
        Ok(keyed.collect())
    }
}

fn objects(inputs: &Inputs, named: Option<&Path>, sample: &str) -> anyhow::Result<Option<Vec<Arc<Object>>>> {
    inputs.sample(named, sample).map(|path| facts::read_objects(&path)).transpose()
}

impl Function {
    fn first_of(plugin: &Plugin) -> anyhow::Result<Self> {
        let functions = [Self::MapValues, Self::PostRender, Self::Check, Self::OnPhase, Self::Reconcile];
        let offers = plugin.offers();
        let first = functions.into_iter().find(|function| offers.contains(&function.export()));
        first.with_context(|| format!("{} offers nothing that can be called", plugin.name()))
    }

    fn export(self) -> Export {
        match self {
            Self::MapValues => Export::ValueMapper,
            Self::PostRender => Export::PostRenderer,
            Self::Check => Export::Readiness,
            Self::OnPhase => Export::Hooks,
            Self::Reconcile | Self::Finalize => Export::Reconciler,
        }
    }
}

impl From<When> for Phase {
    fn from(when: When) -> Self {
        match when {
            When::Pre => Self::Pre,
            When::Waiting => Self::Waiting,
            When::Post => Self::Post,
        }
    }
}
