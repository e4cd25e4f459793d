//! Tests with valid tokens, and with forged tokens that are each wrong in one way.

use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384,
    RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
};
use serde_json::json;

use super::*;

const ISSUER: &str = "https://issuer.example";
const AUDIENCE: &str = "packhouse";

static RSA: LazyLock<Signer> = LazyLock::new(|| Signer::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()));

enum Signer {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Signer {
    fn p256() -> Signer {
        Signer::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    fn p384() -> Signer {
        Signer::Ec(EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap())
    }

    fn ed25519() -> Signer {
        Signer::Ed(Ed25519KeyPair::generate().unwrap())
    }

    fn sign(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Signer::Rsa(pair) => {
                let encoding: &'static dyn RsaEncoding = match algorithm {
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    "PS384" => &RSA_PSS_SHA384,
                    "PS512" => &RSA_PSS_SHA512,
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(encoding, &random, message, &mut signature).unwrap();
                signature
            }
            Signer::Ec(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Signer::Ed(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    fn public(&self) -> &[u8] {
        match self {
            Signer::Rsa(pair) => pair.public_key().as_ref(),
            Signer::Ec(pair) => pair.public_key().as_ref(),
            Signer::Ed(pair) => pair.public_key().as_ref(),
        }
    }

    /// Returns the public key as a JSON Web Key with this id.
    fn key(&self, id: &str) -> Value {
        let public = self.public();
        let mut key = match self {
            Signer::Rsa(_) => {
                let key = Jwk::from_decoding_key(&DecodingKey::from_rsa_der(public), None).unwrap();
                serde_json::to_value(key).unwrap()
            }
            Signer::Ec(_) => {
                let half = public.len() / 2;
                let curve = if half == 32 { "P-256" } else { "P-384" };
                let (x, y) = (encode(&public[1..=half]), encode(&public[half + 1..]));
                json!({"kty": "EC", "crv": curve, "x": x, "y": y})
            }
            Signer::Ed(_) => json!({"kty": "OKP", "crv": "Ed25519", "x": encode(public)}),
        };
        key["kid"] = json!(id);
        key["use"] = json!("sig");
        key
    }

    fn token(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let signature = self.sign(header["alg"].as_str().unwrap(), message.as_bytes());
        format!("{message}.{}", encode(signature))
    }
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn message(header: &Value, claims: &Value) -> String {
    format!("{}.{}", encode(header.to_string()), encode(claims.to_string()))
}

fn header(algorithm: &str) -> Value {
    json!({"alg": algorithm, "typ": "JWT", "kid": "one"})
}

/// Sets members of an object, and removes members that are null.
fn with(mut value: Value, members: &Value) -> Value {
    let object = value.as_object_mut().unwrap();
    for (name, member) in members.as_object().unwrap() {
        object.insert(name.clone(), member.clone());
    }
    object.retain(|_, member| !member.is_null());
    value
}

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

fn claims() -> Value {
    let now = now();
    json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "1", "iat": now, "exp": now + 300, "nonce": "n", "x": [1, {}]})
}

fn expected() -> ExpectedClaims<'static> {
    ExpectedClaims { issuer: ISSUER, audience: AUDIENCE, now: now() * 1000 }
}

fn judged(keys: &[Value], token: &str) -> Result<(), TokenProblem> {
    KeySet::new(keys.to_vec()).verify(token, expected()).map(drop)
}

#[test]
fn each_asymmetric_algorithm_needs_a_key_of_its_kind() {
    let signers = [Signer::p256(), Signer::p384(), Signer::ed25519()];
    let kinds = [&*RSA, &signers[0], &signers[1], &signers[2]];
    let algorithms: [&[&str]; 4] =
        [&["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"], &["ES256"], &["ES384"], &["EdDSA"]];
    for (at, (signer, algorithms)) in kinds.into_iter().zip(algorithms).enumerate() {
        for algorithm in algorithms {
            let token = signer.token(&header(algorithm), &claims());
            assert_eq!(judged(&[signer.key("one")], &token), Ok(()), "{algorithm}");
            for (other, key) in kinds.iter().enumerate().filter(|(other, _)| *other != at) {
                let result = judged(&[key.key("one")], &token);
                assert_eq!(result, Err(TokenProblem::NoKey), "{algorithm} and the key {other}");
            }
        }
    }
}

#[test]
fn a_signature_by_another_key_or_of_another_message_is_refused() {
    let others = [Signer::p256(), Signer::p384(), Signer::ed25519()];
    for (algorithm, signer, other) in [
        ("ES256", Signer::p256(), &others[0]),
        ("ES384", Signer::p384(), &others[1]),
        ("EdDSA", Signer::ed25519(), &others[2]),
    ] {
        let token = signer.token(&header(algorithm), &claims());
        assert_eq!(judged(&[other.key("one")], &token), Err(TokenProblem::Signature), "{algorithm}");
    }
    let other = Signer::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap());
    let token = RSA.token(&header("RS256"), &claims());
    assert_eq!(judged(&[other.key("one")], &token), Err(TokenProblem::Signature));

    let keys = [RSA.key("one")];
    let (_, signature) = token.rsplit_once('.').unwrap();
    let more = message(&header("RS256"), &with(claims(), &json!({"sub": "2"})));
    assert_eq!(judged(&keys, &format!("{more}.{signature}")), Err(TokenProblem::Signature));
    // Another padding with the same key.
    let message = message(&header("PS256"), &claims());
    let signature = encode(RSA.sign("RS256", message.as_bytes()));
    assert_eq!(judged(&keys, &format!("{message}.{signature}")), Err(TokenProblem::Signature));
    assert_eq!(judged(&keys, &format!("{message}.")), Err(TokenProblem::Signature));
}

#[test]
fn a_token_without_an_asymmetric_signature_is_refused() {
    let keys = [RSA.key("one")];
    for algorithm in ["none", "None", "NONE", "", "ES512", "ES256K", "RSA-OAEP", "A128GCM", "rs256"] {
        let unsigned = message(&header(algorithm), &claims());
        assert_eq!(judged(&keys, &format!("{unsigned}.")), Err(TokenProblem::Algorithm), "{algorithm}");
        let signed = RSA.token(&header(algorithm), &claims());
        assert_eq!(judged(&keys, &signed), Err(TokenProblem::Algorithm), "{algorithm}");
    }
    let secrets = [RSA.public().to_vec(), keys[0].to_string().into_bytes(), b"known to both".to_vec()];
    for secret in secrets {
        // A key set should not contain a secret key. If it does, the server does not accept this
        // key.
        let shared = json!({"kty": "oct", "kid": "one", "alg": "HS256", "use": "sig", "k": encode(&secret)});
        let message = message(&header("HS256"), &claims());
        let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), message.as_bytes());
        let token = format!("{message}.{}", encode(mac.as_ref()));
        assert_eq!(judged(&keys, &token), Err(TokenProblem::Algorithm));
        assert!(IssuerKey::read(shared.clone()).is_none());
        assert_eq!(judged(&[shared], &token), Err(TokenProblem::Algorithm));
    }
}

