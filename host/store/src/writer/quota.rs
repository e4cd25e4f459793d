//! Quotas of a batch. The writer computes in memory how its commits change the catalog's bytes,
//! exactly as the database's counters do. A batch refuses only the commits that would exceed a
//! quota, and concurrent publishes cannot exceed it together.
//!
//! The batch reads and counts only repositories with a quota of their own or of their organization.
//! It locks their rows, and the row of an organization with a quota, so that their catalogs cannot
//! change before the transaction ends.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::job::Job;
use crate::catalog::{CatalogChange, CatalogFile};
use crate::db::{MultiRow, Row, Transaction, Value, signed};
use crate::error::{ExceededQuota, QuotaOf, StoreError};
use crate::ids::{OrganizationId, RepositoryId};
use crate::quota_setting::of_settings;

pub(crate) const PATHS: [&str; 2] =
    ["SELECT repository, name, version, path, size FROM files WHERE (repository, path) IN (VALUES ", ")"];
pub(crate) const VERSIONS: [&str; 2] = [
    "SELECT repository, name, version, path, size FROM files WHERE (repository, name, version) IN (VALUES ",
    ")",
];
const USED: [&str; 2] = ["SELECT repository, bytes FROM repository_usage WHERE repository IN (VALUES ", ")"];
const TOTALS: [&str; 2] = [
    "SELECT r.organization, CAST(COALESCE(SUM(u.bytes), 0) AS BIGINT) AS bytes FROM repositories r \
     JOIN repository_usage u ON u.repository = r.id WHERE r.deleted_at IS NULL AND r.organization IN (VALUES ",
    ") GROUP BY r.organization",
];

/// Quotas that apply to publishes into a repository.
pub(crate) struct Quotas {
    repository: RepositoryId,
    organization: OrganizationId,
    own: Option<u64>,
    of_organization: Option<u64>,
}

/// Reads the quotas from a row of `repositories`; `None` without any quota.
pub(super) fn set(row: &Row) -> Result<Option<Quotas>, StoreError> {
    let mut columns = row.columns();
    let (repository, organization) =
        (RepositoryId(columns.int("id")?), OrganizationId(columns.int("organization")?));
    let own = columns.opt_text("settings")?.as_deref().and_then(of_settings);
    let of_organization = columns.opt_int("organization_quota")?.and_then(|bytes| u64::try_from(bytes).ok());
    let is_set = own.is_some() || of_organization.is_some();
    Ok(is_set.then_some(Quotas { repository, organization, own, of_organization }))
}

#[derive(Clone, Copy)]
struct Account {
    quota: Option<u64>,
    used: i64,
}

impl Account {
    fn judge(self, of: QuotaOf, added: i64) -> Result<(), ExceededQuota> {
        let Some(bytes) = self.quota else { return Ok(()) };
        if added <= 0 || self.used.saturating_add(added) <= signed(bytes) {
            return Ok(());
        }
        let unsigned = |bytes: i64| u64::try_from(bytes).unwrap_or_default();
        Err(ExceededQuota { of, bytes, used: unsigned(self.used), added: unsigned(added) })
    }
}

/// A path in a repository.
type FilePath = (RepositoryId, String);
/// Size of a path by package and version. Several versions may list one file.
type Sizes = BTreeMap<(String, String), i64>;

/// Quotas and catalog bytes of a batch. It is empty if no repository of the batch has a quota.
#[derive(Default)]
pub(super) struct Ledger {
    repositories: HashMap<RepositoryId, (OrganizationId, Account)>,
    organizations: HashMap<OrganizationId, Account>,
    files: HashMap<FilePath, Sizes>,
}

impl Ledger {
    /// Reads the content that the changes of these jobs concern, in repositories with a quota.
    pub(super) async fn read(
        transaction: &mut Transaction,
        jobs: &[Job],
        quotas: Vec<Quotas>,
    ) -> Result<Ledger, StoreError> {
        let mut ledger = Ledger::default();
        let publishing: HashSet<RepositoryId> = jobs.iter().filter(|job| publishes(job)).map(of).collect();
        let quotas: Vec<Quotas> =
            quotas.into_iter().filter(|quotas| publishing.contains(&quotas.repository)).collect();
        if quotas.is_empty() {
            return Ok(ledger);
        }
        // Locks first, so that everything read after the lock is valid until the end of the
        // transaction.
        ledger.open_organizations(transaction, &quotas).await?;
        ledger.open_repositories(transaction, &quotas).await?;
        ledger.read_files(transaction, jobs).await?;
        Ok(ledger)
    }

