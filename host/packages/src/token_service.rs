//! The token service: issues bearer tokens for a credential. Clients of container registries use
//! GET. POST is a request of OAuth 2 (RFC 6749, section 4.3); it accepts only the grant type
//! `password`. The format's description defines the path and the scopes.
//!
//! If the credential lacks rights, the bearer token grants less, and this is not an error. A later
//! request that needs these rights is refused in the format's own error style. Without a
//! credential, the bearer token covers public content. The service issues no refresh tokens, so
//! that nobody can renew a revoked credential.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::BytesMut;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use packhouse_runtime::{Description, Plugin};
use packhouse_store::{OrganizationId, Reached};
use serde_json::json;

use crate::access_request as access;
use crate::credential::PresentedCredential;
use crate::declared_length::too_large;
use crate::error_response::HttpError;
use crate::identify::{self, IdentityQuery, Principal};
use crate::scope::Scopes;
use crate::uncached_json::uncached_json;
use packhouse_app::App;
use packhouse_identity::access::{AccessAction, ResolvedCredential};
use packhouse_identity::{Bearer, BearerHolder, LIFETIME_S, ScopeGrant, Secret};
use packhouse_wire::body::Body;
use packhouse_wire::catalogue;
use packhouse_wire::incoming_body::IncomingBody;
use packhouse_wire::path;

/// Maximum number of scopes of a bearer token. Further requested scopes are not granted.
const MAX_SCOPES: usize = 16;
const MAX_FORM_BYTES: usize = 16 * 1024;

/// The token service of one format.
pub(crate) struct BearerIssuer<'a> {
    pub app: &'a App,
    pub plugin: &'a Plugin,
    pub peer: IpAddr,
    /// Audience of ID tokens.
    pub own_address: &'a str,
    /// Id of the request in the audit log.
    pub request_id: &'a str,
}

type FormPairs = Vec<(String, String)>;

impl BearerIssuer<'_> {
    /// Answers the request. Returns the response, and the credential's name for the log. Fails with
    /// 401 for an invalid credential, and with 400 for another grant type.
    pub(crate) async fn answer(
        &self,
        parts: &Parts,
        query: FormPairs,
        body: &mut IncomingBody,
        organization: OrganizationId,
    ) -> Result<(Response<Body>, Option<Arc<str>>), HttpError> {
        let by_header = PresentedCredential::read(&parts.headers).taken_by(self.plugin.description());
        let (credential, requested) = match parts.method {
            Method::GET | Method::HEAD => (by_header, query),
            Method::POST => {
                let form = form(parts, body).await?;
                (by_form(by_header, &form)?, form)
            }
            _ => return Err(HttpError::method_not_allowed("GET, HEAD, POST")),
        };
        let mut fingerprint = credential.fingerprint();
        let query = IdentityQuery {
            organization,
            repository: "",
            credential,
            peer: self.peer,
            bearer_format: None,
            own_address: self.own_address,
            request_id: self.request_id,
        };
        let principal = identify::identify(self.app, query).await?;
        if principal.grants.is_some() {
            fingerprint = principal.facts.token.as_ref().map(|token| token.secret_sha256);
        }
        let now = self.app.store.now_ms();
        let holder = self.holder(&principal, fingerprint.as_ref(), now)?;
        let grants = self.grants(&principal, organization, &requested, now).await?;
        let bearer = Bearer {
            organization: organization.0,
            format: self.plugin.description().format.clone(),
            holder,
            expires_at: now + i64::from(LIFETIME_S) * 1000,
            grants,
        };
        if let Some(token) = &principal.facts.token {
            self.app.store.token_used(token.id, now);
        }
        if let Some(key) = &principal.facts.key {
            self.app.store.access_key_used(key.id, now);
        }
        let signed = self.app.bearers.sign(&self.app.store, &self.app.sealer, &bearer).await?;
        Ok((self.response(&signed, &bearer.grants, parts.method == Method::HEAD), principal.credential))
    }

    /// Returns the holder of the credential. Fails with 401 for an invalid credential; a missing
    /// credential is allowed.
    fn holder(
        &self,
        principal: &Principal,
        fingerprint: Option<&[u8; 32]>,
        now: i64,
    ) -> Result<BearerHolder, HttpError> {
        if principal.presented == ResolvedCredential::Nothing {
            return Ok(BearerHolder::Nobody);
        }
        let rules = access::rules(Some(self.plugin.description()));
        let required = AccessAction::Read { for_publish: false };
        access::authorize_credential(&principal.presented, &rules, required, now)?;
        match (&principal.presented, fingerprint, &principal.member) {
            (ResolvedCredential::Member(_), _, Some(member)) => Ok(BearerHolder::member(member)),
            (_, Some(fingerprint), _) => Ok(BearerHolder::token(fingerprint)),
            _ => Err(HttpError::of(&catalogue::UNAUTHORIZED)),
        }
    }

    /// Returns the requested scopes, reduced to the credential's rights.
    async fn grants(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        requested: &FormPairs,
        now: i64,
    ) -> Result<Vec<ScopeGrant>, HttpError> {
        let description = self.plugin.description();
        let texts =
            requested.iter().filter(|(name, _)| name == "scope").flat_map(|(_, value)| value.split(' '));
        let grants: Vec<ScopeGrant> =
            texts.filter_map(|text| read(description, text)).take(MAX_SCOPES).collect();
        let mut names: Vec<String> = grants.iter().map(|grant| grant.repository.clone()).collect();
        names.sort_unstable();
        names.dedup();
        let found = self.app.store.look_up_others(organization, &names, &principal.facts).await?;
        let within = |grant: ScopeGrant| {
            let reached = found.iter().find(|one| one.row.name == grant.repository)?;
            Some(self.within(principal, reached, grant, now)).filter(|grant| !grant.is_empty())
        };
        Ok(grants.into_iter().filter_map(within).collect())
    }

    /// Returns a grant that is reduced to the credential's rights in this repository.
    fn within(&self, principal: &Principal, reached: &Reached, grant: ScopeGrant, now: i64) -> ScopeGrant {
        let description = self.plugin.description();
        let rules = access::rules(Some(description));
        let mut elsewhere = principal.presented_elsewhere();
        let presented = elsewhere.to(reached);
        let here = reached.row.format == description.format;
        // A later request checks whether the format is enabled.
        let facts = access::facts(&reached.row, true);
        let may = |required| here && access::authorize(presented, &rules, required, Some(facts), now).is_ok();
        ScopeGrant {
            read: grant.read && may(AccessAction::Read { for_publish: false }),
            publish: grant.publish && may(AccessAction::Publish),
            delete: grant.delete && may(AccessAction::Delete),
            ..grant
        }
    }

    /// Returns the response. It contains the bearer token under both names that clients read.
    fn response(&self, bearer: &Secret, grants: &[ScopeGrant], head: bool) -> Response<Body> {
        let description = self.plugin.description();
        let scopes: Vec<String> = grants.iter().filter_map(|grant| write(description, grant)).collect();
        let object = json!({
            "token": bearer.reveal(), "access_token": bearer.reveal(), "token_type": "Bearer",
            "expires_in": LIFETIME_S, "scope": scopes.join(" "),
        });
        uncached_json(StatusCode::OK, &object, head)
    }
}