#[test]
fn a_key_is_valid_only_for_its_stated_use() {
    let token = RSA.token(&header("RS256"), &claims());
    let judged_with = |members: Value| judged(&[with(RSA.key("one"), &members)], &token);
    assert_eq!(judged_with(json!({"use": null})), Ok(()));
    assert_eq!(judged_with(json!({"alg": "RS256"})), Ok(()));
    // The server ignores unknown members, whatever their type.
    assert_eq!(judged_with(json!({"x5c": "MII", "key_ops": "verify", "x5t": 1})), Ok(()));
    for members in [
        json!({"alg": "RS384"}),
        json!({"alg": "PS256"}),
        json!({"alg": "RSA-OAEP"}),
        json!({"alg": "none"}),
        json!({"use": "enc"}),
        json!({"kid": "two"}),
        json!({"kid": null}),
        json!({"kty": "EC"}),
        json!({"n": "no base64"}),
    ] {
        assert_eq!(judged_with(members.clone()), Err(TokenProblem::NoKey), "{members}");
    }
}

#[test]
fn the_header_must_name_one_of_several_fitting_keys() {
    let other = Signer::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap());
    let unnamed = RSA.token(&with(header("RS256"), &json!({"kid": null})), &claims());
    assert_eq!(judged(&[RSA.key("one")], &unnamed), Ok(()));
    assert_eq!(judged(&[RSA.key("one"), Signer::p256().key("two")], &unnamed), Ok(()));
    assert_eq!(judged(&[RSA.key("one"), other.key("two")], &unnamed), Err(TokenProblem::Signature));
    let named = RSA.token(&header("RS256"), &claims());
    assert_eq!(judged(&[other.key("two"), RSA.key("one")], &named), Ok(()));
    assert_eq!(judged(&[other.key("one"), RSA.key("one")], &named), Err(TokenProblem::Signature));
    assert_eq!(judged(&[], &named), Err(TokenProblem::NoKey));
}

