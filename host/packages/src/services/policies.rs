//! Policies for the versions that a call publishes or fetches. If the organization has no rules,
//! the host judges nothing and wraps no reply.

use std::sync::Arc;

use packhouse_app::App;
use packhouse_app::policies::{
    JudgedRepository, PublishedVersions, Question, RequestedFile, RuleSet, VersionJudgement, facts,
};
use packhouse_runtime::{
    Fetch, JudgedReleases, PolicyFacts, PolicyPurpose, PolicyService, Release, ReleaseVerdict, Reply,
    ReplyLifetime, RepositoryView, RequestHead, ServiceError, ServiceFuture,
};
use packhouse_store::{Arriving, Digest, RepositoryId, SignedStatement, Version, now_ms};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::CallServices;

impl CallServices {
    fn place(&self, repository: RepositoryId, name: Arc<str>, kind: &str) -> JudgedRepository {
        JudgedRepository {
            organization: self.caller.organization,
            repository,
            name,
            kind: kind.to_owned(),
            format: self.format.clone(),
            upstream: None,
        }
    }

    /// Returns a policy question about a version in a proxy.
    fn proxied(&self, proxy: &RepositoryView, purpose: PolicyPurpose) -> Question {
        let upstream = serde_json::from_str::<Value>(&proxy.settings).ok();
        let upstream = upstream.and_then(|settings| Some(settings.get("upstream")?.as_str()?.to_owned()));
        let place = self.place(proxy.id, Arc::clone(&proxy.name), &proxy.kind);
        self.question(JudgedRepository { upstream, ..place }, purpose)
    }

    fn question(&self, place: JudgedRepository, purpose: PolicyPurpose) -> Question {
        let request_id = self.caller.request_id.clone();
        Question {
            place,
            purpose,
            file: None,
            caller: self.caller.principal.caller.as_deref().map(str::to_owned),
            head: Arc::new(RequestHead { request_id, ..RequestHead::default() }),
            now: now_ms(),
        }
    }
}

impl PolicyService for CallServices {
    fn has_policies(&self, _repository: RepositoryId) -> bool {
        self.caller.policies.is_some()
    }

    fn judge_publish<'a>(
        &'a self,
        repository: RepositoryId,
        versions: Vec<&'a Version>,
        statements: Vec<&'a SignedStatement>,
    ) -> ServiceFuture<'a, ()> {
        Box::pin(async move {
            let Some(number) = self.caller.policies else { return Ok(()) };
            let set = self.app.rules_that_hold(self.caller.organization, number).await?;
            if !set.reaches(repository) {
                return Ok(());
            }
            let name = self.caller.repository.as_deref().unwrap_or_default().into();
            let question = self.question(self.place(repository, name, "hosted"), PolicyPurpose::Publish);
            let published = PublishedVersions { versions: &versions, statements: &statements };
            let judged = self.app.judge_publish(&set, &question, &published).await?;
            passed(judged.into_iter())
        })
    }
}

/// Withholds the releases in a list that a policy refuses. Does not judge releases without a
/// version.
pub(super) async fn judge_list(
    services: &CallServices,
    proxy: &RepositoryView,
    package: &str,
    releases: &[Release],
    mut judged: JudgedReleases,
) -> Result<JudgedReleases, ServiceError> {
    let Some(number) = services.caller.policies else { return Ok(judged) };
    let set = services.app.rules_that_hold(services.caller.organization, number).await?;
    if !set.reaches(proxy.id) {
        return Ok(judged);
    }
    let offered = |(at, (release, verdict)): (usize, (&Release, &ReleaseVerdict))| {
        (*verdict != ReleaseVerdict::Withheld && !release.version.is_empty()).then_some(at)
    };
    let offered: Vec<usize> = releases.iter().zip(&judged.verdicts).enumerate().filter_map(offered).collect();
    let facts = |at: &usize| {
        let release = releases.get(*at)?;
        let mut facts = facts::of_name(package, &release.version);
        facts.published = release.published;
        facts.license = release.license.clone().filter(|license| !license.is_empty());
        Some(facts)
    };
    let facts: Vec<PolicyFacts> = offered.iter().filter_map(facts).collect();
    // The list is the same for all callers, so the question names no caller.
    let question = services.proxied(proxy, PolicyPurpose::List);
    let rulings = services.app.judge(&set, &Question { caller: None, ..question }, facts).await?;
    for (at, ruling) in offered.into_iter().zip(rulings) {
        let until = ruling.until.and_then(|until| u64::try_from(until).ok());
        judged.until = judged.until.into_iter().chain(until).min();
        if let (Some(verdict), Some(refusal)) = (judged.verdicts.get_mut(at), ruling.refusal) {
            *verdict = ReleaseVerdict::Withheld;
            judged.because.insert(at, refusal.message());
        }
    }
    Ok(judged)
}

