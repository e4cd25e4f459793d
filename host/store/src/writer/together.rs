//! Decides which jobs may share a transaction. A deletion into the trash copies the stored content,
//! so no other job of its batch may change that content.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::job::Job;
use crate::catalog::CatalogChange;

/// Hashes of everything that the jobs of a batch touch so far. A hash collision only keeps a job
/// out of the batch.
#[derive(Default)]
pub(super) struct Together {
    all: HashSet<u64>,
    /// Hashes of content that deletions into the trash touch.
    trashed: HashSet<u64>,
}

impl Together {
    /// Adds a job to the batch if it may share the transaction; returns false otherwise.
    pub(super) fn admits(&mut self, job: &Job) -> bool {
        let touched: Vec<u64> = touched(job).collect();
        let others = if job.is_into_trash() { &self.all } else { &self.trashed };
        if touched.iter().any(|one| others.contains(one)) {
            return false;
        }
        if job.is_into_trash() {
            self.trashed.extend(&touched);
        }
        self.all.extend(touched);
        true
    }
}

/// Hashes of the records and versions of a job.
fn touched(job: &Job) -> impl Iterator<Item = u64> {
    let changes = job.commit.iter().flat_map(|commit| &commit.changes);
    let catalog = job.commit.iter().flat_map(|commit| &commit.catalog);
    let records = changes.map(|change| hash(&(job.repository, change.key())));
    records.chain(catalog.map(|change| hash(&(job.repository, version(change)))))
}

fn version(change: &CatalogChange) -> (&str, &str) {
    match change {
        CatalogChange::Hide { name, version } | CatalogChange::HideFile { name, version, .. } => {
            (name, version)
        }
        CatalogChange::Attest(statement) => (&statement.name, &statement.version),
        CatalogChange::Document(document) => (&document.name, &document.version),
        CatalogChange::Show(added) => (&added.name, &added.version),
        CatalogChange::ShowFile(file) => (&file.name, &file.version),
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use std::sync::Arc;
    use std::time::Instant;

    use bytes::Bytes;

    use super::super::unanswered::Unanswered;
    use super::*;
    use crate::ids::{RepositoryId, TrashId};
    use crate::records::{Change, Commit, Expectation};

    fn job(repository: i64, key: &str, trash: Option<i64>) -> Job {
        let (done, _) = tokio::sync::oneshot::channel();
        let put = Change::Put {
            key: key.to_owned(),
            value: Bytes::new(),
            expect: Expectation::Anything,
            blobs: Vec::new(),
        };
        let hides = CatalogChange::Hide { name: "lib".to_owned(), version: key.to_owned() };
        let commit = Commit {
            changes: vec![put],
            catalog: vec![hides],
            trash: trash.map(TrashId),
            ..Commit::default()
        };
        let ticket = Arc::new(Unanswered::default()).begin();
        let repository = RepositoryId(repository);
        Job {
            repository,
            commit: Some(Arc::new(commit)),
            keeps: Vec::new(),
            since: Instant::now(),
            done,
            _ticket: ticket,
        }
    }

    #[test]
    fn deletions_go_with_what_touches_something_else() {
        let mut together = Together::default();
        assert!(together.admits(&job(1, "a", None)));
        assert!(together.admits(&job(1, "a", None)), "a commit that deletes nothing joins every batch");
        assert!(together.admits(&job(1, "b", Some(1))));
        assert!(together.admits(&job(1, "c", Some(2))));
        assert!(together.admits(&job(2, "b", None)), "another repository's is another record");
        assert!(!together.admits(&job(1, "a", Some(3))), "what a publish changes");
        assert!(!together.admits(&job(1, "b", Some(4))), "what a deletion keeps");
        assert!(!together.admits(&job(1, "c", None)), "a change of what a deletion keeps");
        assert!(together.admits(&job(1, "d", None)));
    }
}
