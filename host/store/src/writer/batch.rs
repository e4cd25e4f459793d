//! A batch of jobs, evaluated in memory in the order of their arrival.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bytes::Bytes;

use super::answers::ResponseChanges;
use super::catalog::{CatalogPhase, queued};
use super::events::Events;
use super::job::{Done, Job, SettledRow, Waiting};
use super::quota::Ledger;
use super::sql;
use super::trash::{self, Deletion, Gone};
use crate::accounts::{AuditEvent, Revisions, insert_audit};
use crate::blobs::orphans::READ_FOR_MS;
use crate::blobs::row::{BlobRow, Condition, Examined};
use crate::catalog::CatalogChange;
use crate::changes::Touched;
use crate::db::{MultiRow, Transaction, Value};
use crate::digest::Sha256;
use crate::error::{ExceededQuota, StoreError};
use crate::ids::{RepositoryId, TrashId, WebhookId};
use crate::records::cache::Written;
use crate::records::{Change, Commit, Entry, Expectation, Outcome};

/// Stored state of everything that the jobs concern, with the effects of the jobs evaluated so far.
pub(super) struct Batch<'a> {
    revisions: HashMap<RepositoryId, u64>,
    /// Existing repositories that another process has locked. The batch changes none of their
    /// content.
    locked: HashSet<RepositoryId>,
    records: HashMap<(RepositoryId, &'a str), RecordState<'a>>,
    /// Ids of blob rows by digest.
    blobs: HashMap<Sha256, i64>,
    /// Location of the bytes of each row before the batch. Rows that get new bytes are removed
    /// here.
    places: HashMap<i64, Option<String>>,
    held: HashSet<(RepositoryId, Sha256)>,
    fresh: Vec<&'a BlobRow>,
    /// New bytes for existing rows.
    replaced: Vec<(&'a BlobRow, &'a Examined)>,
    leases: BTreeSet<(i64, RepositoryId)>,
    committed: BTreeMap<RepositoryId, Touched>,
    /// Catalog changes, with the actor of each if it is known.
    catalog: Vec<(RepositoryId, &'a CatalogChange, &'a str)>,
    answers: ResponseChanges<'a>,
    audit: Vec<&'a AuditEvent>,
    ledger: Ledger,
    events: Events<'a>,
    /// Time of the evaluation, in ms since 1970 by the database's clock.
    now: i64,
    /// Deletions into the trash. No other commit of the batch touches the same content.
    trashed: Vec<(TrashId, RepositoryId, &'a Commit)>,
    /// Existing trash entries among those that jobs restore.
    in_trash: HashSet<TrashId>,
    /// Trash entries that the batch restores.
    undone: Vec<TrashId>,
}

#[derive(Default)]
struct RecordState<'a> {
    /// Revision of the record in the database.
    stored: Option<u64>,
    /// Blob rows that the record names in the database.
    blobs: Vec<i64>,
    /// Revision after the commits so far.
    now: Option<u64>,
    write: Write<'a>,
}

#[derive(Default)]
enum Write<'a> {
    #[default]
    Nothing,
    Put(&'a Bytes, &'a [Sha256]),
    Remove,
}

