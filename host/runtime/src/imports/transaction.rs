//! `records.transaction`: changes are collected here and passed to the store as one commit.

use std::sync::Arc;

use packhouse_store::{Algorithm, AuditEvent, CatalogChange, Change, Commit, RepositoryId};
use serde_json::{Value, json};
use wasmtime::Result;
use wasmtime::component::Resource;

use crate::bindings::packhouse::format::records::{
    Document, Expectation, HostTransaction, Outcome, Statement, Version, VersionId,
};
use crate::description::TagKeys;
use crate::error::CallError;
use crate::host_error::HostError;
use crate::request::Action;
use crate::services::PolicyService;
use crate::state::transaction::{TransactionRep, parsed};
use crate::state::{Access, HostState};

/// Approximate size of a version in memory.
fn weight(version: &Version) -> usize {
    let files: usize = version.files.iter().map(|file| file.path.len() + 96).sum();
    let properties: usize =
        version.properties.iter().map(|(name, value)| name.len() + value.len() + 48).sum();
    version.name.len()
        + version.version.len()
        + version.summary.len()
        + version.state.len()
        + files
        + properties
}

fn version_to_show(version: Version, published_at: Option<u64>) -> Result<packhouse_store::Version, String> {
    let mut files = Vec::with_capacity(version.files.len());
    for file in version.files {
        let digest = parsed(&file.digest)?;
        files.push(packhouse_store::VersionFile { path: file.path, digest, size: file.size });
    }
    Ok(packhouse_store::Version {
        name: version.name,
        version: version.version,
        files,
        published: version.published.or(published_at),
        summary: version.summary,
        properties: version.properties,
        state: version.state,
    })
}

fn signed_statement(statement: Statement) -> Result<packhouse_store::SignedStatement, String> {
    let subject = parsed(&statement.subject)?;
    if !matches!(subject.algorithm, Algorithm::Sha256 | Algorithm::Sha512) {
        return Err(format!("the subject of a statement must be a sha256 or sha512 digest, not {subject}"));
    }
    Ok(packhouse_store::SignedStatement {
        name: statement.id.name,
        version: statement.id.version,
        path: statement.path,
        source: statement.source,
        kind: statement.kind,
        subject,
        bundle: statement.bundle.into(),
    })
}

fn version_document(document: Document) -> Result<packhouse_store::VersionDocument, String> {
    let digest = parsed(&document.digest)?;
    let sha256 =
        digest.sha256().ok_or_else(|| format!("a document must be named by its sha256, not by {digest}"))?;
    Ok(packhouse_store::VersionDocument {
        name: document.id.name,
        version: document.id.version,
        path: document.path,
        source: document.source,
        title: document.title,
        form: document.form,
        media_type: document.media_type,
        sha256,
        size: document.size,
    })
}

impl From<Expectation> for packhouse_store::Expectation {
    fn from(expect: Expectation) -> Self {
        match expect {
            Expectation::Anything => Self::Anything,
            Expectation::Absent => Self::Absent,
            Expectation::Present => Self::Present,
            Expectation::Revision(revision) => Self::Revision(revision),
        }
    }
}

impl HostState {
    /// Runs one step of a transaction, and adds the step's bytes to the bytes that the call has
    /// written.
    fn step(
        &mut self,
        handle: &Resource<TransactionRep>,
        bytes: usize,
        step: impl FnOnce(&mut TransactionRep) -> Result<(), String>,
    ) -> Result<()> {
        let counted = self.volume.count_written(bytes, &self.limits);
        let transaction = self.held_mut(handle)?;
        let done = match counted {
            Ok(()) => step(transaction),
            Err(_) => Err("this call has written more than its limit".to_owned()),
        };
        if let Err(problem) = done {
            transaction.refuse(problem);
        }
        Ok(())
    }
}

/// Most versions that an event names.
const NAMED_VERSIONS: usize = 10;

