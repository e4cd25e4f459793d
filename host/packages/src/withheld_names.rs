//! Packages that must not be requested from an upstream. The host decides this for every format,
//! independent of the caller's access. No proxy of a group requests a package if a hosted member
//! contains a package of this name. The same applies if the group or a member claims the name. This
//! prevents an attack in which an upstream package of the same name replaces the organization's own
//! package.

use std::collections::BTreeSet;

use packhouse_runtime::{Description, Reads};
use packhouse_store::{PackageName, RepositoryId, RepositoryRow, Store, StoreError};

use packhouse_config::repository_settings;
use packhouse_identity::access::RepositoryKind;

/// Names that are withheld from the upstream of a proxy, or from the upstreams of a group.
pub(crate) struct WithheldNames<'a> {
    description: &'a Description,
    /// Claimed patterns in the spelling in which they were configured.
    claimed: Vec<String>,
    /// Hosted repositories. The names of their packages are withheld.
    hosted: Vec<RepositoryId>,
}

impl<'a> WithheldNames<'a> {
    /// Collects the names that these repositories claim, and the hosted ones among them.
    /// `repositories` are a group with all its members, or a single proxy.
    pub(crate) fn of<'r>(
        description: &'a Description,
        repositories: impl IntoIterator<Item = &'r RepositoryRow>,
    ) -> Self {
        let mut names = Self { description, claimed: Vec::new(), hosted: Vec::new() };
        for row in repositories {
            names.claimed.extend(repository_settings::claimed_names(&row.settings));
            if RepositoryKind::of(&row.kind) == RepositoryKind::Hosted && !names.hosted.contains(&row.id) {
                names.hosted.push(row.id);
            }
        }
        names
    }

    /// Records the data on which [`withheld`](Self::withheld) depends. The patterns are part of the
    /// repositories' settings, which the validity of a response covers anyway.
    pub(crate) fn record_reads(&self, names: &[String], reads: &mut Reads) {
        for repository in &self.hosted {
            let on = reads.of(*repository);
            for name in names {
                on.on_package(name);
                self.description.keys_that_hold(name).for_each(|prefix| on.on_records(&prefix, None, None));
            }
        }
    }

    /// Reports whether a claimed pattern matches this name, independent of spelling.
    pub(crate) fn claims(&self, name: &str) -> bool {
        self.description.name_folding.covers(&self.claimed, name)
    }

    /// Returns those of the packages that are currently withheld. Runs one statement for the
    /// unclaimed names, and no statement if there is no hosted repository.
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

/// Returns the names that are withheld in a call for this repository. For a group, they depend on
/// its `members`; for a proxy, on every group that contains it. A hosted repository has no
/// upstream, so no name is withheld.
pub(crate) async fn withheld(
    store: &Store,
    description: &Description,
    target: &RepositoryRow,
    members: Vec<&RepositoryRow>,
    names: &[String],
) -> Result<BTreeSet<String>, StoreError> {
    match RepositoryKind::of(&target.kind) {
        RepositoryKind::Hosted => Ok(BTreeSet::new()),
        RepositoryKind::Group => {
            WithheldNames::of(description, members.into_iter().chain([target])).withheld(store, names).await
        }
        RepositoryKind::Proxy => {
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
