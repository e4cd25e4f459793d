//! The answer to a request whose repository and plugin are known: one that was kept, else the plugin's, step by step.

use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;
use packhouse_runtime::{Action, Intent, Plugin, RepositoryView, RequestHead};
use packhouse_store::{AuditEvent, RepositoryRow};

use super::identify::{Bearing, Known};
use super::kept::{self, Answers, Key, Revisions};
use super::names::Names;
use super::receive;
use super::scope::Scopes;
use super::send::{self, Prepared};
use super::shape::{Lacking, Refused};
use super::{authorize, call};
use crate::services::{CallServices, Caller};
use packhouse_app::App;
use packhouse_config::repository_settings;
use packhouse_identity::access::{Kind, Wanted};
use packhouse_wire::catalogue;
use packhouse_wire::incoming_body::IncomingBody;

/// A declared body up to this size is received without asking the plugin first: `handle` decides anyway.
const UNCHECKED_BYTES: u64 = 64 * 1024;
/// How much of a path the audit log keeps.
const MAX_SUBJECT_BYTES: usize = 512;

/// A request below a repository's address, with what is known of it.
pub(crate) struct Asking<'a> {
    /// The program.
    pub app: &'a Arc<App>,
    /// The request without its body.
    pub parts: &'a Parts,
    /// What it is about.
    pub repository: &'a RepositoryRow,
    /// Who answers.
    pub plugin: &'a Plugin,
    /// Who asks.
    pub known: &'a Arc<Known>,
    /// From which address.
    pub peer: IpAddr,
    /// How a bearer's scopes look here, where there are any.
    pub scopes: Option<Scopes<'a>>,
    /// The request as the plugin sees it.
    pub head: Arc<RequestHead>,
    /// The time, in ms since 1970.
    pub now: i64,
}