    async fn open_organizations(
        &mut self,
        transaction: &mut Transaction,
        quotas: &[Quotas],
    ) -> Result<(), StoreError> {
        let with = quotas.iter().filter(|quotas| quotas.of_organization.is_some());
        let ids: BTreeSet<OrganizationId> = with.map(|quotas| quotas.organization).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let rows = || ids.iter().map(|id| [Value::from(id.0)]).collect();
        let lock = format!(") ORDER BY id{}", transaction.for_update());
        let lock =
            MultiRow::new("SELECT id, quota_bytes FROM organizations WHERE id IN (VALUES ", rows(), lock);
        let locked = transaction.fetch_each(vec![lock]).await?;
        for row in locked.iter().flatten() {
            let mut columns = row.columns();
            let id = OrganizationId(columns.int("id")?);
            let quota = columns.opt_int("quota_bytes")?.and_then(|bytes| u64::try_from(bytes).ok());
            self.organizations.insert(id, Account { quota, used: 0 });
        }
        let totals = transaction.fetch_each(vec![MultiRow::new(TOTALS[0], rows(), TOTALS[1])]).await?;
        for row in totals.iter().flatten() {
            let mut columns = row.columns();
            let id = OrganizationId(columns.int("organization")?);
            if let Some(account) = self.organizations.get_mut(&id) {
                account.used = columns.int("bytes")?;
            }
        }
        Ok(())
    }

    async fn open_repositories(
        &mut self,
        transaction: &mut Transaction,
        quotas: &[Quotas],
    ) -> Result<(), StoreError> {
        for Quotas { repository, organization, own, .. } in quotas {
            self.repositories.insert(*repository, (*organization, Account { quota: *own, used: 0 }));
        }
        let ids = quotas.iter().map(|quotas| [Value::from(quotas.repository.0)]).collect();
        let used = transaction.fetch_each(vec![MultiRow::new(USED[0], ids, USED[1])]).await?;
        for row in used.iter().flatten() {
            let mut columns = row.columns();
            let id = RepositoryId(columns.int("repository")?);
            if let Some((_, account)) = self.repositories.get_mut(&id) {
                account.used = columns.int("bytes")?;
            }
        }
        Ok(())
    }

    /// Reads the files of hidden versions, and all files that share a path with one of them or with
    /// a change.
    async fn read_files(&mut self, transaction: &mut Transaction, jobs: &[Job]) -> Result<(), StoreError> {
        let (mut paths, mut hidden) = (BTreeSet::new(), BTreeSet::new());
        for job in jobs.iter().filter(|job| self.repositories.contains_key(&job.repository)) {
            for change in job.commit.iter().flat_map(|commit| &commit.catalog) {
                match change {
                    CatalogChange::Show(version) => {
                        paths.extend(version.files.iter().map(|file| (job.repository, file.path.clone())));
                    }
                    CatalogChange::ShowFile(CatalogFile { path, .. })
                    | CatalogChange::HideFile { path, .. } => {
                        paths.insert((job.repository, path.clone()));
                    }
                    CatalogChange::Attest(_) | CatalogChange::Document(_) => {}
                    CatalogChange::Hide { name, version } => {
                        hidden.insert((job.repository, name.as_str(), version.as_str()));
                    }
                }
            }
        }
        let version = |(repository, name, version): &(RepositoryId, &str, &str)| {
            [Value::from(repository.0), Value::from(*name), Value::from(*version)]
        };
        let versions = MultiRow::new(VERSIONS[0], hidden.iter().map(version).collect(), VERSIONS[1]);
        let of_hidden = transaction.fetch_each(vec![versions]).await?;
        for row in of_hidden.iter().flatten() {
            paths.insert((RepositoryId(row.columns().int("repository")?), row.columns().text("path")?));
        }
        let path = |(repository, path): &FilePath| [Value::from(repository.0), Value::from(path.as_str())];
        let rows = MultiRow::new(PATHS[0], paths.iter().map(path).collect(), PATHS[1]);
        for row in transaction.fetch_each(vec![rows]).await?.iter().flatten() {
            let mut columns = row.columns();
            let place = (RepositoryId(columns.int("repository")?), columns.text("path")?);
            let version = (columns.text("name")?, columns.text("version")?);
            self.files.entry(place).or_default().insert(version, columns.int("size")?);
        }
        Ok(())
    }

