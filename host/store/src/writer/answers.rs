//! Writes of cached upstream responses. If a batch has several changes of one name, the last one is
//! written.

use std::collections::{BTreeMap, HashMap};

use crate::cached_answers::{AnswerChange, StoredAnswer};
use crate::db::{MultiRow, Value, signed};
use crate::digest::Sha256;
use crate::error::StoreError;
use crate::ids::{CacheName, RepositoryId};

pub(crate) const FORGET: [&str; 2] = ["DELETE FROM cached_answers WHERE (repository, name) IN (VALUES ", ")"];

/// Changes of cached responses in a batch.
#[derive(Default)]
pub(super) struct ResponseChanges<'a>(BTreeMap<(RepositoryId, CacheName), Option<Put<'a>>>);

struct Put<'a> {
    answer: &'a StoredAnswer,
    blob: Option<i64>,
}

impl<'a> ResponseChanges<'a> {
    /// Adds a change after the previous ones. `blobs` maps bytes to their rows. `Invalid` if the
    /// bytes of a response have no row.
    pub(super) fn change(
        &mut self,
        repository: RepositoryId,
        change: &'a AnswerChange,
        blobs: &HashMap<Sha256, i64>,
    ) -> Result<(), StoreError> {
        let put = match change {
            AnswerChange::Put(answer) => {
                let gone = |sha256: &Sha256| {
                    StoreError::Invalid(format!("the bytes {sha256} of an upstream response are gone"))
                };
                let row = |sha256: &Sha256| blobs.get(sha256).copied().ok_or_else(|| gone(sha256));
                let blob = answer.blob.as_ref().map(row).transpose()?;
                Some(Put { answer, blob })
            }
            AnswerChange::Remove(_) => None,
        };
        self.0.insert((repository, *change.name()), put);
        Ok(())
    }

    /// Statements for the changes; `now` becomes their time of last use, in ms since 1970.
    pub(super) fn statements(&self, now: i64) -> [MultiRow; 2] {
        let mut removed = Vec::new();
        let mut put = Vec::new();
        for ((repository, name), change) in &self.0 {
            match change {
                Some(change) => put.push(change.values(*repository, now)),
                None => removed.push([Value::from(repository.0), Value::from(name)]),
            }
        }
        let [before, after] = FORGET;
        [MultiRow::new(before, removed, after), MultiRow::new(PUT[0], put, PUT[1])]
    }
}

const PUT: [&str; 2] = [
    "INSERT INTO cached_answers (repository, name, method, target, status, headers, address, blob, size, fetched_at, \
     validated_at, last_used_at) VALUES ",
    " ON CONFLICT (repository, name) DO UPDATE SET method = excluded.method, target = excluded.target, \
     status = excluded.status, headers = excluded.headers, address = excluded.address, blob = excluded.blob, \
     size = excluded.size, fetched_at = excluded.fetched_at, validated_at = excluded.validated_at, \
     last_used_at = excluded.last_used_at",
];

impl Put<'_> {
    fn values(&self, repository: RepositoryId, now: i64) -> [Value; 12] {
        let StoredAnswer { name, method, target, status, headers, address, size, .. } = self.answer;
        [
            Value::from(repository.0),
            Value::from(name),
            Value::from(method.as_str()),
            Value::from(target.as_str()),
            Value::from(i64::from(*status)),
            Value::from(headers.as_str()),
            Value::from(address.as_str()),
            Value::from(self.blob),
            Value::from(signed(*size)),
            Value::from(self.answer.fetched_at),
            Value::from(self.answer.validated_at),
            Value::from(now),
        ]
    }
}
