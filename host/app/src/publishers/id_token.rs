//! ID tokens of trusted publishing, before and after the verification of signature, issuer,
//! audience and times (OpenID Connect Core 1.0, section 3.1.3.7; RFC 7519).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use packhouse_identity::grants::{MAX_ID_TOKEN_BYTES, says_id_token};
use packhouse_store::SpentIdToken;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::claims;
use super::refusal::IdTokenRefusal;
use crate::jwt::{Claims, ExpectedClaims, KeySet, TokenProblem};

/// Tolerance for an issuer's clock that is fast, in ms.
const SKEW_MS: i64 = 10_000;
/// Maximum time for which the server accepts an ID token after its issue, in ms, even if the token
/// expires later.
const LIFETIME_MS: i64 = 60 * 60 * 1000;
/// Maximum length of an issuer, in bytes.
const MAX_ISSUER_BYTES: usize = 512;
/// Maximum length of a workflow's description, in characters. It is also the limit for the name of
/// a token.
const MAX_DESCRIPTION: usize = 256;

/// Reason why a signature could not be verified.
pub(super) enum SignatureProblem {
    /// No known key signed the token. The issuer may have published new keys.
    NoKey,
    Refused(IdTokenRefusal),
}

/// An ID token that has not been verified.
pub(super) struct Unverified {
    text: String,
    claims: Claims,
    payload: Map<String, Value>,
}

impl Unverified {
    /// Parses an ID token. Fails with `Malformed` for any other text, and for a text that is too
    /// long, without parsing it.
    pub(super) fn read(text: &str) -> Result<Unverified, IdTokenRefusal> {
        let malformed = IdTokenRefusal::Malformed;
        if text.len() > MAX_ID_TOKEN_BYTES {
            return Err(malformed("it is too long"));
        }
        if !says_id_token(text) {
            return Err(malformed("an ID token must have three parts in base64url, joined by dots"));
        }
        let bytes = text.split('.').nth(1).and_then(|word| URL_SAFE_NO_PAD.decode(word).ok());
        let bytes = bytes.unwrap_or_default();
        let payload: Map<String, Value> =
            serde_json::from_slice(&bytes).map_err(|_| malformed("its claims are not a JSON object"))?;
        let claims =
            Claims::unverified(&bytes).ok_or(malformed("it lacks a claim that every ID token must have"))?;
        if claims.issuer().is_empty() || claims.issuer().len() > MAX_ISSUER_BYTES {
            return Err(malformed("it does not name an issuer"));
        }
        Ok(Unverified { text: text.to_owned(), claims, payload })
    }

    pub(super) fn issuer(&self) -> &str {
        self.claims.issuer()
    }

    /// Verifies the token: one of the issuer's keys must have signed it, and it must be for one of
    /// these audiences. It must be valid at `now`, in ms since 1970.
    pub(super) fn verify(
        &self,
        keys: &KeySet,
        audiences: &[String],
        now: i64,
    ) -> Result<Verified, SignatureProblem> {
        let audience = self.audience(audiences).map_err(SignatureProblem::Refused)?;
        let expected = ExpectedClaims { issuer: self.issuer(), audience, now };
        keys.verify(&self.text, expected).map_err(|problem| match problem {
            TokenProblem::NoKey => SignatureProblem::NoKey,
            problem => SignatureProblem::Refused(IdTokenRefusal::invalid(why(problem))),
        })?;
        self.times(now).map_err(SignatureProblem::Refused)
    }

    /// Returns the token's audience if it is one of these. Refuses a token for several audiences,
    /// because each of them could present it here.
    fn audience(&self, audiences: &[String]) -> Result<&str, IdTokenRefusal> {
        let own = |only: &&str| audiences.iter().any(|own| own == only);
        self.claims.audience().filter(own).ok_or_else(|| {
            let own: Vec<String> = audiences.iter().map(|own| format!("`{own}`")).collect();
            IdTokenRefusal::invalid(format!(
                "it is for another audience: `aud` must be exactly {}",
                own.join(" or ")
            ))
        })
    }

