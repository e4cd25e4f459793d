//! Bytes and records: durable, deduplicated, collected. No HTTP, no Wasm.
//!
//! A [`Store`] is one database (SQLite or PostgreSQL) and one storage of blobs (a folder, S3, or memory). Bytes are durable
//! before a record names them; the database alone decides who was first.

mod accounts;
mod activity;
mod advisories;
mod answers;
mod attestations;
mod backup;
mod blobs;
mod bucket_listing;
mod cache;
mod catalog;
mod changes;
mod commit;
mod config;
mod db;
mod deferred;
mod deletions;
mod digest;
mod documents;
mod error;
mod examine;
mod fetches;
mod first_seen;
mod gates;
mod gc;
mod ids;
mod leases;
mod marker;
mod names;
mod packages;
mod plugins;
mod publishers;
mod quota_setting;
mod quotas;
mod recordings;
mod records;
mod removals;
mod retention;
mod rules;
mod scrub;
mod search;
mod sqlite;
mod store;
pub mod trace;
mod trash;
mod unchanged;
mod uploads;
mod usage;
mod version_details;
mod versions;
mod webhooks;
mod write_behind;
mod writer;

// Compiles the body of an `async fn` here, and not in each crate that awaits it.
use async_recursion::async_recursion as boxed;

pub use accounts::*;
pub use activity::{ACTIVITY_DAYS, ActivityOf, DayOfActivity};
pub use advisories::{
    AdvisoryFilter, AdvisoryPut, AdvisoryRow, AdvisoryState, AdvisoryTotals, ListedAdvisory,
};
pub use answers::{AnswerChange, StoredAnswer};
pub use attestations::{
    Attestation, AttestedFacts, Judged, MAX_KIND_BYTES, MAX_STATEMENT_BYTES, MAX_STATEMENTS, SignedStatement,
    ToJudge, Verdict,
};
pub use backup::{
    BackupRun, BackupSize, BlobHold, Cell, RestoredRows, Restoring, Snapshot, SnapshotBlob, SnapshotTable,
};
pub use blobs::*;
pub use cache::{CacheEntry, CacheTotals, CachedAnswer};
pub use catalog::{CatalogChange, ShownFile, ShownState, Version, VersionFile};
pub use changes::Dependencies;
pub use config::{BlobsConfig, DatabaseLimits, RedirectsConfig, StagingLimits, StoreConfig};
pub use db::{Answering, Connections, Generation};
pub use deletions::Deletion;
pub use digest::{Algorithm, Digest, Sha256};
pub use documents::{MAX_DOCUMENTS, MAX_FORM_BYTES, VersionDocument};
pub use error::{ExceededQuota, Part, QuotaOf, StoreError, causes};
pub use examine::{DatabaseFacts, examine_blobs, examine_database, known_schema};
pub use fetches::{Days, FetchedVersions};
pub use gc::Collected;
pub use ids::{
    AccessKeyId, AttestationId, CacheName, DeliveryId, ExceptionId, KeyOwnerId, MemberId, OrganizationId,
    PolicyId, PublisherId, RecordingId, RecordingSetId, RepositoryId, RuleId, RunId, TokenId, TrashId,
    TrialId, WebhookId, now_ms,
};
pub use names::PackageName;
pub use packages::PackageSummary;
pub use plugins::{
    ComponentRow, FormatChange, FormatPlugin, NewComponent, NewTrial, PLUGIN_HISTORY, PLUGIN_SPARES,
    PluginState, TrialCounts, TrialRow, TrialTimes,
};
pub use publishers::{
    MAX_PUBLISHERS, Mint, NewPublisher, PUBLISHER_BACKING, PublisherRow, PublisherUse, SpentIdToken,
    TokenToMint,
};
pub use quotas::QuotasOf;
pub use recordings::{
    MAX_RECORDING_SETS, MAX_RECORDINGS, NewRecording, NewRecordingSet, RECORDING_DAYS, RecordingRow,
    RecordingSet,
};
pub use records::cached::{Seen, ended_at, listed_to};
pub use records::key_list::KeyList;
pub use records::{
    Change, Commit, Entry, Expectation, MAX_CHANGES, MAX_COMMIT_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES,
    Matches, Outcome,
};
pub use retention::{
    JudgedPlace, JudgedVersion, MAX_POLICIES, NewPolicy, PolicyChange, PolicyRow, RUNS_KEPT, RetentionClaim,
    RunRow,
};
pub use rules::{
    ExceptionRow, FactsPlace, MAX_EXCEPTIONS, MAX_POLICY_COMPONENTS, MAX_RULES, NewException,
    NewPolicyComponent, NewRule, PolicyComponentRow, RuleChange, RuleMode, RuleRecording, RuleRow, RuleText,
    VersionFactsRow,
};
pub use scrub::{Damaged, ScrubReport};
pub use search::{FoundPackage, Readable, SearchPlace, SearchQuery};
pub use store::{DiskRoom, Store};
pub use trash::{Restored, TrashEntry};
pub use uploads::{Append, Upload, UploadAppender};
pub use usage::{RepositoryUsage, UsageRow};
pub use version_details::VersionDetails;
pub use webhooks::{
    Delivery, DeliveryState, DueDelivery, EventKind, HookAtWork, MAX_WEBHOOKS, NewWebhook, QueueBounds,
    Reported, TEST_EVENT, TagRecord, Tags, Try, WebhookChange, WebhookRow,
};
pub use write_behind::{Downloaded, FETCH_DAYS, Refusal};
