//! `upstream`: requests of a proxy's plugin to its upstream. This file assembles a fetch; the
//! server's services do the work.

use wasmtime::Result;
use wasmtime::component::Resource;

use crate::bindings::packhouse::format::upstream::{Freshness, Header, Host, HostFetch, HostReply};
use crate::error::CallError;
use crate::host_error::HostError;
use crate::services::Fetch;
use crate::state::blobs::BlobRep;
use crate::state::records::RepositoryRep;
use crate::state::upstream::{FetchRep, ReplyRep};
use crate::state::{Access, HostState, Phase};

const METHODS: [&str; 3] = ["GET", "HEAD", "POST"];
const MAX_HEADERS: usize = 64;
/// Most files that one reply may belong to.
const MAX_FILES: usize = 16;

/// Most bytes of the reason why a proxy is left out of an answer. Longer reasons are cut.
const MAX_REASON_BYTES: usize = 1024;

impl Host for HostState {
    fn leave_out(&mut self, proxy: Resource<RepositoryRep>, mut reason: String) -> Result<()> {
        self.reach(Phase::Serve, "upstream.leave-out")?;
        reason.truncate(reason.floor_char_boundary(MAX_REASON_BYTES));
        // The next answer may include this proxy again.
        self.uncacheable = true;
        self.services.upstream.leave_out(&self.held(&proxy)?.view, reason);
        Ok(())
    }
}

impl HostState {
    /// Changes a fetch. Adds the bytes of the change to the bytes that the call has written.
    fn fetch_step(
        &mut self,
        handle: &Resource<FetchRep>,
        bytes: usize,
        step: impl FnOnce(&mut Fetch) -> Result<(), String>,
    ) -> Result<()> {
        let counted = self.volume.count_written(bytes, &self.limits);
        let it = self.held_mut(handle)?;
        let done = match counted {
            Ok(()) => step(&mut it.fetch),
            Err(_) => Err("this call has written more than its limit".to_owned()),
        };
        if let Err(problem) = done {
            it.problem.get_or_insert(problem);
        }
        Ok(())
    }
}

impl HostFetch for HostState {
    fn new(&mut self, method: String, target: String) -> Result<Resource<FetchRep>> {
        self.reach(Phase::Serve, "upstream.[constructor]fetch")?;
        let counted = self.volume.count_written(target.len(), &self.limits).is_err();
        let mut problem = counted.then(|| "this call has written more than its limit".to_owned());
        if !METHODS.contains(&method.as_str()) {
            problem = Some(format!("the method of a fetch must be GET, HEAD or POST, not {method:?}"));
        }
        let fetch = Fetch { method, target, ..Fetch::default() };
        Ok(self.push(FetchRep { fetch, problem })?)
    }

    fn header(&mut self, fetch: Resource<FetchRep>, name: String, value: String) -> Result<()> {
        self.fetch_step(&fetch, name.len() + value.len(), |it| {
            if it.headers.len() >= MAX_HEADERS {
                return Err(format!("a fetch may have at most {MAX_HEADERS} headers"));
            }
            it.headers.push((name.to_ascii_lowercase(), value));
            Ok(())
        })
    }

    fn body(&mut self, fetch: Resource<FetchRep>, bytes: Vec<u8>) -> Result<()> {
        self.fetch_step(&fetch, bytes.len(), |it| {
            it.body = Some(bytes);
            Ok(())
        })
    }

    fn fresh(&mut self, fetch: Resource<FetchRep>, freshness: Freshness) -> Result<()> {
        self.fetch_step(&fetch, 0, |it| {
            it.fresh = Some(match freshness {
                Freshness::Immutable => crate::services::Freshness::Immutable,
                Freshness::Seconds(seconds) => crate::services::Freshness::Seconds(seconds),
                Freshness::Never => crate::services::Freshness::Never,
            });
            Ok(())
        })
    }

