//! Trusted publishers: workflows of build services that may publish to a repository without a
//! stored secret, and the exchange of their ID tokens for tokens. Publishers need the right to
//! manage their repository. Creating one also needs the rights of its tokens.

use packhouse_app::publishers::{
    IdTokenRefusal, IdTokenRequest, MintedToken, Provider, PublisherReach, PublisherRule,
};
use packhouse_app::served::{Served, find_served};
use packhouse_identity::Secret;
use packhouse_store::{MAX_PUBLISHERS, NewPublisher, PublisherId, PublisherRow, RepositoryId, Scope};
use packhouse_wire::catalogue;
use packhouse_wire::path::Path;
use url::Url;

use super::confirmations::{Action, Confirmation};
use super::tokens::packages::PackageLimits;
use super::{Actor, Origin, PageRequest, RowPage, repositories};
use crate::error::ApiError;

/// Rows that are read in one statement.
const READ_AT_ONCE: u32 = 201;

#[derive(Clone, Debug)]
pub struct PublisherRequest {
    pub repository: String,
    pub provider: Provider,
    /// Issuer of the ID tokens; `None` for the public service's.
    pub issuer: Option<String>,
    /// Claims that an ID token must have.
    pub rule: PublisherRule,
    pub packages: Vec<String>,
    pub scope: Scope,
}

/// Requested exchange of an ID token (RFC 8693).
#[derive(Debug)]
pub struct ExchangeRequest {
    pub id_token: Secret,
    pub resource: String,
    /// Audience of the ID token, as the client states it.
    pub audience: Option<String>,
}

/// Creates a publisher. 400 `invalid_issuer` for an invalid or forbidden address, 409
/// `too_many_publishers`. 403 `role_mismatch` if its tokens could do what the actor may not, and if
/// they could publish or delete packages that the actor may not.
pub async fn create(
    actor: &Actor,
    confirmation: &Confirmation,
    request: PublisherRequest,
) -> Result<PublisherRow, ApiError> {
    confirmation.judge(actor, Action::ManagePublishers).await?;
    let PublisherRequest { repository, provider, issuer, rule, packages, scope } = request;
    let issuer = self::issuer(actor, provider, issuer)?;
    let repository = repositories::managed(actor, &repository).await?;
    let rights = actor.rights_in(&repository);
    let held = rights.publish && (!scope.write || rights.write()) && (!scope.read || rights.read);
    actor.judge(held, &catalogue::ROLE_MISMATCH)?;
    let limits = PackageLimits::of(actor, std::slice::from_ref(&repository));
    actor.judge(!scope.write || limits.include(Some(&packages)), &catalogue::ROLE_MISMATCH)?;
    let text =
        |value: Result<String, serde_json::Error>| value.map_err(|error| ApiError::Internal(error.into()));
    let new = NewPublisher {
        repository: repository.id,
        provider: provider.name().to_owned(),
        issuer,
        claims: text(serde_json::to_string(&rule))?,
        packages: text(serde_json::to_string(&packages))?,
        scope,
        owner_id: rule.owner_id().map(str::to_owned),
        created_by: actor.name().to_owned(),
    };
    let event = actor.event("create_trusted_publisher", repository.name);
    let made = actor.app.store.create_publisher(actor.organization(), new, Some(event)).await?;
    made.ok_or_else(|| ApiError::with(&catalogue::TOO_MANY_PUBLISHERS, &MAX_PUBLISHERS.to_string()))
}

/// Returns a page of the publishers that the actor may manage; if `repository` is given, only those
/// of that repository.
pub async fn list(
    actor: &Actor,
    repository: Option<&str>,
    page: PageRequest<PublisherId>,
) -> Result<RowPage<PublisherRow>, ApiError> {
    repositories::manages_some(actor)?;
    let repository = match repository {
        None => None,
        Some(id) => Some(id.parse::<RepositoryId>().map_err(|_| &catalogue::NOT_FOUND)?),
    };
    let (store, organization) = (&actor.app.store, actor.organization());
    let (mut found, mut after) = (Vec::new(), page.after);
    while found.len() < page.one_further() as usize {
        let rows = store.list_publishers(organization, repository, after, READ_AT_ONCE).await?;
        after = rows.last().map(|row| row.id);
        let last = rows.len() < READ_AT_ONCE as usize;
        found.extend(rows.into_iter().filter(|row| is_managed(actor, row)));
        if last {
            break;
        }
    }
    Ok(page.cut(found))
}

