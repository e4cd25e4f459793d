//! Durable, deduplicated and garbage-collected storage of bytes and records. It contains no HTTP
//! and no Wasm.
//!
//! A [`Store`] is one database (SQLite or PostgreSQL) and one blob storage (a folder, S3, or
//! memory). Bytes are durable before a record names them. The database alone decides which of
//! several commits came first.

mod accounts;
mod activity;
mod advisories;
mod attestations;
mod backup;
mod blobs;
mod bucket_listing;
mod cache;
mod cached_answers;
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
mod fetches;
mod first_seen;
mod fsck;
mod gc;
mod highlights;
mod ids;
mod leases;
mod names;
mod packages;
mod plugins;
mod publishers;
mod quota_setting;
mod quotas;
mod read_set_validity;
mod recordings;
mod records;
mod removals;
mod repository_limits;
mod retention;
mod rules;
mod scrub;
mod search;
mod sqlite;
mod storage_id;
mod store;
pub mod trace;
mod trash;
mod uploads;
mod usage;
mod version_details;
mod versions;
mod webhooks;
mod write_behind;
mod writer;

// Boxing makes the compiler generate the body of an `async fn` in this crate, and not in each crate
// that awaits it.
use async_recursion::async_recursion as boxed;

pub use accounts::*;
pub use activity::{ACTIVITY_DAYS, ActivityOf, DayOfActivity};
pub use advisories::{
    AdvisoryFilter, AdvisoryPut, AdvisoryRow, AdvisoryState, AdvisoryTotals, ListedAdvisory,
};
pub use attestations::{
    Attestation, AttestedFacts, MAX_KIND_BYTES, MAX_STATEMENT_BYTES, MAX_STATEMENTS, SignedStatement,
    ToJudge, Verdict, VerificationResult,
};
pub use backup::{
    BackupRun, BackupSize, BlobHold, Cell, RestoredRows, Restoring, Snapshot, SnapshotBlob, SnapshotTable,
};
pub use blobs::*;
pub use cache::{CacheEntry, CacheTotals, CachedAnswer};
pub use cached_answers::{AnswerChange, StoredAnswer};
pub use catalog::{CatalogChange, CatalogFile, CatalogState, Version, VersionFile};
pub use changes::Dependencies;
pub use config::{BlobsConfig, DatabaseLimits, RedirectsConfig, StagingLimits, StoreConfig};
pub use db::{Connections, DatabaseHealth, Generation};
pub use deletions::Deletion;
pub use digest::{Algorithm, Digest, Sha256};
pub use documents::{MAX_DOCUMENTS, MAX_FORM_BYTES, VersionDocument};
pub use error::{DatabasePart, ExceededQuota, QuotaOf, StoreError, causes};
pub use fetches::{Days, FetchedVersions};
pub use fsck::{DatabaseFacts, examine_blobs, examine_database, known_schema};
pub use gc::Collected;
pub use highlights::{
    HIGHLIGHTS, Highlight, HighlightedPackage, RankedRepository, RepositoryOrder, RepositoryTotals,
};
pub use ids::{
    AccessKeyId, ApiTokenId, AttestationId, CacheName, DeliveryId, ExceptionId, KeyOwnerId, MemberId,
    OrganizationId, PolicyId, PublisherId, RecordingId, RecordingSetId, RepositoryId, RuleId, RunId, TeamId,
    TokenId, TrashId, WebhookId, now_ms,
};
pub use names::PackageName;
pub use packages::{PackageNote, PackageSummary};
pub use plugins::{
    ComponentRow, FormatChange, FormatPlugin, NewComponent, PLUGIN_HISTORY, PLUGIN_SPARES, PluginState,
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
pub use records::cached::{ReadPoint, ended_at, listed_to};
pub use records::key_list::KeyList;
pub use records::{
    Change, Commit, Entry, Expectation, MAX_CHANGES, MAX_COMMIT_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES,
    Matches, Outcome,
};
pub use retention::{
    JudgedPlace, JudgedVersion, MAX_POLICIES, MAX_RUNS, NewPolicy, PolicyChange, PolicyRow, RetentionClaim,
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
    ClaimedWebhook, Delivery, DeliveryState, DueDelivery, EventKind, MAX_WEBHOOKS, NewWebhook, QueueBounds,
    Reported, TEST_EVENT, TagRecord, Tags, Try, WebhookChange, WebhookRow,
};
pub use write_behind::{Downloaded, FETCH_DAYS, Refusal};