/// Withholds a requested release if policies would refuse a fetch of its file, and records the
/// reason.
pub(super) async fn judge_asked(
    services: &CallServices,
    proxy: &RepositoryView,
    package: &str,
    release: &Release,
    mut judged: JudgedReleases,
) -> Result<JudgedReleases, ServiceError> {
    let Some(number) = services.caller.policies else { return Ok(judged) };
    let app = &services.app;
    let set = app.rules_that_hold(services.caller.organization, number).await?;
    let is_open = !judged.verdicts.contains(&ReleaseVerdict::Withheld) && !release.version.is_empty();
    if !is_open || !set.reaches(proxy.id) {
        return Ok(judged);
    }
    let row = app.store.facts_of_version(proxy.id, package, &release.version).await?;
    let mut facts = row.as_ref().map_or_else(|| facts::of_name(package, &release.version), facts::of_row);
    facts.published = release.published.or(facts.published);
    facts.license = release.license.clone().filter(|license| !license.is_empty()).or(facts.license);
    let question = services.proxied(proxy, PolicyPurpose::Fetch);
    let ruling = app.judge(&set, &question, vec![facts]).await?.into_iter().next().unwrap_or_default();
    let until = ruling.until.and_then(|until| u64::try_from(until).ok());
    judged.until = judged.until.into_iter().chain(until).min();
    if let Some(refusal) = ruling.refusal {
        judged.verdicts = vec![ReleaseVerdict::Withheld];
        judged.because.insert(0, refusal.message());
        services.record_refusal(refusal.message());
    }
    Ok(judged)
}

/// Fails with `PolicyDenied` if any ruling is a refusal.
fn passed(mut judged: impl Iterator<Item = VersionJudgement>) -> Result<(), ServiceError> {
    match judged.find_map(|one| one.refusal) {
        Some(refusal) => Err(ServiceError::PolicyDenied(refusal.message())),
        None => Ok(()),
    }
}

/// Judges the versions to which the file in a reply belongs. For a file without a version, judges
/// the packages of the request.
pub(super) struct FetchJudge {
    app: Arc<App>,
    /// Number of the organization's policy rules; `None` without rules.
    number: Option<i64>,
    question: Question,
    subject: JudgedSubject,
}

enum JudgedSubject {
    /// Package, version, and the version's file to which the reply belongs. One allowed version is
    /// enough.
    Versions(Vec<(String, String, RequestedFile)>),
    /// All of these packages must be allowed.
    Packages(Vec<String>),
}