    fn expect(&mut self, fetch: Resource<FetchRep>, digest: String) -> Result<()> {
        self.fetch_step(&fetch, digest.len(), |it| {
            it.expect.push(digest.parse().map_err(|error| format!("{error}"))?);
            Ok(())
        })
    }

    fn limit(&mut self, fetch: Resource<FetchRep>, bytes: u64) -> Result<()> {
        self.fetch_step(&fetch, 0, |it| {
            it.limit = Some(bytes);
            Ok(())
        })
    }

    fn show_as(
        &mut self,
        fetch: Resource<FetchRep>,
        name: String,
        version: String,
        path: String,
    ) -> Result<()> {
        self.fetch_step(&fetch, name.len() + version.len() + path.len(), |it| {
            it.show_as = Some((name, version, path));
            Ok(())
        })
    }

    fn part_of(
        &mut self,
        fetch: Resource<FetchRep>,
        name: String,
        version: String,
        path: String,
    ) -> Result<()> {
        self.fetch_step(&fetch, name.len() + version.len() + path.len(), |it| {
            if it.part_of.len() >= MAX_FILES {
                return Err(format!("a fetch may belong to at most {MAX_FILES} files"));
            }
            it.part_of.push((name, version, path));
            Ok(())
        })
    }

    fn metadata(&mut self, fetch: Resource<FetchRep>) -> Result<()> {
        self.fetch_step(&fetch, 0, |it| {
            it.is_metadata = true;
            Ok(())
        })
    }

    fn start(
        &mut self,
        fetch: Resource<FetchRep>,
        proxy: Resource<RepositoryRep>,
    ) -> Result<Resource<ReplyRep>, HostError> {
        // The reply has no lifetime yet. Until it has one, no answer that uses the reply may be
        // cached.
        self.replies.started();
        // `check` runs before the caller is finally admitted. It may read local data, but not
        // contact other servers.
        if self.access == Access::ReadOnly {
            return Err(HostError::denied());
        }
        let FetchRep { fetch, problem } = self.take(fetch)?;
        if let Some(problem) = problem {
            return Err(HostError::invalid(problem));
        }
        let reply = self.services.upstream.fetch(&self.held(&proxy)?.view, fetch)?;
        Ok(self.push(ReplyRep { reply, counted: false })?)
    }

    fn drop(&mut self, fetch: Resource<FetchRep>) -> Result<()> {
        self.take(fetch)?;
        Ok(())
    }
}

impl HostState {
    /// Notes the lifetime of a reply once its headers have arrived. Content made from a reply
    /// without lifetime is not cached.
    fn note_reply(&mut self, handle: &Resource<ReplyRep>) -> Result<(), CallError> {
        self.replies.used();
        let held = self.held_mut(handle)?;
        if held.counted {
            return Ok(());
        }
        let Some(lifetime) = held.reply.lifetime() else {
            if let Some(stale) = held.reply.stale() {
                held.counted = true;
                self.replies.stale(stale);
            }
            return Ok(());
        };
        held.counted = true;
        self.note_until(lifetime.until);
        self.reads.of(lifetime.cache_use.repository).extend(&lifetime.made_of);
        self.replies.known(&lifetime);
        Ok(())
    }
}

impl HostReply for HostState {
    async fn status(&mut self, reply: Resource<ReplyRep>) -> Result<u16, HostError> {
        let status = {
            let held = self.held(&reply)?;
            let _host_work = self.clock.begin_host_work();
            held.reply.status().await?
        };
        self.note_reply(&reply)?;
        Ok(status)
    }

    async fn headers(&mut self, reply: Resource<ReplyRep>) -> Result<Vec<Header>, HostError> {
        let headers = {
            let held = self.held(&reply)?;
            let _host_work = self.clock.begin_host_work();
            held.reply.headers().await?
        };
        self.note_reply(&reply)?;
        Ok(headers.into_iter().map(|(name, value)| Header { name, value }).collect())
    }

