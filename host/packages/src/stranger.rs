//! Strangers: callers without a credential, or with one that is not taken, at a repository that is not public. What they are
//! answered is told from the request alone, so that it is the same for a repository that is there, whatever its format, kind and
//! state, and for none at all. Below a claim the path says the format; there the claim's plugin judges.
//!
//! What a format opens to anybody, such as the beginning of a sign-in, is offered at every name.

use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;
use packhouse_runtime::{Intent, Plugin, RepositoryView, RequestHead};
use packhouse_store::{OrganizationId, RepositoryId};
use serde_json::Value;

use super::head::{self, Circumstances};
use super::identify::Known;
use super::receive;
use super::resolve::Below;
use super::send::{self, Prepared};
use super::shape::Refused;
use super::{authorize, call};
use crate::services::{CallServices, Caller};
use packhouse_app::App;
use packhouse_config::repository_settings;
use packhouse_identity::access::{Presented, Wanted};
use packhouse_wire::catalogue;
use packhouse_wire::incoming_body::IncomingBody;

/// What a plugin is told of a repository that is not there, or that it is not shown.
const KIND: &str = "hosted";

/// A stranger's request.
pub(crate) struct Stranger<'a> {
    /// The program.
    pub app: &'a Arc<App>,
    /// The request without its body.
    pub parts: &'a Parts,
    /// What it is about.
    pub below: &'a Below,
    /// Its query.
    pub query: &'a [(String, String)],
    /// What is known of the credential, and of the repository.
    pub known: &'a Arc<Known>,
    /// In which organization.
    pub organization: OrganizationId,
    /// From which address.
    pub peer: IpAddr,
    /// What links start with.
    pub base_url: &'a str,
    /// The request's id.
    pub request_id: &'a str,
    /// Whether the credential came as a bearer.
    pub bears: bool,
}

/// A request that a format opens to anybody.
pub(crate) struct Opened {
    /// The format's.
    pub plugin: Arc<Plugin>,
    head: Arc<RequestHead>,
    intent: Intent,
}

impl Stranger<'_> {
    /// Who opens this request to anybody. A format that says which requests it opens is asked at every name; one that does not, in
    /// its own repositories alone. Where several open the same, the repository's own does.
    pub(crate) async fn opened(&self) -> Result<Option<Opened>, Refused> {
        let (method, path) = (self.parts.method.as_str(), self.below.path.as_slice());
        let own = self.known.facts.repository.as_ref().map(|row| row.format.as_str());
        let asked = |plugin: &&Arc<Plugin>| {
            let description = plugin.description();
            let undeclared = description.open_requests.is_none() && own == Some(description.format.as_str());
            undeclared || description.may_open(method, path)
        };
        let mut plugins: Vec<&Arc<Plugin>> = self.app.runtime.plugins().iter().filter(asked).collect();
        plugins.sort_by_key(|plugin| own != Some(plugin.description().format.as_str()));
        for (plugin, head, intent) in self.routed(&plugins).await? {
            if authorize::wanted(&intent) == Wanted::Open {
                return Ok(Some(Opened { plugin, head, intent }));
            }
        }
        Ok(None)
    }

    /// Whether the path makes sense anywhere: an encoded slash may stand in it where a format that is switched on takes it so.
    pub(crate) async fn makes_sense(&self) -> Result<bool, Refused> {
        if !self.below.encoded_slash {
            return Ok(true);
        }
        let plugins = self.app.runtime.plugins().iter();
        let plugins: Vec<_> = plugins.filter(|plugin| plugin.description().encoded_slash).collect();
        Ok(!self.routed(&plugins).await?.is_empty())
    }

    /// The refusal: 401. For a bearer that is not taken it is 404 where a format that is switched on reads here and answers so.
    pub(crate) async fn refusal(&self) -> Refused {
        match self.refused().await {
            Ok(refused) | Err(refused) => refused,
        }
    }

    async fn refused(&self) -> Result<Refused, Refused> {
        if self.known.presented == Presented::Nothing {
            return Ok(Refused::of(&catalogue::UNAUTHORIZED));
        }
        let hidden = self.bears && self.is_hidden().await?;
        let row = if hidden { &catalogue::NOT_FOUND } else { &catalogue::UNAUTHORIZED };
        Ok(Refused::of(row).of_credential())
    }

    async fn is_hidden(&self) -> Result<bool, Refused> {
        let hides = |plugin: &&Arc<Plugin>| {
            let description = plugin.description();
            [description.refused_read_status, description.refused_write_status].contains(&404)
        };
        let plugins: Vec<&Arc<Plugin>> = self.app.runtime.plugins().iter().filter(hides).collect();
        let routed = self.routed(&plugins).await?;
        Ok(routed.iter().any(|(plugin, _, intent)| {
            let description = plugin.description();
            let status = match authorize::wanted(intent) {
                Wanted::Read { for_publish: false } => description.refused_read_status,
                _ => description.refused_write_status,
            };
            status == 404
        }))
    }

    /// What those of the plugins that are switched on say the request would do, each with the request as it sees it.
    async fn routed(
        &self,
        plugins: &[&Arc<Plugin>],
    ) -> Result<Vec<(Arc<Plugin>, Arc<RequestHead>, Intent)>, Refused> {
        let mut routed = Vec::new();
        if plugins.is_empty() {
            return Ok(routed);
        }
        let switched = self.app.store.formats_enabled(self.organization).await?;
        for plugin in plugins {
            let description = plugin.description();
            let switch = switched.iter().find(|(format, _)| *format == description.format);
            let on = self.app.enabled(&description.format, switch.map(|(_, on)| *on));
            if !on || (self.below.encoded_slash && !description.encoded_slash) {
                continue;
            }
            let head = self.head(plugin);
            if let Ok(intent) = call::route(plugin, KIND, &head).await? {
                routed.push((Arc::clone(plugin), head, intent));
            }
        }
        Ok(routed)
    }

    fn head(&self, plugin: &Plugin) -> Arc<RequestHead> {
        let circumstances =
            Circumstances { base_url: self.base_url, caller: None, request_id: self.request_id };
        let (below, query) = (self.below.clone(), self.query.to_vec());
        head::head(self.parts, below, query, plugin.description(), (circumstances, &[]))
    }

    /// The answer to a request that is open where the caller may not know whether there is a repository: as in one of that name
    /// that holds nothing.
    pub(crate) async fn offer(
        &self,
        opened: Opened,
        body: &mut IncomingBody,
    ) -> Result<Arc<Prepared>, Refused> {
        let Opened { plugin, head, intent } = opened;
        let name = self.below.name.clone().unwrap_or_default();
        let headers = &self.parts.headers;
        receive::refuse_by_length(&intent, headers)?;
        let received = receive::receive(&self.app.store, None, &intent, headers, body).await?;
        let caller = Caller {
            known: Arc::clone(self.known),
            organization: self.organization,
            repository: Some(name.clone()),
            peer: self.peer,
            request_id: self.request_id.to_owned(),
        };
        let settings = Value::Object(repository_settings::effective("{}", false, Some(plugin.description())));
        let settings = settings.to_string().into();
        let view = RepositoryView { id: RepositoryId(0), name, kind: KIND.to_owned(), settings };
        let services = CallServices::new(self.app, &plugin, caller);
        let handed = (Some(view), Vec::new());
        let answer = call::handle(&plugin, &head, &intent, handed, received, None, services).await?;
        Ok(Arc::new(send::prepare(answer, true).await?))
    }
}
