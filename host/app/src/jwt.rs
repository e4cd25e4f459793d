//! ID tokens, which are signed JSON Web Tokens (OpenID Connect Core 1.0, section 3.1.3.7; RFC
//! 7519). Sign-in and trusted publishing share these checks and the keys of an issuer.
//!
//! The library checks the signature, the issuer, the audience and the expiry. This module checks
//! the rest: the header, that the token has only one audience, and which of the issuer's keys may
//! sign with which algorithm.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Validation, decode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// Accepted signature algorithms. All of them use asymmetric keys.
const ASYMMETRIC: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];
/// Tolerance for an issuer's clock that is fast, in ms.
const SKEW_MS: i64 = 60_000;

/// Reason why the server rejects a token.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TokenProblem {
    /// The text is not an ID token.
    Malformed,
    /// The signature was not made with an asymmetric key.
    Algorithm,
    /// No known key signed the token. The issuer may have published new keys.
    NoKey,
    /// The signature was not made by the issuer.
    Signature,
    /// Another issuer made the token.
    Issuer,
    /// The token is for another audience, or for several audiences.
    Audience,
    Expired,
    /// The token is not valid yet.
    NotYetValid,
}

impl From<Error> for TokenProblem {
    fn from(error: Error) -> TokenProblem {
        match error.kind() {
            ErrorKind::ExpiredSignature => TokenProblem::Expired,
            ErrorKind::InvalidIssuer => TokenProblem::Issuer,
            ErrorKind::InvalidAudience => TokenProblem::Audience,
            ErrorKind::InvalidSignature | ErrorKind::InvalidAlgorithm | ErrorKind::InvalidKeyFormat => {
                TokenProblem::Signature
            }
            _ => TokenProblem::Malformed,
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct ExpectedClaims<'a> {
    /// The expected issuer, which must match exactly.
    pub(crate) issuer: &'a str,
    pub(crate) audience: &'a str,
    /// The current time, in ms since 1970.
    pub(crate) now: i64,
}

/// Claims of ID tokens, including those that only sign-in uses. Times are in seconds since 1970.
#[derive(Deserialize)]
pub(crate) struct Claims {
    iss: String,
    aud: Audience,
    exp: Option<f64>,
    iat: Option<f64>,
    nbf: Option<f64>,
    nonce: Option<String>,
    auth_time: Option<f64>,
    #[serde(flatten)]
    pub(crate) user: User,
    /// All claims that have no field of their own.
    #[serde(flatten)]
    pub(crate) other: Map<String, Value>,
}

/// The user that the token describes. Userinfo responses have the same members.
#[derive(Deserialize)]
pub(crate) struct User {
    pub(crate) sub: String,
    pub(crate) email: Option<String>,
    pub(crate) email_verified: Option<bool>,
    pub(crate) name: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl Claims {
    /// Reads the claims of an ID token without verifying them.
    pub(crate) fn unverified(payload: &[u8]) -> Option<Claims> {
        let claims: Option<Claims> = serde_json::from_slice(payload).ok();
        claims.filter(|claims| claims.exp.is_some() && claims.iat.is_some())
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.iss
    }

    /// Returns the audience if the token has only one. If a token had several audiences, each of
    /// them could present it here.
    pub(crate) fn audience(&self) -> Option<&str> {
        match &self.aud {
            Audience::One(only) => Some(only),
            Audience::Several(several) => match several.as_slice() {
                [only] => Some(only),
                _ => None,
            },
        }
    }

    /// Reports whether the token was issued for the sign-in with this nonce.
    pub(crate) fn has_nonce(&self, nonce: &str) -> bool {
        // The comparison of digests does not leak the nonce through timing.
        self.nonce.as_ref().is_some_and(|own| Sha256::digest(own) == Sha256::digest(nonce))
    }

    /// Returns the time at which the user signed in at the provider, in ms since 1970.
    pub(crate) fn signed_in_at(&self) -> Option<i64> {
        self.auth_time.map(ms)
    }
}

fn ms(seconds: f64) -> i64 {
    (seconds * 1000.0) as i64
}

/// Members of the header that the server evaluates. It ignores a key, or the address of a key, in
/// the header.
#[derive(Deserialize)]
struct TokenHeader {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    cty: Option<IgnoredAny>,
    crit: Option<IgnoredAny>,
}

impl TokenHeader {
    fn read(token: &str) -> Option<TokenHeader> {
        let (header, _) = token.split_once('.')?;
        let header: TokenHeader = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
        header.is_plain().then_some(header)
    }

    /// Reports whether the token is a claims token and its header requires no extension. Access
    /// tokens have another `typ`.
    fn is_plain(&self) -> bool {
        let kind = self.typ.as_deref().unwrap_or("JWT").to_ascii_lowercase();
        let kind = kind.strip_prefix("application/").unwrap_or(&kind);
        matches!(kind, "jwt" | "jose") && self.cty.is_none() && self.crit.is_none()
    }

    fn algorithm(&self) -> Option<Algorithm> {
        self.alg.parse::<Algorithm>().ok().filter(|algorithm| ASYMMETRIC.contains(algorithm))
    }
}

struct IssuerKey {
    description: Jwk,
    verifier: DecodingKey,
}

impl IssuerKey {
    /// Reads a key. Returns `None` if a key of this kind cannot sign ID tokens.
    fn read(mut key: Value) -> Option<IssuerKey> {
        // Drop all other members, for example certificates: a member with an unexpected type would
        // make the key unreadable (RFC 7517, section 4).
        const READ: [&str; 9] = ["kty", "use", "kid", "alg", "crv", "n", "e", "x", "y"];
        key.as_object_mut()?.retain(|name, _| READ.contains(&name.as_str()));
        let description: Jwk = serde_json::from_value(key).ok()?;
        let verifier = match &description.algorithm {
            AlgorithmParameters::RSA(rsa) => {
                // The library rejects numbers with leading zeros, but some issuers write them.
                let number = |text: &str| -> Option<Vec<u8>> {
                    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
                    Some(bytes.into_iter().skip_while(|byte| *byte == 0).collect())
                };
                DecodingKey::from_rsa_raw_components(&number(&rsa.n)?, &number(&rsa.e)?)
            }
            AlgorithmParameters::EllipticCurve(_) | AlgorithmParameters::OctetKeyPair(_) => {
                DecodingKey::from_jwk(&description).ok()?
            }
            _ => return None,
        };
        Some(IssuerKey { description, verifier })
    }

    /// Reports whether the key may sign with this algorithm, according to the key's type and its
    /// stated use.
    fn fits(&self, algorithm: Algorithm) -> bool {
        let by_kind = match &self.description.algorithm {
            AlgorithmParameters::RSA(_) => algorithm.family() == AlgorithmFamily::Rsa,
            AlgorithmParameters::EllipticCurve(key) => matches!(
                (&key.curve, algorithm),
                (EllipticCurve::P256, Algorithm::ES256) | (EllipticCurve::P384, Algorithm::ES384)
            ),
            AlgorithmParameters::OctetKeyPair(key) => {
                key.curve == EllipticCurve::Ed25519 && algorithm == Algorithm::EdDSA
            }
            _ => false,
        };
        let common = &self.description.common;
        by_kind
            && common.key_algorithm.is_none_or(|only| only == KeyAlgorithm::from(algorithm))
            && common.public_key_use.as_ref().is_none_or(|only| *only == PublicKeyUse::Signature)
    }
}

#[derive(Default)]
pub(crate) struct KeySet(Vec<IssuerKey>);

impl KeySet {
    /// Reads a JSON Web Key Set. Skips keys of unsupported kinds, so that the other keys are still
    /// usable.
    pub(crate) fn new(keys: Vec<Value>) -> KeySet {
        KeySet(keys.into_iter().filter_map(IssuerKey::read).collect())
    }

    /// Returns the claims of an ID token if one of these keys signed the token and the claims match
    /// `expected`.
    pub(crate) fn verify(&self, token: &str, expected: ExpectedClaims<'_>) -> Result<Claims, TokenProblem> {
        let claims = self.decode(token, expected, &["iss", "aud", "sub", "exp"])?;
        let (Some(exp), Some(_)) = (claims.exp, claims.iat) else { return Err(TokenProblem::Malformed) };
        if ms(exp) <= expected.now {
            return Err(TokenProblem::Expired);
        }
        if claims.nbf.is_some_and(|nbf| ms(nbf) > expected.now.saturating_add(SKEW_MS)) {
            return Err(TokenProblem::NotYetValid);
        }
        Ok(claims)
    }

    /// Returns the user from signed userinfo (section 5.3.2), which need not have an expiry.
    pub(crate) fn verify_userinfo(
        &self,
        token: &str,
        expected: ExpectedClaims<'_>,
    ) -> Result<User, TokenProblem> {
        self.decode(token, expected, &["iss", "aud", "sub"]).map(|claims| claims.user)
    }

    fn decode(
        &self,
        token: &str,
        expected: ExpectedClaims<'_>,
        required: &[&str],
    ) -> Result<Claims, TokenProblem> {
        let header = TokenHeader::read(token).ok_or(TokenProblem::Malformed)?;
        let algorithm = header.algorithm().ok_or(TokenProblem::Algorithm)?;
        let key = self.choose(header.kid.as_deref(), algorithm)?;
        let mut validation = Validation::new(algorithm);
        validation.leeway = 0;
        validation.validate_exp = required.contains(&"exp");
        validation.set_required_spec_claims(required);
        validation.set_issuer(&[expected.issuer]);
        validation.set_audience(&[expected.audience]);
        let claims = decode::<Claims>(token, &key.verifier, &validation)?.claims;
        // The library accepts a token if any one of its audiences matches, so check this here.
        if claims.audience() == Some(expected.audience) { Ok(claims) } else { Err(TokenProblem::Audience) }
    }

    /// Chooses the key that may have made the signature. The sender of a token controls its header,
    /// so the header only selects among the issuer's keys. The key's type then limits the
    /// algorithm.
    fn choose(&self, id: Option<&str>, algorithm: Algorithm) -> Result<&IssuerKey, TokenProblem> {
        let named = |key: &&IssuerKey| id.is_none() || key.description.common.key_id.as_deref() == id;
        let mut fitting = self.0.iter().filter(named).filter(|key| key.fits(algorithm));
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Ok(key),
            (None, _) => Err(TokenProblem::NoKey),
            // If several keys fit, the header must name one (section 10.1).
            (Some(_), Some(_)) => Err(TokenProblem::Signature),
        }
    }
}

#[cfg(test)]
#[path = "jwt_tests.rs"]
mod tests;