    async fn address(&mut self, reply: Resource<ReplyRep>) -> Result<String, HostError> {
        let address = {
            let held = self.held(&reply)?;
            let _host_work = self.clock.begin_host_work();
            held.reply.address().await?
        };
        self.note_reply(&reply)?;
        Ok(address)
    }

    fn expect(&mut self, reply: Resource<ReplyRep>, digest: String) -> Result<()> {
        match digest.parse() {
            Ok(digest) => self.held_mut(&reply)?.reply.expect(digest),
            // `expect` cannot return an error, and the guest must not continue without the check.
            // So the call ends.
            Err(error) => return Err(CallError::Trap(format!("reply.expect: {error}")).into()),
        }
        Ok(())
    }

    async fn body(&mut self, reply: Resource<ReplyRep>) -> Result<Resource<BlobRep>, HostError> {
        self.status(Resource::new_borrow(reply.rep())).await?;
        let reply = self.take(reply)?.reply;
        let arriving = {
            let _host_work = self.clock.begin_host_work();
            reply.body().await
        };
        // An answer that was made without the reply's body must not be cached.
        self.uncacheable |= arriving.is_err();
        let arriving = arriving?;
        Ok(self.push(BlobRep::arriving(arriving))?)
    }

    fn drop(&mut self, reply: Resource<ReplyRep>) -> Result<()> {
        self.take(reply)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use packhouse_store::{Arriving, Dependencies, Digest, RepositoryId};

    use super::*;
    use crate::call::Call;
    use crate::config::Limits;
    use crate::request::{Action, RequestHead};
    use crate::services::{
        AdvisoryService, CacheUse, IdentityService, PolicyService, Reply, ReplyLifetime, ServiceError,
        ServiceFuture, Services, SigningService, UpstreamService,
    };
    use crate::view::RepositoryView;

    const PROXY: RepositoryId = RepositoryId(1);

    /// Replies at once. The target is the reply's lifetime: "ever", "never" or a time.
    struct Scripted;

    struct ScriptedReply(String);

    impl UpstreamService for Scripted {
        fn fetch(
            &self,
            _proxy: &RepositoryView,
            fetch: crate::services::Fetch,
        ) -> Result<Box<dyn Reply>, ServiceError> {
            Ok(Box::new(ScriptedReply(fetch.target)))
        }
    }

    impl IdentityService for Scripted {}
    impl SigningService for Scripted {}
    impl PolicyService for Scripted {}
    impl AdvisoryService for Scripted {}

    impl ScriptedReply {
        fn head<T: Send + 'static>(&self, value: T) -> ServiceFuture<'_, T> {
            let fails = self.0 == "fails";
            Box::pin(async move {
                if fails { Err(ServiceError::Unavailable("it is down".to_owned())) } else { Ok(value) }
            })
        }
    }

    impl Reply for ScriptedReply {
        fn status(&self) -> ServiceFuture<'_, u16> {
            self.head(200)
        }

        fn headers(&self) -> ServiceFuture<'_, Vec<(String, String)>> {
            self.head(Vec::new())
        }

