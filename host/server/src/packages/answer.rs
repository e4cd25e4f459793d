//! The answer to a request whose repository and plugin are known: one that was kept, else the plugin's, step by step.

use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;
use packhouse_runtime::{Action, Intent, Plugin, RepositoryView, RequestHead};
use packhouse_store::{AuditEvent, RepositoryRow};

use super::identify::Known;
use super::kept::{self, Answers, Key, Revisions};
use super::receive::{self, Arriving};
use super::send::{self, Prepared};
use super::shape::Refused;
use super::{authorize, call};
use crate::access::{Kind, Wanted};
use crate::app::App;

/// A declared body up to this size is received without asking the plugin first: `handle` decides anyway.
const UNCHECKED_BYTES: u64 = 64 * 1024;
/// How much of a path the audit log keeps.
const MAX_SUBJECT_BYTES: usize = 512;

/// A request below a repository's address, with what is known of it.
pub(crate) struct Asking<'a> {
    /// The program.
    pub(crate) app: &'a App,
    /// The request without its body.
    pub(crate) parts: &'a Parts,
    /// What it is about.
    pub(crate) repository: &'a RepositoryRow,
    /// Who answers.
    pub(crate) plugin: &'a Plugin,
    /// Who asks.
    pub(crate) known: &'a Known,
    /// From which address.
    pub(crate) peer: IpAddr,
    /// The request as the plugin sees it.
    pub(crate) head: Arc<RequestHead>,
    /// The time, in ms since 1970.
    pub(crate) now: i64,
}

impl Asking<'_> {
    /// The answer, which is kept where it may be.
    pub(crate) async fn answer(
        &self,
        answers: &Answers,
        body: &mut Arriving,
    ) -> Result<Arc<Prepared>, Refused> {
        let revisions = Revisions::of(self.repository);
        let key = Key::of(self.repository.id, &self.head);
        if let Some(kept) = key.as_ref().and_then(|key| answers.get(key, revisions)) {
            self.admit(authorize::wanted(&kept.intent))?;
            return Ok(Arc::clone(&kept.answer));
        }
        let intent = self.route().await?;
        self.admit(authorize::wanted(&intent))?;
        let (prepared, keepable) = self.ask(&intent, body).await?;
        let Some(key) = key.filter(|_| keepable) else { return Ok(Arc::new(prepared)) };
        let prepared = Arc::new(kept::in_memory(prepared).await?);
        answers.keep(key, revisions, intent, Arc::clone(&prepared));
        Ok(prepared)
    }

    /// What follows once the request is allowed: can it succeed, its body, the plugin. Says whether the answer may be kept.
    async fn ask(&self, intent: &Intent, body: &mut Arriving) -> Result<(Prepared, bool), Refused> {
        let headers = &self.parts.headers;
        receive::refuse_by_length(intent, headers)?;
        let view = call::view(self.repository, self.plugin.description());
        self.check(intent, &view).await?;
        let received =
            receive::receive(&self.app.store, Some(self.repository.id), intent, headers, body).await?;
        let answer = call::handle(
            self.plugin,
            &self.head,
            intent.action,
            Some(view),
            received,
            self.event(intent.action),
        )
        .await?;
        let keepable = answer.keepable && intent.action == Action::Read;
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
        authorize::authorize(self.known, &rules, wanted, true, self.now)
    }

    /// Lets a request in, and notes that its token or key was used.
    fn admit(&self, wanted: Wanted) -> Result<(), Refused> {
        self.authorize(wanted)?;
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

    async fn check(&self, intent: &Intent, view: &RepositoryView) -> Result<(), Refused> {
        let headers = &self.parts.headers;
        let small = receive::declared(headers).is_some_and(|length| length <= UNCHECKED_BYTES);
        if !intent.check || (small && !receive::expects_continue(headers)) {
            return Ok(());
        }
        call::check(self.plugin, &self.head, intent.action, Some(view.clone())).await
    }
}
