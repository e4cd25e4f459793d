//! What the memory host knows.

use crate::pieces::{MemoryPiece, PieceKey};
use packhouse_sdk::{
    Digest, Error, Folding, Freshness, LoginState, Statement, Token, Version, VersionDocument,
};
use sha2::{Digest as _, Sha256};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Bytes that are shared and never change.
pub(crate) type Bytes = Rc<[u8]>;
/// The whole of it, as handles share it.
pub(crate) type Shared = Rc<RefCell<State>>;

/// A line that a plugin logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub level: String,
    /// What it says.
    pub message: String,
    /// Names and values.
    pub fields: Vec<(String, String)>,
}

/// What was asked of an upstream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fetched {
    /// The proxy's name.
    pub repository: String,
    /// `GET`, `HEAD` or `POST`.
    pub method: String,
    /// As the plugin gave it.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Of a `POST`.
    pub body: Vec<u8>,
    /// How long its answer may be served; none for the repository's own setting.
    pub fresh: Option<Freshness>,
    /// What it must turn out to be, as far as that was said before it was sent.
    pub expect: Vec<Digest>,
    /// Bytes at most.
    pub limit: Option<u64>,
    /// Package, version and path to show it as.
    pub show_as: Option<(String, String, String)>,
    /// Package, version and path of each file that it belongs to.
    pub part_of: Vec<(String, String, String)>,
    /// No policy judges its answer.
    pub is_metadata: bool,
}

/// All repositories, and the rest of the world.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) now: u64,
    /// By package and version: what is withheld whatever the settings say, and why where a policy does it.
    pub(crate) withheld_versions: BTreeMap<(String, String), Option<String>>,
    pub(crate) repositories: BTreeMap<String, RepositoryState>,
    pub(crate) log: Vec<LogLine>,
    /// Upstreams' answers by method and target, or why there is none.
    pub(crate) upstream: BTreeMap<(String, String), Result<UpstreamAnswer, Error>>,
    /// Requests that were sent to upstreams.
    pub(crate) fetched: Vec<Fetched>,
    /// Proxies that were left out of answers, and why.
    pub(crate) left_out: Vec<(String, String)>,
    pub(crate) logins: BTreeMap<String, LoginState>,
    /// What is known to be wrong with packages, by package.
    pub(crate) advisories: BTreeMap<String, serde_json::Value>,
    /// Tokens by their owner's name.
    pub(crate) tokens: BTreeMap<String, Vec<Token>>,
    /// What plugins made and may find again; how many were remembered, and how many found.
    pub(crate) pieces: BTreeMap<PieceKey, MemoryPiece>,
    pub(crate) pieces_made: usize,
    pub(crate) pieces_found: usize,
    /// For names of uploads and sign-ins.
    pub(crate) counter: u64,
}

/// One repository.
#[derive(Default)]
pub(crate) struct RepositoryState {
    pub(crate) format: String,
    pub(crate) kind: String,
    pub(crate) settings: String,
    pub(crate) members: Vec<String>,
    /// Which spellings of a name are the same, and which keys hold a name, as the description has it.
    pub(crate) folding: Folding,
    pub(crate) held_by: Vec<String>,
    /// Whether the age of versions counts from the dates of their files.
    pub(crate) file_dates: bool,
    /// Whether no caller may read it.
    pub(crate) unreadable: bool,
    pub(crate) revision: u64,
    pub(crate) records: BTreeMap<String, Record>,
    /// Blobs that were kept and are in their time of grace.
    pub(crate) leases: BTreeSet<String>,
    /// Bytes of all blobs that it holds or held.
    pub(crate) bytes: BTreeMap<String, Bytes>,
    pub(crate) uploads: BTreeMap<String, UploadState>,
    pub(crate) shown: BTreeMap<(String, String), Version>,
    /// By package and version: when one of which no time is stated was first judged, in ms since 1970.
    pub(crate) first_seen: BTreeMap<(String, String), u64>,
    /// Signed statements about what is shown.
    pub(crate) statements: Vec<Statement>,
    /// Documents that came with it.
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

/// What an upstream answers.
#[derive(Clone)]
pub(crate) struct UpstreamAnswer {
    pub(crate) status: u16,
    /// Where it came from after redirects, where that is another place.
    pub(crate) address: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

impl RepositoryState {
    /// Whether it holds this blob: a record names it, or it is within its time of grace.
    pub(crate) fn holds(&self, sha256: &str) -> bool {
        self.leases.contains(sha256)
            || self.records.values().any(|record| record.blobs.iter().any(|b| b == sha256))
    }

    /// Holds bytes for the time of grace.
    pub(crate) fn lease(&mut self, sha256: &str, bytes: Bytes) {
        self.leases.insert(sha256.to_owned());
        self.bytes.insert(sha256.to_owned(), bytes);
    }
}

impl State {
    /// What was laid down for this request; a `HEAD` of what only a `GET` was laid down for has that one's status and headers.
    pub(crate) fn upstream_answer(&self, method: &str, target: &str) -> Result<UpstreamAnswer, Error> {
        let laid = |method: &str| self.upstream.get(&(method.to_owned(), target.to_owned()));
        let found = laid(method).or_else(|| laid("GET").filter(|_| method == "HEAD"));
        let missing = || Err(Error::Unavailable(format!("no upstream answers {method} {target}")));
        found.cloned().unwrap_or_else(missing)
    }

    /// A name that was not there before: 32 characters of lower-case hex.
    pub(crate) fn new_name(&mut self) -> String {
        self.counter += 1;
        let digest = Sha256::digest(self.counter.to_be_bytes());
        hex::encode(digest.get(..16).unwrap_or_default())
    }
}

/// The digest of these bytes by this algorithm.
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
