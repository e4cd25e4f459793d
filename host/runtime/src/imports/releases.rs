//! `releases`: the releases of an upstream that a proxy may offer. The server's services decide
//! which ones.

use packhouse_names::{JudgedReleases, Release, ReleaseVerdict};
use wasmtime::Result;
use wasmtime::component::Resource;

use crate::bindings::packhouse::format::releases::{self as wit, Host, Verdict};
use crate::host_error::HostError;
use crate::state::HostState;
use crate::state::records::RepositoryRep;

const MAX_RELEASES: usize = 100_000;
/// Most bytes of a package name, a version and a licence each.
const MAX_TEXT_BYTES: usize = 1_024;

impl Host for HostState {
    async fn judge(
        &mut self,
        proxy: Resource<RepositoryRep>,
        package: String,
        releases: Vec<wit::Release>,
    ) -> Result<Vec<Verdict>, HostError> {
        let unnamed = |release: wit::Release| Release::of("", release.published, release.withdrawn);
        let judged =
            judge(self, &proxy, package, ToJudge::Listed(releases.into_iter().map(unnamed).collect()));
        Ok(judged.await?.verdicts.into_iter().map(verdict).collect())
    }

    async fn judge_versions(
        &mut self,
        proxy: Resource<RepositoryRep>,
        package: String,
        versions: Vec<wit::KnownVersion>,
    ) -> Result<Vec<Verdict>, HostError> {
        let judged = judge(self, &proxy, package, ToJudge::Listed(versions.into_iter().map(named).collect()));
        Ok(judged.await?.verdicts.into_iter().map(verdict).collect())
    }

    async fn judge_with_reasons(
        &mut self,
        proxy: Resource<RepositoryRep>,
        package: String,
        versions: Vec<wit::KnownVersion>,
    ) -> Result<Vec<wit::ReasonedVerdict>, HostError> {
        let judged = judge(self, &proxy, package, ToJudge::Listed(versions.into_iter().map(named).collect()));
        let JudgedReleases { verdicts, mut because, .. } = judged.await?;
        let reasoned = |(at, judged): (usize, ReleaseVerdict)| wit::ReasonedVerdict {
            verdict: verdict(judged),
            because: because.remove(&at),
        };
        Ok(verdicts.into_iter().enumerate().map(reasoned).collect())
    }

    async fn judge_asked(
        &mut self,
        proxy: Resource<RepositoryRep>,
        package: String,
        version: wit::KnownVersion,
    ) -> Result<Verdict, HostError> {
        let judged = judge(self, &proxy, package, ToJudge::Requested(named(version))).await?;
        // A release without a verdict is not offered.
        Ok(judged.verdicts.into_iter().next().map_or(Verdict::Withheld, verdict))
    }
}

/// Releases that need a verdict.
enum ToJudge {
    /// All releases of a list.
    Listed(Vec<Release>),
    /// The release that a client requested.
    Requested(Release),
}

impl ToJudge {
    fn releases(&self) -> &[Release] {
        match self {
            ToJudge::Listed(releases) => releases,
            ToJudge::Requested(release) => std::slice::from_ref(release),
        }
    }
}

async fn judge(
    state: &mut HostState,
    proxy: &Resource<RepositoryRep>,
    package: String,
    what: ToJudge,
) -> Result<JudgedReleases, HostError> {
    let too_long = |release: &Release| {
        release.version.len() > MAX_TEXT_BYTES
            || release.license.as_ref().is_some_and(|license| license.len() > MAX_TEXT_BYTES)
    };
    let releases = what.releases();
    if releases.len() > MAX_RELEASES || package.len() > MAX_TEXT_BYTES || releases.iter().any(too_long) {
        let (count, bytes) = (releases.len(), package.len());
        let text = format!(
            "{count} releases with a package name of {bytes} bytes, or one with a long version or licence"
        );
        return Err(HostError::invalid(text));
    }
    let now = state.host.now();
    let view = state.held(proxy)?.view.clone();
    let services = state.services.clone();
    let judged = {
        // Rules and advisories are the host's work, so their time is not the plugin's.
        let _host_work = state.clock.begin_host_work();
        match what {
            ToJudge::Listed(releases) => {
                services.upstream.judge_releases(&view, package, releases, now).await?
            }
            ToJudge::Requested(release) => {
                services.upstream.judge_asked(&view, package, release, now).await?
            }
        }
    };
    state.note_until(judged.until.map(|at| i64::try_from(at).unwrap_or(i64::MAX)));
    Ok(judged)
}

fn named(version: wit::KnownVersion) -> Release {
    let wit::KnownVersion { version, published, withdrawn, license } = version;
    Release { version, published, withdrawn, license }
}

