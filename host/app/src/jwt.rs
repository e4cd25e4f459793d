//! ID tokens as signed JSON Web Tokens (OpenID Connect Core 1.0, section 3.1.3.7; RFC 7519): the keys of an issuer, and the checks that
//! sign-in and trusted publishing share.
//!
//! The library checks signature, issuer, audience and end. What it leaves open is checked here: which key of the issuer counts for which
//! algorithm, that the audience is the only one, and what the header asks for.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Validation, decode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The signatures that are taken: those of asymmetric keys alone.
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
/// The time by which an issuer's clock may be ahead, in ms.
const SKEW_MS: i64 = 60_000;

/// Why a token is not believed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TokenProblem {
    /// It is not an ID token.
    Malformed,
    /// It has no signature of an asymmetric key.
    Algorithm,
    /// The token was signed by none of the keys. The issuer may have new ones by now.
    NoKey,
    /// The signature is not of its issuer.
    Signature,
    /// Another issuer made it.
    Issuer,
    /// It is for another audience, or for others besides.
    Audience,
    /// Its time is over.
    Expired,
    /// Its time has not come.
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

/// The requirements on a token.
#[derive(Clone, Copy)]
pub(crate) struct Expected<'a> {
    /// Its issuer, letter by letter.
    pub(crate) issuer: &'a str,
    /// Its only audience.
    pub(crate) audience: &'a str,
    /// The present, in ms since 1970.
    pub(crate) now: i64,
}

/// The claims that every ID token has, and those of sign-ins. Times are in seconds since 1970.
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
}

/// The user that the token is about. Userinfo has the same members.
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
    /// The claims of an ID token, before anybody vouches for them.
    pub(crate) fn unverified(payload: &[u8]) -> Option<Claims> {
        let claims: Option<Claims> = serde_json::from_slice(payload).ok();
        claims.filter(|claims| claims.exp.is_some() && claims.iat.is_some())
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.iss
    }

    /// The audience, if it is the only one: another could show the token here.
    pub(crate) fn audience(&self) -> Option<&str> {
        match &self.aud {
            Audience::One(only) => Some(only),
            Audience::Several(several) => match several.as_slice() {
                [only] => Some(only),
                _ => None,
            },
        }
    }

    /// Returns whether the token was made for the sign-in with this nonce.
    pub(crate) fn has_nonce(&self, nonce: &str) -> bool {
        // How long a comparison of digests takes says nothing about the nonce.
        self.nonce.as_ref().is_some_and(|own| Sha256::digest(own) == Sha256::digest(nonce))
    }

    /// When the user signed in at the provider, in ms since 1970.
    pub(crate) fn signed_in_at(&self) -> Option<i64> {
        self.auth_time.map(ms)
    }
}

fn ms(seconds: f64) -> i64 {
    (seconds * 1000.0) as i64
}

/// The members of a token's header that count. A key in the header, or an address of one, is ignored.
#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    cty: Option<IgnoredAny>,
    crit: Option<IgnoredAny>,
}

impl Header {
    fn read(token: &str) -> Option<Header> {
        let (header, _) = token.split_once('.')?;
        let header: Header = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
        header.is_plain().then_some(header)
    }

    /// Returns whether the header belongs to a token of claims and demands no extension. An access token has another type.
    fn is_plain(&self) -> bool {
        let kind = self.typ.as_deref().unwrap_or("JWT").to_ascii_lowercase();
        let kind = kind.strip_prefix("application/").unwrap_or(&kind);
        matches!(kind, "jwt" | "jose") && self.cty.is_none() && self.crit.is_none()
    }

    fn algorithm(&self) -> Option<Algorithm> {
        self.alg.parse::<Algorithm>().ok().filter(|algorithm| ASYMMETRIC.contains(algorithm))
    }
}

/// A key of an issuer.
struct Key {
    description: Jwk,
    verifier: DecodingKey,
}

impl Key {
    /// Reads a key; none if keys of its kind sign no ID tokens.
    fn read(mut key: Value) -> Option<Key> {
        // Other members, as certificates, say nothing of the key, and lose it where they are of an odd type (RFC 7517, section 4).
        const READ: [&str; 9] = ["kty", "use", "kid", "alg", "crv", "n", "e", "x", "y"];
        key.as_object_mut()?.retain(|name, _| READ.contains(&name.as_str()));
        let description: Jwk = serde_json::from_value(key).ok()?;
        let verifier = match &description.algorithm {
            AlgorithmParameters::RSA(rsa) => {
                // The library takes numbers without leading zeros alone, and some issuers write them.
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
        Some(Key { description, verifier })
    }

    /// Returns whether the key may sign by this algorithm, judged by its kind and by the use that the issuer states.
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

/// The keys of an issuer.
#[derive(Default)]
pub(crate) struct KeySet(Vec<Key>);

impl KeySet {
    /// The keys of a JSON Web Key Set. One of an unusual kind is left out, and does not lose the others.
    pub(crate) fn new(keys: Vec<Value>) -> KeySet {
        KeySet(keys.into_iter().filter_map(Key::read).collect())
    }

    /// The claims of an ID token, if one of these keys has signed it, and it is what is expected.
    pub(crate) fn verify(&self, token: &str, expected: Expected<'_>) -> Result<Claims, TokenProblem> {
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

    /// The claims of signed userinfo (section 5.3.2). They need no time of expiry.
    pub(crate) fn verify_userinfo(&self, token: &str, expected: Expected<'_>) -> Result<User, TokenProblem> {
        self.decode(token, expected, &["iss", "aud", "sub"]).map(|claims| claims.user)
    }

    fn decode(&self, token: &str, expected: Expected<'_>, required: &[&str]) -> Result<Claims, TokenProblem> {
        let header = Header::read(token).ok_or(TokenProblem::Malformed)?;
        let algorithm = header.algorithm().ok_or(TokenProblem::Algorithm)?;
        let key = self.choose(header.kid.as_deref(), algorithm)?;
        let mut validation = Validation::new(algorithm);
        validation.leeway = 0;
        validation.validate_exp = required.contains(&"exp");
        validation.set_required_spec_claims(required);
        validation.set_issuer(&[expected.issuer]);
        validation.set_audience(&[expected.audience]);
        let claims = decode::<Claims>(token, &key.verifier, &validation)?.claims;
        // For the library one audience of several is enough.
        if claims.audience() == Some(expected.audience) { Ok(claims) } else { Err(TokenProblem::Audience) }
    }

    /// The key that may have made a signature. Whoever made up a token wrote its header: it picks among the issuer's keys, and the kind
    /// of the key decides which algorithm counts.
    fn choose(&self, id: Option<&str>, algorithm: Algorithm) -> Result<&Key, TokenProblem> {
        let named = |key: &&Key| id.is_none() || key.description.common.key_id.as_deref() == id;
        let mut fitting = self.0.iter().filter(named).filter(|key| key.fits(algorithm));
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Ok(key),
            (None, _) => Err(TokenProblem::NoKey),
            // Of several keys the header must name one (section 10.1).
            (Some(_), Some(_)) => Err(TokenProblem::Signature),
        }
    }
}

#[cfg(test)]
#[path = "jwt_tests.rs"]
mod tests;
