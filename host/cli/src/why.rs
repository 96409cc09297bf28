//! `pintle why`: what an object waits for, from its status.

mod advice;
mod tree;

use clap::ValueEnum;
use kube::{Api, Client, api::ListParams};
use serde_json::Value;

use crate::{Ending, owner::OwnerName, printed, reach};

/// Arguments of `pintle why`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// `KIND/NAME`, as `sr/simple-kmod`.
    owner: OwnerName,
    /// Namespace of the object; default: that of the current context.
    #[arg(short, long)]
    namespace: Option<String>,
    /// `json` prints what the tree is drawn from.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Ending> {
    let Args { owner, namespace, output } = args;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (object, bound) = runtime.block_on(async {
        let client = reach::client().await?;
        let object = owner.get(&client, namespace.as_deref()).await?;
        let bound = bound(&client, &object).await;
        anyhow::Ok((object, bound))
    })?;
    let report = tree::Report::from_owner(&object, bound.is_bound)?.bound_by_leaving(bound.leaving);
    printed::print(&match output {
        Output::Text => tree::draw(&report, jiff::Timestamp::now()),
        Output::Json => format!("{}\n", serde_json::to_string_pretty(&report)?),
    })?;
    Ok(Ending::Done)
}

/// Who binds a kind.
struct Bound {
    /// Whether a Watch does; true where that cannot be known.
    is_bound: bool,
    /// The first that does, where all are being deleted.
    leaving: Option<String>,
}

async fn bound(client: &Client, object: &Value) -> Bound {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    let unknown = Bound { is_bound: true, leaving: None };
    if group == pintle_api::names::GROUP {
        return unknown;
    }
    let watches: Api<pintle_api::Watch> = Api::all(client.clone());
    let Ok(watches) = watches.list(&ListParams::default()).await else { return unknown };
    let binding = watches.iter().filter(|watch| watch.spec.group == group && watch.spec.kind == text("kind"));
    let (leaving, staying): (Vec<_>, Vec<_>) =
        binding.partition(|watch| watch.metadata.deletion_timestamp.is_some());
    let first = leaving.first().filter(|_| staying.is_empty());
    Bound {
        is_bound: !leaving.is_empty() || !staying.is_empty(),
        leaving: first.and_then(|watch| watch.metadata.name.clone()),
    }
}