/// Returns whether the actor may manage the repository of a publisher.
fn is_managed(actor: &Actor, row: &PublisherRow) -> bool {
    repositories::may_manage(actor, row.repository, &row.repository_name)
}

/// Finds a publisher of a repository that the actor may manage; otherwise 404 `not_found`. 403
/// `insufficient_permissions` for an actor who manages no repository.
pub async fn find(actor: &Actor, id: &str) -> Result<PublisherRow, ApiError> {
    repositories::manages_some(actor)?;
    let id = id.parse::<PublisherId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let row = actor.app.store.find_publisher(actor.organization(), id).await?;
    row.filter(|row| is_managed(actor, row)).ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// Deletes a publisher. Tokens that were issued for it end at once.
pub async fn remove(actor: &Actor, id: &str) -> Result<(), ApiError> {
    let row = find(actor, id).await?;
    let event = actor.event("delete_trusted_publisher", row.repository_name);
    if actor.app.store.delete_publisher(row.organization, row.id, actor.now, Some(event)).await? {
        Ok(())
    } else {
        Err(ApiError::from(&catalogue::NOT_FOUND))
    }
}

/// Exchanges an ID token for a token. 400 `invalid_target` if the address is not a repository of
/// this server, or the repository has no matching publisher: the caller does not learn which
/// repositories exist.
pub async fn exchange(origin: &Origin, request: ExchangeRequest) -> Result<MintedToken, ApiError> {
    let unknown = || ApiError::from(&catalogue::INVALID_TARGET);
    let (resource, served) = served(origin, &request.resource).await?.ok_or_else(unknown)?;
    let Served { organization, base_url } = served;
    let name = repository_name(&resource).ok_or_else(unknown)?;
    let found = origin.app.store.look_up(organization, &name, None).await?;
    let repository = found.repository.as_ref().ok_or_else(unknown)?;
    let audiences = origin.app.id_token_audiences(&base_url, Some(&repository.format));
    if request.audience.is_some_and(|audience| !audiences.contains(&audience)) {
        let sentence =
            "`audience` is not the audience of this server; GET /_/oidc/audience returns it".to_owned();
        return Err(refusal(IdTokenRefusal::Invalid(sentence)));
    }
    let request = IdTokenRequest {
        organization,
        id_token: &request.id_token,
        audiences: &audiences,
        reach: PublisherReach::Repository(repository.id),
        address: origin.address,
        request_id: &origin.request_id,
    };
    origin.app.exchange_id_token(request).await.map_err(refusal)
}

/// Finds the organization that is served at this address. Some clients write the address without a
/// scheme.
async fn served(origin: &Origin, resource: &str) -> Result<Option<(Url, Served)>, ApiError> {
    for scheme in ["", "https://", "http://"] {
        let Ok(address) = format!("{scheme}{resource}").parse::<Url>() else { continue };
        if let Some(served) = find_served(&origin.app, &address, origin.site.as_ref()).await? {
            return Ok(Some((address, served)));
        }
    }
    Ok(None)
}

fn refusal(refused: IdTokenRefusal) -> ApiError {
    match refused {
        IdTokenRefusal::Store(error) => error.into(),
        refused => ApiError::with(&catalogue::ID_TOKEN_REFUSED, &refused.to_string()),
    }
}

/// Path segment after `repositories` of an address, percent-decoded.
fn repository_name(resource: &Url) -> Option<String> {
    let path = Path::parse(resource.path()).ok()?;
    let mut segments = path.segments.into_iter().skip_while(|segment| segment != "repositories").skip(1);
    segments.next().filter(|name| !name.is_empty())
}

/// Checks the issuer: an address without a query. It is compared literally with the issuer in ID
/// tokens.
fn issuer(actor: &Actor, provider: Provider, given: Option<String>) -> Result<String, ApiError> {
    let wrong = |sentence: &str| ApiError::with(&catalogue::INVALID_ISSUER, sentence);
    let Some(issuer) = given.or_else(|| provider.public_issuer().map(str::to_owned)) else {
        return Err(wrong("`issuer` is required: the address of the ID token issuer"));
    };
    let url: Option<Url> = issuer.parse().ok().filter(|_| issuer.len() <= 512);
    let plain = |url: &Url| {
        url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
    };
    let url = url
        .filter(plain)
        .ok_or_else(|| wrong("`issuer` must be an address, for example https://gitlab.example.com"))?;
    actor.app.providers.check(&url).map_err(|error| wrong(&error.to_string()))?;
    Ok(issuer)
}
