//! The token service: gives out bearers for a credential, by GET as registries' clients ask since their first days, and by POST
//! as OAuth 2 has it (RFC 6749, section 4.3, the grant type `password` alone). Which format it serves, where it is and what its
//! scopes look like is what the format's description says.
//!
//! Rights that are missing make a smaller grant and no error: the request that needs them is refused in the format's own words.
//! Without a credential it gives out a bearer for what anyone may read. There are no refresh tokens: what was revoked must not
//! come back.

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
use crate::unkept_json::unkept_json;
use packhouse_app::App;
use packhouse_identity::access::{AccessAction, ResolvedCredential};
use packhouse_identity::{Bearer, Holder, LIFETIME_S, ScopeGrant, Secret};
use packhouse_wire::body::Body;
use packhouse_wire::catalogue;
use packhouse_wire::incoming_body::IncomingBody;
use packhouse_wire::path;

/// Scopes that one bearer is given for at most; what is asked for beyond is not granted.
const MAX_SCOPES: usize = 16;
/// Bytes of a form.
const MAX_FORM_BYTES: usize = 16 * 1024;

/// The token service of one format.
pub(crate) struct Service<'a> {
    /// The program.
    pub app: &'a App,
    /// Whose it is.
    pub plugin: &'a Plugin,
    /// Who asks.
    pub peer: IpAddr,
    /// The address for which ID tokens are made.
    pub own_address: &'a str,
    /// Names the request in the audit log.
    pub request_id: &'a str,
}

type Pairs = Vec<(String, String)>;

impl Service<'_> {
    /// The answer, and what names the credential in the log. 401 for a credential that is not taken, 400 for another grant type.
    pub(crate) async fn answer(
        &self,
        parts: &Parts,
        query: Pairs,
        body: &mut IncomingBody,
        organization: OrganizationId,
    ) -> Result<(Response<Body>, Option<Arc<str>>), HttpError> {
        let by_header = PresentedCredential::read(&parts.headers).taken_by(self.plugin.description());
        let (credential, asked) = match parts.method {
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
        let grants = self.grants(&principal, organization, &asked, now).await?;
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

    /// Whose credential it is; 401 for one that is not taken. That none came is no fault.
    fn holder(
        &self,
        principal: &Principal,
        fingerprint: Option<&[u8; 32]>,
        now: i64,
    ) -> Result<Holder, HttpError> {
        if principal.presented == ResolvedCredential::Nothing {
            return Ok(Holder::Nobody);
        }
        let rules = access::rules(Some(self.plugin.description()));
        let wanted = AccessAction::Read { for_publish: false };
        access::authorize_credential(&principal.presented, &rules, wanted, now)?;
        match (&principal.presented, fingerprint, &principal.member) {
            (ResolvedCredential::Member(_), _, Some(member)) => Ok(Holder::member(member)),
            (_, Some(fingerprint), _) => Ok(Holder::token(fingerprint)),
            _ => Err(HttpError::of(&catalogue::UNAUTHORIZED)),
        }
    }

    /// What was asked for, as far as the credential goes.
    async fn grants(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        asked: &Pairs,
        now: i64,
    ) -> Result<Vec<ScopeGrant>, HttpError> {
        let description = self.plugin.description();
        let texts = asked.iter().filter(|(name, _)| name == "scope").flat_map(|(_, value)| value.split(' '));
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

    /// A grant without what the credential may not do.
    fn within(&self, principal: &Principal, reached: &Reached, grant: ScopeGrant, now: i64) -> ScopeGrant {
        let description = self.plugin.description();
        let rules = access::rules(Some(description));
        let mut elsewhere = principal.presented_elsewhere();
        let presented = elsewhere.to(reached);
        let here = reached.row.format == description.format;
        // Whether the format is switched on is asked when the bearer is used.
        let facts = access::facts(&reached.row, true);
        let may = |wanted| here && access::authorize(presented, &rules, wanted, Some(facts), now).is_ok();
        ScopeGrant {
            read: grant.read && may(AccessAction::Read { for_publish: false }),
            publish: grant.publish && may(AccessAction::Publish),
            delete: grant.delete && may(AccessAction::Delete),
            ..grant
        }
    }

    /// Under both names that clients read it by.
    fn response(&self, bearer: &Secret, grants: &[ScopeGrant], head: bool) -> Response<Body> {
        let description = self.plugin.description();
        let scopes: Vec<String> = grants.iter().filter_map(|grant| write(description, grant)).collect();
        let object = json!({
            "token": bearer.reveal(), "access_token": bearer.reveal(), "token_type": "Bearer",
            "expires_in": LIFETIME_S, "scope": scopes.join(" "),
        });
        unkept_json(StatusCode::OK, &object, head)
    }
}

/// All ways in which this format writes a scope.
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

/// The pairs of a form. 413 for one that is too long, 400 for what is none.
async fn form(parts: &Parts, body: &mut IncomingBody) -> Result<Pairs, HttpError> {
    let kind = parts.headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let no_form = || HttpError::with(&catalogue::INVALID_REQUEST, "The body is to be a form.");
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

/// The credential of a form; one in the header stands where the form has none.
fn by_form(by_header: PresentedCredential, form: &Pairs) -> Result<PresentedCredential, HttpError> {
    let field =
        |name: &str| form.iter().find(|(principal, _)| principal == name).map(|(_, value)| value.as_str());
    if field("grant_type") != Some("password") {
        return Err(HttpError::with(
            &catalogue::INVALID_REQUEST,
            "The one `grant_type` that is offered here is `password`.",
        ));
    }
    Ok(match (field("username"), field("password")) {
        (Some(username), Some(password)) => {
            PresentedCredential::Basic { username: username.to_owned(), password: Secret::new(password) }
        }
        _ => by_header,
    })
}
