//! Policies over what a call publishes and fetches. Where no rule holds in the organization, nothing is asked and nothing is wrapped.

use std::sync::Arc;

use packhouse_app::App;
use packhouse_app::policies::{AskedFile, Judged, JudgedWhere, Published, Question, RuleSet, facts};
use packhouse_runtime::{
    Fetch, JudgedReleases, PolicyFacts, PolicyPurpose, PolicyService, Release, ReleaseVerdict, Reply,
    ReplyLifetime, RepositoryView, RequestHead, ServiceError, ServiceFuture,
};
use packhouse_store::{Arriving, Digest, RepositoryId, SignedStatement, Version, now_ms};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::CallServices;

impl CallServices {
    fn place(&self, repository: RepositoryId, name: Arc<str>, kind: &str) -> JudgedWhere {
        JudgedWhere {
            organization: self.caller.organization,
            repository,
            name,
            kind: kind.to_owned(),
            format: self.format.clone(),
            upstream: None,
        }
    }

    /// What is asked about what a proxy has.
    fn proxied(&self, proxy: &RepositoryView, purpose: PolicyPurpose) -> Question {
        let upstream = serde_json::from_str::<Value>(&proxy.settings).ok();
        let upstream = upstream.and_then(|settings| Some(settings.get("upstream")?.as_str()?.to_owned()));
        let place = self.place(proxy.id, Arc::clone(&proxy.name), &proxy.kind);
        self.question(JudgedWhere { upstream, ..place }, purpose)
    }

    fn question(&self, place: JudgedWhere, purpose: PolicyPurpose) -> Question {
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
            let published = Published { versions: &versions, statements: &statements };
            let judged = self.app.judge_publish(&set, &question, &published).await?;
            passed(judged.into_iter())
        })
    }
}

/// Withholds of what may be offered what no policy lets pass. Of a release without a version nothing more is known.
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
    // A list is the same for everyone.
    let question = services.proxied(proxy, PolicyPurpose::List);
    let rulings = services.app.judge(&set, &Question { caller: None, ..question }, facts).await?;
    for (at, ruling) in offered.into_iter().zip(rulings) {
        let until = ruling.until.and_then(|until| u64::try_from(until).ok());
        judged.until = judged.until.into_iter().chain(until).min();
        if let (Some(verdict), Some(refusal)) = (judged.verdicts.get_mut(at), ruling.refusal) {
            *verdict = ReleaseVerdict::Withheld;
            judged.because.insert(at, refusal.told());
        }
    }
    Ok(judged)
}

/// Withholds a release that somebody asks for as a fetch of its file would be refused, and keeps why.
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
        judged.because.insert(0, refusal.told());
        services.note_refusal(refusal.told());
    }
    Ok(judged)
}

/// `PolicyDenied` with the first refusal.
fn passed(mut judged: impl Iterator<Item = Judged>) -> Result<(), ServiceError> {
    match judged.find_map(|one| one.refusal) {
        Some(refusal) => Err(ServiceError::PolicyDenied(refusal.told())),
        None => Ok(()),
    }
}

/// Judges the versions whose file a reply is; of a file without a version, the packages that the request is about.
pub(super) struct FetchJudge {
    app: Arc<App>,
    /// The number of the rules; none where no rule holds.
    number: Option<i64>,
    question: Question,
    subject: Subject,
}

enum Subject {
    /// Package and version, and the file of it that the reply is or belongs to. One that passes is enough.
    Versions(Vec<(String, String, AskedFile)>),
    /// Each has to pass.
    Packages(Vec<String>),
}

impl FetchJudge {
    /// None where nothing judges: no rule holds, or the plugin declares the answer as metadata.
    pub(super) fn of(services: &CallServices, proxy: &RepositoryView, fetch: &Fetch) -> Option<FetchJudge> {
        let (number, app) = (services.caller.policies, &services.app);
        // What is signed of the file that a reply belongs to has that file's digest.
        let digests = if fetch.show_as.is_some() { fetch.expect.clone() } else { Vec::new() };
        let version = |(package, version, path): &(String, String, String)| {
            let file = AskedFile { path: path.clone(), digests: digests.clone() };
            (package.clone(), version.clone(), file)
        };
        let subject = match fetch.judged_as() {
            [] if fetch.is_metadata => return None,
            [] => Subject::Packages(services.packages.clone()),
            files => Subject::Versions(files.iter().map(version).collect()),
        };
        // The malware block judges a version where its file is fetched.
        let by_malware = matches!(subject, Subject::Packages(_)) && app.advisories.number() != 0;
        if number.is_none() && !by_malware {
            return None;
        }
        let question = services.proxied(proxy, PolicyPurpose::Fetch);
        Some(FetchJudge { app: Arc::clone(app), number, question, subject })
    }

