//! Application of announced changes to the memory of this server.

use std::collections::BTreeMap;

use super::Shared;
use super::notice::TransactionChange;
use crate::accounts::ChangedFacts;
use crate::changes::announced;

/// Drops the look-ups that these changes affect, and adds commits to the change log in the order of
/// their revisions.
pub(super) fn all(shared: &Shared, changes: impl Iterator<Item = TransactionChange>) {
    let (mut facts, mut commits) = (ChangedFacts::default(), Vec::new());
    for change in changes {
        facts.extend(ChangedFacts::read(&change.facts));
        match change.touched.as_deref().map(announced::read) {
            None => {}
            Some(Some(announced)) => commits.extend(announced),
            // Only a newer version can read this change, so everything counts as changed.
            Some(None) => facts.extend(ChangedFacts::read("*")),
        }
    }
    commits.sort_by_key(|commit| (commit.repository, commit.first));
    for commit in commits {
        // Updates the log before the revisions: a reader that sees the new revision must find in
        // the log what the commit touched.
        if let Some(touched) = commit.touched {
            shared.changes.remember(BTreeMap::from([(commit.repository, touched)]));
        }
        shared.facts.move_to(&BTreeMap::from([(commit.repository, commit.last)]));
    }
    if facts.are_foreign() {
        tracing::info!(
            "a process without change notices, such as an older version, writes to the database: for a \
             minute every request reads the database"
        );
    }
    shared.drop_touched(&facts);
}

/// True if commits are missing between the known commits and these changes.
pub(super) fn has_gap<'a>(shared: &Shared, changes: impl Iterator<Item = &'a TransactionChange>) -> bool {
    let mut read = changes.filter_map(|change| announced::read(change.touched.as_deref()?)).flatten();
    read.any(|commit| shared.changes.has_gap(commit.repository, commit.first))
}