        fn address(&self) -> ServiceFuture<'_, String> {
            self.head(String::new())
        }

        fn lifetime(&self) -> Option<ReplyLifetime> {
            let until = match self.0.as_str() {
                "never" => return None,
                "ever" => None,
                moment => Some(moment.parse().unwrap()),
            };
            let mut made_of = Dependencies::default();
            made_of.on_answer(&[1; 32]);
            let cache_use = CacheUse { repository: PROXY, name: Some([1; 32]), stale: false };
            Some(ReplyLifetime { until, made_of, cache_use })
        }

        fn expect(&mut self, _digest: Digest) {}

        fn body(self: Box<Self>) -> ServiceFuture<'static, Arriving> {
            Box::pin(async { Err(ServiceError::Unavailable("it broke off".to_owned())) })
        }
    }

    fn state() -> HostState {
        let call = Call {
            services: Services::of(&Arc::new(Scripted)),
            ..Call::new(Arc::new(RequestHead::default()), Action::Read)
        };
        HostState::new("p".into(), Arc::new(Limits::default()), None, Access::Intent(Action::Read), call)
    }

    fn start(state: &mut HostState, target: &str) -> Resource<ReplyRep> {
        let view = RepositoryView {
            id: PROXY,
            revision: 0,
            name: "r".into(),
            kind: "proxy".into(),
            settings: "{}".into(),
        };
        let proxy = state.repository(view).unwrap();
        let fetch = HostFetch::new(state, "GET".to_owned(), target.to_owned()).unwrap();
        let Ok(reply) = state.start(fetch, proxy) else { panic!("{target} does not start") };
        reply
    }

    fn same(reply: &Resource<ReplyRep>) -> Resource<ReplyRep> {
        Resource::new_borrow(reply.rep())
    }

    fn cacheable(state: &HostState) -> bool {
        !state.uncacheable && state.replies.are_known()
    }

    #[tokio::test]
    async fn an_answer_is_valid_as_long_as_each_reply_that_it_is_made_from() {
        let mut state = state();
        for (target, until) in [("ever", None), ("2000", Some(2000)), ("3000", Some(2000)), ("1", Some(1))] {
            let reply = start(&mut state, target);
            assert!(!cacheable(&state), "{target} is in progress");
            assert!(matches!(HostReply::status(&mut state, same(&reply)).await, Ok(200)));
            assert!(HostReply::headers(&mut state, same(&reply)).await.is_ok());
            assert_eq!((state.until, cacheable(&state)), (until, true), "{target}");
        }
        let mut made_of = Dependencies::default();
        made_of.on_answer(&[1; 32]);
        assert_eq!(*state.reads.of(PROXY), made_of);
        assert_eq!(state.replies.take().len(), 4, "each counts once");
    }

    #[tokio::test]
    async fn a_piece_made_from_an_upstream_reply_is_not_memoized() {
        let mut state = state();
        let before = start(&mut state, "2000");
        let read_point = packhouse_store::ReadPoint { repository: PROXY, revision: 1 };
        let made = async |state: &mut HostState, ask: Option<&Resource<ReplyRep>>| {
            assert!(state.start_making(read_point, "{}".into(), "piece".to_owned()));
            if let Some(reply) = ask {
                assert!(HostReply::status(state, same(reply)).await.is_ok());
            }
            state.end_making().unwrap().dependencies.is_some()
        };
        assert!(made(&mut state, None).await);
        assert!(!made(&mut state, Some(&before)).await);
        assert!(made(&mut state, None).await);
        assert!(!made(&mut state, Some(&before)).await, "the reply was used before, and again");
        assert_eq!(state.until, Some(2000), "the whole answer is valid until then");
    }

    #[tokio::test]
    async fn an_answer_from_a_reply_without_lifetime_is_not_cacheable() {
        let mut unknown = state();
        let reply = start(&mut unknown, "never");
        assert!(HostReply::address(&mut unknown, same(&reply)).await.is_ok());
        assert!(!cacheable(&unknown), "the reply may differ the next time");
        let mut dropped = state();
        let reply = start(&mut dropped, "ever");
        HostReply::drop(&mut dropped, reply).unwrap();
        assert!(!cacheable(&dropped), "the call never waited for the reply");
        let mut failed = state();
        let reply = start(&mut failed, "fails");
        assert!(HostReply::status(&mut failed, reply).await.is_err());
        assert!(!cacheable(&failed), "the reply never arrived");
        let mut broken = state();
        let reply = start(&mut broken, "ever");
        assert!(HostReply::body(&mut broken, reply).await.is_err());
        assert!(!cacheable(&broken), "the reply's body did not arrive");
    }
}