#[test]
fn an_unsupported_key_does_not_affect_the_others() {
    let token = RSA.token(&header("RS256"), &claims());
    let mut keys = vec![
        json!(1),
        json!(null),
        json!({}),
        json!({"kty": "unheard of", "kid": "one"}),
        json!({"kty": "RSA", "kid": "one", "n": 1, "e": "AQAB"}),
        json!({"kty": "EC", "crv": "secp256k1", "kid": "one", "x": "AA", "y": "AA"}),
        json!({"kty": "OKP", "crv": "X25519", "kid": "one", "x": "AA"}),
    ];
    assert_eq!(judged(&keys, &token), Err(TokenProblem::NoKey));
    // A leading zero does not change the value of a number.
    let key = RSA.key("one");
    let number = URL_SAFE_NO_PAD.decode(key["n"].as_str().unwrap()).unwrap();
    let number = encode([vec![0], number].concat());
    keys.push(with(key, &json!({"n": number})));
    assert_eq!(judged(&keys, &token), Ok(()));
}

#[test]
fn a_header_that_requires_extensions_is_refused() {
    let keys = [RSA.key("one")];
    let judged_with = |members: Value| judged(&keys, &RSA.token(&with(header("RS256"), &members), &claims()));
    for members in [json!({"typ": null}), json!({"typ": "application/JWT"}), json!({"typ": "jose"})] {
        assert_eq!(judged_with(members.clone()), Ok(()), "{members}");
    }
    for members in [
        json!({"typ": "at+jwt"}),
        json!({"typ": "logout+jwt"}),
        json!({"typ": ""}),
        json!({"typ": 1}),
        json!({"cty": "JWT"}),
        json!({"crit": ["exp"]}),
        json!({"crit": []}),
        json!({"kid": 1}),
    ] {
        assert_eq!(judged_with(members.clone()), Err(TokenProblem::Malformed), "{members}");
    }
    // A key inside the token is not a key of the issuer.
    let attacker = Signer::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap());
    let brought = json!({"jwk": attacker.key("one"), "jku": "https://attacker.example/keys"});
    let token = attacker.token(&with(header("RS256"), &brought), &claims());
    assert_eq!(judged(&keys, &token), Err(TokenProblem::Signature));
    for nonsense in ["", ".", "..", "...", "a.b.c", "e30.e30.e30", "eyJhbGciOiJSUzI1NiJ9.e30"] {
        assert!(judged(&keys, nonsense).is_err(), "{nonsense}");
    }
}