impl<'a> Batch<'a> {
    /// Reads everything that the jobs concern. On PostgreSQL, the jobs' repositories stay locked
    /// until the end of the transaction. Excluded are repositories that another process has locked
    /// and `waiting` does not wait for.
    pub(super) async fn read(
        transaction: &mut Transaction,
        jobs: &'a [Job],
        waiting: Waiting,
    ) -> Result<Batch<'a>, StoreError> {
        let repositories: BTreeSet<RepositoryId> = jobs.iter().map(|job| job.repository).collect();
        let keys: BTreeSet<(RepositoryId, &str)> = jobs.iter().flat_map(keys).collect();
        let named: BTreeSet<(RepositoryId, Sha256)> = jobs.iter().flat_map(named).collect();
        let stored = sql::stored(transaction, &repositories, &keys, &named, waiting).await?;
        let sql::Stored { revisions, quotas, hooked, locked, mut entries, blobs: found } = stored;
        let ledger = Ledger::read(transaction, jobs, quotas).await?;
        let events = Events::read(transaction, jobs, &hooked).await?;
        let record = |(repository, key): &(RepositoryId, &'a str)| {
            let place = (*repository, (*key).to_owned());
            let known = entries.remove(&place);
            let stored = known.as_ref().map(|known| known.revision);
            let blobs = known.map(|known| known.blobs).unwrap_or_default();
            ((*repository, *key), RecordState { stored, blobs, now: stored, write: Write::Nothing })
        };
        let records = keys.iter().map(record).collect();
        let (mut blobs, mut places, mut held) = (HashMap::new(), HashMap::new(), HashSet::new());
        for blob in found {
            blobs.insert(blob.sha256, blob.id);
            places.insert(blob.id, blob.place);
            if blob.held {
                held.insert((blob.repository, blob.sha256));
            }
        }
        // Another server may have replaced the same bytes since they were examined, in a
        // transaction of another repository.
        let judged = jobs.iter().filter(|job| !locked.contains(&job.repository));
        let replaced: BTreeSet<i64> = judged.flat_map(replaces).collect();
        places.extend(sql::lock_places(transaction, &replaced).await?);
        let mut in_trash = HashSet::new();
        for row in sql::in_trash(transaction, jobs.iter().filter_map(undoes)).await? {
            in_trash.insert(row.entry);
            if let Some((sha256, id)) = row.blob {
                blobs.insert(sha256, id);
                held.insert((row.repository, sha256));
            }
        }
        let (fresh, catalog, audit) = (Vec::new(), Vec::new(), Vec::new());
        let (leases, committed, answers) = (BTreeSet::new(), BTreeMap::new(), ResponseChanges::default());
        Ok(Batch {
            revisions,
            locked,
            records,
            blobs,
            places,
            held,
            fresh,
            replaced: Vec::new(),
            leases,
            committed,
            catalog,
            answers,
            audit,
            ledger,
            events,
            now: transaction.now_ms(),
            trashed: Vec::new(),
            in_trash,
            undone: Vec::new(),
        })
    }

    /// Evaluates a job after those before it; `None` if its repository is locked.
    pub(super) fn judge(&mut self, job: &'a Job) -> Option<Result<Done, StoreError>> {
        (!self.locked.contains(&job.repository)).then(|| self.decide(job))
    }

    fn decide(&mut self, job: &'a Job) -> Result<Done, StoreError> {
        if !self.revisions.contains_key(&job.repository) {
            return Err(StoreError::Invalid(format!("there is no repository {}", job.repository)));
        }
        let gone = |row: &&BlobRow| !row.fresh && !self.blobs.contains_key(&row.sha256);
        if let Some(row) = job.keeps.iter().find(gone) {
            return Err(StoreError::Invalid(format!(
                "the blob {} was collected: nothing referenced it for too long",
                row.sha256
            )));
        }
        if !job.keeps.iter().all(|row| self.is_examined(row)) {
            return Ok(Done::unexamined());
        }
        let rows: Vec<SettledRow> = job.keeps.iter().map(|row| self.keep(job.repository, row)).collect();
        let applied = job.commit.as_deref().map(|commit| self.apply(job.repository, commit)).transpose()?;
        let (outcome, refused) = match applied {
            Some(Err(quota)) => (None, Some(quota)),
            Some(Ok(outcome)) => (Some(outcome), None),
            None => (None, None),
        };
        self.lease(job, &rows, matches!(outcome, Some(Outcome::Applied(_))));
        Ok(Done { outcome, refused, rows, unexamined: false })
    }

    /// True if no bytes are stored for this digest, or if the stored bytes were examined.
    fn is_examined(&self, row: &BlobRow) -> bool {
        let stored = self.blobs.get(&row.sha256).filter(|_| row.fresh);
        let Some((id, place)) = stored.and_then(|id| Some((id, self.places.get(id)?))) else { return true };
        row.examined.as_ref().is_some_and(|examined| examined.id == *id && examined.place == *place)
    }

    /// Pins the blobs of a job, except those that the job's records name, because a record itself
    /// holds its blobs.
    fn lease(&mut self, job: &Job, rows: &[SettledRow], applied: bool) {
        let named: HashSet<Sha256> = match &job.commit {
            Some(commit) if applied => commit.changes.iter().flat_map(blobs_of).copied().collect(),
            _ => HashSet::new(),
        };
        let unnamed = job.keeps.iter().zip(rows).filter(|(row, _)| !named.contains(&row.sha256));
        self.leases.extend(unnamed.map(|(_, stored)| (stored.id, job.repository)));
    }

    fn keep(&mut self, repository: RepositoryId, row: &'a BlobRow) -> SettledRow {
        let fresh = &mut self.fresh;
        let id = *self.blobs.entry(row.sha256).or_insert_with(|| {
            fresh.push(row);
            row.id
        });
        self.held.insert((repository, row.sha256));
        let examined = row.examined.as_ref().filter(|examined| examined.condition != Condition::Sound);
        match examined.filter(|_| row.fresh && self.places.remove(&id).is_some()) {
            Some(examined) => {
                self.replaced.push((row, examined));
                SettledRow { id, is_own: true }
            }
            None => SettledRow { id, is_own: id == row.id },
        }
    }

    fn apply(
        &mut self,
        repository: RepositoryId,
        commit: &'a Commit,
    ) -> Result<Result<Outcome, ExceededQuota>, StoreError> {
        if let Some(change) = commit.changes.iter().find(|change| !self.as_expected(repository, change)) {
            return Ok(Ok(Outcome::Stale(change.key().to_owned())));
        }
        // If the entry expired meanwhile, nothing holds its blobs.
        if let Some(entry) = commit.undoes
            && !self.in_trash.contains(&entry)
        {
            return Ok(Ok(Outcome::Stale(String::new())));
        }
        let unknown = self.unknown(repository, commit);
        if !unknown.is_empty() {
            return Ok(Ok(Outcome::UnknownBlobs(unknown)));
        }
        if let Err(exceeded) = self.ledger.enter(repository, &commit.catalog, commit.publishes) {
            return Ok(Err(exceeded));
        }
        for change in &commit.answers {
            self.answers.change(repository, change, &self.blobs)?;
        }
        let revision = self.revisions.entry(repository).or_default();
        *revision = revision.checked_add(1).ok_or_else(|| {
            StoreError::Corrupt("the repository has reached the maximum revision".to_owned())
        })?;
        let revision = *revision;
        for change in &commit.changes {
            self.change(repository, change, revision);
        }
        self.touch(repository, commit, revision);
        self.events.add_commit(repository, revision, commit, self.now);
        self.audit.extend(&commit.audit);
        self.trashed.extend(commit.trash.map(|entry| (entry, repository, commit)));
        // If a batch has two undos of one entry, the second finds it gone.
        if let Some(entry) = commit.undoes {
            self.in_trash.remove(&entry);
            self.undone.push(entry);
        }
        let by = commit.audit.as_ref().map_or("", |event| event.actor.as_str());
        self.catalog.extend(commit.catalog.iter().map(|change| (repository, change, by)));
        Ok(Ok(Outcome::Applied(revision)))
    }

    /// Collects the changed content that other readers may depend on.
    fn touch(&mut self, repository: RepositoryId, commit: &Commit, revision: u64) {
        let touched = self.committed.entry(repository).or_insert_with(|| Touched::from(revision));
        touched.last = revision;
        for change in &commit.changes {
            let record = self.records.get(&(repository, change.key()));
            touched.record(change, record.map_or(&[], |record| &record.blobs));
        }
        commit.catalog.iter().for_each(|change| touched.package(change));
        commit.answers.iter().for_each(|change| touched.answer(change));
    }

    fn as_expected(&self, repository: RepositoryId, change: &Change) -> bool {
        let now = self.records.get(&(repository, change.key())).and_then(|record| record.now);
        match change.expect() {
            Expectation::Anything => true,
            Expectation::Absent => now.is_none(),
            Expectation::Present => now.is_some(),
            Expectation::Revision(revision) => now == Some(revision),
        }
    }

    fn unknown(&self, repository: RepositoryId, commit: &Commit) -> Vec<Sha256> {
        let mut unknown = Vec::new();
        let mut reported = HashSet::new();
        for sha256 in commit.changes.iter().flat_map(blobs_of) {
            if !self.held.contains(&(repository, *sha256)) && reported.insert(*sha256) {
                unknown.push(*sha256);
            }
        }
        unknown
    }

    fn change(&mut self, repository: RepositoryId, change: &'a Change, revision: u64) {
        let record = self.records.entry((repository, change.key())).or_default();
        match change {
            Change::Put { value, blobs, .. } => {
                record.now = Some(revision);
                record.write = Write::Put(value, blobs);
                self.held.extend(blobs.iter().map(|blob| (repository, *blob)));
            }
            Change::Remove { .. } => {
                record.now = None;
                record.write = Write::Remove;
            }
            Change::Require { .. } => {}
        }
    }

    /// Statements that copy the deleted content into the trash before it changes.
    fn copies_to_trash(&self) -> Vec<MultiRow> {
        let deletions = self.trashed.iter().map(|(entry, repository, commit)| Deletion {
            entry: *entry,
            repository: *repository,
            gone: commit.changes.iter().filter_map(|change| self.gone(*repository, change)).collect(),
            catalog: &commit.catalog,
        });
        trash::keep(&deletions.collect::<Vec<_>>())
    }

    /// Effect of a deletion's change on an existing record.
    fn gone<'b>(&'b self, repository: RepositoryId, change: &'b Change) -> Option<Gone<'b>> {
        let record = self.records.get(&(repository, change.key()))?;
        let after = match record.write {
            Write::Put(value, _) => Some(Sha256::of(value)),
            Write::Nothing | Write::Remove => None,
        };
        let is_there = record.stored.is_some() || record.now.is_some();
        is_there.then(|| Gone { key: change.key(), after, blobs: &record.blobs })
    }

    /// Changed repositories with their new revisions.
    fn bumped(&self) -> Revisions {
        self.committed.iter().map(|(id, touched)| (*id, touched.last)).collect()
    }

    /// Records that are written or removed, in their new state.
    fn written(&self) -> Vec<Written> {
        let written = self.records.iter().filter_map(|((repository, key), record)| {
            let found = match record.write {
                Write::Nothing => return None,
                Write::Put(value, _) => {
                    let revision = record.now.unwrap_or_default();
                    Some(Entry { key: (*key).to_owned(), value: value.clone(), revision })
                }
                Write::Remove => None,
            };
            let at = self.committed.get(repository)?.last;
            Some(Written { repository: *repository, key: (*key).to_owned(), found, at })
        });
        written.collect()
    }

    pub(super) fn changes_anything(&self) -> bool {
        !self.committed.is_empty() || !self.leases.is_empty() || !self.replaced.is_empty()
    }

    /// Changes of the whole batch. Blobs come before the records that name them.
    pub(super) fn changes(self, lease_ms: i64, now: i64) -> Result<Changes, StoreError> {
        let bumped = self.bumped();
        let written = self.written();
        let mut rows = Rows::default();
        for ((repository, key), record) in &self.records {
            rows.add(*repository, key, record, &self.blobs);
        }
        let mut statements = self.copies_to_trash();
        statements.extend(sql::replace_bytes(&self.replaced, now.saturating_add(READ_FOR_MS)));
        statements.extend([
            sql::insert_blobs(&self.fresh, now),
            sql::hold(&self.leases, now.saturating_add(lease_ms)),
            sql::unname(rows.unnamed),
            sql::remove(rows.removed),
            sql::put(rows.put),
            sql::name(rows.named),
            sql::set_revisions(bumped.clone()),
        ]);
        for (number, phase) in CatalogPhase::phases(&self.catalog).into_iter().enumerate() {
            let changes = phase.changes(&self.blobs)?.into_iter();
            statements.extend(changes.map(|one| if number > 0 { one.later() } else { one }));
        }
        statements.push(queued(&self.catalog));
        statements.extend(self.answers.statements(now));
        statements.push(insert_audit(self.audit.into_iter()));
        let (deliveries, hooks) = self.events.statement(now);
        statements.push(deliveries);
        statements.extend(self.undone.into_iter().flat_map(trash::give_back));
        let is_statement =
            |(_, change, _): &(_, &CatalogChange, _)| matches!(change, CatalogChange::Attest(_));
        let attested = self.catalog.iter().any(is_statement);
        Ok(Changes { statements, bumped, touched: self.committed, written, hooks, attested })
    }
}