/// Event details of a commit: the versions that it shows or hides, each once, and their time of
/// publication if the sender stated one.
fn details(catalog: &[CatalogChange], published_at: Option<u64>) -> String {
    let named = |change: &CatalogChange| match change {
        CatalogChange::Show(packhouse_store::Version { name, version, .. })
        | CatalogChange::Hide { name, version }
        | CatalogChange::HideFile { name, version, .. }
        | CatalogChange::Attest(packhouse_store::SignedStatement { name, version, .. })
        | CatalogChange::Document(packhouse_store::VersionDocument { name, version, .. })
        | CatalogChange::ShowFile(packhouse_store::CatalogFile { name, version, .. }) => {
            json!({"name": name, "version": version})
        }
    };
    let mut versions: Vec<Value> = Vec::new();
    for version in catalog.iter().map(named) {
        if versions.len() == NAMED_VERSIONS {
            break;
        }
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    match published_at {
        None => json!({"versions": versions}),
        Some(at) => json!({"versions": versions, "published_at": at}),
    }
    .to_string()
}

impl HostState {
    /// Audit event of a commit. None if the call has no audit event, for example when a read fills
    /// a cache, or if the commit changes nothing.
    fn event(&self, transaction: &TransactionRep) -> Option<AuditEvent> {
        let writes = matches!(self.access, Access::Intent(action) if action.writes());
        let requires = |change: &Change| matches!(change, Change::Require { .. });
        let changes = !transaction.catalog.is_empty() || !transaction.changes.iter().all(requires);
        let event = self.audit.as_ref().filter(|_| writes && changes)?;
        Some(AuditEvent { detail: details(&transaction.catalog, self.published_at), ..event.clone() })
    }
}

/// Ends the call if a policy denies a version whose files the commit would show. A change of only a
/// version's state is not a publish.
async fn judge_by_policies(
    policies: Arc<dyn PolicyService>,
    repository: RepositoryId,
    catalog: &[CatalogChange],
) -> Result<(), HostError> {
    let published = catalog.iter().filter_map(|change| match change {
        CatalogChange::Show(version) if !version.files.is_empty() => Some(version),
        _ => None,
    });
    let published: Vec<_> = published.collect();
    if published.is_empty() {
        return Ok(());
    }
    let statements = catalog.iter().filter_map(|change| match change {
        CatalogChange::Attest(statement) => Some(statement),
        _ => None,
    });
    Ok(policies.judge_publish(repository, published, statements.collect()).await?)
}

impl HostState {
    /// Ends a publish if an advisory bars the repository from accepting one of its versions.
    async fn refuse_advised(
        &mut self,
        repository: RepositoryId,
        catalog: &[CatalogChange],
    ) -> Result<(), HostError> {
        if self.access != Access::Intent(Action::Publish) {
            return Ok(());
        }
        let version = |change: &CatalogChange| match change {
            CatalogChange::Show(version) => Some((version.name.clone(), version.version.clone())),
            _ => None,
        };
        let published: Vec<(String, String)> = catalog.iter().filter_map(version).collect();
        if published.is_empty() {
            return Ok(());
        }
        let services = self.services.clone();
        let _host_work = self.clock.begin_host_work();
        match services.advisories.refusal(repository, published).await? {
            Some(sentence) => Err(CallError::Advisory(sentence).into()),
            None => Ok(()),
        }
    }
}

impl HostTransaction for HostState {
    fn put(
        &mut self,
        transaction: Resource<TransactionRep>,
        key: String,
        value: Vec<u8>,
        expect: Expectation,
        blobs: Vec<String>,
    ) -> Result<()> {
        self.step(&transaction, value.len(), |it| it.put(key, value, expect.into(), &blobs))
    }

    fn remove(
        &mut self,
        transaction: Resource<TransactionRep>,
        key: String,
        expect: Expectation,
    ) -> Result<()> {
        self.step(&transaction, 0, |it| it.change(Change::Remove { key, expect: expect.into() }, 0))
    }

    fn require(
        &mut self,
        transaction: Resource<TransactionRep>,
        key: String,
        expect: Expectation,
    ) -> Result<()> {
        self.step(&transaction, 0, |it| it.change(Change::Require { key, expect: expect.into() }, 0))
    }

    fn show(&mut self, transaction: Resource<TransactionRep>, version: Version) -> Result<()> {
        let published_at = self.published_at;
        self.step(&transaction, weight(&version), |it| {
            it.weigh(weight(&version))?;
            it.catalog.push(CatalogChange::Show(version_to_show(version, published_at)?));
            Ok(())
        })
    }

    fn hide(&mut self, transaction: Resource<TransactionRep>, id: VersionId) -> Result<()> {
        self.step(&transaction, 0, |it| it.hide(id.name, id.version, None))
    }

    fn hide_file(
        &mut self,
        transaction: Resource<TransactionRep>,
        id: VersionId,
        path: String,
    ) -> Result<()> {
        self.step(&transaction, 0, |it| it.hide(id.name, id.version, Some(path)))
    }

    fn attest(&mut self, transaction: Resource<TransactionRep>, statement: Statement) -> Result<()> {
        let bytes =
            statement.bundle.len() + statement.path.len() + statement.source.len() + statement.kind.len();
        self.step(&transaction, bytes, |it| {
            it.weigh(bytes)?;
            it.catalog.push(CatalogChange::Attest(signed_statement(statement)?));
            Ok(())
        })
    }

    fn document(&mut self, transaction: Resource<TransactionRep>, document: Document) -> Result<()> {
        let texts = [&document.path, &document.source, &document.title, &document.form, &document.media_type];
        let bytes = texts.into_iter().map(String::len).sum();
        self.step(&transaction, bytes, |it| {
            it.weigh(bytes)?;
            it.catalog.push(CatalogChange::Document(version_document(document)?));
            Ok(())
        })
    }

    fn about_package(&mut self, transaction: Resource<TransactionRep>, name: String) -> Result<()> {
        self.step(&transaction, name.len(), |it| it.about_package(name))
    }

    async fn commit(&mut self, transaction: Resource<TransactionRep>) -> Result<Outcome, HostError> {
        let transaction = self.take(transaction)?;
        if let Some(problem) = transaction.problem {
            return Err(HostError::invalid(problem));
        }
        if let Some(bounds) = &self.packages {
            bounds.judge(&transaction.catalog, &transaction.about)?;
        }
        let repository = transaction.repository;
        self.refuse_advised(repository, &transaction.catalog).await?;
        let keeps = self.blobs_to_keep.extract_if(.., |(owner, _)| *owner == repository);
        let keeps = keeps.map(|(_, blob)| blob).collect();
        let audit = self.event(&transaction);
        let (changes, catalog) = (transaction.changes, transaction.catalog);
        changes.iter().for_each(|change| match change {
            Change::Put { key, .. } => self.log_record("wrote", key),
            Change::Remove { key, .. } => self.log_record("removed", key),
            Change::Require { .. } => {}
        });
        let of_tags = |change: &Change| self.tags.iter().find_map(|keys: &TagKeys| keys.record(change.key()));
        let tags = changes.iter().filter_map(of_tags).collect();
        let publishes = matches!(self.access, Access::Intent(Action::Publish));
        if publishes && self.services.policies.has_policies(repository) {
            // The time of policies counts as the host's.
            let _host_work = self.clock.begin_host_work();
            judge_by_policies(Arc::clone(&self.services.policies), repository, &catalog).await?;
        }
        let trash = self.trash.filter(|_| matches!(self.access, Access::Intent(Action::Delete)));
        let commit = Commit { changes, catalog, tags, keeps, audit, publishes, trash, ..Commit::default() };
        let storage = self.storage()?;
        let _host_work = self.clock.begin_host_work();
        Ok(match storage.commit(repository, commit).await? {
            packhouse_store::Outcome::Applied(revision) => {
                self.committed = true;
                Outcome::Applied(revision)
            }
            packhouse_store::Outcome::Stale(key) => Outcome::Stale(key),
            packhouse_store::Outcome::UnknownBlobs(digests) => {
                Outcome::UnknownBlobs(digests.iter().map(|sha256| sha256.digest().to_string()).collect())
            }
        })
    }

    fn drop(&mut self, transaction: Resource<TransactionRep>) -> Result<()> {
        self.take(transaction)?;
        Ok(())
    }
}