impl Asking<'_> {
    /// The answer, which is kept where it may be.
    pub(crate) async fn answer(
        &self,
        answers: &Answers,
        body: &mut IncomingBody,
    ) -> Result<Arc<Prepared>, Refused> {
        let members = self.members();
        let revisions = Revisions::of(self.repository, self.all_members());
        let key = Key::of(self.repository.id, &members, &self.head);
        if let Some(kept) = key.as_ref().and_then(|key| answers.get(key, &revisions)) {
            self.admit(&kept.intent)?;
            return Ok(Arc::clone(&kept.answer));
        }
        let intent = self.route().await?;
        self.admit(&intent)?;
        self.refuse_empty_group(&intent, &members)?;
        self.refuse_claimed(&intent)?;
        let others = self.others(&intent, &members).await?;
        let (prepared, keepable) = self.ask(&intent, others, body).await?;
        let Some(key) = key.filter(|_| keepable) else { return Ok(Arc::new(prepared)) };
        let prepared = Arc::new(kept::in_memory(prepared).await?);
        answers.keep(key, revisions, intent, Arc::clone(&prepared));
        Ok(prepared)
    }

    /// A group's members that this caller may read.
    fn members(&self) -> Vec<&RepositoryRow> {
        let description = self.plugin.description();
        match self.known.facts.members.as_slice() {
            [] => Vec::new(),
            members => authorize::readable(self.known, description, members, self.now),
        }
    }

    /// A group's members, whoever may read them.
    fn all_members(&self) -> impl Iterator<Item = &RepositoryRow> {
        self.known.facts.members.iter().map(|member| &member.row)
    }

    fn refuse_empty_group(&self, intent: &Intent, members: &[&RepositoryRow]) -> Result<(), Refused> {
        let group = Kind::of(&self.repository.kind) == Kind::Group;
        match group && intent.action == Action::Read && members.is_empty() {
            true => Err(Refused::of(&catalogue::GROUP_EMPTY)),
            false => Ok(()),
        }
    }

    /// A proxy has no package whose name it claims, whatever it has fetched of it before.
    fn refuse_claimed(&self, intent: &Intent) -> Result<(), Refused> {
        if Kind::of(&self.repository.kind) != Kind::Proxy || intent.packages.is_empty() {
            return Ok(());
        }
        let names = Names::of(self.plugin.description(), [self.repository]);
        match intent.packages.iter().any(|name| names.claims(name)) {
            true => Err(Refused::of(&catalogue::NAME_CLAIMED)),
            false => Ok(()),
        }
    }

    /// Whether a group's proxies may serve what the request is about. Where it names no package, nothing that the caller cannot see
    /// may stand in their way: the plugin then judges by what it is handed.
    async fn proxies_serve(&self, intent: &Intent, members: &[&RepositoryRow]) -> Result<bool, Refused> {
        let is_hosted = |row: &&RepositoryRow| Kind::of(&row.kind) == Kind::Hosted;
        if intent.packages.is_empty() {
            let seen = |row: &RepositoryRow| members.iter().any(|member| member.id == row.id);
            return Ok(intent.many_packages || self.all_members().filter(is_hosted).all(seen));
        }
        let names = Names::of(self.plugin.description(), self.all_members().chain([self.repository]));
        Ok(names.withheld(&self.app.store, &intent.packages).await?.is_empty())
    }

    /// What is handed over besides the target: the members of a group that may serve, and what the intent reads from, where both the credential
    /// and the bearer that it came in allow it.
    async fn others(
        &self,
        intent: &Intent,
        members: &[&RepositoryRow],
    ) -> Result<Vec<RepositoryView>, Refused> {
        let description = self.plugin.description();
        let is_proxy = |row: &RepositoryRow| Kind::of(&row.kind) == Kind::Proxy;
        // Only a group has members: for what is none nothing is asked.
        let proxies = !members.iter().any(|row| is_proxy(row)) || self.proxies_serve(intent, members).await?;
        let serving = members.iter().filter(|row| proxies || !is_proxy(row));
        let mut views: Vec<RepositoryView> =
            serving.map(|row| repository_settings::view(row, description)).collect();
        let wanted = Wanted::Read { for_publish: false };
        let granted = |name: &&String| match &self.known.bearing {
            Bearing::Granted(grants) => grants.iter().any(|grant| {
                grant.repository == **name && grant.covers(name, grant.subject.as_deref(), wanted)
            }),
            Bearing::Direct => true,
            Bearing::Refused => false,
        };
        let names: Vec<String> = intent.also_read.iter().filter(granted).cloned().collect();
        let organization = self.repository.organization;
        let found = self.app.store.look_up_others(organization, &names, &self.known.facts).await?;
        let readable = authorize::readable(self.known, description, &found, self.now);
        let named = |name: &String| readable.iter().find(|row| row.name == *name);
        let named = names.iter().filter_map(named).filter(|row| proxies || !is_proxy(row));
        views.extend(named.map(|row| repository_settings::view(row, description)));
        Ok(views)
    }

    /// What follows once the request is allowed: can it succeed, its body, the plugin. Says whether the answer may be kept.
    async fn ask(
        &self,
        intent: &Intent,
        others: Vec<RepositoryView>,
        body: &mut IncomingBody,
    ) -> Result<(Prepared, bool), Refused> {
        let headers = &self.parts.headers;
        receive::refuse_by_length(intent, headers)?;
        let view = repository_settings::view(self.repository, self.plugin.description());
        self.check(intent, &view, &others).await?;
        let received =
            receive::receive(&self.app.store, Some(self.repository.id), intent, headers, body).await?;
        let (handed, event) = ((Some(view), others), self.event(intent.action));
        let caller = Caller {
            known: Arc::clone(self.known),
            organization: self.repository.organization,
            repository: Some(self.repository.name.clone()),
            peer: self.peer,
            request_id: self.head.request_id.clone(),
        };
        let services = CallServices::new(self.app, self.plugin, caller);
        let answer = call::handle(self.plugin, &self.head, intent, handed, received, event, services).await?;
        // What an intent names besides is in no revision, and one that was made for this caller is no other's.
        let same = intent.also_read.is_empty() && !intent.for_caller;
        let keepable = answer.keepable && intent.action == Action::Read && same;
        Ok((send::prepare(answer, !self.repository.public).await?, keepable))
    }

    /// What the audit log says of a change; none of what only reads.
    fn event(&self, action: Action) -> Option<AuditEvent> {
        let name = match action {
            Action::Publish => "publish",
            Action::Delete => "delete",
            Action::Open | Action::Read => return None,
        };
        let mut subject = format!("{}/{}", self.repository.name, self.head.path.join("/"));
        subject.truncate(subject.floor_char_boundary(MAX_SUBJECT_BYTES));
        Some(AuditEvent {
            organization: self.repository.organization,
            actor: self.known.caller.clone().unwrap_or_default(),
            credential: self.known.credential.clone().unwrap_or_default(),
            action: name.to_owned(),
            subject,
            address: self.peer.to_string(),
            request_id: self.head.request_id.clone(),
            detail: String::new(),
        })
    }

    fn authorize(&self, wanted: Wanted) -> Result<(), Refused> {
        let rules = authorize::rules(Some(self.plugin.description()));
        let facts = authorize::facts(self.repository, true);
        authorize::authorize(&self.known.presented, &rules, wanted, Some(facts), self.now)
    }

    /// Lets a request in, and notes that its token or key was used. A bearer that was not given for it is told which scope it lacks.
    fn admit(&self, intent: &Intent) -> Result<(), Refused> {
        let wanted = authorize::wanted(intent);
        let (name, subject) = (self.repository.name.as_str(), intent.subject.as_deref());
        let scope = || self.scopes.and_then(|scopes| scopes.text(name, subject, wanted));
        let lacks = match &self.known.bearing {
            Bearing::Granted(grants) => !grants.iter().any(|grant| grant.covers(name, subject, wanted)),
            Bearing::Direct | Bearing::Refused => false,
        };
        let lacking = Lacking::of(&self.known.bearing, lacks);
        self.authorize(wanted).map_err(|refused| refused.lacking(scope(), lacking))?;
        if lacks && wanted != Wanted::Open {
            return Err(Refused::of(&catalogue::UNAUTHORIZED).lacking(scope(), lacking));
        }
        if let Some(token) = &self.known.facts.token {
            self.app.store.token_used(token.id, self.now);
        }
        if let Some(key) = &self.known.facts.key {
            self.app.store.access_key_used(key.id, self.now);
        }
        Ok(())
    }

    /// The plugin's own refusal of a path is told to those who may read here, and a write to what has no storage is refused
    /// as such whatever its path.
    async fn route(&self) -> Result<Intent, Refused> {
        match call::route(self.plugin, &self.repository.kind, &self.head).await? {
            Ok(intent) => Ok(intent),
            Err(refused) => {
                self.authorize(Wanted::Read { for_publish: true })?;
                let by_method = authorize::wanted_by_method(&self.head.method);
                if Kind::of(&self.repository.kind) != Kind::Hosted && by_method.writes() {
                    self.authorize(by_method)?;
                }
                Err(refused)
            }
        }
    }

    async fn check(
        &self,
        intent: &Intent,
        view: &RepositoryView,
        others: &[RepositoryView],
    ) -> Result<(), Refused> {
        let headers = &self.parts.headers;
        let small =
            packhouse_wire::incoming_body::declared(headers).is_some_and(|length| length <= UNCHECKED_BYTES);
        if !intent.check || (small && !packhouse_wire::incoming_body::expects_continue(headers)) {
            return Ok(());
        }
        let handed = (Some(view.clone()), others.to_vec());
        call::check(self.plugin, &self.head, intent.action, handed).await
    }
}