impl FetchJudge {
    /// Returns `None` if there is nothing to judge: no rule applies, or the plugin declares the
    /// reply as metadata.
    pub(super) fn of(services: &CallServices, proxy: &RepositoryView, fetch: &Fetch) -> Option<FetchJudge> {
        let (number, app) = (services.caller.policies, &services.app);
        // Statements about the file to which a reply belongs contain the digest of that file.
        let digests = if fetch.show_as.is_some() { fetch.expect.clone() } else { Vec::new() };
        let version = |(package, version, path): &(String, String, String)| {
            let file = RequestedFile { path: path.clone(), digests: digests.clone() };
            (package.clone(), version.clone(), file)
        };
        let subject = match fetch.judged_as() {
            [] if fetch.is_metadata => return None,
            [] => JudgedSubject::Packages(services.packages.clone()),
            files => JudgedSubject::Versions(files.iter().map(version).collect()),
        };
        // Malware with a version is blocked when the version's file is fetched.
        let by_malware = matches!(subject, JudgedSubject::Packages(_)) && app.advisories.number() != 0;
        if number.is_none() && !by_malware {
            return None;
        }
        let question = services.proxied(proxy, PolicyPurpose::Fetch);
        Some(FetchJudge { app: Arc::clone(app), number, question, subject })
    }

    /// Returns the ruling, based on the published facts of the version. If the facts contain no
    /// time, the age counts from the file's date, or else from the first time the server saw the
    /// version.
    async fn judge(&self, reply: &dyn Reply) -> Result<VersionJudgement, ServiceError> {
        if let JudgedSubject::Packages(packages) = &self.subject {
            self.refuse_malware(packages).await?;
        }
        let FetchJudge { app, number: Some(number), question, .. } = self else {
            return Ok(VersionJudgement::default());
        };
        let set = app.rules_that_hold(question.place.organization, *number).await?;
        if !set.reaches(question.place.repository) {
            return Ok(VersionJudgement::default());
        }
        let modified = modified(&reply.headers().await?);
        let packages = match &self.subject {
            JudgedSubject::Versions(versions) => {
                return self.judge_versions(&set, reply, versions, modified).await;
            }
            JudgedSubject::Packages(packages) => packages,
        };
        // If the package is unknown, the name is empty, and every rule judges it.
        let unknown = packages.is_empty().then_some("");
        let names = packages.iter().map(String::as_str).chain(unknown);
        let of_name = |name: &str| PolicyFacts { published: modified, ..facts::of_name(name, "") };
        let facts = names.map(of_name).collect();
        Ok(strictest(app.judge(&set, question, facts).await?))
    }

    /// Returns the ruling on the first allowed version. If all versions are refused, returns the
    /// first refusal, valid until one of the rulings may change. Reports only the returned ruling,
    /// because the client did not request the other versions.
    async fn judge_versions(
        &self,
        set: &RuleSet,
        reply: &dyn Reply,
        versions: &[(String, String, RequestedFile)],
        modified: Option<u64>,
    ) -> Result<VersionJudgement, ServiceError> {
        let (app, repository) = (&self.app, self.question.place.repository);
        let mut first = None;
        let mut until: Option<i64> = None;
        for (at, (package, version, file)) in versions.iter().enumerate() {
            // Skip a withheld version: it does not make the file allowed. If there is only one
            // version, the reply itself fails when the version is withheld.
            if versions.len() > 1 && reply.withholds(at).await? {
                continue;
            }
            let row = app.store.facts_of_version(repository, package, version).await?;
            let facts = row.as_ref().map_or_else(|| facts::of_name(package, version), facts::of_row);
            let published = match facts.published.or(modified) {
                None => app.store.find_first_seen(repository, package, version).await?,
                published => published,
            };
            let mut facts = [PolicyFacts { published, ..facts }];
            let question = Question { file: Some(file.clone()), ..self.question.clone() };
            let judged = app.rulings(set, &question, &mut facts).await?.pop().unwrap_or_default();
            if judged.refusal.is_none() {
                app.report_rulings(&question, &facts, std::slice::from_ref(&judged));
                return Ok(judged);
            }
            until = until.into_iter().chain(judged.until).min();
            first.get_or_insert((question, facts, judged));
        }
        let Some((question, facts, judged)) = first else {
            return Err(ServiceError::Unavailable(
                "every version that the file belongs to is withheld".to_owned(),
            ));
        };
        let judged = VersionJudgement { until, ..judged };
        app.report_rulings(&question, &facts, std::slice::from_ref(&judged));
        Ok(judged)
    }

