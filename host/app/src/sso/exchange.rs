//! There and back: the address at which the provider asks who sits there, and what is believed of its answer (OpenID Connect Core
//! 1.0, sections 3.1.2 and 3.1.3, with PKCE, RFC 7636).

use std::time::Duration;

use openidconnect::core::{
    CoreAuthPrompt, CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod, CoreIdTokenClaims,
    CoreJwsSigningAlgorithm as Algorithm, CoreProviderMetadata, CoreTokenResponse, CoreUserInfoClaims,
};
use openidconnect::{
    AuthType, AuthorizationCode, ClaimsVerificationError, ClientId, ClientSecret, CsrfToken,
    EndpointMaybeSet, EndpointNotSet, EndpointSet, Nonce, OAuth2TokenResponse as _, PkceCodeChallenge,
    PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope, TokenResponse as _,
};
use packhouse_store::SsoIdentity;
use url::Url;

use super::flow::{Aim, Flow};
use super::provider::{ProviderError, Providers};
use super::settings::Settings;
use crate::boxed;
use packhouse_identity::{self as identity, Secret};

/// With what an ID token may be signed: asymmetric keys of its issuer's alone.
pub(crate) const SIGNED_WITH: [Algorithm; 9] = [
    Algorithm::RsaSsaPkcs1V15Sha256,
    Algorithm::RsaSsaPkcs1V15Sha384,
    Algorithm::RsaSsaPkcs1V15Sha512,
    Algorithm::RsaSsaPssSha256,
    Algorithm::RsaSsaPssSha384,
    Algorithm::RsaSsaPssSha512,
    Algorithm::EcdsaP256Sha256,
    Algorithm::EcdsaP384Sha384,
    Algorithm::EdDsa,
];
/// By how much the clocks of provider and server may differ, in ms.
const SKEW_MS: i64 = 60_000;

/// Why a sign-in came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// What came back is not to be believed. The sentence is for people.
    #[error("{0}")]
    Answer(&'static str),
    /// The provider cannot be used.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

type Known = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// This server as the client of one provider.
pub struct Exchange<'a> {
    /// All providers.
    pub providers: &'a Providers,
    /// The organization's settings.
    pub settings: &'a Settings,
    /// The client's secret, opened.
    pub secret: Option<Secret>,
    /// Where the provider sends the browser back.
    pub callback: String,
}

