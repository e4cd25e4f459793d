//! `/v1/trusted-publishers`: workflows of build services that may publish without a stored secret.
//! `/v1/token-exchange`: exchanges their ID tokens for tokens (RFC 8693).

use axum::Json;
use axum::response::IntoResponse;
use http::header::CACHE_CONTROL;
use http::{HeaderValue, StatusCode};
use packhouse_app::publishers::{Provider, PublisherRule, TOKEN_LIFETIME_S};
use packhouse_identity::Secret;
use packhouse_store::{PublisherId, PublisherRow};
use packhouse_wire::catalogue;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::{Anyone, OfObject};
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::fields::{Field, given};
use crate::operations::confirmations::Action;
use crate::operations::publishers::{self, ExchangeRequest, PublisherRequest};
use crate::paging::{self, Page};
use crate::scope::Family;
use crate::tokens::scope;

/// Identifiers of the exchange in RFC 8693.
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
/// Maximum number of patterns of one publisher.
const MAX_PATTERNS: usize = 100;
/// Maximum length of a pattern in bytes.
const MAX_PATTERN: usize = 512;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(create), routes!(list), routes!(show), routes!(remove), routes!(exchange)]
}

/// A new trusted publisher.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreatePublisher {
    /// The id of a repository.
    repository: String,
    /// `github`, `gitlab` or `oidc`.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    provider: Field,
    /// Issuer of the ID tokens; by default the public service's. Required for `oidc`.
    #[serde(default)]
    issuer: Option<String>,
    /// GitHub: `{repository_owner, repository, workflow, environment?, repository_owner_id?}`;
    /// GitLab: `{namespace, project, workflow, environment?, namespace_id?}`; others: exact claims,
    /// `sub` or at least two others.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Object, required)]
    claims: Field,
    /// Patterns of package names, in which `*` matches any text. The packages need not exist yet.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Vec<String>, required)]
    packages: Field,
    /// One or both of `read` and `write`.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Vec<String>, required)]
    scope: Field,
    /// Confirmation token for the action `manage_publishers`, valid for five minutes. The header
    /// `X-Confirmation-Token` may carry it instead.
    #[schema(value_type = Option<String>)]
    confirmation_token: Option<Value>,
}

impl CreatePublisher {
    fn request(self) -> Result<PublisherRequest, ApiError> {
        let provider = self.provider.as_ref().and_then(Value::as_str).and_then(Provider::of);
        let provider = provider.ok_or(&catalogue::INVALID_PROVIDER)?;
        let claims = self.claims.unwrap_or_default();
        let rule = PublisherRule::read(provider, claims)
            .map_err(|wrong| ApiError::with(&catalogue::INVALID_CLAIMS, &wrong))?;
        let (packages, scope) = (patterns(self.packages.as_ref())?, scope(&self.scope)?);
        Ok(PublisherRequest {
            repository: self.repository,
            provider,
            issuer: self.issuer,
            rule,
            packages,
            scope,
        })
    }
}

/// Reads the request from JSON that did not come in a call, with the same checks.
pub fn from_json(body: Value) -> Result<PublisherRequest, ApiError> {
    let body: CreatePublisher = serde_json::from_value(body)
        .map_err(|error| ApiError::invalid(&format!("The request body is invalid: {error}.")))?;
    body.request()
}

fn patterns(field: Option<&Value>) -> Result<Vec<String>, ApiError> {
    let wrong = || ApiError::from(&catalogue::INVALID_PACKAGES);
    let items = field.and_then(Value::as_array).ok_or_else(wrong)?;
    let plain =
        |text: &&str| !text.is_empty() && text.len() <= MAX_PATTERN && !text.chars().any(char::is_control);
    let texts: Option<Vec<String>> =
        items.iter().map(|item| item.as_str().filter(plain).map(str::to_owned)).collect();
    texts.filter(|texts| (1..=MAX_PATTERNS).contains(&texts.len())).ok_or_else(wrong)
}

/// A trusted publisher.
#[derive(Serialize, ToSchema)]
pub(crate) struct PublisherView {
    id: String,
    /// Id of the repository.
    repository: String,
    repository_name: String,
    /// `github`, `gitlab` or `oidc`.
    provider: String,
    issuer: String,
    /// Claims that an ID token must have.
    #[schema(value_type = Object)]
    claims: Value,
    /// Patterns of package names.
    packages: Vec<String>,
    /// One or both of `read` and `write`.
    scope: Vec<&'static str>,
    /// Numeric id of the owner of the workflow's repository; null until a token with it arrives.
    owner_id: Option<String>,
    /// E-mail address of the creator.
    created_by: String,
    /// Time in ms since 1970.
    created_at: i64,
    /// Time in ms since 1970 at which a token was last issued for it; null if never.
    last_used_at: Option<i64>,
}

impl From<PublisherRow> for PublisherView {
    fn from(row: PublisherRow) -> PublisherView {
        let scope = [(row.scope.read, "read"), (row.scope.write, "write")];
        PublisherView {
            id: row.id.to_string(),
            repository: row.repository.to_string(),
            repository_name: row.repository_name,
            provider: row.provider,
            issuer: row.issuer,
            claims: serde_json::from_str(&row.claims).unwrap_or_default(),
            packages: serde_json::from_str(&row.packages).unwrap_or_default(),
            scope: scope.iter().filter(|(held, _)| *held).map(|(_, name)| *name).collect(),
            owner_id: row.owner_id,
            created_by: row.created_by,
            created_at: row.created_at,
            last_used_at: row.last_used_at,
        }
    }
}

