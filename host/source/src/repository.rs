//! Charts behind `http(s)://`: an index, and archives where it says they are.

use std::sync::Arc;

use http::{StatusCode, header};
use reqwest::Url;

use crate::{
    access::{Access, Credentials},
    aged::{Fresh, Kept, Question},
    charts::{Online, blocking},
    error::Error,
    index::{INDEX, Index, MAX_INDEX},
    remote::RemoteError,
    transport::{Ask, host_and_port, same_origin, shown},
};

/// Bytes of a packed chart, from a repository or a registry. The largest public ones have 3 MB.
pub(crate) const MAX_PACKED: u64 = 32 << 20;

/// A repository behind an address.
pub(crate) struct Repository {
    base: Url,
    access: Access,
}

/// The index as it was answered, and what tells it from the next one.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) index: Index,
    /// Digest of its text.
    pub(crate) digest: String,
}

/// Where an entry of the index leads.
pub(crate) enum Target {
    /// An archive.
    Archive(Url),
    /// A chart in a registry.
    Registry(String),
}

impl Repository {
    /// A repository. User and password in its address are taken out of it.
    ///
    /// # Errors
    /// When it is no address.
    pub(crate) fn open(url: &str, access: &Access) -> Result<Self, Error> {
        let broken = |problem: String| RemoteError::Url { url: without_user(url), problem };
        let mut base = Url::parse(url).map_err(|error| broken(error.to_string()))?;
        let mut access = access.clone();
        if let Some(found) = user_in(&mut base) {
            access.credentials.get_or_insert(found);
        }
        let path = format!("{}/", base.path().trim_end_matches('/'));
        base.set_path(&path);
        Ok(Self { base, access })
    }

    /// The server of one file, and the address of that file.
    ///
    /// # Errors
    /// When it is no address.
    pub(crate) fn around(url: &str, access: &Access) -> Result<(Self, Url), Error> {
        let repository = Self::open(url, access)?;
        let broken = |problem: String| RemoteError::Url { url: without_user(url), problem };
        let mut address = Url::parse(url).map_err(|error| broken(error.to_string()))?;
        drop(user_in(&mut address));
        Ok((repository, address))
    }

    /// The repository as it is shown.
    pub(crate) fn url(&self) -> String {
        shown(&self.base).trim_end_matches('/').to_owned()
    }

    /// Asks anew for the index the next time.
    pub(crate) fn forget(&self, known: &Indexes) {
        known.forget(self.base.as_str());
    }

    /// The index, asked for when its age is up.
    ///
    /// # Errors
    /// When it cannot be had, or is broken.
    pub(crate) async fn index(&self, online: &Online<'_>, known: &Indexes) -> Result<Arc<Answered>, Error> {
        let what = self.base.to_string();
        let (now, max_age) = (online.now, online.max_age);
        let question = Question { what: &what, access: &self.access, now, max_age };
        known.get(question, async |kept| self.ask_for_index(online, kept).await).await
    }

    async fn ask_for_index(
        &self,
        online: &Online<'_>,
        kept: Option<&Kept<Answered>>,
    ) -> Result<Fresh<Answered>, Error> {
        let url = self.join(INDEX)?;
        let known = kept.and_then(|kept| kept.tag.as_deref());
        let answer = self.get(online, &url, known, MAX_INDEX).await?;
        if answer.status == StatusCode::NOT_MODIFIED {
            return Ok(Fresh::Same);
        }
        let (place, tag) = (shown(&url), answer.header(header::ETAG).map(str::to_owned));
        let body = answer.body;
        let parse = move || {
            let index = Index::parse(&String::from_utf8_lossy(&body), &place)?;
            Ok(Answered { index, digest: crate::registry::digest(&body) })
        };
        Ok(Fresh::New(blocking(&self.url(), parse).await?, tag))
    }

    /// Where a url of the index leads: relative to the repository, or anywhere by itself.
    ///
    /// # Errors
    /// When it leads to a file, a ConfigMap or something unknown.
    pub(crate) fn target(&self, url: &str) -> Result<Target, Error> {
        if url.starts_with("oci://") {
            return Ok(Target::Registry(url.to_owned()));
        }
        let target = self.join(url)?;
        match target.scheme() {
            "http" | "https" => Ok(Target::Archive(target)),
            _ => {
                let place = format!("{}/{INDEX}", self.url());
                Err(Error::Outside { place, path: without_user(url) })
            }
        }
    }

    /// The bytes behind an address.
    ///
    /// # Errors
    /// When they cannot be had.
    pub(crate) async fn archive(&self, online: &Online<'_>, url: &Url) -> Result<Vec<u8>, Error> {
        Ok(self.get(online, url, None, MAX_PACKED).await?.body)
    }

