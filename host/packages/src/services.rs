//! Services that the server offers to a plugin in addition to storage. They serve one call and know
//! its caller.

mod advisories;
mod identity;
mod names;
mod policies;
mod signing;

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use memchr::memmem;
use packhouse_runtime::{
    AdvisoryService, Answer, Content, Fetch, IdentityService, JudgedReleases, Login, LoginState, Plugin,
    PublicKey, Release, Reply, RepositoryView, ServiceError, ServiceFuture, Signature, SigningService,
    TokenView, UpstreamService,
};
use packhouse_store::{MemberRow, OrganizationId, RepositoryId};

use crate::identify::Principal;
use packhouse_app::App;
use packhouse_identity::Secret;
use packhouse_identity::access::ResolvedCredential;
use packhouse_upstream::{CallOutcome, UnstatedTime, UpstreamReport, UpstreamSession, judge_releases};
use packhouse_wire::site::Site;

/// The caller of a request, and the request's target.
#[derive(Clone)]
pub(crate) struct Caller {
    pub principal: Arc<Principal>,
    pub organization: OrganizationId,
    /// The name in the request's path, even if there is no such repository.
    pub repository: Option<String>,
    pub peer: IpAddr,
    /// Scheme and host of the repository host, as in links.
    pub site: Option<Site>,
    /// Id of the request, for the audit log.
    pub request_id: Arc<str>,
    /// Number of the organization's policy rules; `None` without rules.
    pub policies: Option<i64>,
}

/// Services of the server for one call.
pub(crate) struct CallServices {
    app: Arc<App>,
    caller: Caller,
    format: String,
    /// Time from which a release's age counts if a list states none.
    unstated_time: UnstatedTime,
    /// The packages of the request.
    packages: Vec<String>,
    /// Use of upstreams in this call.
    session: Mutex<Arc<UpstreamSession>>,
    /// True if the plugin used the caller's sign-ins or tokens.
    used_identity: AtomicBool,
    /// Secrets and the placeholders that the plugin got for them.
    placeholders: Mutex<Vec<(String, Secret)>>,
    /// Reason why a policy withholds the requested version, if a policy does so.
    refusal: Mutex<Option<String>>,
}

impl CallServices {
    pub(crate) fn new(
        app: &Arc<App>,
        plugin: &Plugin,
        caller: Caller,
        packages: Vec<String>,
    ) -> Arc<CallServices> {
        let description = plugin.description();
        // Only advisories need a comparison of versions.
        let ordering =
            if app.advisories.number() == 0 { None } else { app.runtime.plugin(&description.format) };
        Arc::new(CallServices {
            session: Mutex::new(app.upstreams.session(plugin, ordering)),
            app: Arc::clone(app),
            caller,
            format: description.format.clone(),
            unstated_time: if description.file_dates {
                UnstatedTime::FileDate
            } else {
                UnstatedTime::FirstSight
            },
            packages,
            used_identity: AtomicBool::new(false),
            placeholders: Mutex::default(),
            refusal: Mutex::default(),
        })
    }

    /// Returns the reason why a policy withholds the requested version, if a policy does so.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records a refusal. If several repositories could serve the version, the first refusal is
    /// kept.
    fn record_refusal(&self, sentence: String) {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(sentence);
    }

    /// Returns the refusals and rate limits of upstreams in this call.
    pub(crate) fn upstream_reports(&self) -> Vec<(RepositoryId, UpstreamReport)> {
        self.session().reports()
    }

    /// Ends the call. `reason` is the message of a failed call. Returns true if a retry may
    /// succeed.
    pub(crate) async fn end(&self, outcome: CallOutcome, reason: Option<&str>) -> bool {
        let session = Arc::clone(&self.session());
        let retry = self.app.upstreams.end(&session, outcome, reason).await;
        let may_retry = retry.is_some();
        if let Some(retry) = retry {
            *self.session() = retry;
        }
        may_retry
    }

    fn session(&self) -> MutexGuard<'_, Arc<UpstreamSession>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a placeholder for this secret. [`fill`](CallServices::fill) later replaces the
    /// placeholder.
    fn placeholder(&self, secret: Secret) -> String {
        let placeholder = format!("placeholder-{}", hex::encode(rand::random::<[u8; 16]>()));
        self.placeholders.lock().unwrap_or_else(PoisonError::into_inner).push((placeholder.clone(), secret));
        placeholder
    }

    /// Replaces the placeholders in inline content with their secrets. The answer becomes
    /// confidential if it contains secrets, or if the plugin used the caller's sign-ins or tokens.
    pub(crate) fn fill(&self, answer: Answer) -> Answer {
        let placeholders =
            std::mem::take(&mut *self.placeholders.lock().unwrap_or_else(PoisonError::into_inner));
        let confidential = !placeholders.is_empty() || self.used_identity.load(Ordering::Relaxed);
        let answer = Answer { confidential: answer.confidential || confidential, ..answer };
        let content = match answer.content {
            Content::Joined(joined) if !placeholders.is_empty() => Content::Inline(joined.concat()),
            content => content,
        };
        match content {
            Content::Inline(bytes) if !placeholders.is_empty() => {
                let filled = placeholders.iter().fold(bytes.to_vec(), |bytes, (placeholder, secret)| {
                    replaced(&bytes, placeholder.as_bytes(), secret.reveal().as_bytes())
                });
                Answer { content: Content::Inline(Bytes::from(filled)), cacheable: false, ..answer }
            }
            content => Answer { content, ..answer },
        }
    }

