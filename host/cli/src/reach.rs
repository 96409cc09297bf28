//! The cluster that a command asks.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use kube::{Client, Config, config::KubeConfigOptions};

/// A client for the cluster that kubectl would ask, or the one around this pod.
///
/// # Errors
/// When no configuration leads to one, with the file that was looked at.
pub(crate) async fn client() -> anyhow::Result<Client> {
    let config = match Config::from_kubeconfig(&KubeConfigOptions::default()).await {
        Ok(config) => config,
        Err(error) => match Config::incluster() {
            Ok(config) => config,
            Err(_) => bail!(
                "no cluster: {}; set KUBECONFIG or run `pintle demo`",
                why(&error.to_string(), named(), usual().as_deref())
            ),
        },
    };
    Client::try_from(config).context("no cluster: the kubeconfig cannot be used")
}

/// Files that the variable names.
fn named() -> Vec<PathBuf> {
    let value = std::env::var_os("KUBECONFIG").unwrap_or_default();
    std::env::split_paths(&value).filter(|path| !path.as_os_str().is_empty()).collect()
}

fn usual() -> Option<PathBuf> {
    Some(PathBuf::from(std::env::var_os("HOME")?).join(".kube/config"))
}

/// The file that is missing, else what is wrong with those that are there.
fn why(error: &str, named: Vec<PathBuf>, usual: Option<&Path>) -> String {
    let is_named = !named.is_empty();
    let looked_at = if is_named { named } else { usual.map(Path::to_owned).into_iter().collect() };
    let list = looked_at.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let is_there = looked_at.iter().any(|path| path.exists());
    match (is_there, is_named) {
        (true, _) => format!("{list}: {error}"),
        (false, true) => format!("KUBECONFIG names {list}, which is not there"),
        (false, false) if list.is_empty() => "there is no kubeconfig".to_owned(),
        (false, false) => format!("there is no kubeconfig at {list}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_that_is_missing_is_named() {
        let (nope, here) = (PathBuf::from("/nope"), PathBuf::from("/"));
        assert_eq!(why("odd", vec![nope.clone()], None), "KUBECONFIG names /nope, which is not there");
        assert_eq!(why("odd", vec![], Some(&nope)), "there is no kubeconfig at /nope");
        assert_eq!(why("odd", vec![], None), "there is no kubeconfig");
        assert_eq!(why("odd", vec![here], None), "/: odd");
    }
}
