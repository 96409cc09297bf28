//! `pintle plugin record`: the last calls of a plugin in a running operator, as files.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use pintle_plugin::transcript::Transcript;
use serde_json::json;

use super::{Output, print, progress::Progress, transfer::write};

/// Arguments of `pintle plugin record`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of the Plugin object.
    plugin: String,
    /// Where the operator's health server is. It tells calls to its own machine only, so forward the port:
    /// `kubectl -n pintle-system port-forward deploy/pintle 8081`.
    #[arg(long, default_value = "http://127.0.0.1:8081", value_name = "URL")]
    from: String,
    /// Only calls for this release, as `namespace/name`.
    #[arg(long, value_name = "RELEASE")]
    release: Option<String>,
    /// The folder for the files.
    #[arg(long, default_value = "recordings", value_name = "FOLDER")]
    dir: PathBuf,
}

pub(super) async fn run(args: Args, output: Output, progress: &Progress) -> anyhow::Result<()> {
    let Args { plugin, from, release, dir } = args;
    progress.step(&format!("asking {from} for calls of {plugin}"));
    let transcripts = fetch(&from, &plugin).await?;
    let wanted = transcripts.into_iter().filter(|transcript| {
        release.as_deref().is_none_or(|release| transcript.call.release_name() == release)
    });
    let (mut files, mut numbers) = (Vec::new(), BTreeMap::<String, u32>::new());
    for transcript in wanted {
        let name = file_name(&transcript);
        let number = numbers.entry(name.clone()).or_default();
        *number += 1;
        let path = dir.join(format!("{name}-{number}.json"));
        write_file(&path, &transcript)?;
        files.push(path);
    }
    if files.is_empty() {
        bail!(
            "the operator has not called {plugin} since it started, or keeps no call that fits; a change of what it reads makes one"
        )
    }
    let lines: String = files.iter().map(|path| format!("{}\n", path.display())).collect();
    print(output, &lines, &json!({"files": files}))
}

async fn fetch(from: &str, plugin: &str) -> anyhow::Result<Vec<Transcript>> {
    let url = format!("{}/plugins/{plugin}/calls", from.trim_end_matches('/'));
    let answer = reqwest::get(&url).await.with_context(|| format!("{from} does not answer"))?;
    let (status, text) = (answer.status(), answer.text().await.unwrap_or_default());
    if !status.is_success() {
        bail!("{url} answers {status}: {}", text.trim())
    }
    serde_json::from_str(&text).with_context(|| format!("{url} does not answer with transcripts"))
}

/// Plugin, release, state and function, as a name of a file.
fn file_name(transcript: &Transcript) -> String {
    let parts = [&transcript.plugin.name, &transcript.call.place(), transcript.ask.word()].map(str::to_owned);
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    parts.join("-").chars().map(plain).collect()
}

/// Writes one transcript, to be read by people too.
pub(super) fn write_file(path: &Path, transcript: &Transcript) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(transcript).context("could not write the transcript")?;
    text.push('\n');
    write(path, text.as_bytes())
}

/// Reads transcripts: files, and all that end in `.json` in folders.
pub(super) fn read_all(paths: &[PathBuf]) -> anyhow::Result<Vec<(PathBuf, Transcript)>> {
    let mut all = Vec::new();
    for path in paths {
        let mut files = Vec::new();
        if path.is_dir() {
            let entries =
                std::fs::read_dir(path).with_context(|| format!("could not read {}", path.display()))?;
            let found = entries.flatten().map(|entry| entry.path());
            files.extend(found.filter(|path| path.extension().is_some_and(|end| end == "json")));
            files.sort();
        } else {
            files.push(path.clone());
        }
        for file in files {
            let transcript = read(&file)?;
            all.push((file, transcript));
        }
    }
    if all.is_empty() {
        bail!("there is no recording; `pintle plugin record` and `run --record` make some")
    }
    Ok(all)
}

pub(super) fn read(path: &Path) -> anyhow::Result<Transcript> {
    let text = std::fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?;
    Transcript::parse(&text).with_context(|| format!("could not take over {}", path.display()))
}
