//! Statements with which a deletion fills the trash and an undo empties it. The statements are part
//! of the commit's own transaction, so each deletion and undo is atomic.

use std::collections::BTreeSet;

use crate::attestations::rows::{AGAIN, INTO_TRASH};
use crate::catalog::{CatalogChange, CatalogFile};
use crate::db::{MultiRow, Value};
use crate::digest::Sha256;
use crate::documents::rows as documents;
use crate::ids::{RepositoryId, TrashId};

pub(crate) const RECORDS: [&str; 2] = [
    "WITH gone (entry, repository, key, after) AS (VALUES ",
    ") INSERT INTO trash_records (entry, key, value, blobs, after) SELECT g.entry, g.key, r.value, r.blobs, g.after FROM gone g \
     LEFT JOIN records r ON r.repository = g.repository AND r.key = g.key WHERE g.entry IN (SELECT id FROM trash) \
     ON CONFLICT (entry, key) DO UPDATE SET after = excluded.after",
];
const BLOBS: [&str; 2] = ["INSERT INTO trash_blobs (blob, entry) VALUES ", " ON CONFLICT DO NOTHING"];
pub(crate) const VERSIONS: [&str; 2] = [
    "WITH gone (entry, repository, name, version) AS (VALUES ",
    ") INSERT INTO trash_versions (entry, name, version, published, summary, properties, state, shown_at, updated_at, published_by, \
     downloads, last_downloaded_at) SELECT g.entry, v.name, v.version, v.published, v.summary, v.properties, v.state, v.shown_at, \
     v.updated_at, v.published_by, v.downloads, v.last_downloaded_at FROM gone g JOIN versions v ON v.repository = g.repository \
     AND v.name = g.name AND v.version = g.version WHERE g.entry IN (SELECT id FROM trash) ON CONFLICT DO NOTHING",
];
pub(crate) const FILES: [&str; 2] = [
    "WITH gone (entry, repository, name, version) AS (VALUES ",
    ") INSERT INTO trash_files (entry, name, version, path, digest, size, downloads) SELECT g.entry, f.name, f.version, f.path, \
     f.digest, f.size, f.downloads FROM gone g JOIN files f ON f.repository = g.repository AND f.name = g.name \
     AND f.version = g.version WHERE g.entry IN (SELECT id FROM trash) ON CONFLICT DO NOTHING",
];
/// Subtracts restored versions from the days' counts of publishes, because an undo is not a
/// publish. `CROSS JOIN` makes SQLite join in this order. Otherwise SQLite scans all versions of
/// the repository and looks up each in the entry.
pub(crate) const PUBLISHES_AGAIN: [&str; 2] = [
    "UPDATE activity SET publishes = publishes - x.times FROM (SELECT v.repository, COALESCE(v.published, v.shown_at) / 86400000 AS day, \
     COUNT(*) AS times FROM trash e CROSS JOIN trash_versions t CROSS JOIN versions v WHERE t.entry = e.id \
     AND v.repository = e.repository AND v.name = t.name AND v.version = t.version AND v.shown_at = v.updated_at \
     AND COALESCE(v.published, v.shown_at) >= v.shown_at - 2592000000 AND e.id IN (VALUES ",
    ") GROUP BY v.repository, COALESCE(v.published, v.shown_at) / 86400000) x \
     WHERE activity.repository = x.repository AND activity.name = '' AND activity.day = x.day",
];
/// Restores details of versions that a publish would not set.
pub(crate) const VERSIONS_AGAIN: [&str; 2] = [
    "UPDATE versions SET shown_at = t.shown_at, updated_at = t.updated_at, published = t.published, published_by = t.published_by, \
     downloads = t.downloads, last_downloaded_at = t.last_downloaded_at FROM trash_versions t, trash e WHERE e.id = t.entry \
     AND versions.repository = e.repository AND versions.name = t.name AND versions.version = t.version AND e.id IN (VALUES ",
    ")",
];
pub(crate) const FILES_AGAIN: [&str; 2] = [
    "UPDATE files SET downloads = t.downloads FROM trash_files t, trash e WHERE e.id = t.entry AND files.repository = e.repository \
     AND files.name = t.name AND files.version = t.version AND files.path = t.path AND e.id IN (VALUES ",
    ")",
];
const EMPTY: [&str; 2] = ["DELETE FROM trash WHERE id IN (VALUES ", ")"];

/// A record that a deletion changes, removes or relies on.
pub(super) struct Gone<'a> {
    pub(super) key: &'a str,
    /// Digest of its new value; `None` if it is removed or stays.
    pub(super) after: Option<Sha256>,
    /// Rows of the blobs that the record names.
    pub(super) blobs: &'a [i64],
}

/// A deletion that fills an entry of the trash.
pub(super) struct Deletion<'a> {
    pub(super) entry: TrashId,
    pub(super) repository: RepositoryId,
    pub(super) gone: Vec<Gone<'a>>,
    pub(super) catalog: &'a [CatalogChange],
}

/// Statements that copy the content before the deletions change it.
pub(super) fn keep(deletions: &[Deletion<'_>]) -> Vec<MultiRow> {
    let (mut records, mut blobs, mut versions) = (Vec::new(), Vec::new(), Vec::new());
    for Deletion { entry, repository, gone, catalog } in deletions {
        for Gone { key, after, .. } in gone {
            let after = Value::from(after.as_ref().map(|after| &after.0[..]));
            records.push([Value::from(entry.0), Value::from(repository.0), Value::from(*key), after]);
        }
        let held: BTreeSet<i64> = gone.iter().flat_map(|gone| gone.blobs.iter().copied()).collect();
        blobs.extend(held.into_iter().map(|blob| [Value::from(blob), Value::from(entry.0)]));
        let hidden: BTreeSet<(&str, &str)> = catalog.iter().filter_map(hides).collect();
        versions.extend(hidden.into_iter().map(|(name, version)| {
            [Value::from(entry.0), Value::from(repository.0), Value::from(name), Value::from(version)]
        }));
    }
    vec![
        MultiRow::new(RECORDS[0], records, RECORDS[1]),
        MultiRow::new(BLOBS[0], blobs, BLOBS[1]),
        MultiRow::new(VERSIONS[0], versions.clone(), VERSIONS[1]),
        MultiRow::new(FILES[0], versions.clone(), FILES[1]),
        MultiRow::new(INTO_TRASH[0], versions.clone(), INTO_TRASH[1]),
        MultiRow::new(documents::INTO_TRASH[0], versions, documents::INTO_TRASH[1]),
    ]
}

/// The version that a change hides, or of which it hides a file.
fn hides(change: &CatalogChange) -> Option<(&str, &str)> {
    match change {
        CatalogChange::Hide { name, version } | CatalogChange::HideFile { name, version, .. } => {
            Some((name, version))
        }
        CatalogChange::Show(_)
        | CatalogChange::Attest(_)
        | CatalogChange::Document(_)
        | CatalogChange::ShowFile(CatalogFile { .. }) => None,
    }
}

/// Statements after the changes of an undo. The last one deletes the entry.
pub(super) fn give_back(entry: TrashId) -> [MultiRow; 6] {
    [PUBLISHES_AGAIN, VERSIONS_AGAIN, FILES_AGAIN, AGAIN, documents::AGAIN, EMPTY]
        .map(|[before, after]| MultiRow::new(before, vec![[Value::from(entry.0)]], after).later())
}
