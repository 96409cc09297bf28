//! Who may talk to a control plane: users with tokens, and the files that tell clients how.

use std::path::{Path, PathBuf};
use std::{fs, io};

use kube::config::AuthInfo;
use serde::{Deserialize, Serialize};

use super::pki;

/// Members may do everything.
pub const ADMIN_GROUP: &str = "system:masters";

/// Someone with a token of their own, so that the audit log tells their requests from others'.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The user name as RBAC and the audit log have it.
    pub name: String,
    /// The groups, [`ADMIN_GROUP`] for somebody who may do everything.
    pub groups: Vec<String>,
}

impl User {
    /// A user who may do everything.
    pub fn admin(name: impl Into<String>) -> Self {
        Self { name: name.into(), groups: vec![ADMIN_GROUP.to_owned()] }
    }

    /// A user who may do what RBAC objects allow.
    pub fn plain(name: impl Into<String>) -> Self {
        Self { name: name.into(), groups: Vec::new() }
    }
}

/// A user and the token, which is also in the API server's token file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Credential {
    pub(crate) user: User,
    pub(crate) token: String,
}

impl Credential {
    pub(crate) fn new(user: User) -> io::Result<Self> {
        Ok(Self { user, token: pki::random_token()? })
    }
}

/// Lines `token,name,uid,"group,group"` as `--token-auth-file` wants them.
pub(crate) fn token_file(credentials: &[Credential]) -> String {
    let line = |Credential { user, token }: &Credential| {
        format!("{token},{name},{name},\"{groups}\"\n", name = user.name, groups = user.groups.join(","))
    };
    credentials.iter().map(line).collect()
}

/// Where the API server is and how its certificate is checked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Endpoint {
    pub(crate) port: u16,
    pub(crate) authority: PathBuf,
}

impl Endpoint {
    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// A client configuration for the bearer of `token`.
    pub(crate) fn config(&self, token: String) -> io::Result<kube::Config> {
        let url = self.url().parse::<http::Uri>().map_err(io::Error::other)?;
        let mut config = kube::Config::new(url);
        config.root_cert = Some(vec![decode_pem(&fs::read_to_string(&self.authority)?)?]);
        config.auth_info = AuthInfo { token: Some(token.into()), ..AuthInfo::default() };
        Ok(config)
    }

    /// The text of a kubeconfig file for the bearer of `token`, with nothing outside the file needed.
    pub(crate) fn kubeconfig(&self, user: &str, token: &str) -> io::Result<String> {
        use base64::Engine;
        let authority = base64::engine::general_purpose::STANDARD.encode(fs::read(&self.authority)?);
        let document = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{
                "name": "pintle",
                "cluster": {"server": self.url(), "certificate-authority-data": authority},
            }],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "pintle", "context": {"cluster": "pintle", "user": user}}],
            "current-context": "pintle",
        });
        serde_yaml::to_string(&document).map_err(io::Error::other)
    }

    /// Writes a kubeconfig file that only its owner can read.
    pub(crate) fn write_kubeconfig(&self, path: &Path, credential: &Credential) -> io::Result<()> {
        pki::write_secret(path, &self.kubeconfig(&credential.user.name, &credential.token)?)
    }
}

fn decode_pem(text: &str) -> io::Result<Vec<u8>> {
    use base64::Engine;
    let body: String = text.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
    base64::engine::general_purpose::STANDARD.decode(body).map_err(io::Error::other)
}
