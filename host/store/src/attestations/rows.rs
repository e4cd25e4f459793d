//! Rows of attestations in a batch.

use std::collections::HashMap;

use super::statement::SignedStatement;
use crate::db::{MultiRow, Value};
use crate::digest::Sha256;
use crate::ids::{RepositoryId, new_id, now_ms};

/// Insert that skips versions with [`MAX_STATEMENTS`](super::MAX_STATEMENTS) statements. The limit
/// applies only to statements from before the batch.
const INSERT: [&str; 2] = [
    "WITH stated (id, repository, name, version, path, source, kind, subject, sha256, bundle, attested_at) AS (VALUES ",
    ") INSERT INTO attestations (id, repository, name, version, path, source, kind, subject, sha256, bundle, attested_at) \
     SELECT s.id, s.repository, s.name, s.version, s.path, s.source, s.kind, s.subject, s.sha256, s.bundle, s.attested_at FROM stated s \
     JOIN versions v ON v.repository = s.repository AND v.name = s.name AND v.version = s.version \
     WHERE (SELECT COUNT(*) FROM attestations a WHERE a.repository = s.repository AND a.name = s.name AND a.version = s.version) < 64 \
     ON CONFLICT (repository, name, version, path, sha256) DO UPDATE SET source = excluded.source",
];
/// Deletes statements about hidden files, and statements stored in hidden files.
pub(crate) const OF_FILES: [&str; 2] = [
    "WITH gone (repository, name, version, path) AS (VALUES ",
    ") DELETE FROM attestations WHERE id IN (SELECT a.id FROM gone g JOIN attestations a ON a.repository = g.repository \
     AND a.name = g.name AND a.version = g.version WHERE g.path = a.path OR g.path = a.source)",
];
/// Copies statements of deleted versions into the trash.
pub(crate) const INTO_TRASH: [&str; 2] = [
    "WITH gone (entry, repository, name, version) AS (VALUES ",
    ") INSERT INTO trash_attestations (entry, id, name, version, path, source, kind, subject, sha256, bundle, attested_at, verdict, \
     reason, facts, judged_by, judged_at) SELECT g.entry, a.id, a.name, a.version, a.path, a.source, a.kind, a.subject, a.sha256, \
     a.bundle, a.attested_at, a.verdict, a.reason, a.facts, a.judged_by, a.judged_at FROM gone g JOIN attestations a \
     ON a.repository = g.repository AND a.name = g.name AND a.version = g.version WHERE g.entry IN (SELECT id FROM trash) \
     ON CONFLICT DO NOTHING",
];
/// Restores statements from the trash.
pub(crate) const AGAIN: [&str; 2] = [
    "INSERT INTO attestations (id, repository, name, version, path, source, kind, subject, sha256, bundle, attested_at, verdict, reason, \
     facts, judged_by, judged_at) SELECT t.id, e.repository, t.name, t.version, t.path, t.source, t.kind, t.subject, t.sha256, t.bundle, \
     t.attested_at, t.verdict, t.reason, t.facts, t.judged_by, t.judged_at FROM trash_attestations t JOIN trash e ON e.id = t.entry \
     JOIN versions v ON v.repository = e.repository AND v.name = t.name AND v.version = t.version WHERE e.id IN (VALUES ",
    ") ON CONFLICT DO NOTHING",
];

/// Statement that inserts attestations. It must run after the inserts of the versions, so that it
/// sees the versions of its own batch.
pub(crate) fn insert<'a>(statements: impl Iterator<Item = (RepositoryId, &'a SignedStatement)>) -> MultiRow {
    let now = now_ms();
    // A repeated statement may have a new source. SQL cannot change a row twice in one statement,
    // so the last repetition replaces the earlier ones, at the place of the first.
    let (mut each, mut places) = (Vec::new(), HashMap::new());
    for (repository, one) in statements {
        let sha256 = Sha256::of(&[one.kind.as_bytes(), b"\n", &one.bundle].concat());
        let place =
            places.entry((repository, &one.name, &one.version, &one.path, sha256)).or_insert(each.len());
        match each.get_mut(*place) {
            Some(known) => *known = (repository, sha256, one),
            None => each.push((repository, sha256, one)),
        }
    }
    let row = |(repository, sha256, one): (RepositoryId, Sha256, &'a SignedStatement)| {
        [
            Value::from(new_id()),
            Value::from(repository.0),
            Value::from(one.name.as_str()),
            Value::from(one.version.as_str()),
            Value::from(one.path.as_str()),
            Value::from(one.source.as_str()),
            Value::from(one.kind.as_str()),
            Value::from(one.subject.to_string()),
            Value::from(&sha256.0),
            Value::from(&one.bundle[..]),
            Value::from(now),
        ]
    };
    MultiRow::new(INSERT[0], each.into_iter().map(row).collect(), INSERT[1]).later()
}
