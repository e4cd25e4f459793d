//! Upstreams of proxies, which packages may be asked of them, and which releases may be offered.

use packhouse_names::{JudgedReleases, Release};
use packhouse_store::{Arriving, CacheName, Dependencies, Digest, RepositoryId};

use super::error::{ServiceError, ServiceFuture, not_available};
use crate::view::RepositoryView;

/// The server's side of the interfaces `upstream` and `releases`. Every default is that the service is not available.
pub trait UpstreamService: Send + Sync + 'static {
    /// Asks a proxy's upstream. Returns at once; the reply's functions wait.
    fn fetch(&self, _proxy: &RepositoryView, _fetch: Fetch) -> Result<Box<dyn Reply>, ServiceError> {
        Err(ServiceError::Unavailable("this host has no upstreams".to_owned()))
    }

    /// A plugin leaves a proxy out of its answer, for this reason.
    fn leave_out(&self, _proxy: &RepositoryView, _reason: String) {}

    /// Of these packages those that must not be asked of an upstream for what this repository serves, in their order.
    fn withheld<'a>(
        &'a self,
        _repository: &'a RepositoryView,
        _names: Vec<String>,
    ) -> ServiceFuture<'a, Vec<String>> {
        not_available("names")
    }

    /// Which of a package's releases a proxy may offer at `now`, in ms since 1970. Of one whose version is not named, age and
    /// withdrawal alone decide. `Denied` for a repository that is no proxy.
    fn judge_releases<'a>(
        &'a self,
        _proxy: &'a RepositoryView,
        _package: String,
        _releases: Vec<Release>,
        _now: u64,
    ) -> ServiceFuture<'a, JudgedReleases> {
        not_available("upstreams")
    }

    /// The same of one release that somebody asks for by itself. Where a policy withholds it, who would be answered that there is
    /// nothing is told why instead.
    fn judge_asked<'a>(
        &'a self,
        proxy: &'a RepositoryView,
        package: String,
        release: Release,
        now: u64,
    ) -> ServiceFuture<'a, JudgedReleases> {
        self.judge_releases(proxy, package, vec![release], now)
    }
}

/// What a plugin asks of an upstream.
#[derive(Clone, Debug, Default)]
pub struct Fetch {
    /// `GET`, `HEAD` or `POST`.
    pub method: String,
    /// Below the upstream's address, or absolute.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Of a `POST`.
    pub body: Option<Vec<u8>>,
    /// Without it, the repository's own setting.
    pub fresh: Option<Freshness>,
    /// What it must turn out to be.
    pub expect: Vec<Digest>,
    /// Bytes at most.
    pub limit: Option<u64>,
    /// Package, version and path to show it as once it is kept.
    pub show_as: Option<(String, String, String)>,
    /// Package, version and path of each file that it belongs to.
    pub part_of: Vec<(String, String, String)>,
    /// The plugin reads the reply, and no policy judges it.
    pub is_metadata: bool,
}

impl Fetch {
    /// Package, version and path of the files by which the reply is judged: it may be served where one of them may.
    #[must_use]
    pub fn judged_as(&self) -> &[(String, String, String)] {
        match &self.show_as {
            Some(shown) => std::slice::from_ref(shown),
            None => &self.part_of,
        }
    }
}

/// How long an answer may be served without asking again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Freshness {
    /// For ever.
    Immutable,
    /// So many seconds.
    Seconds(u32),
    /// Not at all.
    Never,
}

/// For how long the same fetch gets the same reply without asking the upstream: until a moment, and as long as nothing changes
/// that it was made of.
#[derive(Clone, Debug)]
pub struct ReplyLifetime {
    /// From when on, in ms since 1970, it may be another; none where time changes nothing.
    pub until: Option<i64>,
    /// What of the proxy it was made of.
    pub made_of: Dependencies,
    /// What it counts as, also when what was made of it is served again.
    pub cache_use: CacheUse,
}

/// A use of what a proxy keeps of its upstream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CacheUse {
    /// The proxy.
    pub repository: RepositoryId,
    /// The cached answer that was used; none where it was remembered that there is nothing, or that nothing may be served.
    pub name: Option<CacheName>,
    /// Whether it is older than it should be.
    pub stale: bool,
}

/// An upstream's reply, which may still be under way.
pub trait Reply: Send + Sync + 'static {
    /// Waits for the headers.
    fn status(&self) -> ServiceFuture<'_, u16>;
    /// Waits for the headers.
    fn headers(&self) -> ServiceFuture<'_, Vec<(String, String)>>;
    /// Where it came from after redirects.
    fn address(&self) -> ServiceFuture<'_, String>;
    /// Whether the file at this place of [`Fetch::judged_as`] is withheld for the state or the age of its version, or as malware.
    fn withholds(&self, _file: usize) -> ServiceFuture<'_, bool> {
        Box::pin(async { Ok(false) })
    }
    /// For how long what is made of it stands. None before the headers are there, and where it may be another the next time.
    fn lifetime(&self) -> Option<ReplyLifetime> {
        None
    }
    /// What it counts as where it is older than it should be, as the upstream gave no other. None before the headers are there.
    fn stale(&self) -> Option<CacheUse> {
        None
    }
    /// As [`Fetch::expect`].
    fn expect(&mut self, digest: Digest);
    /// The bytes, which may still be arriving.
    fn body(self: Box<Self>) -> ServiceFuture<'static, Arriving>;
}