    /// Refuses a file without a version if any version of the package is malware.
    async fn refuse_malware(&self, packages: &[String]) -> Result<(), ServiceError> {
        let (app, format) = (&self.app, &self.question.place.format);
        let Some(plugin) = app.runtime.plugin(format).filter(|_| app.advisories.blocks_malware()) else {
            return Ok(());
        };
        for package in packages {
            let known = app.advisories.of_package(plugin.description(), package).await?;
            if let Some(advisory) = known.iter().find(|advisory| advisory.malware) {
                return Err(ServiceError::PolicyDenied(format!(
                    "A version of {package} is malware, and it is unknown to which version this file \
                     belongs: {}",
                    advisory.id
                )));
            }
        }
        Ok(())
    }
}

/// Returns the first refusal, if any, and the earliest time at which a ruling may change.
fn strictest(judged: Vec<VersionJudgement>) -> VersionJudgement {
    let until = judged.iter().filter_map(|one| one.until).min();
    let refused = judged.into_iter().find(|one| one.refusal.is_some()).unwrap_or_default();
    VersionJudgement { until, ..refused }
}

fn modified(headers: &[(String, String)]) -> Option<u64> {
    let (_, date) = headers.iter().find(|(name, _)| name == "last-modified")?;
    let at = httpdate::parse_http_date(date).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(at.as_millis()).ok()
}

/// Wraps a reply so that the host judges it before the plugin sees any part of it.
pub(super) fn judged(judge: Option<FetchJudge>, reply: Box<dyn Reply>) -> Box<dyn Reply> {
    match judge {
        Some(judge) => Box::new(JudgedReply { reply, judge, judged: OnceCell::new() }),
        None => reply,
    }
}

struct JudgedReply {
    reply: Box<dyn Reply>,
    judge: FetchJudge,
    judged: OnceCell<VersionJudgement>,
}

impl JudgedReply {
    /// Fails with `PolicyDenied` if the version is refused. Only replies with status 200 are
    /// judged.
    async fn pass(&self) -> Result<u16, ServiceError> {
        let status = self.reply.status().await?;
        if status != 200 {
            return Ok(status);
        }
        let judged = self.judged.get_or_try_init(|| self.judge.judge(&*self.reply));
        passed(std::iter::once(judged.await?.clone()))?;
        Ok(status)
    }
}

impl Reply for JudgedReply {
    fn status(&self) -> ServiceFuture<'_, u16> {
        Box::pin(self.pass())
    }

    fn headers(&self) -> ServiceFuture<'_, Vec<(String, String)>> {
        Box::pin(async {
            self.pass().await?;
            self.reply.headers().await
        })
    }

    fn address(&self) -> ServiceFuture<'_, String> {
        Box::pin(async {
            self.pass().await?;
            self.reply.address().await
        })
    }

    fn lifetime(&self) -> Option<ReplyLifetime> {
        let lifetime = self.reply.lifetime()?;
        let judged = self.judged.get().and_then(|judged| judged.until);
        Some(ReplyLifetime { until: lifetime.until.into_iter().chain(judged).min(), ..lifetime })
    }

    fn expect(&mut self, digest: Digest) {
        self.reply.expect(digest);
    }

    fn body(self: Box<Self>) -> ServiceFuture<'static, Arriving> {
        Box::pin(async move {
            self.pass().await?;
            self.reply.body().await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_as_old_as_its_date() {
        let headers = |date: &str| vec![("last-modified".to_owned(), date.to_owned())];
        assert_eq!(modified(&headers("Thu, 01 Jan 1970 00:00:02 GMT")), Some(2_000));
        for date in ["", "yesterday"] {
            assert_eq!(modified(&headers(date)), None, "{date}");
        }
        assert_eq!(modified(&[]), None);
    }
}
