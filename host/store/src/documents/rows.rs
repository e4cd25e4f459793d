//! Rows of documents in a batch.

use std::collections::BTreeMap;

use super::document::VersionDocument;
use crate::db::{MultiRow, Value, signed};
use crate::ids::{RepositoryId, new_id};

/// Insert that skips versions with [`MAX_DOCUMENTS`](super::MAX_DOCUMENTS) documents. The limit
/// applies to documents from before the batch, without the one that is replaced.
const INSERT: [&str; 2] = [
    "WITH came (id, repository, name, version, path, source, title, form, media_type, digest, size) AS (VALUES ",
    ") INSERT INTO documents (id, repository, name, version, path, source, title, form, media_type, digest, size) \
     SELECT c.id, c.repository, c.name, c.version, c.path, c.source, c.title, c.form, c.media_type, c.digest, c.size FROM came c \
     JOIN versions v ON v.repository = c.repository AND v.name = c.name AND v.version = c.version \
     WHERE (SELECT COUNT(*) FROM documents d WHERE d.repository = c.repository AND d.name = c.name AND d.version = c.version \
     AND (d.path, d.source, d.title) <> (c.path, c.source, c.title)) < 64 \
     ON CONFLICT (repository, name, version, path, source, title) DO UPDATE SET form = excluded.form, \
     media_type = excluded.media_type, digest = excluded.digest, size = excluded.size",
];
/// Deletes documents about hidden files, and documents that came in hidden files.
pub(crate) const OF_FILES: [&str; 2] = [
    "WITH gone (repository, name, version, path) AS (VALUES ",
    ") DELETE FROM documents WHERE id IN (SELECT d.id FROM gone g JOIN documents d ON d.repository = g.repository \
     AND d.name = g.name AND d.version = g.version WHERE g.path = d.path OR g.path = d.source)",
];
/// Copies documents of deleted versions into the trash.
pub(crate) const INTO_TRASH: [&str; 2] = [
    "WITH gone (entry, repository, name, version) AS (VALUES ",
    ") INSERT INTO trash_documents (entry, id, name, version, path, source, title, form, media_type, digest, size) \
     SELECT g.entry, d.id, d.name, d.version, d.path, d.source, d.title, d.form, d.media_type, d.digest, d.size FROM gone g \
     JOIN documents d ON d.repository = g.repository AND d.name = g.name AND d.version = g.version \
     WHERE g.entry IN (SELECT id FROM trash) ON CONFLICT DO NOTHING",
];
/// Restores documents from the trash.
pub(crate) const AGAIN: [&str; 2] = [
    "INSERT INTO documents (id, repository, name, version, path, source, title, form, media_type, digest, size) \
     SELECT t.id, e.repository, t.name, t.version, t.path, t.source, t.title, t.form, t.media_type, t.digest, t.size \
     FROM trash_documents t JOIN trash e ON e.id = t.entry JOIN versions v ON v.repository = e.repository AND v.name = t.name \
     AND v.version = t.version WHERE e.id IN (VALUES ",
    ") ON CONFLICT DO NOTHING",
];

/// Statement that inserts documents. It must run after the inserts of the versions, so that it sees
/// the versions of its own batch.
pub(crate) fn insert<'a>(documents: impl Iterator<Item = (RepositoryId, &'a VersionDocument)>) -> MultiRow {
    // SQL cannot change a row twice in one statement, so only the last document with the same key
    // is inserted.
    let place = |(repository, one): (RepositoryId, &'a VersionDocument)| {
        let place = (repository, &one.name, &one.version, &one.path, &one.source, &one.title);
        (place, (repository, one))
    };
    let places: BTreeMap<_, _> = documents.map(place).collect();
    let row = |(repository, one): (RepositoryId, &'a VersionDocument)| {
        [
            Value::from(new_id()),
            Value::from(repository.0),
            Value::from(one.name.as_str()),
            Value::from(one.version.as_str()),
            Value::from(one.path.as_str()),
            Value::from(one.source.as_str()),
            Value::from(one.title.as_str()),
            Value::from(one.form.as_str()),
            Value::from(one.media_type.as_str()),
            Value::from(one.sha256.digest().to_string()),
            Value::from(signed(one.size)),
        ]
    };
    MultiRow::new(INSERT[0], places.into_values().map(row).collect(), INSERT[1]).later()
}
