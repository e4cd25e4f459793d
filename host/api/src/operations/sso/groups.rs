//! Memberships in teams that follow the groups of the sign-in provider.

use std::collections::BTreeSet;

use packhouse_app::sso::{GroupsClaim, Refused, SsoSettings};
use packhouse_store::{MemberRow, OrganizationId, TeamRow};

use crate::error::ApiError;
use crate::operations::Origin;

/// Teams that are read at a time.
const PAGE: u32 = 500;
/// Maximum size of the groups in the cookie of a sign-in that the member must confirm. Browsers
/// accept cookies of up to 4 KiB.
const COOKIE_BYTES: usize = 1_200;

/// Lets a member who signed in join and leave teams by the groups in the ID token. Memberships stay
/// as they are if the groups are unknown. Returns the member with its new permissions.
pub(super) async fn follow(
    origin: &Origin,
    settings: &SsoSettings,
    member: MemberRow,
    claim: &GroupsClaim,
) -> Result<MemberRow, ApiError> {
    match claim {
        GroupsClaim::Listed(groups) => apply(origin, member, groups).await,
        GroupsClaim::Unknown(reason) => {
            // Without such a team the claim has no effect, so most organizations do not need it.
            if !named_by_teams(origin, member.organization).await?.is_empty() {
                tracing::warn!(
                    request.id = %origin.request_id, organization = %member.organization, member = %member.id,
                    claim = settings.groups_claim(), reason, "groups unknown, memberships in teams unchanged"
                );
            }
            Ok(member)
        }
    }
}

/// Lets a member join the teams that name one of these groups, and leave the others that it joined
/// by a group. Returns the member with its new permissions.
pub(super) async fn apply(
    origin: &Origin,
    member: MemberRow,
    groups: &[String],
) -> Result<MemberRow, ApiError> {
    let store = &origin.app.store;
    let event =
        origin.event_of(member.organization, &member.email, "sso", "follow_groups", member.email.clone());
    if !store.follow_external_groups(&member, groups, Some(event)).await? {
        return Ok(member);
    }
    let changed = store.find_member(member.organization, member.id).await?;
    changed.ok_or_else(|| ApiError::from(Refused::Answer("the member was deleted")))
}

/// Returns the groups that some team names, for the cookie of a sign-in that the member must
/// confirm. `None` if the groups are unknown, or too many for the cookie: the member's next sign-in
/// follows them.
pub(super) async fn for_cookie(
    origin: &Origin,
    organization: OrganizationId,
    claim: GroupsClaim,
) -> Result<Option<Vec<String>>, ApiError> {
    let GroupsClaim::Listed(mut groups) = claim else { return Ok(None) };
    let named = named_by_teams(origin, organization).await?;
    groups.retain(|group| named.contains(group));
    let bytes: usize = groups.iter().map(|group| group.len() + 3).sum();
    Ok((bytes <= COOKIE_BYTES).then_some(groups))
}

/// Returns the groups that the teams of an organization name.
async fn named_by_teams(origin: &Origin, organization: OrganizationId) -> Result<BTreeSet<String>, ApiError> {
    let teams = teams_with_groups(origin, organization).await?;
    Ok(teams.into_iter().flat_map(|team| team.external_groups).collect())
}

/// Returns the teams of an organization that name groups.
pub(super) async fn teams_with_groups(
    origin: &Origin,
    organization: OrganizationId,
) -> Result<Vec<TeamRow>, ApiError> {
    let (mut teams, mut after) = (Vec::new(), None);
    loop {
        let page = origin.app.store.list_teams(organization, after, PAGE).await?;
        let is_last = page.len() < PAGE as usize;
        after = page.last().map(|team| team.id);
        teams.extend(page.into_iter().filter(|team| !team.external_groups.is_empty()));
        if is_last {
            return Ok(teams);
        }
    }
}
