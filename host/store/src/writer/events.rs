//! Webhook events of a batch's commits. If no organization of the batch has a webhook, nothing is
//! read or written.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value as Json, json};

use super::job::Job;
use crate::catalog::{CatalogChange, Version, VersionFile};
use crate::db::{MultiRow, ResultColumn, Row, Transaction, Value, found};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId, WebhookId};
use crate::records::{Change, Commit};
use crate::webhooks::{
    EventKind, NewDelivery, QueuedEvent, TagRecord, WebhookFilter, insert_deliveries, lane_of, read_filter,
};

/// Maximum number of files named in one event.
const FILES: usize = 1000;
/// Range of positions in a lane that one commit may use.
const PER_COMMIT: i64 = 1 << 15;

pub(crate) const HOOKS: [&str; 2] = [
    "SELECT r.id AS repository, r.name, r.format, r.organization, o.name AS organization_name, h.id AS hook, h.events, h.repositories \
     FROM repositories r JOIN webhooks h ON h.organization = r.organization JOIN organizations o ON o.id = r.organization \
     WHERE h.deleted_at IS NULL AND h.full_at IS NULL AND r.id IN (VALUES ",
    ") ORDER BY h.id",
];
pub(crate) const VERSIONS: [&str; 2] = [
    "SELECT repository, name, version, state FROM versions WHERE (repository, name, version) IN (VALUES ",
    ")",
];
const VERSIONS_FIND: [ResultColumn; 4] =
    found!["repository": BIGINT, "name": TEXT, "version": TEXT, "state": TEXT];
pub(crate) const CATALOG_FILES: [&str; 2] = [
    "SELECT repository, name, version, path, digest FROM files WHERE (repository, name, version) IN (VALUES ",
    ")",
];
const CATALOG_FILES_FIND: [ResultColumn; 5] =
    found!["repository": BIGINT, "name": TEXT, "version": TEXT, "path": TEXT, "digest": TEXT];
pub(crate) const RECORDS: [&str; 2] =
    ["SELECT repository, key, value FROM records WHERE (repository, key) IN (VALUES ", ")"];
const RECORDS_FIND: [ResultColumn; 3] = found!["repository": BIGINT, "key": TEXT, "value": BYTEA];

const OF_VERSIONS: [EventKind; 3] =
    [EventKind::PackagePublished, EventKind::PackageDeleted, EventKind::PackageStateChanged];

/// A repository whose organization has webhooks.
struct HookedRepository {
    organization: (OrganizationId, String),
    name: String,
    format: String,
    wants: Vec<WebhookFilter>,
}

impl HookedRepository {
    fn hooks(&self, kind: EventKind, repository: RepositoryId) -> Vec<WebhookId> {
        let wanting = self.wants.iter().filter(|wants| wants.wants(kind, Some(repository)));
        wanting.map(|wants| wants.hook).collect()
    }

    fn wants_any(&self, kinds: &[EventKind], repository: RepositoryId) -> bool {
        kinds.iter().any(|kind| self.wants.iter().any(|wants| wants.wants(*kind, Some(repository))))
    }
}

type VersionKey<'a> = (RepositoryId, &'a str, &'a str);

/// Catalog entry of a version.
#[derive(Clone, Default)]
struct CatalogEntry {
    state: String,
    /// Digests of the files by path.
    files: BTreeMap<String, String>,
}

/// Events of a batch, with the data from which they are made.
#[derive(Default)]
pub(super) struct Events<'a> {
    places: HashMap<RepositoryId, HookedRepository>,
    /// Versions that the batch concerns, in their state after the commits so far.
    catalog: HashMap<VersionKey<'a>, CatalogEntry>,
    /// Records with tags, in their state after the commits so far.
    tagged: HashMap<(RepositoryId, &'a str), Vec<u8>>,
    deliveries: Vec<NewDelivery>,
}

impl<'a> Events<'a> {
    /// Reads the data for events of these jobs. `hooked` are the repositories of organizations with
    /// webhooks.
    pub(super) async fn read(
        transaction: &mut Transaction,
        jobs: &'a [Job],
        hooked: &BTreeSet<RepositoryId>,
    ) -> Result<Events<'a>, StoreError> {
        let mut events = Events::default();
        if hooked.is_empty() {
            return Ok(events);
        }
        let ids = hooked.iter().map(|id| [Value::from(id.0)]).collect();
        let found = transaction.fetch_each(vec![MultiRow::new(HOOKS[0], ids, HOOKS[1])]).await?;
        for row in found.iter().flatten() {
            events.add_hook(row)?;
        }
        let commits = || jobs.iter().filter_map(|job| Some((job.repository, job.commit.as_deref()?)));
        let versions: BTreeSet<VersionKey<'a>> = commits()
            .filter(|(repository, _)| events.wants(*repository, &OF_VERSIONS))
            .flat_map(|(repository, commit)| commit.catalog.iter().map(move |one| key(repository, one)))
            .collect();
        let records: BTreeSet<(RepositoryId, &'a str)> = commits()
            .filter(|(repository, _)| events.wants(*repository, &[EventKind::TagMoved]))
            .flat_map(|(repository, commit)| {
                commit.tags.iter().map(move |record| (repository, record.key.as_str()))
            })
            .collect();
        events.read_state(transaction, &versions, &records).await?;
        Ok(events)
    }