/// Allows a workflow to publish to a repository. Requires the right to manage the repository and,
/// in the repository, the rights that its tokens get, for all packages that they may publish.
#[utoipa::path(post, path = "/v1/trusted-publishers", operation_id = "create_trusted_publisher",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Tokens)),
        ("x-confirmation" = json!(Action::ManagePublishers))),
    request_body = CreatePublisher,
    responses((status = 201, body = PublisherView), (status = 409, body = ErrorBody)))]
async fn create(mut call: Call) -> HandlerResult {
    let body: CreatePublisher = call.body()?;
    call.only(&[])?;
    let confirmation = call.confirmation(body.confirmation_token.as_ref());
    let made = publishers::create(call.actor()?, &confirmation, body.request()?).await?;
    Ok((StatusCode::CREATED, Json(PublisherView::from(made))).into_response())
}

/// Lists the trusted publishers of all repositories that the caller may manage, or of one of them.
#[utoipa::path(get, path = "/v1/trusted-publishers", operation_id = "list_trusted_publishers",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Tokens))),
    params(("repository" = Option<String>, Query, description = "Only publishers of the repository with this id"),
        ("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<PublisherView>), (status = 404, body = ErrorBody)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["repository", "limit", "after"])?;
    let page = paging::request::<PublisherId>(&call)?;
    let listed = publishers::list(call.actor()?, call.query("repository"), page).await?;
    Ok(Json(Page::of(listed, |row| row.id.to_string(), PublisherView::from)).into_response())
}

/// Returns a trusted publisher.
#[utoipa::path(get, path = "/v1/trusted-publishers/{id}", operation_id = "show_trusted_publisher",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Tokens))),
    params(("id" = String, Path)),
    responses((status = 200, body = PublisherView)))]
async fn show(call: Call) -> HandlerResult {
    call.only(&[])?;
    let found = publishers::find(call.actor()?, call.path("id")).await?;
    Ok(Json(PublisherView::from(found)).into_response())
}

/// Deletes a trusted publisher. Tokens that were issued for it end at once.
#[utoipa::path(delete, path = "/v1/trusted-publishers/{id}", operation_id = "delete_trusted_publisher",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Tokens))),
    params(("id" = String, Path)),
    responses((status = 204)))]
async fn remove(call: Call) -> HandlerResult {
    call.only(&[])?;
    publishers::remove(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A request to exchange an ID token.
#[derive(ToSchema)]
#[allow(dead_code, reason = "only the OpenAPI description uses it; the form's fields are read one by one")]
pub(crate) struct TokenExchange {
    /// `urn:ietf:params:oauth:grant-type:token-exchange`.
    grant_type: String,
    /// The ID token.
    subject_token: String,
    /// `urn:ietf:params:oauth:token-type:jwt`.
    subject_token_type: String,
    /// The repository's address.
    resource: String,
    /// The `aud` of the ID token.
    audience: Option<String>,
    /// `urn:ietf:params:oauth:token-type:access_token`.
    requested_token_type: Option<String>,
}

/// The token issued for an ID token.
#[derive(Serialize, ToSchema)]
pub(crate) struct TokenExchanged {
    /// A token for the repository.
    access_token: String,
    /// `urn:ietf:params:oauth:token-type:access_token`.
    issued_token_type: &'static str,
    /// `Bearer`; the token also works as a Basic password with any user name.
    token_type: &'static str,
    /// Lifetime in seconds.
    expires_in: u32,
}

/// Exchanges an ID token of a trusted publisher for a token that is valid for 15 minutes (RFC
/// 8693).
#[utoipa::path(post, path = "/v1/token-exchange", operation_id = "exchange_token",
    extensions(("x-right" = json!(Anyone)), ("x-scope" = json!(Family::None))),
    request_body(content = TokenExchange, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, body = TokenExchanged),
        (status = 400, description = "`invalid_request`: the ID token was refused, see `error`; \
            `invalid_target`; `unsupported_grant_type`", body = ErrorBody)))]
async fn exchange(call: Call) -> HandlerResult {
    call.only(&[])?;
    let one = |name: &str| match call.form(name).as_slice() {
        [] => Ok(None),
        [value] => Ok(Some((*value).to_owned())),
        _ => Err(wrong(&format!("`{name}` occurs more than once"))),
    };
    let needed = |name: &str| one(name)?.ok_or_else(|| wrong(&format!("`{name}` is missing")));
    if needed("grant_type")? != EXCHANGE {
        return Err(ApiError::from(&catalogue::UNSUPPORTED_GRANT_TYPE));
    }
    let id_token = Secret::new(needed("subject_token")?);
    if !matches!(needed("subject_token_type")?.as_str(), JWT | ID_TOKEN) {
        return Err(wrong("`subject_token_type` must be urn:ietf:params:oauth:token-type:jwt"));
    }
    if one("requested_token_type")?.is_some_and(|kind| kind != ACCESS_TOKEN) {
        return Err(wrong("`requested_token_type` must be urn:ietf:params:oauth:token-type:access_token"));
    }
    let request = ExchangeRequest { id_token, resource: needed("resource")?, audience: one("audience")? };
    let minted = publishers::exchange(call.origin(), request).await?;
    let exchanged = TokenExchanged {
        access_token: minted.secret.reveal().to_owned(),
        issued_token_type: ACCESS_TOKEN,
        token_type: "Bearer",
        expires_in: TOKEN_LIFETIME_S,
    };
    let mut answer = Json(exchanged).into_response();
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

fn wrong(sentence: &str) -> ApiError {
    ApiError::with(&catalogue::EXCHANGE_MALFORMED, sentence)
}