    fn times(&self, now: i64) -> Result<Verified, IdTokenRefusal> {
        let at = |name: &str| {
            let seconds = self.payload.get(name).and_then(Value::as_f64);
            seconds.filter(|seconds| seconds.is_finite()).map(|seconds| (seconds * 1000.0) as i64)
        };
        let expires_at = at("exp").ok_or_else(|| IdTokenRefusal::invalid("it has no expiry time (`exp`)"))?;
        if expires_at <= now {
            return Err(IdTokenRefusal::invalid("it has expired"));
        }
        let made_at = at("iat").ok_or_else(|| IdTokenRefusal::invalid("it has no issue time (`iat`)"))?;
        let expires_at = expires_at.min(made_at.saturating_add(LIFETIME_MS));
        if expires_at <= now {
            return Err(IdTokenRefusal::invalid("it was issued more than an hour ago"));
        }
        let begins = at("nbf").into_iter().chain([made_at]).max();
        if self.payload.contains_key("nbf") && at("nbf").is_none() {
            return Err(IdTokenRefusal::invalid("its `nbf` is not a time"));
        }
        if begins.is_some_and(|begins| begins > now.saturating_add(SKEW_MS)) {
            return Err(IdTokenRefusal::invalid("it is not valid yet"));
        }
        Ok(Verified { claims: self.payload.clone(), expires_at, spent_sha256: self.spent_sha256() })
    }

    /// Returns the hash that marks the token as spent. It is the hash of the token's `jti`, or of
    /// the signed text if there is no `jti`.
    fn spent_sha256(&self) -> [u8; 32] {
        let signed = self.text.rsplit_once('.').map_or(self.text.as_str(), |(signed, _)| signed);
        let (kind, identifier) =
            match self.payload.get("jti").and_then(Value::as_str).filter(|jti| !jti.is_empty()) {
                Some(jti) => ("jti", jti),
                None => ("text", signed),
            };
        let hash = Sha256::new_with_prefix(kind).chain_update([0]).chain_update(self.issuer());
        hash.chain_update([0]).chain_update(identifier).finalize().into()
    }
}

/// Returns the reason as a text for people, without content of the token.
fn why(problem: TokenProblem) -> &'static str {
    match problem {
        TokenProblem::Malformed => "it is malformed",
        TokenProblem::Algorithm => "it is not signed with an asymmetric algorithm such as RS256 or ES256",
        TokenProblem::NoKey | TokenProblem::Signature => "it is not signed by its issuer",
        TokenProblem::Issuer => "it is from another issuer",
        TokenProblem::Audience => "it is for another audience",
        TokenProblem::Expired => "it has expired",
        TokenProblem::NotYetValid => "it is not valid yet",
    }
}

/// Claims of a verified ID token.
pub(super) struct Verified {
    claims: Map<String, Value>,
    expires_at: i64,
    spent_sha256: [u8; 32],
}

impl Verified {
    pub(super) fn claims(&self) -> &Map<String, Value> {
        &self.claims
    }

    /// Returns the expiry in ms since 1970, at most one hour after the token was issued.
    pub(super) fn expires_at(&self) -> i64 {
        self.expires_at
    }

    /// Returns the record that marks the token as spent. The record outlives the token.
    pub(super) fn spent(&self) -> SpentIdToken {
        let until = self.expires_at.saturating_add(SKEW_MS);
        SpentIdToken { sha256: self.spent_sha256, until }
    }

    /// Describes the workflow for people: repository, workflow, commit and run.
    pub(super) fn describe_workflow(&self) -> String {
        let plain = |letter: &char| !letter.is_control();
        claims::describe_workflow(&self.claims).chars().filter(plain).take(MAX_DESCRIPTION).collect()
    }
}