    fn wants(&self, repository: RepositoryId, kinds: &[EventKind]) -> bool {
        self.places.get(&repository).is_some_and(|place| place.wants_any(kinds, repository))
    }

    fn add_hook(&mut self, row: &Row) -> Result<(), StoreError> {
        let mut columns = row.columns();
        let id = RepositoryId(columns.int("repository")?);
        let (name, format) = (columns.text("name")?, columns.text("format")?);
        let organization = (OrganizationId(columns.int("organization")?), columns.text("organization_name")?);
        let place = HookedRepository { organization, name, format, wants: Vec::new() };
        self.places.entry(id).or_insert(place).wants.push(read_filter(row)?);
        Ok(())
    }

    async fn read_state(
        &mut self,
        transaction: &mut Transaction,
        versions: &BTreeSet<VersionKey<'a>>,
        records: &BTreeSet<(RepositoryId, &'a str)>,
    ) -> Result<(), StoreError> {
        let version = |(repository, name, version): &VersionKey<'a>| {
            [Value::from(repository.0), Value::from(*name), Value::from(*version)]
        };
        let record =
            |(repository, key): &(RepositoryId, &str)| [Value::from(repository.0), Value::from(*key)];
        let statements = vec![
            MultiRow::new(VERSIONS[0], versions.iter().map(version).collect(), VERSIONS[1])
                .finding(&VERSIONS_FIND),
            MultiRow::new(CATALOG_FILES[0], versions.iter().map(version).collect(), CATALOG_FILES[1])
                .finding(&CATALOG_FILES_FIND),
            MultiRow::new(RECORDS[0], records.iter().map(record).collect(), RECORDS[1])
                .finding(&RECORDS_FIND),
        ];
        let mut found = transaction.fetch_each(statements).await?.into_iter();
        let mut next = || found.next().unwrap_or_default();
        let mut stored: HashMap<(RepositoryId, String, String), CatalogEntry> = HashMap::new();
        for row in &next() {
            let state = row.columns().text("state")?;
            stored.insert(stored_key(row)?, CatalogEntry { state, ..CatalogEntry::default() });
        }
        for row in &next() {
            let mut columns = row.columns();
            if let Some(entry) = stored.get_mut(&stored_key(row)?) {
                entry.files.insert(columns.text("path")?, columns.text("digest")?);
            }
        }
        for key in versions {
            if let Some(entry) = stored.remove(&(key.0, key.1.to_owned(), key.2.to_owned())) {
                self.catalog.insert(*key, entry);
            }
        }
        let mut values: HashMap<(RepositoryId, String), Vec<u8>> = HashMap::new();
        for row in &next() {
            let mut columns = row.columns();
            let place = (RepositoryId(columns.int("repository")?), columns.text("key")?);
            values.insert(place, columns.bytes("value")?.to_vec());
        }
        for key in records {
            if let Some(value) = values.remove(&(key.0, key.1.to_owned())) {
                self.tagged.insert(*key, value);
            }
        }
        Ok(())
    }

    /// Adds the events of a commit that is applied with this revision; `now` is in ms since 1970.
    pub(super) fn add_commit(
        &mut self,
        repository: RepositoryId,
        revision: u64,
        commit: &'a Commit,
        now: i64,
    ) {
        if !self.places.contains_key(&repository) {
            return;
        }
        let mut events = Vec::new();
        if self.wants(repository, &OF_VERSIONS) {
            self.versions_changed(repository, commit, now, &mut events);
        }
        if self.wants(repository, &[EventKind::TagMoved]) {
            self.tags_moved(repository, commit, &mut events);
        }
        let Some(place) = self.places.get(&repository) else { return };
        let first = i64::try_from(revision).unwrap_or(i64::MAX).saturating_mul(PER_COMMIT);
        for (number, (kind, package, subject, mut data)) in (0_i64..).zip(events) {
            let hooks = place.hooks(kind, repository);
            if hooks.is_empty() {
                continue;
            }
            let (id, name) = &place.organization;
            if let Some(fields) = data.as_object_mut() {
                fields.insert("organization".to_owned(), json!({"id": id.to_string(), "name": name}));
                let of = json!({"id": repository.to_string(), "name": place.name, "format": place.format});
                fields.insert("repository".to_owned(), of);
            }
            let subject = format!("{}/{subject}", place.name);
            let lane = lane_of("package", repository.0, &package);
            let at = first.saturating_add(number.min(PER_COMMIT - 1));
            let event = QueuedEvent { kind, subject, data, lane, place: at };
            self.deliveries.extend(NewDelivery::to_each(&hooks, event));
        }
    }

