//! Which packages no upstream may be asked for. The host decides this for every format, whatever the caller may read. If a hosted
//! member of a group holds a name, or the group or one of its members claims it, no proxy of the group looks for it upstream. So
//! nobody can put another package in its place elsewhere.

use std::collections::BTreeSet;

use packhouse_runtime::{Description, Reads};
use packhouse_store::{PackageName, RepositoryId, RepositoryRow, Store, StoreError};

use packhouse_config::repository_settings;
use packhouse_identity::access::Kind;

/// What is withheld from a repository's upstream, or from those of a group.
pub(crate) struct WithheldNames<'a> {
    description: &'a Description,
    /// Patterns, as people wrote them.
    claimed: Vec<String>,
    /// Whose packages are withheld.
    hosted: Vec<RepositoryId>,
}

impl<'a> WithheldNames<'a> {
    /// What these repositories claim, and what the hosted ones among them hold: a group and all its members, or a proxy by itself.
    pub(crate) fn of<'r>(
        description: &'a Description,
        repositories: impl IntoIterator<Item = &'r RepositoryRow>,
    ) -> Self {
        let mut names = Self { description, claimed: Vec::new(), hosted: Vec::new() };
        for row in repositories {
            names.claimed.extend(repository_settings::claimed_names(&row.settings));
            if Kind::of(&row.kind) == Kind::Hosted && !names.hosted.contains(&row.id) {
                names.hosted.push(row.id);
            }
        }
        names
    }

    /// Notes what [`withheld`](Self::withheld) relies on: the settings that hold the patterns are noted with the repositories.
    pub(crate) fn note_reads(&self, names: &[String], reads: &mut Reads) {
        for repository in &self.hosted {
            let on = reads.of(*repository);
            for name in names {
                on.on_package(name);
                self.description.keys_that_hold(name).for_each(|prefix| on.on_records(&prefix, None, None));
            }
        }
    }

    /// Whether a pattern covers this name, in whatever spelling either is.
    pub(crate) fn claims(&self, name: &str) -> bool {
        self.description.name_folding.covers(&self.claimed, name)
    }

    /// Those of these packages that are withheld at this moment. One statement for those that are not claimed, none where there
    /// is no hosted repository.
    pub(crate) async fn withheld(
        &self,
        store: &Store,
        names: &[String],
    ) -> Result<BTreeSet<String>, StoreError> {
        let (claimed, others): (Vec<&String>, Vec<&String>) =
            names.iter().partition(|name| self.claims(name));
        let package = |name: &&String| PackageName {
            name: (*name).clone(),
            keys: self.description.keys_that_hold(name).collect(),
        };
        let others: Vec<PackageName> = others.iter().map(package).collect();
        let mut withheld = store.held_names(&self.hosted, &others).await?;
        withheld.extend(claimed.into_iter().cloned());
        Ok(withheld)
    }
}

/// What is withheld from an upstream when the target of a call is this repository: of a group what its `members` are to it, of a
/// proxy the same in every group that has it as a member; of a hosted repository, which has no upstream, nothing.
pub(crate) async fn withheld(
    store: &Store,
    description: &Description,
    target: &RepositoryRow,
    members: Vec<&RepositoryRow>,
    names: &[String],
) -> Result<BTreeSet<String>, StoreError> {
    match Kind::of(&target.kind) {
        Kind::Hosted => Ok(BTreeSet::new()),
        Kind::Group => {
            WithheldNames::of(description, members.into_iter().chain([target])).withheld(store, names).await
        }
        Kind::Proxy => {
            let groups = store.groups_with(target.organization, target.id).await?;
            let ids: BTreeSet<RepositoryId> =
                groups.iter().flat_map(|group| group.members.iter().copied()).collect();
            let ids: Vec<RepositoryId> = ids.into_iter().collect();
            let beside = store.find_repositories(target.organization, &ids).await?;
            let all = groups.iter().chain(&beside).chain([target]);
            WithheldNames::of(description, all).withheld(store, names).await
        }
    }
}