    /// What the rules say, by what is shown of the version; if that tells no age, by the date of its file, else by its first sight.
    async fn judge(&self, reply: &dyn Reply) -> Result<Judged, ServiceError> {
        if let Subject::Packages(packages) = &self.subject {
            self.refuse_malware(packages).await?;
        }
        let FetchJudge { app, number: Some(number), question, .. } = self else {
            return Ok(Judged::default());
        };
        let set = app.rules_that_hold(question.place.organization, *number).await?;
        if !set.reaches(question.place.repository) {
            return Ok(Judged::default());
        }
        let modified = modified(&reply.headers().await?);
        let packages = match &self.subject {
            Subject::Versions(versions) => return self.judge_versions(&set, reply, versions, modified).await,
            Subject::Packages(packages) => packages,
        };
        // A file of no known package has an empty name, which every rule judges.
        let unknown = packages.is_empty().then_some("");
        let names = packages.iter().map(String::as_str).chain(unknown);
        let of_name = |name: &str| PolicyFacts { published: modified, ..facts::of_name(name, "") };
        let facts = names.map(of_name).collect();
        Ok(strictest(app.judge(&set, question, facts).await?))
    }

    /// The ruling on the first version that passes. Where none passes, the ruling on the first one counts, until any of them may be
    /// judged otherwise. Only the ruling that counts is reported: nobody asked for the other versions.
    async fn judge_versions(
        &self,
        set: &RuleSet,
        reply: &dyn Reply,
        versions: &[(String, String, AskedFile)],
        modified: Option<u64>,
    ) -> Result<Judged, ServiceError> {
        let (app, repository) = (&self.app, self.question.place.repository);
        let mut first = None;
        let mut until: Option<i64> = None;
        for (at, (package, version, file)) in versions.iter().enumerate() {
            // The version that passes here must not be one that is withheld. If there is only one, the reply says that it is not.
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
            return Err(ServiceError::Unavailable("every version that it belongs to is withheld".to_owned()));
        };
        let judged = Judged { until, ..judged };
        app.report_rulings(&question, &facts, std::slice::from_ref(&judged));
        Ok(judged)
    }

    /// A file without a version may be of any version, and so of one that is malware.
    async fn refuse_malware(&self, packages: &[String]) -> Result<(), ServiceError> {
        let (app, format) = (&self.app, &self.question.place.format);
        let Some(plugin) = app.runtime.plugin(format).filter(|_| app.advisories.blocks_malware()) else {
            return Ok(());
        };
        for package in packages {
            let known = app.advisories.of_package(plugin.description(), package).await?;
            if let Some(advisory) = known.iter().find(|advisory| advisory.malware) {
                return Err(ServiceError::PolicyDenied(format!(
                    "A version of {package} is malware, and nothing tells to which version this file belongs: {}",
                    advisory.id
                )));
            }
        }
        Ok(())
    }
}

/// A refusal if there is one, and the first moment at which a ruling may change.
fn strictest(judged: Vec<Judged>) -> Judged {
    let until = judged.iter().filter_map(|one| one.until).min();
    let refused = judged.into_iter().find(|one| one.refusal.is_some()).unwrap_or_default();
    Judged { until, ..refused }
}

/// `Last-Modified` in ms since 1970.
fn modified(headers: &[(String, String)]) -> Option<u64> {
    let (_, date) = headers.iter().find(|(name, _)| name == "last-modified")?;
    let at = httpdate::parse_http_date(date).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(at.as_millis()).ok()
}

/// The reply, which is judged before anything of it is told.
pub(super) fn judged(judge: Option<FetchJudge>, reply: Box<dyn Reply>) -> Box<dyn Reply> {
    match judge {
        Some(judge) => Box::new(JudgedReply { reply, judge, judged: OnceCell::new() }),
        None => reply,
    }
}

struct JudgedReply {
    reply: Box<dyn Reply>,
    judge: FetchJudge,
    judged: OnceCell<Judged>,
}

impl JudgedReply {
    /// `PolicyDenied` where the version does not pass. What is not there is not judged.
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