impl Exchange<'_> {
    /// Where the browser goes. A confirmation asks for a sign-in that is new, whoever is signed in there.
    #[boxed]
    pub async fn address(&self, flow: &Flow) -> Result<Url, Refused> {
        let metadata = self.providers.metadata(&self.settings.issuer, false).await?;
        let client = self.client(&metadata)?;
        let (state, nonce) = (CsrfToken::new(flow.state.clone()), Nonce::new(flow.nonce.clone()));
        let verifier = PkceCodeVerifier::new(flow.verifier.clone());
        let mut request = client
            .authorize_url(CoreAuthenticationFlow::AuthorizationCode, move || state, move || nonce)
            .add_scope(Scope::new("email".to_owned()))
            .add_scope(Scope::new("profile".to_owned()))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
        if flow.aim != Aim::Session {
            request = request.add_prompt(CoreAuthPrompt::Login).set_max_age(Duration::ZERO);
        }
        let (url, _, _) = request.url();
        self.providers.check(&url)?;
        Ok(url)
    }

    /// Who it is. Fails with what is not to be believed.
    #[boxed]
    pub async fn identity(&self, flow: &Flow, code: &str) -> Result<(SsoIdentity, String), Refused> {
        let metadata = self.providers.metadata(&self.settings.issuer, false).await?;
        let client = self.client(&metadata)?;
        let answer = self.redeem(&client, flow, code).await?;
        let claims = match claims(&client, &answer, flow) {
            Err(ClaimsVerificationError::SignatureVerification(_)) => {
                // The provider may have other keys by now.
                let metadata = self.providers.metadata(&self.settings.issuer, true).await?;
                claims(&self.client(&metadata)?, &answer, flow)
            }
            claims => claims,
        };
        let claims = claims.map_err(|error| {
            let why = why(&error);
            tracing::info!(why, "an ID token was refused");
            Refused::Answer(why)
        })?;
        if flow.aim != Aim::Session {
            is_new(&claims, flow)?;
        }
        self.who(&client, &answer, &claims).await
    }

    fn client(&self, metadata: &CoreProviderMetadata) -> Result<Known, Refused> {
        let secret = self.secret.as_ref().map(|secret| ClientSecret::new(secret.reveal().to_owned()));
        let id = ClientId::new(self.settings.client_id.clone());
        let methods = metadata.token_endpoint_auth_methods_supported();
        let in_body = methods.is_some_and(|methods| {
            methods.contains(&CoreClientAuthMethod::ClientSecretPost)
                && !methods.contains(&CoreClientAuthMethod::ClientSecretBasic)
        });
        let way = if in_body { AuthType::RequestBody } else { AuthType::BasicAuth };
        let callback = RedirectUrl::new(self.callback.clone());
        let callback = callback.map_err(|error| ProviderError::of("callback", &error))?;
        Ok(CoreClient::from_provider_metadata(metadata.clone(), id, secret)
            .set_redirect_uri(callback)
            .set_auth_type(way))
    }

    async fn redeem(&self, client: &Known, flow: &Flow, code: &str) -> Result<CoreTokenResponse, Refused> {
        let http = self.providers.http(&self.settings.issuer);
        let request = client
            .exchange_code(AuthorizationCode::new(code.to_owned()))
            .map_err(|error| ProviderError::of("it names no token endpoint", &error))?;
        let verifier = PkceCodeVerifier::new(flow.verifier.clone());
        request.set_pkce_verifier(verifier).request_async(&http).await.map_err(|error| match error {
            RequestTokenError::ServerResponse(_) => Refused::Answer("the provider does not take the code"),
            RequestTokenError::Request(error) => Refused::Provider(error),
            // What it answered may hold tokens, and is not repeated.
            _ => Refused::Answer("the provider's answer to the code makes no sense"),
        })
    }

    /// The e-mail address from the ID token, or else from the provider's userinfo about the same subject.
    async fn who(
        &self,
        client: &Known,
        answer: &CoreTokenResponse,
        claims: &CoreIdTokenClaims,
    ) -> Result<(SsoIdentity, String), Refused> {
        let named = |name: Option<&openidconnect::LocalizedClaim<openidconnect::EndUserName>>| {
            name.and_then(|name| name.get(None)).map(|name| name.to_string()).unwrap_or_default()
        };
        let (email, verified, name) = match claims.email() {
            Some(email) => (email.to_string(), claims.email_verified(), named(claims.name())),
            None => {
                let http = self.providers.http(&self.settings.issuer);
                let request = client
                    .user_info(answer.access_token().clone(), Some(claims.subject().clone()))
                    .map_err(|_| Refused::Answer("the provider tells no e-mail address"))?;
                let told: CoreUserInfoClaims = request
                    .request_async(&http)
                    .await
                    .map_err(|_| Refused::Answer("what the provider tells of the user makes no sense"))?;
                let email = told.email().ok_or(Refused::Answer("the provider tells no e-mail address"))?;
                (email.to_string(), told.email_verified(), named(told.name()))
            }
        };
        if verified != Some(true) {
            return Err(Refused::Answer("the provider has not verified the e-mail address"));
        }
        let email = identity::email(&email).ok_or(Refused::Answer("the e-mail address is none"))?;
        if !self.settings.takes(&email) {
            return Err(Refused::Answer("addresses of this domain may not sign in here"));
        }
        let subject = claims.subject().to_string();
        if subject.is_empty() || subject.len() > 255 {
            return Err(Refused::Answer("the provider names no user"));
        }
        Ok((SsoIdentity { issuer: self.settings.issuer.clone(), subject, email }, name))
    }
}

/// The ID token's claims, once signature, issuer, audience, time and nonce are right.
fn claims(
    client: &Known,
    answer: &CoreTokenResponse,
    flow: &Flow,
) -> Result<CoreIdTokenClaims, ClaimsVerificationError> {
    let token = answer.id_token();
    let token = token.ok_or_else(|| ClaimsVerificationError::Other("there is no ID token".to_owned()))?;
    let verifier = client.id_token_verifier().set_allowed_algs(SIGNED_WITH);
    token.claims(&verifier, &Nonce::new(flow.nonce.clone())).cloned()
}

/// For people, and without what the token holds.
fn why(error: &ClaimsVerificationError) -> &'static str {
    match error {
        ClaimsVerificationError::Expired(_) => "the ID token has expired",
        ClaimsVerificationError::InvalidAudience(_) => "the ID token is for somebody else",
        ClaimsVerificationError::InvalidIssuer(_) => "the ID token is another provider's",
        ClaimsVerificationError::InvalidNonce(_) => "the ID token belongs to another sign-in",
        ClaimsVerificationError::SignatureVerification(_) => "the ID token is not signed by the provider",
        _ => "the ID token makes no sense",
    }
}

/// Whether the user has signed in at the provider since this was asked for.
fn is_new(claims: &CoreIdTokenClaims, flow: &Flow) -> Result<(), Refused> {
    let at =
        claims.auth_time().ok_or(Refused::Answer("the provider does not tell when the user signed in"))?;
    if at.timestamp_millis() >= flow.began_at - SKEW_MS {
        Ok(())
    } else {
        Err(Refused::Answer("the user did not sign in anew"))
    }
}
