//! An ID token: what it says before anybody vouches for it, and what it claims once its signature, issuer, audience and times are right
//! (OpenID Connect Core 1.0, section 3.1.3.7; RFC 7519).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use packhouse_identity::grants::{MAX_ID_TOKEN_BYTES, says_id_token};
use packhouse_store::SpentIdToken;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::claims;
use super::refusal::IdTokenRefusal;
use crate::jwt::{Claims, Expected, KeySet, TokenProblem};

/// By how much the issuer's clock may be ahead, in ms.
const SKEW_MS: i64 = 10_000;
/// How long after it was made an ID token counts at most, in ms, whatever it says of its end.
const LIFETIME_MS: i64 = 60 * 60 * 1000;
/// Bytes of an issuer.
const MAX_ISSUER_BYTES: usize = 512;
/// Characters of what is told of a workflow: a token's name has no more.
const MAX_TOLD: usize = 256;

/// Why a signature was not found right.
pub(super) enum SignatureProblem {
    /// None of these keys is the token's: the issuer may have others by now.
    NoKey,
    /// It is refused.
    Refused(IdTokenRefusal),
}

/// An ID token that nobody has vouched for.
pub(super) struct Unverified {
    text: String,
    claims: Claims,
    payload: Map<String, Value>,
}

impl Unverified {
    /// What a text says. `Malformed` for what is no ID token, without looking further at what is too long.
    pub(super) fn read(text: &str) -> Result<Unverified, IdTokenRefusal> {
        let malformed = IdTokenRefusal::Malformed;
        if text.len() > MAX_ID_TOKEN_BYTES {
            return Err(malformed("it is too long"));
        }
        if !says_id_token(text) {
            return Err(malformed("an ID token is three words of base64url, joined by dots"));
        }
        let bytes = text.split('.').nth(1).and_then(|word| URL_SAFE_NO_PAD.decode(word).ok());
        let bytes = bytes.unwrap_or_default();
        let payload: Map<String, Value> =
            serde_json::from_slice(&bytes).map_err(|_| malformed("its claims are no JSON object"))?;
        let claims = Claims::unverified(&bytes).ok_or(malformed("it lacks what every ID token claims"))?;
        if claims.issuer().is_empty() || claims.issuer().len() > MAX_ISSUER_BYTES {
            return Err(malformed("it names no issuer"));
        }
        Ok(Unverified { text: text.to_owned(), claims, payload })
    }

    pub(super) fn issuer(&self) -> &str {
        self.claims.issuer()
    }

    /// What it claims, if one of these keys of its issuer has signed it for one of these audiences, and `now` (ms since 1970) is within
    /// its time.
    pub(super) fn verify(
        &self,
        keys: &KeySet,
        audiences: &[String],
        now: i64,
    ) -> Result<Verified, SignatureProblem> {
        let audience = self.audience(audiences).map_err(SignatureProblem::Refused)?;
        let expected = Expected { issuer: self.issuer(), audience, now };
        keys.verify(&self.text, expected).map_err(|problem| match problem {
            TokenProblem::NoKey => SignatureProblem::NoKey,
            problem => SignatureProblem::Refused(IdTokenRefusal::invalid(why(problem))),
        })?;
        self.times(now).map_err(SignatureProblem::Refused)
    }

    /// That of the audiences which it is for. One for others besides could be shown here by any of them.
    fn audience(&self, audiences: &[String]) -> Result<&str, IdTokenRefusal> {
        let own = |only: &&str| audiences.iter().any(|own| own == only);
        self.claims.audience().filter(own).ok_or_else(|| {
            let own: Vec<String> = audiences.iter().map(|own| format!("`{own}`")).collect();
            IdTokenRefusal::invalid(format!(
                "it is for another audience: `aud` must be {} and nothing besides",
                own.join(" or ")
            ))
        })
    }

    fn times(&self, now: i64) -> Result<Verified, IdTokenRefusal> {
        let at = |name: &str| {
            let seconds = self.payload.get(name).and_then(Value::as_f64);
            seconds.filter(|seconds| seconds.is_finite()).map(|seconds| (seconds * 1000.0) as i64)
        };
        let expires_at =
            at("exp").ok_or_else(|| IdTokenRefusal::invalid("it does not say when it expires"))?;
        if expires_at <= now {
            return Err(IdTokenRefusal::invalid("it has expired"));
        }
        let made_at = at("iat").ok_or_else(|| IdTokenRefusal::invalid("it does not say when it was made"))?;
        let expires_at = expires_at.min(made_at.saturating_add(LIFETIME_MS));
        if expires_at <= now {
            return Err(IdTokenRefusal::invalid("it was made more than an hour ago"));
        }
        let begins = at("nbf").into_iter().chain([made_at]).max();
        if self.payload.contains_key("nbf") && at("nbf").is_none() {
            return Err(IdTokenRefusal::invalid("its `nbf` is no time"));
        }
        if begins.is_some_and(|begins| begins > now.saturating_add(SKEW_MS)) {
            return Err(IdTokenRefusal::invalid("it is not valid yet"));
        }
        Ok(Verified { claims: self.payload.clone(), expires_at, spent_sha256: self.spent_sha256() })
    }

    /// What it is remembered by once it is spent: its identifier, or where it has none, all that was signed.
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

/// For people, and without what the token holds.
fn why(problem: TokenProblem) -> &'static str {
    match problem {
        TokenProblem::Malformed => "it makes no sense",
        TokenProblem::Algorithm => {
            "it is not signed with an asymmetric key of its issuer's, as RS256 and ES256 are"
        }
        TokenProblem::NoKey | TokenProblem::Signature => "it is not signed by its issuer",
        TokenProblem::Issuer => "it is another issuer's",
        TokenProblem::Audience => "it is for another audience",
        TokenProblem::Expired => "it has expired",
        TokenProblem::NotYetValid => "it is not valid yet",
    }
}

/// An ID token's claims, once its issuer has vouched for them.
pub(super) struct Verified {
    claims: Map<String, Value>,
    expires_at: i64,
    spent_sha256: [u8; 32],
}

impl Verified {
    pub(super) fn claims(&self) -> &Map<String, Value> {
        &self.claims
    }

    /// In ms since 1970: an hour after it was made at the latest.
    pub(super) fn expires_at(&self) -> i64 {
        self.expires_at
    }

    /// What it is remembered by once it is spent, for longer than it could be shown again.
    pub(super) fn spent(&self) -> SpentIdToken {
        let until = self.expires_at.saturating_add(SKEW_MS);
        SpentIdToken { sha256: self.spent_sha256, until }
    }

    /// The workflow and its run, for people: repository, workflow, commit and run.
    pub(super) fn told(&self) -> String {
        let plain = |letter: &char| !letter.is_control();
        claims::told(&self.claims).chars().filter(plain).take(MAX_TOLD).collect()
    }
}
