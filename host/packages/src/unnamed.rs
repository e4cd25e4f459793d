//! Requests under a claim that name no repository, or one that is not there. The credential is judged before the names: who
//! shows none learns nothing of what is wrong with a name.

use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;
use packhouse_runtime::{Intent, Plugin, RequestHead};
use packhouse_store::OrganizationId;

use super::identify::Known;
use super::receive;
use super::scope::Scopes;
use super::send::{self, Prepared};
use super::shape::{Lacking, Refused};
use super::{authorize, call};
use crate::services::{CallServices, Caller};
use packhouse_app::App;
use packhouse_identity::access::Wanted;
use packhouse_wire::catalogue;
use packhouse_wire::incoming_body::IncomingBody;

/// What a plugin is told of a repository that is not there, so that it judges the names in the path.
const KIND: &str = "hosted";

/// A request without a repository, with what is known of it.
pub(crate) struct Unnamed<'a> {
    /// The program.
    pub app: &'a Arc<App>,
    /// The request without its body.
    pub parts: &'a Parts,
    /// Whose claim it is.
    pub plugin: &'a Plugin,
    /// Who asks.
    pub known: &'a Arc<Known>,
    /// In which organization.
    pub organization: OrganizationId,
    /// From which address.
    pub peer: IpAddr,
    /// How a bearer's scopes look here, where there are any.
    pub scopes: Option<Scopes<'a>>,
    /// The request as the plugin sees it.
    pub head: Arc<RequestHead>,
    /// The time, in ms since 1970.
    pub now: i64,
}

impl Unnamed<'_> {
    /// The plugin's answer to a request under a claim that names no repository: `read` asks for a credential and no more, `open`
    /// not even for that.
    pub(crate) async fn answer(&self, body: &mut IncomingBody) -> Result<Arc<Prepared>, Refused> {
        let intent = match call::route(self.plugin, "", &self.head).await? {
            Ok(intent) => intent,
            Err(refused) => {
                self.judge(Wanted::Read { for_publish: true }, None)?;
                return Err(refused);
            }
        };
        self.judge(authorize::wanted(&intent), None)?;
        let headers = &self.parts.headers;
        receive::refuse_by_length(&intent, headers)?;
        let received = receive::receive(&self.app.store, None, &intent, headers, body).await?;
        let nothing = (None, Vec::new());
        let caller = Caller {
            known: Arc::clone(self.known),
            organization: self.organization,
            repository: None,
            peer: self.peer,
            request_id: self.head.request_id.clone(),
        };
        let services = CallServices::new(self.app, self.plugin, caller);
        let answer =
            call::handle(self.plugin, &self.head, &intent, nothing, received, None, services).await?;
        Ok(Arc::new(send::prepare(answer, true).await?))
    }

    /// The refusal of a request whose repository is not there. Without a credential it looks like that of one that is there and
    /// private, its scope included.
    pub(crate) async fn absent(&self, name: &str) -> Refused {
        match self.refusal(name).await {
            Ok(refused) | Err(refused) => refused,
        }
    }

    async fn refusal(&self, name: &str) -> Result<Refused, Refused> {
        let routed = call::route(self.plugin, KIND, &self.head).await?;
        let wanted = match &routed {
            Ok(intent) => authorize::wanted(intent),
            Err(_) => authorize::wanted_by_method(&self.head.method),
        };
        // What is open is open in a repository that is there.
        let wanted = if wanted == Wanted::Open { Wanted::Read { for_publish: false } } else { wanted };
        self.judge(wanted, routed.as_ref().ok().map(|intent| (name, intent)))?;
        if !packhouse_wire::path::is_repository_name(name) {
            return Ok(Refused::of(&catalogue::NO_REPOSITORY_NAME));
        }
        Ok(match routed {
            Err(refused) if refused.is_malformed() => refused,
            _ => Refused::of(&catalogue::NOT_FOUND),
        })
    }

    fn judge(&self, wanted: Wanted, about: Option<(&str, &Intent)>) -> Result<(), Refused> {
        let rules = authorize::rules(Some(self.plugin.description()));
        let scope = || {
            let (name, intent) = about?;
            self.scopes.and_then(|scopes| scopes.text(name, intent.subject.as_deref(), wanted))
        };
        authorize::authorize_credential(&self.known.presented, &rules, wanted, self.now)
            .map_err(|refused| refused.lacking(scope(), Lacking::of(&self.known.bearing, false)))
    }
}
