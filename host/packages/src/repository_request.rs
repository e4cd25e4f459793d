//! A request that a plugin answers, with all that the steps after identification need: who asks, which plugin answers, and which
//! repository it is about, if any.

use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;
use packhouse_runtime::{Description, Intent, Plugin, RequestHead};
use packhouse_store::{OrganizationId, RepositoryRow};

use crate::identify::Principal;
use crate::scope::Scopes;
use crate::services::Caller;
use crate::trials::{OnTrial, TriedRequest};
use packhouse_app::App;
use packhouse_wire::site::Site;

/// What a plugin is told that a repository is, if there is none or the caller may not know of it.
pub(crate) const UNDISCLOSED_KIND: &str = "hosted";

/// See the module.
pub(crate) struct RepositoryRequest<'a> {
    /// The program.
    pub app: &'a Arc<App>,
    /// The request without its body.
    pub parts: &'a Parts,
    /// The organization that it is for.
    pub organization: OrganizationId,
    /// The repository that the address names; none under a claim that names none.
    pub repository: Option<NamedRepository<'a>>,
    /// Those members of the repository that the caller may read, if it is a group.
    pub members: Vec<&'a RepositoryRow>,
    /// Who answers.
    pub plugin: Arc<Plugin>,
    /// The trial that the repository is part of.
    pub on_trial: Option<OnTrial>,
    /// How a claim's scopes are written, where bearers have scopes.
    pub scope_template: Option<&'a str>,
    /// Who asks.
    pub principal: &'a Arc<Principal>,
    /// The client's address.
    pub peer: IpAddr,
    /// The request as the plugin sees it.
    pub head: Arc<RequestHead>,
    /// The time at which the request is judged, in ms since 1970.
    pub now: i64,
}

/// What there is under the name in an address.
pub(crate) enum NamedRepository<'a> {
    /// A repository.
    Found(&'a RepositoryRow),
    /// Nothing. The request is refused, by a step that judges the credential first.
    Missing(&'a str),
    /// The caller may not know what. The format opens this request to anybody, at every name, so the plugin answers as in a
    /// repository of that name that holds nothing.
    Undisclosed {
        /// The name in the address.
        name: &'a str,
        /// What the request does, by the plugin that opens it.
        intent: Arc<Intent>,
    },
}

impl<'a> RepositoryRequest<'a> {
    /// The repository, if there is one that the caller may know of.
    pub(crate) fn found(&self) -> Option<&'a RepositoryRow> {
        match &self.repository {
            Some(NamedRepository::Found(row)) => Some(row),
            _ => None,
        }
    }

    /// Whether a credential decides who may see the answer.
    pub(crate) fn is_private(&self) -> bool {
        self.found().is_none_or(|row| !row.public)
    }

    /// The description of the format.
    pub(crate) fn description(&self) -> &Description {
        self.plugin.description()
    }

    /// How a bearer's scopes are written here, where there are any. At a repository's own address they are those of the format's claims.
    pub(crate) fn scopes(&self) -> Option<Scopes<'_>> {
        let description = self.description();
        let words = description.token_service.as_ref()?;
        let of_claims = || description.claims.iter().find_map(|claim| claim.challenge.as_deref());
        let template = if self.head.claim.is_some() { self.scope_template } else { of_claims() };
        Some(Scopes::new(template?, words))
    }

    /// Who asks, and where.
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

    /// What a trial needs of it.
    pub(crate) fn tried(&self) -> TriedRequest<'_> {
        TriedRequest {
            app: self.app,
            plugin: &self.plugin,
            head: &self.head,
            repository: self.found(),
            members: self.all_members().collect(),
            has_members: !self.members.is_empty(),
            private: self.is_private(),
            caller: self.caller(),
        }
    }

    /// A group's members, whoever may read them.
    pub(crate) fn all_members(&self) -> impl Iterator<Item = &'a RepositoryRow> {
        self.principal.facts.members.iter().map(|member| &member.row)
    }
}