    fn versions_changed(
        &mut self,
        repository: RepositoryId,
        commit: &'a Commit,
        now: i64,
        events: &mut Vec<(EventKind, String, String, Json)>,
    ) {
        let mut changes: Vec<VersionChange<'a>> = Vec::new();
        for one in &commit.catalog {
            let key = key(repository, one);
            let at = changes.iter().position(|change| change.key == key).unwrap_or_else(|| {
                let before = self.catalog.get(&key).cloned();
                changes.push(VersionChange { key, before, ..VersionChange::default() });
                changes.len() - 1
            });
            if let Some(change) = changes.get_mut(at) {
                change.add(one);
            }
            apply(&mut self.catalog, key, one);
        }
        let by = commit.audit.as_ref().map_or("", |event| event.actor.as_str());
        for change in changes {
            let (_, package, version) = change.key;
            for (kind, data) in change.events(self.catalog.get(&change.key), commit, by, now) {
                events.push((kind, package.to_owned(), format!("{package}/{version}"), data));
            }
        }
    }

    fn tags_moved(
        &mut self,
        repository: RepositoryId,
        commit: &'a Commit,
        events: &mut Vec<(EventKind, String, String, Json)>,
    ) {
        let by = commit.audit.as_ref().map_or("", |event| event.actor.as_str());
        for TagRecord { key, package, tags } in &commit.tags {
            let place = (repository, key.as_str());
            let Some(change) = commit.changes.iter().find(|change| change.key() == key) else { continue };
            let before = tags.named(self.tagged.get(&place).map(Vec::as_slice));
            match change {
                Change::Put { value, .. } => drop(self.tagged.insert(place, value.to_vec())),
                Change::Remove { .. } => drop(self.tagged.remove(&place)),
                Change::Require { .. } => continue,
            }
            let after = tags.named(self.tagged.get(&place).map(Vec::as_slice));
            let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for tag in names.into_iter().filter(|tag| before.get(*tag) != after.get(*tag)) {
                let data = json!({"package": package, "tag": tag, "from": before.get(tag), "to": after.get(tag),
                    "moved_by": by});
                events.push((EventKind::TagMoved, package.clone(), format!("{package}/{tag}"), data));
            }
        }
    }

    /// Statement that writes the deliveries, and their webhooks.
    pub(super) fn statement(self, now: i64) -> (MultiRow, BTreeSet<WebhookId>) {
        let hooks = self.deliveries.iter().map(NewDelivery::hook).collect();
        (insert_deliveries(&self.deliveries, now), hooks)
    }
}

/// Effects of a commit on one version.
#[derive(Default)]
struct VersionChange<'a> {
    key: VersionKey<'a>,
    before: Option<CatalogEntry>,
    added: Option<&'a Version>,
    /// Digest and size of added files, by path.
    files: BTreeMap<&'a str, (String, u64)>,
    /// Paths of individually hidden files.
    hidden: BTreeSet<&'a str>,
}

impl<'a> VersionChange<'a> {
    fn add(&mut self, change: &'a CatalogChange) {
        match change {
            CatalogChange::Show(version) => {
                self.added = Some(version);
                for VersionFile { path, digest, size } in &version.files {
                    self.files.insert(path, (digest.to_string(), *size));
                }
            }
            CatalogChange::ShowFile(file) => {
                self.files.insert(&file.path, (file.digest.to_string(), file.size));
            }
            CatalogChange::HideFile { path, .. } => {
                self.hidden.insert(path);
            }
            CatalogChange::Attest(_) | CatalogChange::Document(_) | CatalogChange::Hide { .. } => {}
        }
    }