    async fn get(
        &self,
        online: &Online<'_>,
        url: &Url,
        known: Option<&str>,
        limit: u64,
    ) -> Result<crate::transport::Answer, Error> {
        let authorization = self.authorization(url);
        let (authorization, tls) = (authorization.as_deref(), &self.access.tls);
        let ask = Ask { url, tls, authorization, accept: "*/*", known, limit };
        Ok(online.registries.transport().get(ask).await?)
    }

    /// Credentials are for the server of the repository, unless all are trusted; other servers get those
    /// that a keyring has for them.
    fn authorization(&self, url: &Url) -> Option<String> {
        let own = self.access.pass_credentials || same_origin(url, &self.base);
        let given = self.access.credentials.clone().filter(|_| own);
        let kept = || self.access.keyring.matching(&host_and_port(url), "").into_iter().next();
        given.or_else(kept).map(|credentials| credentials.basic())
    }

    /// As Helm joins: below the repository, whose query stays.
    fn join(&self, url: &str) -> Result<Url, RemoteError> {
        let mut joined = self
            .base
            .join(url)
            .map_err(|error| RemoteError::Url { url: without_user(url), problem: error.to_string() })?;
        if !url.contains("://") {
            joined.set_query(self.base.query());
        }
        Ok(joined)
    }
}

/// Indexes by repository.
pub(crate) type Indexes = crate::aged::Aged<Answered>;

fn user_in(url: &mut Url) -> Option<Credentials> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let text = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let found =
        Credentials { user: text(url.username()), password: text(url.password().unwrap_or_default()) };
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Some(found)
}

/// A text that may be an address, without what stands before its `@`.
pub(crate) fn without_user(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
    let Some((_, server)) = server.rsplit_once('@') else { return text.to_owned() };
    let slash = if rest.contains('/') { "/" } else { "" };
    format!("{scheme}://{server}{slash}{path}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    fn access(user: &str) -> Access {
        let credentials = Some(Credentials { user: user.into(), password: "p".into() });
        Access { credentials, ..Access::default() }
    }

    #[test]
    fn addresses_are_joined_as_helm_joins_them() {
        for (base, url, expected) in [
            ("https://e.org/charts", "a.tgz", "https://e.org/charts/a.tgz"),
            ("https://e.org/charts/", "a.tgz", "https://e.org/charts/a.tgz"),
            ("https://e.org/charts?key=k", "a.tgz", "https://e.org/charts/a.tgz?key=k"),
            ("https://e.org/charts", "/a.tgz", "https://e.org/a.tgz"),
            ("https://e.org/charts", "../a.tgz", "https://e.org/a.tgz"),
            ("https://e.org/charts", "http://o.org/a.tgz", "http://o.org/a.tgz"),
            ("https://u:p@e.org/charts", "a.tgz", "https://e.org/charts/a.tgz"),
        ] {
            let repository = Repository::open(base, &Access::default()).unwrap();
            match repository.target(url).unwrap() {
                Target::Archive(found) => assert_eq!(found.as_str(), expected, "{base} {url}"),
                Target::Registry(other) => assert_eq!(other, expected),
            }
        }
        let repository = Repository::open("https://e.org", &Access::default()).unwrap();
        assert!(matches!(repository.target("oci://r.org/c:1"), Ok(Target::Registry(_))));
        for outside in ["file:///etc/passwd", "cm://a/b/c.tgz"] {
            assert!(matches!(repository.target(outside), Err(Error::Outside { .. })), "{outside}");
        }
    }

    #[test]
    fn credentials_go_to_their_own_server_alone() {
        let open = |access: &Access| Repository::open("https://e.org/charts", access).unwrap();
        let sent = |repository: &Repository, url: &str| {
            repository.authorization(&Url::parse(url).unwrap()).is_some()
        };
        let own = open(&access("ann"));
        assert!(sent(&own, "https://e.org/x"));
        for other in ["https://o.org/x", "http://e.org/x", "https://e.org:8443/x", "https://e.org.evil.org/"]
        {
            assert!(!sent(&own, other), "{other}");
        }
        let all = open(&Access { pass_credentials: true, ..access("ann") });
        assert!(sent(&all, "https://o.org/x"));
    }

    #[test]
    fn a_password_in_an_address_is_used_and_not_shown() {
        let repository = Repository::open("https://ann:p%40ss@e.org/charts", &Access::default()).unwrap();
        assert_eq!(repository.url(), "https://e.org/charts");
        assert_eq!(repository.access.credentials.unwrap().password, "p@ss");
        assert_eq!(without_user("https://a:b@e.org/x@y"), "https://e.org/x@y");
        assert_eq!(without_user("https://e.org/x@y"), "https://e.org/x@y");
        assert_eq!(without_user("x"), "x");
    }
}
