//! Upstreams of proxies, the packages that may be requested from them, and the releases that may be
//! offered.

use packhouse_names::{JudgedReleases, Release};
use packhouse_store::{Arriving, CacheName, Dependencies, Digest, RepositoryId};

use super::error::{ServiceError, ServiceFuture, not_available};
use crate::view::RepositoryView;

/// Server side of the interfaces `upstream` and `releases`. By default the service is not
/// available.
pub trait UpstreamService: Send + Sync + 'static {
    /// Sends a request to a proxy's upstream. Returns at once; the functions of the reply wait for
    /// the upstream.
    fn fetch(&self, _proxy: &RepositoryView, _fetch: Fetch) -> Result<Box<dyn Reply>, ServiceError> {
        Err(ServiceError::Unavailable("this host has no upstreams".to_owned()))
    }

    /// Notes that a plugin leaves a proxy out of its answer, and the reason.
    fn leave_out(&self, _proxy: &RepositoryView, _reason: String) {}

    /// Returns the packages in `names` that must not be requested from an upstream on behalf of
    /// this repository, in their order.
    fn withheld<'a>(
        &'a self,
        _repository: &'a RepositoryView,
        _names: Vec<String>,
    ) -> ServiceFuture<'a, Vec<String>> {
        not_available("names")
    }

    /// Judges which of a package's releases a proxy may offer at `now`, in ms since 1970. For a
    /// release without a version, only its age and withdrawal matter. Returns `Denied` for a
    /// repository that is not a proxy.
    fn judge_releases<'a>(
        &'a self,
        _proxy: &'a RepositoryView,
        _package: String,
        _releases: Vec<Release>,
        _now: u64,
    ) -> ServiceFuture<'a, JudgedReleases> {
        not_available("upstreams")
    }

    /// Judges one release that a client requested by itself. If a policy withholds it, the client
    /// gets the reason instead of a plain "not found".
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

#[derive(Clone, Debug, Default)]
pub struct Fetch {
    pub method: String,
    /// Address below the upstream's, or absolute.
    pub target: String,
    /// Headers with their names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    /// Freshness in place of the repository's own setting.
    pub fresh: Option<Freshness>,
    /// Digests that the reply must have.
    pub expect: Vec<Digest>,
    /// Most bytes of the reply.
    pub limit: Option<u64>,
    /// Package, version and path under which a stored reply is shown.
    pub show_as: Option<(String, String, String)>,
    /// Package, version and path of each file that the reply belongs to.
    pub part_of: Vec<(String, String, String)>,
    /// True if only the plugin reads the reply, so that no policy judges it.
    pub is_metadata: bool,
}

impl Fetch {
    /// Package, version and path of the files by which the reply is judged. The reply may be served
    /// if one of these files may.
    #[must_use]
    pub fn judged_as(&self) -> &[(String, String, String)] {
        match &self.show_as {
            Some(file) => std::slice::from_ref(file),
            None => &self.part_of,
        }
    }
}

/// How long a reply may be served without a new request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Freshness {
    Immutable,
    /// Fresh for this number of seconds.
    Seconds(u32),
    Never,
}

/// Lifetime of a reply. During it, the same fetch gets the same reply without a request to the
/// upstream. The lifetime ends at a time, or when the data that the reply was made from changes.
#[derive(Clone, Debug)]
pub struct ReplyLifetime {
    /// Time from which the reply may differ, in ms since 1970. None if time changes nothing.
    pub until: Option<i64>,
    /// Data of the proxy that the reply was made from.
    pub made_of: Dependencies,
    /// Cache use that the server counts for the reply, also when it serves an answer made from the
    /// reply again.
    pub cache_use: CacheUse,
}

/// A use of a proxy's cached content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CacheUse {
    pub repository: RepositoryId,
    /// The cached reply that was used. None if the cache only held the fact that the upstream has
    /// nothing, or that nothing may be served.
    pub name: Option<CacheName>,
    /// True if the reply is past its freshness.
    pub stale: bool,
}

/// An upstream's reply, which may still be in progress.
pub trait Reply: Send + Sync + 'static {
    /// Waits for the headers and returns the status.
    fn status(&self) -> ServiceFuture<'_, u16>;
    /// Waits for the headers and returns them.
    fn headers(&self) -> ServiceFuture<'_, Vec<(String, String)>>;
    /// Address of the reply after redirects.
    fn address(&self) -> ServiceFuture<'_, String>;
    /// Returns true if the file with this index in [`Fetch::judged_as`] is withheld: as malware, or
    /// because of its version's state or age.
    fn withholds(&self, _file: usize) -> ServiceFuture<'_, bool> {
        Box::pin(async { Ok(false) })
    }
    /// Lifetime of content made from the reply. None before the headers have arrived, and if the
    /// reply may differ the next time.
    fn lifetime(&self) -> Option<ReplyLifetime> {
        None
    }
    /// Cache use of a stale reply, which is served because the upstream gave no newer one. None
    /// before the headers have arrived.
    fn stale(&self) -> Option<CacheUse> {
        None
    }
    /// Adds a required digest, like [`Fetch::expect`].
    fn expect(&mut self, digest: Digest);
    /// The bytes, which may still be arriving.
    fn body(self: Box<Self>) -> ServiceFuture<'static, Arriving>;
}