fn verdict(verdict: ReleaseVerdict) -> Verdict {
    match verdict {
        ReleaseVerdict::Offered => Verdict::Offered,
        ReleaseVerdict::Withheld => Verdict::Withheld,
        ReleaseVerdict::FileDecides => Verdict::FileDecides,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use packhouse_store::RepositoryId;

    use super::*;
    use crate::call::Call;
    use crate::config::Limits;
    use crate::host_error::GuestError;
    use crate::request::{Action, RequestHead};
    use crate::services::{
        AdvisoryService, IdentityService, PolicyService, ServiceFuture, Services, SigningService,
        UpstreamService,
    };
    use crate::state::Access;
    use crate::view::RepositoryView;

    /// Withholds each release until a minute after its publication.
    struct Minute;

    impl UpstreamService for Minute {
        fn judge_releases<'a>(
            &'a self,
            _proxy: &'a RepositoryView,
            _package: String,
            releases: Vec<Release>,
            _now: u64,
        ) -> ServiceFuture<'a, JudgedReleases> {
            let until = releases.iter().filter_map(|release| release.published).min();
            let verdicts = vec![ReleaseVerdict::Withheld; releases.len()];
            let until = until.map(|at| at.saturating_add(60_000));
            let because = (0..releases.len()).map(|at| (at, format!("no {at}"))).collect();
            Box::pin(async move { Ok(JudgedReleases { verdicts, until, because }) })
        }
    }

    impl IdentityService for Minute {}
    impl SigningService for Minute {}
    impl PolicyService for Minute {}
    impl AdvisoryService for Minute {}

    fn state() -> HostState {
        let call = Call {
            services: Services::of(&Arc::new(Minute)),
            ..Call::new(Arc::new(RequestHead::default()), Action::Read)
        };
        HostState::new("p".into(), Arc::new(Limits::default()), None, Access::Intent(Action::Read), call)
    }

    fn proxy(state: &mut HostState) -> Resource<RepositoryRep> {
        let view = RepositoryView {
            id: RepositoryId(1),
            revision: 0,
            name: "r".into(),
            kind: "proxy".into(),
            settings: "{}".into(),
        };
        state.repository(view).unwrap()
    }

    async fn judge(
        state: &mut HostState,
        package: &str,
        published: &[Option<u64>],
    ) -> Result<usize, HostError> {
        let releases = published.iter().map(|&published| wit::Release { published, withdrawn: false });
        let proxy = proxy(state);
        state.judge(proxy, package.to_owned(), releases.collect()).await.map(|verdicts| verdicts.len())
    }

    async fn judge_version(
        state: &mut HostState,
        version: &str,
        license: Option<&str>,
    ) -> Result<usize, HostError> {
        let version = wit::KnownVersion {
            version: version.to_owned(),
            published: None,
            withdrawn: false,
            license: license.map(str::to_owned),
        };
        let proxy = proxy(state);
        state.judge_versions(proxy, "a".to_owned(), vec![version]).await.map(|verdicts| verdicts.len())
    }

    #[tokio::test]
    async fn a_call_knows_the_first_moment_at_which_a_verdict_changes() {
        let mut state = state();
        assert!(matches!(judge(&mut state, "a", &[None, None]).await, Ok(2)));
        assert_eq!((state.until, state.uncacheable), (None, false), "time changes nothing");
        for (published, until) in [(5_000, 65_000), (9_000, 65_000), (1_000, 61_000)] {
            assert!(matches!(judge(&mut state, "a", &[None, Some(published)]).await, Ok(2)));
            assert_eq!((state.until, state.uncacheable), (Some(until), false));
        }
        assert!(matches!(judge(&mut state, "a", &[Some(u64::MAX)]).await, Ok(1)));
        assert_eq!(state.until, Some(61_000), "a later time changes nothing");
    }

    #[tokio::test]
    async fn reasons_stand_with_their_verdicts() {
        let (mut state, version) = (state(), |version: &str| wit::KnownVersion {
            version: version.to_owned(),
            published: None,
            withdrawn: false,
            license: None,
        });
        let held = proxy(&mut state);
        let all = vec![version("1"), version("2")];
        let judged = state.judge_with_reasons(held, "a".to_owned(), all).await.ok().unwrap();
        let parts = |one: &wit::ReasonedVerdict| (one.verdict == Verdict::Withheld, one.because.clone());
        let found: Vec<_> = judged.iter().map(parts).collect();
        assert_eq!(found, [(true, Some("no 0".to_owned())), (true, Some("no 1".to_owned()))]);
        let held = proxy(&mut state);
        let requested = state.judge_asked(held, "a".to_owned(), version("1")).await;
        assert!(matches!(requested, Ok(Verdict::Withheld)));
        let held = proxy(&mut state);
        let long = state.judge_asked(held, "a".to_owned(), version(&"1".repeat(1_025))).await;
        assert!(matches!(long, Err(HostError::Tell(GuestError::Invalid(_)))));
    }

    #[tokio::test]
    async fn input_over_a_limit_is_invalid() {
        let invalid = |judged: &_| matches!(judged, Err(HostError::Tell(GuestError::Invalid(_))));
        let long = "a".repeat(1_025);
        assert!(invalid(&judge(&mut state(), &long, &[]).await));
        assert!(invalid(&judge(&mut state(), "a", &vec![None; 100_001]).await));
        assert!(matches!(judge(&mut state(), &"a".repeat(1_024), &vec![None; 100_000]).await, Ok(100_000)));
        assert!(invalid(&judge_version(&mut state(), &long, None).await));
        assert!(invalid(&judge_version(&mut state(), "1", Some(&long)).await));
        assert!(matches!(judge_version(&mut state(), &"1".repeat(1_024), Some("MIT")).await, Ok(1)));
    }
}
