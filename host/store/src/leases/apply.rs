//! Taking in what transactions changed.

use std::collections::BTreeMap;

use super::Shared;
use super::notice::Change;
use crate::accounts::Facts;
use crate::changes::announced;

/// Drops what these changes touch, and remembers what commits touched, in the order of the revisions.
pub(super) fn all(shared: &Shared, changes: impl Iterator<Item = Change>) {
    let (mut facts, mut commits) = (Facts::default(), Vec::new());
    for change in changes {
        facts.extend(Facts::read(&change.facts));
        match change.touched.as_deref().map(announced::read) {
            None => {}
            Some(Some(announced)) => commits.extend(announced),
            // A newer version's: nothing is known of it.
            Some(None) => facts.extend(Facts::read("*")),
        }
    }
    commits.sort_by_key(|commit| (commit.repository, commit.first));
    for commit in commits {
        // First what was touched: whoever sees a new revision shall find out what it left alone.
        if let Some(touched) = commit.touched {
            shared.changes.remember(BTreeMap::from([(commit.repository, touched)]));
        }
        shared.facts.move_to(&BTreeMap::from([(commit.repository, commit.last)]));
    }
    if facts.are_foreign() {
        tracing::info!(
            "a process that announces nothing, as an older version, writes to the database: for a minute each request asks it"
        );
    }
    shared.drop_touched(&facts);
}

/// Whether commits are missing between those that are known and these.
pub(super) fn has_gap<'a>(shared: &Shared, changes: impl Iterator<Item = &'a Change>) -> bool {
    let mut read = changes.filter_map(|change| announced::read(change.touched.as_deref()?)).flatten();
    read.any(|commit| shared.changes.has_gap(commit.repository, commit.first))
}
