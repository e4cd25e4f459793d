//! `releases`: which of an upstream's releases a proxy may offer. The server's services judge.

use packhouse_names::{Release, ReleaseVerdict};
use wasmtime::Result;
use wasmtime::component::Resource;

use crate::bindings::packhouse::format::releases::{self as wit, Host, Verdict};
use crate::host_error::HostError;
use crate::state::HostState;
use crate::state::records::RepositoryRep;

const MAX_RELEASES: usize = 100_000;
const MAX_PACKAGE_BYTES: usize = 1_024;

impl Host for HostState {
    fn judge(
        &mut self,
        proxy: Resource<RepositoryRep>,
        package: String,
        releases: Vec<wit::Release>,
    ) -> Result<Vec<Verdict>, HostError> {
        if releases.len() > MAX_RELEASES || package.len() > MAX_PACKAGE_BYTES {
            let (count, bytes) = (releases.len(), package.len());
            return Err(HostError::invalid(format!("{count} releases of a package named by {bytes} bytes")));
        }
        let now = self.host.now();
        let releases: Vec<Release> = releases.into_iter().map(release).collect();
        let view = &self.held(&proxy)?.view;
        let judged = self.services.upstream.judge_releases(view, &package, &releases, now)?;
        self.note_until(judged.until.map(|at| i64::try_from(at).unwrap_or(i64::MAX)));
        Ok(judged.verdicts.into_iter().map(verdict).collect())
    }
}

fn release(release: wit::Release) -> Release {
    Release { published: release.published, withdrawn: release.withdrawn }
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

    use packhouse_names::JudgedReleases;
    use packhouse_store::RepositoryId;

    use super::*;
    use crate::call::Call;
    use crate::config::Limits;
    use crate::host_error::GuestError;
    use crate::request::{Action, RequestHead};
    use crate::services::{IdentityService, ServiceError, Services, SigningService, UpstreamService};
    use crate::state::Access;
    use crate::view::RepositoryView;

    /// Withholds everything: what is published, until a minute later.
    struct Minute;

    impl UpstreamService for Minute {
        fn judge_releases(
            &self,
            _proxy: &RepositoryView,
            _package: &str,
            releases: &[Release],
            _now: u64,
        ) -> Result<JudgedReleases, ServiceError> {
            let until = releases.iter().filter_map(|release| release.published).min();
            let verdicts = vec![ReleaseVerdict::Withheld; releases.len()];
            Ok(JudgedReleases { verdicts, until: until.map(|at| at.saturating_add(60_000)) })
        }
    }

    impl IdentityService for Minute {}
    impl SigningService for Minute {}

    fn state() -> HostState {
        let call = Call {
            services: Services::of(&Arc::new(Minute)),
            ..Call::new(Arc::new(RequestHead::default()), Action::Read)
        };
        HostState::new("p".into(), Arc::new(Limits::default()), None, Access::Intent(Action::Read), call)
    }

    fn judge(state: &mut HostState, package: &str, published: &[Option<u64>]) -> Result<usize, HostError> {
        let view = RepositoryView {
            id: RepositoryId(1),
            revision: 0,
            name: "r".into(),
            kind: "proxy".into(),
            settings: "{}".into(),
        };
        let proxy = state.repository(view)?;
        let releases = published.iter().map(|&published| wit::Release { published, withdrawn: false });
        state.judge(proxy, package.to_owned(), releases.collect()).map(|verdicts| verdicts.len())
    }

    #[test]
    fn a_call_knows_the_first_moment_at_which_a_verdict_changes() {
        let mut state = state();
        assert!(matches!(judge(&mut state, "a", &[None, None]), Ok(2)));
        assert_eq!((state.until, state.uncacheable), (None, false), "time changes nothing");
        for (published, until) in [(5_000, 65_000), (9_000, 65_000), (1_000, 61_000)] {
            assert!(matches!(judge(&mut state, "a", &[None, Some(published)]), Ok(2)));
            assert_eq!((state.until, state.uncacheable), (Some(until), false));
        }
        assert!(matches!(judge(&mut state, "a", &[Some(u64::MAX)]), Ok(1)));
        assert_eq!(state.until, Some(61_000), "what comes later changes nothing");
    }

    #[test]
    fn what_is_over_a_limit_is_invalid() {
        let invalid = |judged| matches!(judged, Err(HostError::Tell(GuestError::Invalid(_))));
        assert!(invalid(judge(&mut state(), &"a".repeat(1_025), &[])));
        assert!(invalid(judge(&mut state(), "a", &vec![None; 100_001])));
        assert!(matches!(judge(&mut state(), &"a".repeat(1_024), &vec![None; 100_000]), Ok(100_000)));
    }
}