    fn events(
        &self,
        after: Option<&CatalogEntry>,
        commit: &Commit,
        by: &str,
        now: i64,
    ) -> Vec<(EventKind, Json)> {
        let (_, package, version) = self.key;
        let about = |more: Json| {
            let mut data = json!({"package": package, "version": version});
            if let (Some(fields), Json::Object(more)) = (data.as_object_mut(), more) {
                fields.extend(more);
            }
            data
        };
        match (&self.before, after) {
            (None, None) => Vec::new(),
            (Some(_), None) => {
                vec![(EventKind::PackageDeleted, about(json!({"files": null, "deleted_by": by})))]
            }
            (before, Some(after)) => {
                let mut events = Vec::new();
                let files = self.new_files(before.as_ref(), after);
                if commit.publishes && (before.is_none() || !files.is_empty()) {
                    let published = self.added.and_then(|version| version.published);
                    let published = published.map_or(now, crate::db::signed);
                    let named: Vec<Json> = files.iter().take(FILES).cloned().collect();
                    let fields = json!({"files": named, "more_files": files.len().saturating_sub(FILES), "published_by": by,
                        "published_at": published, "restored": commit.undoes.is_some()});
                    events.push((EventKind::PackagePublished, about(fields)));
                }
                let gone: Vec<&str> = self.gone(before.as_ref(), after);
                if !gone.is_empty() {
                    events.push((EventKind::PackageDeleted, about(json!({"files": gone, "deleted_by": by}))));
                }
                if let Some(before) = before.as_ref().filter(|before| before.state != after.state) {
                    let fields = json!({"state": after.state, "before": before.state, "reason": self.reason(),
                        "changed_by": by});
                    events.push((EventKind::PackageStateChanged, about(fields)));
                }
                events
            }
        }
    }

    /// Files that are new or have a new digest.
    fn new_files(&self, before: Option<&CatalogEntry>, after: &CatalogEntry) -> Vec<Json> {
        let known = |path: &str| before.and_then(|before| before.files.get(path));
        let is_new =
            |path: &str, digest: &String| after.files.contains_key(path) && known(path) != Some(digest);
        let files = self.files.iter().filter(|(path, (digest, _))| is_new(path, digest));
        files.map(|(path, (digest, size))| json!({"path": path, "size": size, "digest": digest})).collect()
    }

    /// Individually hidden files of a version that still exists.
    fn gone(&self, before: Option<&CatalogEntry>, after: &CatalogEntry) -> Vec<&'a str> {
        let was = |path: &&&str| before.is_some_and(|before| before.files.contains_key(**path));
        let is = |path: &&&str| after.files.contains_key(**path);
        self.hidden.iter().filter(|path| was(path) && !is(path)).copied().collect()
    }

    /// Reason for the state of a version, if it is stated.
    fn reason(&self) -> &str {
        let reason = |version: &'a Version| {
            version.properties.iter().find(|(name, _)| name == "reason").map(|(_, value)| value.as_str())
        };
        self.added.and_then(reason).unwrap_or_default()
    }
}

fn apply<'a>(
    catalog: &mut HashMap<VersionKey<'a>, CatalogEntry>,
    key: VersionKey<'a>,
    change: &'a CatalogChange,
) {
    match change {
        CatalogChange::Show(version) => {
            let now = catalog.entry(key).or_default();
            now.state.clone_from(&version.state);
            let files = version.files.iter().map(|file| (file.path.clone(), file.digest.to_string()));
            now.files.extend(files);
        }
        CatalogChange::ShowFile(file) => {
            let now = catalog.entry(key).or_default();
            now.files.insert(file.path.clone(), file.digest.to_string());
        }
        CatalogChange::Attest(_) | CatalogChange::Document(_) => {}
        CatalogChange::Hide { .. } => drop(catalog.remove(&key)),
        CatalogChange::HideFile { path, .. } => {
            let emptied = catalog.get_mut(&key).is_some_and(|now| {
                now.files.remove(path);
                now.files.is_empty()
            });
            if emptied {
                catalog.remove(&key);
            }
        }
    }
}

fn key(repository: RepositoryId, change: &CatalogChange) -> VersionKey<'_> {
    match change {
        CatalogChange::Show(version) => (repository, &version.name, &version.version),
        CatalogChange::ShowFile(file) => (repository, &file.name, &file.version),
        CatalogChange::Attest(statement) => (repository, &statement.name, &statement.version),
        CatalogChange::Document(document) => (repository, &document.name, &document.version),
        CatalogChange::Hide { name, version } | CatalogChange::HideFile { name, version, .. } => {
            (repository, name, version)
        }
    }
}

fn stored_key(row: &Row) -> Result<(RepositoryId, String, String), StoreError> {
    let mut columns = row.columns();
    Ok((RepositoryId(columns.int("repository")?), columns.text("name")?, columns.text("version")?))
}
