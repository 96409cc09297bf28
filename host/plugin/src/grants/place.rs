//! Kinds, and where of them: what all grants have in common.

use pintle_api::{
    names,
    plugin::{Identity, SecretGrant},
};

use super::GrantError;

/// The word in a grant's namespaces that stands for the release's own.
pub(super) const RELEASE: &str = "$release";

/// Kinds, and where of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) api_groups: Vec<String>,
    pub(super) kinds: Vec<String>,
    pub(super) namespaces: Vec<String>,
    pub(super) names: Vec<String>,
    pub(super) identity: Identity,
}

impl Place {
    /// Groups and kinds are named one by one: informers and rights are made from them.
    pub(super) fn new(
        (list, at): (&'static str, usize),
        (api_groups, kinds): (&[String], &[String]),
        (namespaces, names): (&[String], &[String]),
        identity: Identity,
    ) -> Result<Self, GrantError> {
        for (field, entries) in [("apiGroups", api_groups), ("kinds", kinds)] {
            if entries.is_empty() {
                return Err(GrantError::Nothing { list, at, field });
            }
            if entries.iter().any(|entry| entry.contains('*')) {
                return Err(GrantError::Wildcard { list, at, field });
            }
        }
        Ok(Self {
            api_groups: api_groups.to_vec(),
            kinds: kinds.to_vec(),
            namespaces: namespaces.to_vec(),
            names: names.to_vec(),
            identity,
        })
    }

    /// The same, if it is about kinds that a plugin may write.
    pub(super) fn for_writes(self, list: &'static str, at: usize) -> Result<Self, GrantError> {
        let is_ours = self.api_groups.iter().any(|group| is_reserved(group));
        if is_ours { Err(GrantError::Reserved { list, at }) } else { Ok(self) }
    }

    /// Secrets are named one by one, since each is a right of its own.
    pub(super) fn of_secrets(at: usize, grant: &SecretGrant) -> Result<Self, GrantError> {
        let SecretGrant { namespaces, names } = grant;
        let list = "secretValues";
        if names.is_empty() {
            return Err(GrantError::Nothing { list, at, field: "names" });
        }
        if names.iter().any(|name| name.contains('*')) {
            return Err(GrantError::Wildcard { list, at, field: "names" });
        }
        let (group, kind) = ([String::new()], ["Secret".to_owned()]);
        Self::new((list, at), (&group, &kind), (namespaces, names), Identity::Owner)
    }

    pub(super) fn is_about(&self, group: &str, kind: &str) -> bool {
        self.api_groups.iter().any(|one| one == group) && self.kinds.iter().any(|one| one == kind)
    }

    pub(super) fn allows_name(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|one| one == name)
    }
}

/// True for the group whose kinds decide about rights.
pub(super) fn is_reserved(group: &str) -> bool {
    group == names::GROUP
}