#[test]
fn unexpected_claims_are_refused() {
    let keys = [RSA.key("one")];
    let judged_with = |members: Value| judged(&keys, &RSA.token(&header("RS256"), &with(claims(), &members)));
    let now = now();
    for members in [
        json!({"aud": [AUDIENCE]}),
        json!({"nbf": now + 30}),
        json!({"exp": now as f64 + 60.5}),
        json!({"nonce": null}),
        json!({"email": "a@example.com", "email_verified": true, "name": "A", "auth_time": now}),
    ] {
        assert_eq!(judged_with(members.clone()), Ok(()), "{members}");
    }
    for (problem, members) in [
        (TokenProblem::Issuer, json!({"iss": "https://issuer.example/"})),
        (TokenProblem::Issuer, json!({"iss": "https://other.example"})),
        (TokenProblem::Malformed, json!({"iss": [ISSUER]})),
        (TokenProblem::Malformed, json!({"iss": null})),
        (TokenProblem::Audience, json!({"aud": "other"})),
        (TokenProblem::Audience, json!({"aud": []})),
        (TokenProblem::Audience, json!({"aud": [AUDIENCE, "other"]})),
        (TokenProblem::Audience, json!({"aud": ["other", AUDIENCE]})),
        (TokenProblem::Malformed, json!({"aud": [AUDIENCE, 1]})),
        (TokenProblem::Malformed, json!({"aud": null})),
        (TokenProblem::Expired, json!({"exp": now - 1})),
        (TokenProblem::Expired, json!({"exp": now})),
        (TokenProblem::Malformed, json!({"exp": null})),
        (TokenProblem::Malformed, json!({"exp": (now + 300).to_string()})),
        (TokenProblem::Malformed, json!({"iat": null})),
        (TokenProblem::Malformed, json!({"sub": null})),
        (TokenProblem::NotYetValid, json!({"nbf": now + 3600})),
        (TokenProblem::Malformed, json!({"nbf": "later"})),
    ] {
        assert_eq!(judged_with(members.clone()), Err(problem), "{members}");
    }
    // The token must also be valid by the server's clock.
    let token = RSA.token(&header("RS256"), &claims());
    let later = ExpectedClaims { now: (now + 600) * 1000, ..expected() };
    assert_eq!(KeySet::new(keys.to_vec()).verify(&token, later).err(), Some(TokenProblem::Expired));
    // A claim that occurs twice is ambiguous.
    let twice = claims().to_string().replacen('{', "{\"aud\":\"other\",", 1);
    let message = format!("{}.{}", encode(header("RS256").to_string()), encode(twice));
    let signature = encode(RSA.sign("RS256", message.as_bytes()));
    assert_eq!(judged(&keys, &format!("{message}.{signature}")), Err(TokenProblem::Malformed));
}

#[test]
fn a_nonce_belongs_to_one_sign_in() {
    let read = |members: Value| Claims::unverified(with(claims(), &members).to_string().as_bytes()).unwrap();
    assert!(read(json!({})).has_nonce("n"));
    for other in [json!({"nonce": "m"}), json!({"nonce": ""}), json!({"nonce": null})] {
        assert!(!read(other.clone()).has_nonce("n"), "{other}");
    }
    assert!(!read(json!({"nonce": null})).has_nonce(""));
}

#[test]
fn signed_userinfo_must_be_from_the_issuer_and_for_this_client() {
    let set = KeySet::new(vec![RSA.key("one")]);
    let endless = with(claims(), &json!({"exp": null, "iat": null, "email": "a@example.com"}));
    let judged = |members: Value| {
        let token = RSA.token(&header("RS256"), &with(endless.clone(), &members));
        set.verify_userinfo(&token, expected()).map(|user| user.email.unwrap())
    };
    assert_eq!(judged(json!({})), Ok("a@example.com".to_owned()));
    assert_eq!(judged(json!({"aud": "other"})), Err(TokenProblem::Audience));
    assert_eq!(judged(json!({"iss": "https://other.example"})), Err(TokenProblem::Issuer));
    let token = RSA.token(&header("RS256"), &endless);
    assert_eq!(set.verify(&token, expected()).err(), Some(TokenProblem::Malformed), "it has no expiry");
    let forged = Signer::p256().token(&header("ES256"), &endless);
    assert_eq!(set.verify_userinfo(&forged, expected()).err(), Some(TokenProblem::NoKey));
}
