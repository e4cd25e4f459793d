//! Exchange with an OpenID Connect provider: the authorization address, the redemption of the code,
//! and the checks of the result. See OpenID Connect Core 1.0, sections 3.1.2 and 3.1.3; PKCE is RFC
//! 7636.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::StatusCode;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use packhouse_store::SsoIdentity;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use url::{Url, form_urlencoded};

use super::flow::{Aim, Flow};
use super::groups::GroupsClaim;
use super::provider::{ProviderError, ProviderMetadata, Providers, Response};
use super::settings::SsoSettings;
use crate::boxed;
use crate::jwt::{Claims, ExpectedClaims, TokenProblem, User};
use packhouse_identity::{self as identity, Secret};

/// Tolerance for a difference between the clocks of the provider and this server, in ms.
const SKEW_MS: i64 = 60_000;
const JSON: &str = "application/json";

/// Reason why a sign-in failed.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The server refused the provider's response. The sentence is for people.
    #[error("{0}")]
    Answer(&'static str),
    /// The server cannot use the provider.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

/// User whom the provider signed in.
#[derive(Debug)]
pub struct IdentifiedUser {
    pub identity: SsoIdentity,
    /// Displayed name; may be empty.
    pub name: String,
    pub groups: GroupsClaim,
}

/// This server in its role as a client of one provider.
pub struct Exchange<'a> {
    pub providers: &'a Providers,
    pub settings: &'a SsoSettings,
    /// The decrypted client secret; `None` for a client without one.
    pub secret: Option<Secret>,
    /// Address to which the provider sends the browser back.
    pub callback: String,
    /// The current time, in ms since 1970.
    pub now: i64,
}

/// The provider's response to the request that redeems a code.
#[derive(Deserialize)]
struct Tokens {
    access_token: String,
    token_type: String,
    id_token: Option<String>,
}

impl Exchange<'_> {
    /// Returns the address to which the browser must go. For a confirmation, the provider must ask
    /// the user to sign in again, even if the user is already signed in there.
    #[boxed]
    pub async fn address(&self, flow: &Flow) -> Result<Url, Refused> {
        let metadata = self.providers.metadata(&self.settings.issuer, false).await?;
        let mut url = endpoint(metadata.authorization_endpoint.as_deref(), "authorization endpoint")?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&flow.verifier));
        url.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", self.settings.client_id.as_str()),
            ("redirect_uri", self.callback.as_str()),
            ("scope", self.scope(&metadata)),
            ("state", flow.state.as_str()),
            ("nonce", flow.nonce.as_str()),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", "S256"),
        ]);
        if flow.aim != Aim::Session {
            url.query_pairs_mut().extend_pairs([("prompt", "login"), ("max_age", "0")]);
        }
        self.providers.check(&url)?;
        Ok(url)
    }

    /// Scopes that the sign-in requests. Some providers state the groups only for the scope
    /// `groups`, and others refuse a scope that the client may not use. So the server requests it
    /// if the provider lists it and the settings name a claim.
    fn scope(&self, metadata: &ProviderMetadata) -> &'static str {
        if self.settings.groups_claim.is_some() && metadata.lists_scope("groups") {
            "openid email profile groups"
        } else {
            "openid email profile"
        }
    }

    /// Redeems the code. Returns the user's identity, name and groups, or fails if a check of the
    /// response fails.
    #[boxed]
    pub async fn identity(&self, flow: &Flow, code: &str) -> Result<IdentifiedUser, Refused> {
        let mut metadata = self.providers.metadata(&self.settings.issuer, false).await?;
        let tokens = self.redeem(&metadata, flow, code).await?;
        let token = tokens.id_token.as_deref().ok_or(Refused::Answer(why(TokenProblem::Malformed)))?;
        let mut verified = metadata.keys.verify(token, self.expected());
        if matches!(verified, Err(TokenProblem::NoKey | TokenProblem::Signature)) {
            // The provider may have published new keys since they were cached.
            metadata = self.providers.metadata(&self.settings.issuer, true).await?;
            verified = metadata.keys.verify(token, self.expected());
        }
        let claims = verified.map_err(why).and_then(|claims| {
            if claims.has_nonce(&flow.nonce) {
                Ok(claims)
            } else {
                Err("the ID token belongs to another sign-in")
            }
        });
        let claims = claims.map_err(|why| {
            tracing::info!(why, "id token refused");
            Refused::Answer(why)
        })?;
        if flow.aim != Aim::Session {
            is_new(&claims, flow)?;
        }
        let groups = GroupsClaim::read(&claims.other, self.settings.groups_claim());
        let (identity, name) = self.identify(&metadata, &tokens.access_token, claims.user).await?;
        Ok(IdentifiedUser { identity, name, groups })
    }

    fn expected(&self) -> ExpectedClaims<'_> {
        ExpectedClaims { issuer: &self.settings.issuer, audience: &self.settings.client_id, now: self.now }
    }

    async fn redeem(&self, metadata: &ProviderMetadata, flow: &Flow, code: &str) -> Result<Tokens, Refused> {
        let url = endpoint(metadata.token_endpoint.as_deref(), "token endpoint")?;
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("code_verifier", flow.verifier.as_str()),
            ("redirect_uri", self.callback.as_str()),
        ];
        let mut request = http::Request::post(url.as_str())
            .header(ACCEPT, JSON)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let id = self.settings.client_id.as_str();
        match &self.secret {
            Some(secret) if !metadata.takes_secret_in_body_alone() => {
                request = request.header(AUTHORIZATION, basic(id, secret.reveal()));
            }
            secret => {
                form.push(("client_id", id));
                form.extend(secret.as_ref().map(|secret| ("client_secret", secret.reveal())));
            }
        }
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request =
            request.body(body.into_bytes()).map_err(|error| ProviderError::of("token endpoint", &error))?;
        let answer = self.providers.send(&self.settings.issuer, request).await?;
        // The response may contain tokens, so the error does not include it.
        let malformed = Refused::Answer("the provider's response to the code is malformed");
        if answer.status() == StatusCode::OK {
            let tokens: Option<Tokens> = serde_json::from_slice(answer.body()).ok();
            // OpenID Connect Core, section 3.1.3.3, requires this type.
            return tokens.filter(|tokens| tokens.token_type.eq_ignore_ascii_case("bearer")).ok_or(malformed);
        }
        let json: Option<Value> = serde_json::from_slice(answer.body()).ok();
        let refuses = json.is_some_and(|json| json.get("error").is_some_and(Value::is_string));
        Err(if refuses { Refused::Answer("the provider refused the code") } else { malformed })
    }

    /// Returns the user's identity and name. The e-mail address comes from the ID token, or else
    /// from the provider's userinfo about the same subject.
    async fn identify(
        &self,
        metadata: &ProviderMetadata,
        access_token: &str,
        user: User,
    ) -> Result<(SsoIdentity, String), Refused> {
        let user = if user.email.is_some() {
            user
        } else {
            self.userinfo(metadata, access_token, &user.sub).await?
        };
        let email = user.email.ok_or(Refused::Answer("the provider did not send an e-mail address"))?;
        if user.email_verified != Some(true) {
            return Err(Refused::Answer("the provider has not verified the e-mail address"));
        }
        let email =
            identity::email(&email).ok_or(Refused::Answer("the provider sent an invalid e-mail address"))?;
        if !self.settings.takes(&email) {
            return Err(Refused::Answer("e-mail addresses of this domain are not allowed to sign in"));
        }
        let subject = user.sub;
        if subject.is_empty() || subject.len() > 255 {
            return Err(Refused::Answer("the provider did not identify the user"));
        }
        let name = user.name.unwrap_or_default();
        Ok((SsoIdentity { issuer: self.settings.issuer.clone(), subject, email }, name))
    }

    async fn userinfo(
        &self,
        metadata: &ProviderMetadata,
        access_token: &str,
        subject: &str,
    ) -> Result<User, Refused> {
        let malformed = || Refused::Answer("the provider's response about the user is malformed");
        let address = metadata.userinfo_endpoint.as_deref();
        let address = address.ok_or(Refused::Answer("the provider did not send an e-mail address"))?;
        let request = http::Request::get(address)
            .header(ACCEPT, JSON)
            .header(AUTHORIZATION, format!("Bearer {access_token}"))
            .body(Vec::new());
        let request = request.map_err(|_| malformed())?;
        let answer = self.providers.send(&self.settings.issuer, request).await.map_err(|_| malformed())?;
        if answer.status() != StatusCode::OK {
            return Err(malformed());
        }
        let user: Option<User> = match media_type(&answer).as_deref() {
            Some("application/jwt") => {
                let token = std::str::from_utf8(answer.body()).unwrap_or_default();
                metadata.keys.verify_userinfo(token.trim(), self.expected()).ok()
            }
            Some(JSON) => serde_json::from_slice(answer.body()).ok(),
            _ => None,
        };
        // The subject must match, because an attacker could substitute userinfo of another subject
        // (section 5.3.2).
        user.filter(|user| user.sub == subject).ok_or_else(malformed)
    }
}

