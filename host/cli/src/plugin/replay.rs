//! `pintle plugin replay` and `diff`: recorded calls made again, by the same component or another.

use std::path::PathBuf;

use anyhow::bail;
use pintle_plugin::{
    CallResult, Outcome, Plugin,
    transcript::{Answered, Transcript, told},
};
use serde_json::json;

use super::{Output, changes::changes, loaded, print, progress::Progress, record, report};

/// Arguments of `pintle plugin replay`.
#[derive(Debug, clap::Args)]
pub(super) struct ReplayArgs {
    /// A recorded call.
    file: PathBuf,
    /// The component, as a file or `oci://…`; without it the recorded one from its registry.
    #[arg(long, value_name = "WASM")]
    plugin: Option<String>,
    #[command(flatten)]
    registry: super::transfer::RegistryArgs,
}

/// Arguments of `pintle plugin diff`.
#[derive(Debug, clap::Args)]
pub(super) struct DiffArgs {
    /// The component that is in use.
    old: String,
    /// The component that shall be.
    new: String,
    /// Recorded calls: files, or folders of them.
    #[arg(required = true)]
    recordings: Vec<PathBuf>,
    #[command(flatten)]
    registry: super::transfer::RegistryArgs,
}

pub(super) async fn replay(args: ReplayArgs, output: Output, progress: &Progress) -> anyhow::Result<()> {
    let ReplayArgs { file, plugin, registry } = args;
    let transcript = record::read(&file)?;
    must_be_replayable(&transcript)?;
    let image = plugin.unwrap_or_else(|| pinned(&transcript));
    let bytes = loaded::bytes_of(&image, &registry, progress).await?;
    let spec = transcript.plugin.spec.clone();
    let plugin = loaded::load_bytes(&transcript.plugin.name, bytes, spec).await?.plugin;
    let result = transcript.replay(&plugin).await;
    let is_same = transcript.is_reproduced_by(&result);
    let is_other = plugin.component_digest() != transcript.plugin.component;
    let changes = changes(&transcript.answer, &told(&result));
    let mut document = report::document(&result);
    document["reproduced"] = json!(is_same);
    document["recordedComponent"] = json!(!is_other);
    document["changes"] = json!(changes);
    let mut text = report::text(&result);
    if is_other {
        text += "this is another component than the recorded one\n";
    }
    text += if is_same { "reproduced to the byte\n" } else { "NOT reproduced\n" };
    text.extend(changes.iter().map(|line| format!("  {line}\n")));
    print(output, &text, &document)?;
    if is_same { Ok(()) } else { bail!("the call ends otherwise than it was recorded") }
}

pub(super) async fn diff(args: DiffArgs, output: Output, progress: &Progress) -> anyhow::Result<()> {
    let DiffArgs { old, new, recordings, registry } = args;
    let recordings = record::read_all(&recordings)?;
    let (mut before, mut after) = (None, None);
    let (mut rows, mut text, mut changed) = (Vec::new(), String::new(), 0_usize);
    for (file, transcript) in &recordings {
        let name = file.display();
        if let Some(why) = &transcript.not_replayable {
            text += &format!("skipped  {name}: {why}\n");
            rows.push(json!({"file": file, "skipped": why}));
            continue;
        }
        let was = again(&mut before, &old, transcript, &registry, progress).await?;
        let is = again(&mut after, &new, transcript, &registry, progress).await?;
        let lines = all_changes(&was, &is);
        changed += usize::from(!lines.is_empty());
        let word = if lines.is_empty() { "same   " } else { "CHANGES" };
        let place = transcript.call.place();
        text += &format!("{word}  {name}: {} for {place}\n", transcript.ask.word());
        text.extend(lines.iter().map(|line| format!("         {line}\n")));
        rows.push(json!({"file": file, "function": transcript.ask.word(), "place": place, "changes": lines,
            "old": told(&was), "new": told(&is)}));
    }
    let all = recordings.len();
    text += &format!("{changed} of {all} calls end otherwise with {new}\n");
    print(output, &text, &json!({"changed": changed, "recordings": all, "calls": rows}))?;
    if changed > 0 { bail!("{changed} of {all} calls end otherwise") } else { Ok(()) }
}

/// Makes a recorded call with a component, which is compiled once for all.
async fn again(
    known: &mut Option<Plugin>,
    image: &str,
    transcript: &Transcript,
    registry: &super::transfer::RegistryArgs,
    progress: &Progress,
) -> anyhow::Result<CallResult<Answered>> {
    let mut spec = transcript.plugin.spec.clone();
    let plugin = match known {
        Some(plugin) => {
            spec.wasi = plugin.spec().wasi;
            plugin.rebind(&spec).await?
        }
        None => {
            let bytes = loaded::bytes_of(image, registry, progress).await?;
            loaded::load_bytes(&transcript.plugin.name, bytes, spec).await?.plugin
        }
    };
    let result = transcript.replay(&plugin).await;
    *known = Some(plugin);
    Ok(result)
}

fn all_changes(was: &CallResult<Answered>, is: &CallResult<Answered>) -> Vec<String> {
    let mut lines = changes(&told(was), &told(is));
    if let (Outcome::NeedsFacts(reads), false) = (&is.outcome, matches!(was.outcome, Outcome::NeedsFacts(_)))
    {
        lines.push(format!(
            "it reads what was not recorded, so its answer is not known: {} reads",
            reads.len()
        ));
    }
    lines
}

fn must_be_replayable(transcript: &Transcript) -> anyhow::Result<()> {
    match &transcript.not_replayable {
        Some(why) => bail!("the call cannot be made again: {why}"),
        None => Ok(()),
    }
}

/// The recorded component in its registry.
fn pinned(transcript: &Transcript) -> String {
    let image = &transcript.plugin.spec.image;
    let name = image.split('@').next().unwrap_or(image);
    format!("{name}@{}", transcript.plugin.digest)
}
