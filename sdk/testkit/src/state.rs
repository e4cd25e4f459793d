//! State of the memory host.

use crate::pieces::{MemoryPiece, PieceKey};
use packhouse_sdk::{
    Digest, Error, Folding, Freshness, LoginState, Statement, Token, Version, VersionDocument,
};
use sha2::{Digest as _, Sha256};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Shared immutable bytes.
pub(crate) type Bytes = Rc<[u8]>;
/// Shared state of the host.
pub(crate) type Shared = Rc<RefCell<State>>;

/// Line that a plugin logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Level: `error`, `warn`, `info`, `debug` or `trace`.
    pub level: String,
    /// Text of the line.
    pub message: String,
    /// Names and values of the fields.
    pub fields: Vec<(String, String)>,
}

/// Request that was sent to an upstream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fetched {
    /// Name of the proxy.
    pub repository: String,
    /// Method: `GET`, `HEAD` or `POST`.
    pub method: String,
    /// Target as the plugin passed it.
    pub target: String,
    /// Header fields; names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body of a `POST`.
    pub body: Vec<u8>,
    /// Time for which the response may be served from the cache; `None` for the repository's
    /// setting.
    pub fresh: Option<Freshness>,
    /// Expected digests that were set before the request was sent.
    pub expect: Vec<Digest>,
    /// Limit in bytes.
    pub limit: Option<u64>,
    /// Package, version and path under which the file is listed.
    pub show_as: Option<(String, String, String)>,
    /// Package, version and path of each file that the response belongs to.
    pub part_of: Vec<(String, String, String)>,
    /// True if the response is metadata, which no policy judges.
    pub is_metadata: bool,
}

/// All repositories, and the other state of the host.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) now: u64,
    /// Withheld versions by package and version, with the reason if a policy withholds the version.
    pub(crate) withheld_versions: BTreeMap<(String, String), Option<String>>,
    pub(crate) repositories: BTreeMap<String, RepositoryState>,
    pub(crate) log: Vec<LogLine>,
    /// Responses of upstreams, or their errors, by method and target.
    pub(crate) upstream: BTreeMap<(String, String), Result<UpstreamAnswer, Error>>,
    /// Requests that were sent to upstreams.
    pub(crate) fetched: Vec<Fetched>,
    /// Proxies that were left out of responses, and why.
    pub(crate) left_out: Vec<(String, String)>,
    pub(crate) logins: BTreeMap<String, LoginState>,
    /// Advisories by package.
    pub(crate) advisories: BTreeMap<String, serde_json::Value>,
    /// Tokens by the name of their owner.
    pub(crate) tokens: BTreeMap<String, Vec<Token>>,
    /// Cached pieces, and how many pieces were added and found since the last count.
    pub(crate) pieces: BTreeMap<PieceKey, MemoryPiece>,
    pub(crate) pieces_made: usize,
    pub(crate) pieces_found: usize,
    /// Counter for names of uploads and sign-ins.
    pub(crate) counter: u64,
}

/// State of one repository.
#[derive(Default)]
pub(crate) struct RepositoryState {
    pub(crate) format: String,
    pub(crate) kind: String,
    pub(crate) settings: String,
    pub(crate) members: Vec<String>,
    /// Name folding and key prefixes of held packages, from the description.
    pub(crate) folding: Folding,
    pub(crate) held_by: Vec<String>,
    /// True if the age of versions begins at the dates of their files.
    pub(crate) file_dates: bool,
    /// True if no caller may read the repository.
    pub(crate) unreadable: bool,
    pub(crate) revision: u64,
    pub(crate) records: BTreeMap<String, Record>,
    /// Digests of the blobs that are in their grace period.
    pub(crate) leases: BTreeSet<String>,
    /// Bytes of all blobs that the repository holds or held.
    pub(crate) bytes: BTreeMap<String, Bytes>,
    pub(crate) uploads: BTreeMap<String, UploadState>,
    pub(crate) listed: BTreeMap<(String, String), Version>,
    /// Unix time in ms at which a version without a stated time was first judged, by package and
    /// version.
    pub(crate) first_seen: BTreeMap<(String, String), u64>,
    /// Signed statements about listed versions.
    pub(crate) statements: Vec<Statement>,
    /// Documents of listed versions.
    pub(crate) documents: Vec<VersionDocument>,
}

/// One record.
pub(crate) struct Record {
    pub(crate) value: Vec<u8>,
    pub(crate) revision: u64,
    pub(crate) blobs: Vec<String>,
}

/// One upload.
#[derive(Clone, Default)]
pub(crate) struct UploadState {
    pub(crate) note: String,
    pub(crate) bytes: Vec<u8>,
}

/// Response of an upstream.
#[derive(Clone)]
pub(crate) struct UpstreamAnswer {
    pub(crate) status: u16,
    /// Final address after redirects, if it differs.
    pub(crate) address: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

impl RepositoryState {
    /// True if the repository holds this blob: a record names the blob, or the blob is in its grace
    /// period.
    pub(crate) fn holds(&self, sha256: &str) -> bool {
        self.leases.contains(sha256)
            || self.records.values().any(|record| record.blobs.iter().any(|b| b == sha256))
    }

    /// Stores bytes for the grace period.
    pub(crate) fn lease(&mut self, sha256: &str, bytes: Bytes) {
        self.leases.insert(sha256.to_owned());
        self.bytes.insert(sha256.to_owned(), bytes);
    }
}

impl State {
    /// Returns the response that was set for this request. A `HEAD` without a response of its own
    /// gets the status and headers that were set for `GET`.
    pub(crate) fn upstream_answer(&self, method: &str, target: &str) -> Result<UpstreamAnswer, Error> {
        let set = |method: &str| self.upstream.get(&(method.to_owned(), target.to_owned()));
        let found = set(method).or_else(|| set("GET").filter(|_| method == "HEAD"));
        let missing = || Err(Error::Unavailable(format!("no response is set for {method} {target}")));
        found.cloned().unwrap_or_else(missing)
    }

    /// Returns a new name: 32 characters of lower-case hex.
    pub(crate) fn new_name(&mut self) -> String {
        self.counter += 1;
        let digest = Sha256::digest(self.counter.to_be_bytes());
        hex::encode(digest.get(..16).unwrap_or_default())
    }
}

/// Returns the digest of these bytes by this algorithm.
pub(crate) fn digest(algorithm: &str, bytes: &[u8]) -> Result<Digest, Error> {
    let hex = match algorithm {
        "sha256" => hex::encode(Sha256::digest(bytes)),
        "sha512" => hex::encode(sha2::Sha512::digest(bytes)),
        "sha1" => hex::encode(sha1::Sha1::digest(bytes)),
        "md5" => hex::encode(md5::Md5::digest(bytes)),
        "blake2b-256" => hex::encode(blake2::Blake2b256::digest(bytes)),
        other => return Err(Error::Invalid(format!("unknown digest algorithm {other:?}"))),
    };
    Digest::new(algorithm, &hex)
}