/// Changes of a batch, with what must be announced once it is durable.
pub(super) struct Changes {
    pub(super) statements: Vec<MultiRow>,
    /// New revisions of the repositories.
    pub(super) bumped: Revisions,
    pub(super) touched: BTreeMap<RepositoryId, Touched>,
    /// Records that the batch writes and removes.
    pub(super) written: Vec<Written>,
    pub(super) hooks: BTreeSet<WebhookId>,
    /// True if there are statements to be verified.
    pub(super) attested: bool,
}

/// Rows that the changed records produce.
#[derive(Default)]
struct Rows {
    /// References to blobs that no longer exist.
    unnamed: Vec<[Value; 3]>,
    removed: Vec<[Value; 2]>,
    put: Vec<[Value; 5]>,
    named: Vec<[Value; 3]>,
}

impl Rows {
    fn add(
        &mut self,
        repository: RepositoryId,
        key: &str,
        record: &RecordState<'_>,
        ids: &HashMap<Sha256, i64>,
    ) {
        let place = || [Value::from(repository.0), Value::from(key)];
        let (stored, mut names) = (record.blobs.iter().copied().collect::<BTreeSet<i64>>(), BTreeSet::new());
        match record.write {
            Write::Nothing => return,
            Write::Remove if record.stored.is_some() => self.removed.push(place()),
            Write::Remove => {}
            Write::Put(value, blobs) => {
                names.extend(blobs.iter().filter_map(|blob| ids.get(blob).copied()));
                let [repository, key] = place();
                let revision = crate::db::signed(record.now.unwrap_or_default());
                let column = Value::from(sql::blobs_column(&names));
                self.put.push([repository, key, Value::from(&**value), Value::from(revision), column]);
            }
        }
        let row = |id: &i64| {
            let [repository, key] = place();
            [Value::from(*id), repository, key]
        };
        self.unnamed.extend(stored.difference(&names).map(row));
        self.named.extend(names.difference(&stored).map(row));
    }
}

