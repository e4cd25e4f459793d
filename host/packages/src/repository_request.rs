//! A request for a plugin, with everything that the steps after identification need: the caller,
//! the plugin, and the repository if there is one.

use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;
use packhouse_runtime::{Description, Intent, Plugin, RequestHead};
use packhouse_store::{OrganizationId, RepositoryRow};

use crate::identify::Principal;
use crate::scope::Scopes;
use crate::services::Caller;
use packhouse_app::App;
use packhouse_wire::site::Site;

/// Kind that a plugin sees for a repository that does not exist, or of which the caller must not
/// learn.
pub(crate) const UNDISCLOSED_KIND: &str = "hosted";

/// A request that a plugin answers.
pub(crate) struct RepositoryRequest<'a> {
    pub app: &'a Arc<App>,
    pub parts: &'a Parts,
    pub organization: OrganizationId,
    /// The repository in the request's path; `None` below a claim without a repository.
    pub repository: Option<NamedRepository<'a>>,
    /// Members of the group that the caller may read. Empty for other repositories.
    pub members: Vec<&'a RepositoryRow>,
    pub plugin: Arc<Plugin>,
    /// Template for scopes in the claim of this request, if the format has a token service.
    pub scope_template: Option<&'a str>,
    pub principal: &'a Arc<Principal>,
    pub peer: IpAddr,
    pub head: Arc<RequestHead>,
    /// Time for which the request is judged, in ms since 1970.
    pub now: i64,
}

/// The repository that a request's path names.
pub(crate) enum NamedRepository<'a> {
    Found(&'a RepositoryRow),
    /// There is no repository of this name. A later step judges the credential first, and then
    /// refuses the request.
    Missing(&'a str),
    /// The caller must not learn whether the repository exists. The format opens this request to
    /// everyone at every name, so the plugin answers as for an empty repository of this name.
    Undisclosed {
        /// The name in the path.
        name: &'a str,
        /// The intent that the plugin returned for this open request.
        intent: Arc<Intent>,
    },
}

impl<'a> RepositoryRequest<'a> {
    /// Returns the repository if it exists and the caller may know that it does.
    pub(crate) fn found(&self) -> Option<&'a RepositoryRow> {
        match &self.repository {
            Some(NamedRepository::Found(row)) => Some(row),
            _ => None,
        }
    }

    /// Reports whether a credential decides who may see the answer.
    pub(crate) fn is_private(&self) -> bool {
        self.found().is_none_or(|row| !row.public)
    }

    pub(crate) fn description(&self) -> &Description {
        self.plugin.description()
    }

    /// Returns the scopes of bearer tokens at this address, or `None` if the format has no token
    /// service. A repository's own address uses the scopes of the format's claims.
    pub(crate) fn scopes(&self) -> Option<Scopes<'_>> {
        let description = self.description();
        let words = description.token_service.as_ref()?;
        let of_claims = || description.claims.iter().find_map(|claim| claim.challenge.as_deref());
        let template = if self.head.claim.is_some() { self.scope_template } else { of_claims() };
        Some(Scopes::new(template?, words))
    }

    pub(crate) fn caller(&self) -> Caller {
        let name = match &self.repository {
            Some(NamedRepository::Found(row)) => Some(row.name.clone()),
            Some(NamedRepository::Missing(name) | NamedRepository::Undisclosed { name, .. }) => {
                Some((*name).to_owned())
            }
            None => None,
        };
        Caller {
            principal: Arc::clone(self.principal),
            organization: self.organization,
            repository: name,
            peer: self.peer,
            site: Site::of(&self.head.address),
            request_id: Arc::clone(&self.head.request_id),
            policies: self.principal.facts.policies,
        }
    }

    /// Returns all members of a group, including those that the caller may not read.
    pub(crate) fn all_members(&self) -> impl Iterator<Item = &'a RepositoryRow> {
        self.principal.facts.members.iter().map(|member| &member.row)
    }
}
