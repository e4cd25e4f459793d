//! The home page: packages and repositories that the actor may read, and the things that need the
//! attention of the people who manage them.

use std::collections::HashMap;

use packhouse_identity::permissions::Permission::{ManageMembers, ManageOwnerAccount, ManageRepositories};
use packhouse_store::{
    ExpiringApiToken, ExpiringKey, ExpiryRange, HIGHLIGHTS, Highlight, HighlightedPackage, RankedRepository,
    Readable, RepositoryId, RepositoryOrder, RepositoryTotals,
};
use packhouse_upstream::HealthView;

use super::{Actor, search};
use crate::error::ApiError;

/// Maximum number of listed repositories of the actor.
const REPOSITORIES: u32 = 12;
/// Number of repositories whose packages are ranked.
const RANKED: u32 = 8;
/// Maximum number of listed credentials of each kind, and of listed proxies.
const LISTED: u32 = 20;
/// Maximum number of failing proxies of this server that are looked up.
const LOOKED_UP: usize = 500;
/// Time before the expiry of a credential from which it is listed, in ms.
const EXPIRY_MS: i64 = 14 * 24 * 60 * 60 * 1000;

/// Packages and repositories that the actor may read.
#[derive(Debug)]
pub struct ReadableHome {
    /// Hosted repositories with the latest publishes, then others.
    pub repositories: Vec<RankedRepository>,
    /// Packages of hosted repositories, the latest publish first.
    pub newest: Vec<HomePackage>,
    /// Packages with the most downloads in the last 30 days.
    pub most_used: Vec<HomePackage>,
}

/// A package with its repository.
#[derive(Debug)]
pub struct HomePackage {
    /// Name of the repository that contains it.
    pub repository: String,
    pub format: String,
    pub package: HighlightedPackage,
}

#[derive(Debug)]
pub struct StorageOverview {
    pub totals: RepositoryTotals,
    /// Repositories with the largest files.
    pub largest: Vec<RankedRepository>,
}

/// A proxy whose upstream does not work.
#[derive(Debug)]
pub struct FailingProxy {
    pub name: String,
    pub format: String,
    pub health: HealthView,
}

/// Credentials that expire within 14 days.
#[derive(Debug, Default)]
pub struct ExpiringCredentials {
    /// Service keys; empty for an actor without manage-owner-account.
    pub keys: Vec<ExpiringKey>,
    /// API tokens of the actor, or of everybody for an actor with manage-members.
    pub api_tokens: Vec<ExpiringApiToken>,
}

/// Returns the repositories that the actor may read, and the packages in them that were published
/// last or downloaded most.
pub async fn readable(actor: &Actor) -> Result<ReadableHome, ApiError> {
    actor.judged_own();
    let readable = search::readable(actor).await?;
    let repositories = ranked(actor, &readable, RepositoryOrder::LastPublish, REPOSITORIES).await?;
    let hosted = repositories.iter().filter(|one| one.kind == "hosted").take(RANKED as usize);
    let hosted: Vec<RankedRepository> = hosted.cloned().collect();
    let mut newest = packages(actor, Highlight::Newest, &hosted).await?;
    // The store ranks by the last change, which may be a new state of an older version.
    newest.sort_by_key(|one| std::cmp::Reverse(one.package.published_at));
    let busiest = ranked(actor, &readable, RepositoryOrder::Downloads, RANKED).await?;
    let most_used = packages(actor, Highlight::MostDownloaded, &busiest).await?;
    Ok(ReadableHome { repositories, newest, most_used })
}

/// Returns the number of repositories, packages and bytes of the organization, and its largest
/// repositories. Needs manage-repositories.
pub async fn storage(actor: &Actor) -> Result<StorageOverview, ApiError> {
    actor.needs(ManageRepositories)?;
    let totals = actor.app.store.repository_totals(actor.organization()).await?;
    let all = Readable { all: true, these: Vec::new() };
    let mut largest = ranked(actor, &all, RepositoryOrder::Bytes, HIGHLIGHTS).await?;
    largest.retain(|one| one.usage.bytes > 0);
    Ok(StorageOverview { totals, largest })
}

/// Returns the proxies of the organization whose upstreams do not work, as this server last
/// observed them, the longest failure first. Needs manage-repositories.
pub async fn failing_proxies(actor: &Actor) -> Result<Vec<FailingProxy>, ApiError> {
    actor.needs(ManageRepositories)?;
    let mut unhealthy = actor.app.upstreams.unhealthy();
    unhealthy.truncate(LOOKED_UP);
    let ids: Vec<RepositoryId> = unhealthy.iter().map(|(id, _)| *id).collect();
    // Upstreams of other organizations are not found here.
    let rows = actor.app.store.find_repositories(actor.organization(), &ids).await?;
    let mut views: HashMap<RepositoryId, HealthView> = unhealthy.into_iter().collect();
    let failing = rows.into_iter().filter_map(|row| {
        let health = views.remove(&row.id)?;
        Some(FailingProxy { name: row.name, format: row.format, health })
    });
    Ok(failing.take(LISTED as usize).collect())
}

/// Returns the credentials that expire within 14 days, the first to expire first: the actor's own
/// API tokens, with manage-members those of everybody, and with manage-owner-account the service
/// keys.
pub async fn expiring(actor: &Actor) -> Result<ExpiringCredentials, ApiError> {
    actor.judged_own();
    let (store, organization) = (&actor.app.store, actor.organization());
    let range = ExpiryRange { after: actor.now, until: actor.now.saturating_add(EXPIRY_MS) };
    let permissions = actor.permissions();
    let owner = (!permissions.holds(ManageMembers)).then_some(actor.member().id);
    let api_tokens = store.expiring_api_tokens(organization, owner, range, LISTED).await?;
    let keys = if permissions.holds(ManageOwnerAccount) {
        store.expiring_keys(organization, range, LISTED).await?
    } else {
        Vec::new()
    };
    Ok(ExpiringCredentials { keys, api_tokens })
}

async fn ranked(
    actor: &Actor,
    readable: &Readable,
    order: RepositoryOrder,
    limit: u32,
) -> Result<Vec<RankedRepository>, ApiError> {
    Ok(actor.app.store.ranked_repositories(actor.organization(), readable, order, limit).await?)
}

async fn packages(
    actor: &Actor,
    highlight: Highlight,
    repositories: &[RankedRepository],
) -> Result<Vec<HomePackage>, ApiError> {
    let found = actor.app.store.highlighted_packages(highlight, repositories).await?;
    let with = |package: HighlightedPackage| {
        let repository = repositories.iter().find(|one| one.id == package.repository)?;
        Some(HomePackage { repository: repository.name.clone(), format: repository.format.clone(), package })
    };
    Ok(found.into_iter().filter_map(with).collect())
}