/// Returns all scope templates of this format.
fn all_scopes(description: &Description) -> impl Iterator<Item = Scopes<'_>> {
    let words = description.token_service.as_ref();
    let templates = description.claims.iter().filter_map(|claim| claim.challenge.as_deref());
    templates.filter_map(move |template| Some(Scopes::new(template, words?)))
}

fn read(description: &Description, text: &str) -> Option<ScopeGrant> {
    all_scopes(description).find_map(|scopes| scopes.read(text))
}

fn write(description: &Description, grant: &ScopeGrant) -> Option<String> {
    let with_subject = |scopes: &Scopes<'_>| scopes.has_subject() == grant.subject.is_some();
    all_scopes(description).find(with_subject).map(|scopes| scopes.of(grant))
}

/// Parses a form. Fails with 413 if the form is too long, and with 400 if it is malformed.
async fn form(parts: &Parts, body: &mut IncomingBody) -> Result<FormPairs, HttpError> {
    let kind = parts.headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let no_form = || HttpError::with(&catalogue::INVALID_REQUEST, "The request body must be a form.");
    if !kind.to_ascii_lowercase().starts_with(b"application/x-www-form-urlencoded") {
        return Err(no_form());
    }
    let mut bytes = BytesMut::new();
    while let Some(more) = body.next().await? {
        if bytes.len() + more.len() > MAX_FORM_BYTES {
            return Err(too_large(MAX_FORM_BYTES as u64));
        }
        bytes.extend_from_slice(&more);
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| no_form())?;
    path::parse_query(text).map_err(|_| no_form())
}

/// Returns the credential in the form, or the credential in the header if the form contains none.
fn by_form(by_header: PresentedCredential, form: &FormPairs) -> Result<PresentedCredential, HttpError> {
    let field =
        |name: &str| form.iter().find(|(principal, _)| principal == name).map(|(_, value)| value.as_str());
    if field("grant_type") != Some("password") {
        return Err(HttpError::with(&catalogue::INVALID_REQUEST, "`grant_type` must be `password`."));
    }
    Ok(match (field("username"), field("password")) {
        (Some(username), Some(password)) => {
            PresentedCredential::Basic { username: username.to_owned(), password: Secret::new(password) }
        }
        _ => by_header,
    })
}
