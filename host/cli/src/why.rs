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
    let (object, is_bound) = runtime.block_on(async {
        let client = reach::client().await?;
        let object = owner.get(&client, namespace.as_deref()).await?;
        let is_bound = is_bound(&client, &object).await;
        anyhow::Ok((object, is_bound))
    })?;
    let report = tree::Report::from_owner(&object, is_bound)?;
    printed::print(&match output {
        Output::Text => tree::draw(&report, jiff::Timestamp::now()),
        Output::Json => format!("{}\n", serde_json::to_string_pretty(&report)?),
    })?;
    Ok(Ending::Done)
}

/// Whether a Watch binds the kind of an object; true where that cannot be known.
async fn is_bound(client: &Client, object: &Value) -> bool {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    if group == pintle_api::names::GROUP {
        return true;
    }
    let watches: Api<pintle_api::Watch> = Api::all(client.clone());
    let Ok(watches) = watches.list(&ListParams::default()).await else { return true };
    watches.iter().any(|watch| watch.spec.group == group && watch.spec.kind == text("kind"))
}