fn undoes(job: &Job) -> Option<TrashId> {
    job.commit.as_deref().and_then(|commit| commit.undoes)
}

/// Rows with missing or damaged bytes that the job replaces.
fn replaces(job: &Job) -> impl Iterator<Item = i64> {
    let examined = job.keeps.iter().filter(|row| row.fresh).filter_map(|row| row.examined.as_ref());
    examined.filter(|examined| examined.condition != Condition::Sound).map(|examined| examined.id)
}

fn keys(job: &Job) -> impl Iterator<Item = (RepositoryId, &str)> {
    job.commit.iter().flat_map(|commit| &commit.changes).map(|change| (job.repository, change.key()))
}

/// Blobs that a job names, lists or stores.
fn named(job: &Job) -> impl Iterator<Item = (RepositoryId, Sha256)> {
    let commits = || job.commit.iter();
    let named = commits().flat_map(|commit| commit.changes.iter().flat_map(blobs_of)).copied();
    let listed = commits().flat_map(|commit| commit.catalog.iter().flat_map(CatalogChange::sha256s));
    let stored = job.keeps.iter().map(|row| row.sha256);
    named.chain(listed).chain(stored).map(|sha256| (job.repository, sha256))
}

fn blobs_of(change: &Change) -> &[Sha256] {
    match change {
        Change::Put { blobs, .. } => blobs,
        Change::Remove { .. } | Change::Require { .. } => &[],
    }
}
