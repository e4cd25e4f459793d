//! Quotas: what a batch's commits make of the bytes that are shown, counted in memory as the database's counters will have them, so
//! that a commit that would pass a quota is refused by itself, and however many publish at once never pass it together.
//!
//! Read and counted are only repositories that have a quota, or whose organization has one. Nobody else can show anything there before
//! the transaction ends: their rows are locked, and where there is an organization's quota, so is the organization's.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::job::Job;
use crate::catalog::{CatalogChange, ShownFile};
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

/// The quotas that a repository's publishes are judged by.
pub(crate) struct Quotas {
    repository: RepositoryId,
    organization: OrganizationId,
    own: Option<u64>,
    of_organization: Option<u64>,
}

/// Of a row of the repositories; none where no quota is set.
pub(super) fn set(row: &Row) -> Result<Option<Quotas>, StoreError> {
    let mut columns = row.columns();
    let (repository, organization) =
        (RepositoryId(columns.int("id")?), OrganizationId(columns.int("organization")?));
    let own = columns.opt_text("settings")?.as_deref().and_then(of_settings);
    let of_organization = columns.opt_int("organization_quota")?.and_then(|bytes| u64::try_from(bytes).ok());
    let is_set = own.is_some() || of_organization.is_some();
    Ok(is_set.then_some(Quotas { repository, organization, own, of_organization }))
}

/// What is used, and of how much.
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

/// A file's path in a repository.
type Place = (RepositoryId, String);
/// Its size by package and version: several versions may show one file.
type Sizes = BTreeMap<(String, String), i64>;

/// Empty where no repository of the batch has a quota.
#[derive(Default)]
pub(super) struct Ledger {
    repositories: HashMap<RepositoryId, (OrganizationId, Account)>,
    organizations: HashMap<OrganizationId, Account>,
    files: HashMap<Place, Sizes>,
}

impl Ledger {
    /// Reads what the changes of these jobs are about, in repositories with a quota.
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
        // First the lock: what is read after it stands until the end.
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

    /// The files of versions that are hidden, and all that have a path that one of them or a change has.
    async fn read_files(&mut self, transaction: &mut Transaction, jobs: &[Job]) -> Result<(), StoreError> {
        let (mut paths, mut hidden) = (BTreeSet::new(), BTreeSet::new());
        for job in jobs.iter().filter(|job| self.repositories.contains_key(&job.repository)) {
            for change in job.commit.iter().flat_map(|commit| &commit.catalog) {
                match change {
                    CatalogChange::Show(version) => {
                        paths.extend(version.files.iter().map(|file| (job.repository, file.path.clone())));
                    }
                    CatalogChange::ShowFile(ShownFile { path, .. })
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
        let path = |(repository, path): &Place| [Value::from(repository.0), Value::from(path.as_str())];
        let rows = MultiRow::new(PATHS[0], paths.iter().map(path).collect(), PATHS[1]);
        for row in transaction.fetch_each(vec![rows]).await?.iter().flatten() {
            let mut columns = row.columns();
            let place = (RepositoryId(columns.int("repository")?), columns.text("path")?);
            let version = (columns.text("name")?, columns.text("version")?);
            self.files.entry(place).or_default().insert(version, columns.int("size")?);
        }
        Ok(())
    }

    /// Takes in what a commit shows and hides. The quota that it would pass, where it publishes; nothing of it is taken in then.
    pub(super) fn enter(
        &mut self,
        repository: RepositoryId,
        changes: &[CatalogChange],
        publishes: bool,
    ) -> Result<(), ExceededQuota> {
        let Some(&(organization, account)) = self.repositories.get(&repository) else { return Ok(()) };
        let mut entry = Entry { files: &mut self.files, repository, before: HashMap::new(), added: 0 };
        changes.iter().for_each(|change| entry.add(change));
        let Entry { before, added, .. } = entry;
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

/// A commit's changes, with what stood before at the paths that they change.
struct Entry<'a> {
    files: &'a mut HashMap<Place, Sizes>,
    repository: RepositoryId,
    before: HashMap<Place, Sizes>,
    added: i64,
}

impl Entry<'_> {
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
                let has = |(place, sizes): &(&Place, &Sizes)| {
                    place.0 == self.repository && sizes.contains_key(&version_of)
                };
                let paths: Vec<String> =
                    self.files.iter().filter(has).map(|(place, _)| place.1.clone()).collect();
                paths.iter().for_each(|path| self.hide(name, version, path));
            }
        }
    }

    /// The versions that show the path, remembered as they were before the commit.
    fn at(&mut self, path: &str) -> &mut Sizes {
        let place = (self.repository, path.to_owned());
        let sizes = self.files.entry(place.clone()).or_default();
        self.before.entry(place).or_insert_with(|| sizes.clone());
        sizes
    }

    /// As the counters have it: a path counts when it comes, and with what its size changes by.
    fn show(&mut self, name: &str, version: &str, path: &str, size: u64) {
        let size = signed(size);
        let sizes = self.at(path);
        // Versions that show one path show one file. Should they not agree, the larger counts: which the counters take is not known.
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