    /// Adds the catalog changes of a commit. If a publish would exceed a quota, it returns the
    /// quota and adds nothing.
    pub(super) fn enter(
        &mut self,
        repository: RepositoryId,
        changes: &[CatalogChange],
        publishes: bool,
    ) -> Result<(), ExceededQuota> {
        let Some(&(organization, account)) = self.repositories.get(&repository) else { return Ok(()) };
        let mut entry = QuotaEntry { files: &mut self.files, repository, before: HashMap::new(), added: 0 };
        changes.iter().for_each(|change| entry.add(change));
        let QuotaEntry { before, added, .. } = entry;
        let total = self.organizations.get(&organization).copied();
        let judged = account
            .judge(QuotaOf::Repository, added)
            .and_then(|()| total.map_or(Ok(()), |total| total.judge(QuotaOf::Organization, added)));
        if publishes && judged.is_err() {
            self.files.extend(before);
            return judged;
        }
        if let Some((_, account)) = self.repositories.get_mut(&repository) {
            account.used = account.used.saturating_add(added);
        }
        if let Some(total) = self.organizations.get_mut(&organization) {
            total.used = total.used.saturating_add(added);
        }
        Ok(())
    }
}

/// Changes of a commit, with the previous content of the changed paths.
struct QuotaEntry<'a> {
    files: &'a mut HashMap<FilePath, Sizes>,
    repository: RepositoryId,
    before: HashMap<FilePath, Sizes>,
    added: i64,
}

impl QuotaEntry<'_> {
    fn add(&mut self, change: &CatalogChange) {
        match change {
            CatalogChange::Show(version) => {
                for file in &version.files {
                    self.show(&version.name, &version.version, &file.path, file.size);
                }
            }
            CatalogChange::ShowFile(file) => self.show(&file.name, &file.version, &file.path, file.size),
            CatalogChange::Attest(_) | CatalogChange::Document(_) => {}
            CatalogChange::HideFile { name, version, path } => self.hide(name, version, path),
            CatalogChange::Hide { name, version } => {
                let version_of = (name.clone(), version.clone());
                let has = |(place, sizes): &(&FilePath, &Sizes)| {
                    place.0 == self.repository && sizes.contains_key(&version_of)
                };
                let paths: Vec<String> =
                    self.files.iter().filter(has).map(|(place, _)| place.1.clone()).collect();
                paths.iter().for_each(|path| self.hide(name, version, path));
            }
        }
    }

    /// Returns the versions that list the path, after it has saved their state before the commit.
    fn at(&mut self, path: &str) -> &mut Sizes {
        let place = (self.repository, path.to_owned());
        let sizes = self.files.entry(place.clone()).or_default();
        self.before.entry(place).or_insert_with(|| sizes.clone());
        sizes
    }

    /// Adds a file as the database's counters do: the first file at a path adds its size, and a
    /// later one only the difference.
    fn show(&mut self, name: &str, version: &str, path: &str, size: u64) {
        let size = signed(size);
        let sizes = self.at(path);
        // Versions that list one path list the same file. If their sizes differ, the larger one
        // counts, because it is unknown which one the counters use.
        let largest = sizes.values().copied().max().unwrap_or_default();
        let replaced = sizes.insert((name.to_owned(), version.to_owned()), size);
        self.added += match replaced {
            Some(before) => size - before,
            None => (size - largest).max(0),
        };
    }

    fn hide(&mut self, name: &str, version: &str, path: &str) {
        let sizes = self.at(path);
        let gone = sizes.remove(&(name.to_owned(), version.to_owned()));
        let last = sizes.is_empty();
        self.added -= gone.filter(|_| last).unwrap_or_default();
    }
}

fn of(job: &Job) -> RepositoryId {
    job.repository
}

fn publishes(job: &Job) -> bool {
    job.commit.as_ref().is_some_and(|commit| commit.publishes && !commit.catalog.is_empty())
}