    /// Returns the member's account if the credential is a member's sign-in or token.
    fn member(&self) -> Option<&MemberRow> {
        match self.caller.principal.presented {
            ResolvedCredential::Token(..) | ResolvedCredential::Member(_) => {
                self.caller.principal.member.as_deref()
            }
            _ => None,
        }
    }
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(bytes.len() + to.len());
    let mut rest = bytes;
    while let Some(at) = memmem::find(rest, from) {
        let (before, after) = rest.split_at(at);
        made.extend_from_slice(before);
        made.extend_from_slice(to);
        rest = after.get(from.len()..).unwrap_or_default();
    }
    made.extend_from_slice(rest);
    made
}

impl UpstreamService for CallServices {
    fn fetch(&self, proxy: &RepositoryView, fetch: Fetch) -> Result<Box<dyn Reply>, ServiceError> {
        let judge = policies::FetchJudge::of(self, proxy, &fetch);
        let reply = self.app.upstreams.fetch(proxy, fetch, Arc::clone(&self.session()))?;
        Ok(policies::judged(judge, reply))
    }

    fn leave_out(&self, proxy: &RepositoryView, reason: String) {
        self.session().leave_out(proxy.id, reason);
    }

    fn withheld<'a>(
        &'a self,
        _repository: &'a RepositoryView,
        names: Vec<String>,
    ) -> ServiceFuture<'a, Vec<String>> {
        Box::pin(names::withheld(self, names))
    }

    fn judge_releases<'a>(
        &'a self,
        proxy: &'a RepositoryView,
        package: String,
        releases: Vec<Release>,
        now: u64,
    ) -> ServiceFuture<'a, JudgedReleases> {
        Box::pin(async move {
            let (store, unstated) = (&self.app.store, self.unstated_time);
            let (judged, releases) = judge_releases(store, proxy, &package, releases, unstated, now).await?;
            let judged = advisories::without_malware(self, &package, &releases, judged).await?;
            policies::judge_list(self, proxy, &package, &releases, judged).await
        })
    }

    fn judge_asked<'a>(
        &'a self,
        proxy: &'a RepositoryView,
        package: String,
        release: Release,
        now: u64,
    ) -> ServiceFuture<'a, JudgedReleases> {
        Box::pin(async move {
            let (store, releases, unstated) = (&self.app.store, vec![release], self.unstated_time);
            let (judged, requested) = judge_releases(store, proxy, &package, releases, unstated, now).await?;
            let judged = advisories::without_malware(self, &package, &requested, judged).await?;
            match requested.first() {
                Some(release) => policies::judge_asked(self, proxy, &package, release, judged).await,
                None => Ok(judged),
            }
        })
    }
}

impl IdentityService for CallServices {
    fn begin_login<'a>(&'a self, target: &'a RepositoryView) -> ServiceFuture<'a, Login> {
        self.used_identity.store(true, Ordering::Relaxed);
        Box::pin(identity::begin_login(self, target))
    }

    fn finish_login<'a>(&'a self, id: &'a str) -> ServiceFuture<'a, LoginState> {
        self.used_identity.store(true, Ordering::Relaxed);
        Box::pin(identity::finish_login(self, id))
    }

    fn tokens(&self) -> ServiceFuture<'_, Vec<TokenView>> {
        self.used_identity.store(true, Ordering::Relaxed);
        Box::pin(identity::tokens(self))
    }

    fn revoke<'a>(&'a self, id: &'a str) -> ServiceFuture<'a, bool> {
        self.used_identity.store(true, Ordering::Relaxed);
        Box::pin(identity::revoke(self, id))
    }
}

impl SigningService for CallServices {
    fn keys<'a>(&'a self, _target: &'a RepositoryView) -> ServiceFuture<'a, Vec<PublicKey>> {
        Box::pin(signing::keys(self))
    }

    fn sign<'a>(&'a self, _target: &'a RepositoryView, message: &'a [u8]) -> ServiceFuture<'a, Signature> {
        Box::pin(signing::sign(self, message))
    }
}

impl AdvisoryService for CallServices {
    fn find<'a>(&'a self, _of: &'a RepositoryView, names: Vec<String>) -> ServiceFuture<'a, String> {
        Box::pin(advisories::find(self, names))
    }

    fn refusal<'a>(
        &'a self,
        repository: RepositoryId,
        versions: Vec<(String, String)>,
    ) -> ServiceFuture<'a, Option<String>> {
        Box::pin(advisories::refusal(self, repository, versions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_is_replaced_wherever_it_stands() {
        for (text, made) in [("P", "secret"), ("aPbP", "asecretbsecret"), ("", ""), ("ab", "ab")] {
            assert_eq!(replaced(text.as_bytes(), b"P", b"secret"), made.as_bytes());
        }
    }
}