fn endpoint(address: Option<&str>, what: &str) -> Result<Url, ProviderError> {
    let address = address.ok_or_else(|| ProviderError(format!("its description has no {what}")))?;
    address.parse::<Url>().map_err(|error| ProviderError::of(what, &error))
}

/// Returns the client's id and secret as basic credentials. Both are form-encoded first (RFC 6749,
/// section 2.3.1).
fn basic(id: &str, secret: &str) -> String {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    format!("Basic {}", STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret))))
}

/// Returns the media type of the body. Returns JSON if the response states none, and `None` if the
/// stated type cannot be read.
fn media_type(answer: &Response) -> Option<String> {
    let Some(stated) = answer.headers().get(CONTENT_TYPE) else { return Some(JSON.to_owned()) };
    Some(stated.to_str().ok()?.split(';').next()?.trim().to_ascii_lowercase())
}

/// Returns the reason as a text for people, without content of the token.
fn why(problem: TokenProblem) -> &'static str {
    match problem {
        TokenProblem::Malformed => "the ID token is malformed",
        TokenProblem::Algorithm | TokenProblem::NoKey | TokenProblem::Signature => {
            "the ID token is not signed by the provider"
        }
        TokenProblem::Issuer => "the ID token is from another provider",
        TokenProblem::Audience => "the ID token is for another client",
        TokenProblem::Expired => "the ID token has expired",
        TokenProblem::NotYetValid => "the ID token is not valid yet",
    }
}

/// Checks that the user signed in at the provider after the flow began.
fn is_new(claims: &Claims, flow: &Flow) -> Result<(), Refused> {
    let at =
        claims.signed_in_at().ok_or(Refused::Answer("the provider did not send the time of the sign-in"))?;
    if at >= flow.began_at - SKEW_MS {
        Ok(())
    } else {
        Err(Refused::Answer("the user did not sign in again"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_encoded_as_in_a_form_before_they_are_joined() {
        // A colon or a non-ASCII character must not move the boundary between id and secret.
        let credentials = basic("a:b c", "p%\u{e9}+");
        let decoded = STANDARD.decode(credentials.strip_prefix("Basic ").unwrap()).unwrap();
        assert_eq!(String::from_utf8(decoded).unwrap(), "a%3Ab+c:p%25%C3%A9%2B");
    }
}
