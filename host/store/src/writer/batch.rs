//! A batch of jobs, judged in memory in the order of their arrival.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bytes::Bytes;

use super::answers::Answers;
use super::catalog::{Shown, queued};
use super::events::Events;
use super::job::{Done, Job, KeptRow, Waiting};
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

/// What the jobs are about as it is stored, and over it what the jobs judged so far make of it.
pub(super) struct Batch<'a> {
    revisions: HashMap<RepositoryId, u64>,
    /// Repositories that are there and that another process has locked: nothing of theirs is changed.
    locked: HashSet<RepositoryId>,
    records: HashMap<(RepositoryId, &'a str), Record<'a>>,
    /// Which row has these bytes.
    blobs: HashMap<Sha256, i64>,
    /// Where the bytes of a row lay before the batch, unless the batch gave it others.
    places: HashMap<i64, Option<String>>,
    held: HashSet<(RepositoryId, Sha256)>,
    fresh: Vec<&'a BlobRow>,
    /// New bytes for rows that were there.
    replaced: Vec<(&'a BlobRow, &'a Examined)>,
    leases: BTreeSet<(i64, RepositoryId)>,
    committed: BTreeMap<RepositoryId, Touched>,
    /// With who makes each, as far as that is known.
    catalog: Vec<(RepositoryId, &'a CatalogChange, &'a str)>,
    answers: Answers<'a>,
    audit: Vec<&'a AuditEvent>,
    ledger: Ledger,
    events: Events<'a>,
    /// When the batch is judged, in ms since 1970 by the database's clock.
    now: i64,
    /// Deletions that go into the trash: no other commit of the batch touches what they do.
    trashed: Vec<(TrashId, RepositoryId, &'a Commit)>,
    /// Entries of the trash that are there, of those that jobs bring back.
    in_trash: HashSet<TrashId>,
    /// Entries of the trash that were brought back.
    undone: Vec<TrashId>,
}

#[derive(Default)]
struct Record<'a> {
    /// Its revision in the database.
    stored: Option<u64>,
    /// Rows of the blobs that it names there.
    blobs: Vec<i64>,
    /// Its revision after the commits so far.
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
    /// Reads what the jobs are about; on PostgreSQL, no other process can change these repositories until the end, but for those
    /// that are locked and not waited for.
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
            ((*repository, *key), Record { stored, blobs, now: stored, write: Write::Nothing })
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
        // Another server may have replaced the same bytes since, in a transaction for another repository.
        let judged = jobs.iter().filter(|job| !locked.contains(&job.repository));
        let replaced: BTreeSet<i64> = judged.flat_map(replaces).collect();
        places.extend(sql::lock_places(transaction, &replaced).await?);
        let mut in_trash = HashSet::new();
        for kept in sql::in_trash(transaction, jobs.iter().filter_map(undoes)).await? {
            in_trash.insert(kept.entry);
            if let Some((sha256, id)) = kept.blob {
                blobs.insert(sha256, id);
                held.insert((kept.repository, sha256));
            }
        }
        let (fresh, catalog, audit) = (Vec::new(), Vec::new(), Vec::new());
        let (leases, committed, answers) = (BTreeSet::new(), BTreeMap::new(), Answers::default());
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

    /// What becomes of a job after those before it; none when its repository is locked.
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
                "the blob {} is gone: nothing held it for long",
                row.sha256
            )));
        }
        if !job.keeps.iter().all(|row| self.is_examined(row)) {
            return Ok(Done::unexamined());
        }
        let rows: Vec<KeptRow> = job.keeps.iter().map(|row| self.keep(job.repository, row)).collect();
        let applied = job.commit.as_deref().map(|commit| self.apply(job.repository, commit)).transpose()?;
        let (outcome, refused) = match applied {
            Some(Err(quota)) => (None, Some(quota)),
            Some(Ok(outcome)) => (Some(outcome), None),
            None => (None, None),
        };
        self.lease(job, &rows, matches!(outcome, Some(Outcome::Applied(_))));
        Ok(Done { outcome, refused, rows, unexamined: false })
    }

    /// Whether it is known how the stored bytes are in whose place new ones may come.
    fn is_examined(&self, row: &BlobRow) -> bool {
        let stored = self.blobs.get(&row.sha256).filter(|_| row.fresh);
        let Some((id, place)) = stored.and_then(|id| Some((id, self.places.get(id)?))) else { return true };
        row.examined.as_ref().is_some_and(|examined| examined.id == *id && examined.place == *place)
    }

    /// What a record of the same job names needs no lease: the record holds it.
    fn lease(&mut self, job: &Job, rows: &[KeptRow], applied: bool) {
        let named: HashSet<Sha256> = match &job.commit {
            Some(commit) if applied => commit.changes.iter().flat_map(blobs_of).copied().collect(),
            _ => HashSet::new(),
        };
        let unnamed = job.keeps.iter().zip(rows).filter(|(row, _)| !named.contains(&row.sha256));
        self.leases.extend(unnamed.map(|(_, kept)| (kept.id, job.repository)));
    }

    fn keep(&mut self, repository: RepositoryId, row: &'a BlobRow) -> KeptRow {
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
                KeptRow { id, is_own: true }
            }
            None => KeptRow { id, is_own: id == row.id },
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
        // Its time was over meanwhile: then nothing holds its blobs.
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
        *revision =
            revision.checked_add(1).ok_or_else(|| StoreError::Corrupt("the last revision".to_owned()))?;
        let revision = *revision;
        for change in &commit.changes {
            self.change(repository, change, revision);
        }
        self.touch(repository, commit, revision);
        self.events.tell(repository, revision, commit, self.now);
        self.audit.extend(&commit.audit);
        self.trashed.extend(commit.trash.map(|entry| (entry, repository, commit)));
        // Of two undos of one entry in a batch, the second finds it gone.
        if let Some(entry) = commit.undoes {
            self.in_trash.remove(&entry);
            self.undone.push(entry);
        }
        let by = commit.audit.as_ref().map_or("", |event| event.actor.as_str());
        self.catalog.extend(commit.catalog.iter().map(|change| (repository, change, by)));
        Ok(Ok(Outcome::Applied(revision)))
    }

    /// What another reader may have relied on.
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
        let mut seen = HashSet::new();
        for sha256 in commit.changes.iter().flat_map(blobs_of) {
            if !self.held.contains(&(repository, *sha256)) && seen.insert(*sha256) {
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

    /// What deletions put into the trash, as it is before.
    fn kept_in_trash(&self) -> Vec<MultiRow> {
        let deletions = self.trashed.iter().map(|(entry, repository, commit)| Deletion {
            entry: *entry,
            repository: *repository,
            gone: commit.changes.iter().filter_map(|change| self.gone(*repository, change)).collect(),
            catalog: &commit.catalog,
        });
        trash::keep(&deletions.collect::<Vec<_>>())
    }

    /// What a deletion's change makes of a record that is there.
    fn gone<'b>(&'b self, repository: RepositoryId, change: &'b Change) -> Option<Gone<'b>> {
        let record = self.records.get(&(repository, change.key()))?;
        let after = match record.write {
            Write::Put(value, _) => Some(Sha256::of(value)),
            Write::Nothing | Write::Remove => None,
        };
        let is_there = record.stored.is_some() || record.now.is_some();
        is_there.then(|| Gone { key: change.key(), after, blobs: &record.blobs })
    }

    /// The repositories that change, with their new revisions.
    fn bumped(&self) -> Revisions {
        self.committed.iter().map(|(id, touched)| (*id, touched.last)).collect()
    }

    /// The records that are put or removed, as they are afterwards.
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

    /// What the jobs make of it: blobs before what names them.
    pub(super) fn changes(self, lease_ms: i64, now: i64) -> Result<Changes, StoreError> {
        let bumped = self.bumped();
        let written = self.written();
        let mut rows = Rows::default();
        for ((repository, key), record) in &self.records {
            rows.add(*repository, key, record, &self.blobs);
        }
        let mut statements = self.kept_in_trash();
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
        for (number, shown) in Shown::phases(&self.catalog).into_iter().enumerate() {
            let changes = shown.changes(&self.blobs)?.into_iter();
            statements.extend(changes.map(|one| if number > 0 { one.later() } else { one }));
        }
        statements.push(queued(&self.catalog));
        statements.extend(self.answers.statements(now));
        statements.push(insert_audit(self.audit.into_iter()));
        let (told, hooks) = self.events.written(now);
        statements.push(told);
        statements.extend(self.undone.into_iter().flat_map(trash::give_back));
        let is_statement =
            |(_, change, _): &(_, &CatalogChange, _)| matches!(change, CatalogChange::Attest(_));
        let attested = self.catalog.iter().any(is_statement);
        Ok(Changes { statements, bumped, touched: self.committed, written, hooks, attested })
    }
}

/// What a batch changes, and what is told of it once it is durable.
pub(super) struct Changes {
    pub(super) statements: Vec<MultiRow>,
    /// The new revisions.
    pub(super) bumped: Revisions,
    pub(super) touched: BTreeMap<RepositoryId, Touched>,
    /// The records that it puts and removes.
    pub(super) written: Vec<Written>,
    /// Hooks that are told something.
    pub(super) hooks: BTreeSet<WebhookId>,
    /// Whether there are statements to be judged.
    pub(super) attested: bool,
}

/// The rows of records that change.
#[derive(Default)]
struct Rows {
    /// What names a blob no longer.
    unnamed: Vec<[Value; 3]>,
    removed: Vec<[Value; 2]>,
    put: Vec<[Value; 5]>,
    named: Vec<[Value; 3]>,
}

impl Rows {
    fn add(&mut self, repository: RepositoryId, key: &str, record: &Record<'_>, ids: &HashMap<Sha256, i64>) {
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

/// Rows whose bytes were found missing or damaged, and are to be replaced.
fn replaces(job: &Job) -> impl Iterator<Item = i64> {
    let examined = job.keeps.iter().filter(|row| row.fresh).filter_map(|row| row.examined.as_ref());
    examined.filter(|examined| examined.condition != Condition::Sound).map(|examined| examined.id)
}

fn keys(job: &Job) -> impl Iterator<Item = (RepositoryId, &str)> {
    job.commit.iter().flat_map(|commit| &commit.changes).map(|change| (job.repository, change.key()))
}

/// The blobs that a job names, shows or keeps.
fn named(job: &Job) -> impl Iterator<Item = (RepositoryId, Sha256)> {
    let commits = || job.commit.iter();
    let named = commits().flat_map(|commit| commit.changes.iter().flat_map(blobs_of)).copied();
    let shown = commits().flat_map(|commit| commit.catalog.iter().flat_map(CatalogChange::sha256s));
    let kept = job.keeps.iter().map(|row| row.sha256);
    named.chain(shown).chain(kept).map(|sha256| (job.repository, sha256))
}

fn blobs_of(change: &Change) -> &[Sha256] {
    match change {
        Change::Put { blobs, .. } => blobs,
        Change::Remove { .. } | Change::Require { .. } => &[],
    }
}
