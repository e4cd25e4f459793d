//! What the server does for a plugin beyond storage, for one call and its caller.

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

use crate::heard::Heard;
use crate::identify::Principal;
use packhouse_app::App;
use packhouse_identity::Secret;
use packhouse_identity::access::ResolvedCredential;
use packhouse_upstream::{CallOutcome, UnstatedTime, UpstreamReport, UpstreamSession, judge_releases};
use packhouse_wire::site::Site;

/// Who asks, and where.
#[derive(Clone)]
pub(crate) struct Caller {
    pub principal: Arc<Principal>,
    pub organization: OrganizationId,
    /// The name in the request's path, whether or not there is a repository of that name.
    pub repository: Option<String>,
    pub peer: IpAddr,
    /// The site of the repository host, as links have it.
    pub site: Option<Site>,
    /// The request's, for the audit log.
    pub request_id: Arc<str>,
    /// The number of the organization's rules over versions; none where none holds.
    pub policies: Option<i64>,
}

/// See the module.
pub(crate) struct CallServices {
    app: Arc<App>,
    caller: Caller,
    format: String,
    /// What the age of the format's releases counts from if a list states no time.
    unstated_time: UnstatedTime,
    /// The packages that the request is about.
    packages: Vec<String>,
    /// The call's use of upstreams.
    session: Mutex<Arc<UpstreamSession>>,
    /// Whether the plugin asked for what is the caller's own: sign-ins and tokens.
    asked_identity: AtomicBool,
    /// Secrets that stand in the answer by a placeholder.
    handed: Mutex<Vec<(String, Secret)>>,
    /// What notes what the call is told by others.
    heard: Option<Arc<Heard>>,
    /// Why the version that the request is about does not come, where a policy says so.
    refusal: Mutex<Option<String>>,
}

impl CallServices {
    /// For a call of this plugin.
    pub(crate) fn new(
        app: &Arc<App>,
        plugin: &Plugin,
        caller: Caller,
        packages: Vec<String>,
        heard: Option<Arc<Heard>>,
    ) -> Arc<CallServices> {
        let description = plugin.description();
        // Versions are compared for advisories alone.
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
            asked_identity: AtomicBool::new(false),
            handed: Mutex::default(),
            heard,
            refusal: Mutex::default(),
        })
    }

    /// Why the version that the request is about does not come, where a policy withholds it.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Of several repositories the first that would have it is heard.
    fn note_refusal(&self, sentence: String) {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(sentence);
    }

    /// Whether the plugin asked for what is the caller's own.
    pub(crate) fn asked_identity(&self) -> bool {
        self.asked_identity.load(Ordering::Relaxed)
    }

    /// What upstreams did in the call, other than to answer.
    pub(crate) fn upstream_reports(&self) -> Vec<(RepositoryId, UpstreamReport)> {
        self.session().reports()
    }

    /// The call has ended; `reason` is why it failed, in words. Whether another try may succeed.
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

    /// What stands in an answer for this secret until [`fill`](CallServices::fill).
    fn placeholder(&self, secret: Secret) -> String {
        let placeholder = format!("placeholder-{}", hex::encode(rand::random::<[u8; 16]>()));
        self.handed.lock().unwrap_or_else(PoisonError::into_inner).push((placeholder.clone(), secret));
        placeholder
    }

    /// The answer with each placeholder replaced by its secret, where the plugin wrote it into an inline content. It is confidential
    /// if there was one, or if the plugin asked for what is the caller's own.
    pub(crate) fn fill(&self, answer: Answer) -> Answer {
        let handed = std::mem::take(&mut *self.handed.lock().unwrap_or_else(PoisonError::into_inner));
        let confidential = !handed.is_empty() || self.asked_identity.load(Ordering::Relaxed);
        let answer = Answer { confidential: answer.confidential || confidential, ..answer };
        let content = match answer.content {
            Content::Joined(joined) if !handed.is_empty() => Content::Inline(joined.concat()),
            content => content,
        };
        match content {
            Content::Inline(bytes) if !handed.is_empty() => {
                let filled = handed.iter().fold(bytes.to_vec(), |bytes, (placeholder, secret)| {
                    replaced(&bytes, placeholder.as_bytes(), secret.reveal().as_bytes())
                });
                Answer { content: Content::Inline(Bytes::from(filled)), keepable: false, ..answer }
            }
            content => Answer { content, ..answer },
        }
    }

    /// Judges the releases of a list.
    async fn judge_listed(
        &self,
        proxy: &RepositoryView,
        package: &str,
        releases: Vec<Release>,
        unstated: UnstatedTime,
        now: u64,
    ) -> Result<JudgedReleases, ServiceError> {
        let (judged, releases) =
            judge_releases(&self.app.store, proxy, package, releases, unstated, now).await?;
        let judged = advisories::without_malware(self, package, &releases, judged).await?;
        policies::judge_list(self, proxy, package, &releases, judged).await
    }

    /// The same for a call aside: what is seen for the first time is not remembered.
    pub(crate) async fn judge_aside(
        &self,
        proxy: &RepositoryView,
        package: &str,
        releases: Vec<Release>,
        now: u64,
    ) -> Result<JudgedReleases, ServiceError> {
        let unstated = match self.unstated_time {
            UnstatedTime::FirstSight | UnstatedTime::KnownSight => UnstatedTime::KnownSight,
            UnstatedTime::FileDate => UnstatedTime::FileDate,
        };
        self.judge_listed(proxy, package, releases, unstated, now).await
    }

    /// The caller's own account, where the credential is one or belongs to one, as long as it is taken at all.
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
        let asked = self.heard.as_ref().map(|heard| (heard, fetch.clone()));
        let reply = self.app.upstreams.fetch(proxy, fetch, Arc::clone(&self.session()))?;
        let reply = policies::judged(judge, reply);
        Ok(match asked {
            Some((heard, asked)) => heard.note(proxy, asked, reply),
            None => reply,
        })
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
        Box::pin(async move { self.judge_listed(proxy, &package, releases, self.unstated_time, now).await })
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
            let (judged, asked) = judge_releases(store, proxy, &package, releases, unstated, now).await?;
            let judged = advisories::without_malware(self, &package, &asked, judged).await?;
            match asked.first() {
                Some(release) => policies::judge_asked(self, proxy, &package, release, judged).await,
                None => Ok(judged),
            }
        })
    }
}

impl IdentityService for CallServices {
    fn begin_login<'a>(&'a self, target: &'a RepositoryView) -> ServiceFuture<'a, Login> {
        self.asked_identity.store(true, Ordering::Relaxed);
        Box::pin(identity::begin_login(self, target))
    }

    fn finish_login<'a>(&'a self, id: &'a str) -> ServiceFuture<'a, LoginState> {
        self.asked_identity.store(true, Ordering::Relaxed);
        Box::pin(identity::finish_login(self, id))
    }

    fn tokens(&self) -> ServiceFuture<'_, Vec<TokenView>> {
        self.asked_identity.store(true, Ordering::Relaxed);
        Box::pin(identity::tokens(self))
    }

    fn revoke<'a>(&'a self, id: &'a str) -> ServiceFuture<'a, bool> {
        self.asked_identity.store(true, Ordering::Relaxed);
        Box::pin(identity::revoke(self, id))
    }
}

impl SigningService for CallServices {
    fn keys<'a>(&'a self, _target: &'a RepositoryView) -> ServiceFuture<'a, Vec<PublicKey>> {
        Box::pin(async {
            let keys = signing::keys(self).await?;
            if let Some(heard) = &self.heard {
                heard.note_keys(&keys);
            }
            Ok(keys)
        })
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
