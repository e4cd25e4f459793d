//! Repository of a question about access, with the rules of its format.

use std::borrow::Cow;
use std::sync::Arc;

use packhouse_identity::access::{
    self, AccessAction, AccessDecision, AccessRequest, FormatRules, RepositoryFacts, RepositoryKind,
    ResolvedCredential,
};
use packhouse_identity::permissions::PackagePatterns;
use packhouse_identity::permissions::Permission::ManageMembers;
use packhouse_runtime::Plugin;
use packhouse_store::{RepositoryId, RepositoryRow};
use packhouse_wire::catalogue;

use crate::error::ApiError;
use crate::operations::{Actor, loaded, repositories};

pub(super) struct AccessTarget {
    pub(super) row: RepositoryRow,
    /// `None` if no plugin serves its format.
    plugin: Option<Arc<Plugin>>,
    /// True if its format is enabled.
    enabled: bool,
}

impl AccessTarget {
    /// Finds a repository. An actor with manage-members may ask about all repositories, another
    /// actor about those that it may see; otherwise 404 `not_found`.
    pub(super) async fn find(actor: &Actor, id: &str) -> Result<AccessTarget, ApiError> {
        let (store, organization) = (&actor.app.store, actor.organization());
        let row = if actor.permissions().holds(ManageMembers) {
            let id = id.parse::<RepositoryId>().map_err(|_| &catalogue::NOT_FOUND)?;
            store.find_repository(organization, id).await?.ok_or(&catalogue::NOT_FOUND)?
        } else {
            repositories::find(actor, id).await?
        };
        let switched = store.formats_enabled(organization).await?;
        let switched = switched.into_iter().find(|(format, _)| *format == row.format).map(|(_, on)| on);
        let enabled = actor.app.enabled(&row.format, switched);
        Ok(AccessTarget { plugin: loaded::plugin_of(&actor.app, &row)?, enabled, row })
    }

    /// Returns the code with which a client's request is refused; `None` if it is allowed. It does
    /// not depend on a package.
    pub(super) fn refusal(
        &self,
        presented: &ResolvedCredential,
        action: AccessAction,
        now: i64,
    ) -> Option<&'static str> {
        let (public, enabled) = (self.row.public, self.enabled);
        let repository = Some(RepositoryFacts { kind: RepositoryKind::of(&self.row.kind), public, enabled });
        let rules = &self.rules();
        match access::decide(&AccessRequest { repository, rules, presented, action, now }) {
            AccessDecision::Allowed => None,
            AccessDecision::Refused(refusal) => Some(refusal.code.code),
        }
    }

    /// Returns whether a right is not held for the package. Without a package, every right is held.
    pub(super) fn excludes(&self, held: &PackagePatterns, package: Option<&str>) -> bool {
        let folding = self.plugin.as_ref().map(|plugin| plugin.description().name_folding);
        package.is_some_and(|package| !held.covers(folding.unwrap_or_default(), package))
    }

    /// Rules of the format. Those of a missing plugin are the usual ones.
    fn rules(&self) -> FormatRules<'_> {
        match &self.plugin {
            Some(plugin) => FormatRules::from(plugin.description()),
            None => FormatRules {
                checks_username: false,
                token_usernames: Cow::Borrowed(&[]),
                refused_read_status: 401,
                refused_write_status: 401,
                not_reached_status: 403,
                token_formats: Cow::Borrowed(std::slice::from_ref(&self.row.format)),
            },
        }
    }
}
