//! A sign-in provider for tests. A test can make its responses invalid.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const CLIENT: &str = "packhouse";
pub(crate) const SECRET: &str = "the-clients-secret-at-the-provider";

/// The fault in the provider's responses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Twist {
    Nothing,
    Issuer,
    Audience,
    OneAudienceTooMany,
    Nonce,
    NoNonce,
    Expired,
    NotYetValid,
    AnAccessToken,
    AnotherKey,
    AlgorithmNone,
    SignedWithTheClientsSecret,
    SignatureDamaged,
    Unverified,
    VerifiedMissing,
    NoEmail,
    OtherDomain,
    NoIdToken,
    NoSubject,
    UserinfoOfAnother,
    SignedInLongAgo,
    SignInTimeMissing,
    Nonsense,
    DescriptionOfAnother,
}

/// A user of the provider.
#[derive(Clone)]
pub(crate) struct User {
    pub(crate) subject: String,
    pub(crate) email: String,
}

struct Grant {
    nonce: String,
    challenge: String,
    user: User,
}

struct SigningKey {
    id: String,
    pair: EcdsaKeyPair,
}

#[derive(Default)]
struct ProviderState {
    twist: Option<Twist>,
    keys: Vec<SigningKey>,
    grants: HashMap<String, Grant>,
    used: HashSet<String>,
    requests: Vec<String>,
    issued_secrets: Vec<String>,
    /// Further claims of all ID tokens: an object, or null.
    further_claims: Value,
}

/// The running provider. It stops when the test's process ends.
#[derive(Clone)]
pub(crate) struct Provider {
    pub(crate) issuer: String,
    state: Arc<Mutex<ProviderState>>,
}

impl Provider {
    pub(crate) fn start() -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let provider = Provider { issuer, state: Arc::default() };
        provider.rotate();
        let serving = provider.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let provider = serving.clone();
                std::thread::spawn(move || provider.serve(stream));
            }
        });
        provider
    }

    /// Sets the fault in all later responses.
    pub(crate) fn twist(&self, twist: Twist) {
        self.state.lock().unwrap().twist = Some(twist);
    }

    /// Sets further claims of all later ID tokens.
    pub(crate) fn claim(&self, claims: Value) {
        self.state.lock().unwrap().further_claims = claims;
    }

    /// Replaces the key that signs tokens.
    pub(crate) fn rotate(&self) {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let mut state = self.state.lock().unwrap();
        let id = format!("key-{}", state.requests.len() + state.keys.len());
        state.keys = vec![SigningKey { id, pair }];
    }

    /// Signs a user in, as the provider's pages would for this query. Returns the authorization
    /// code.
    pub(crate) fn sign_in(&self, query: &HashMap<String, String>, user: &User) -> String {
        assert_eq!(query["response_type"], "code");
        assert_eq!(query["client_id"], CLIENT);
        assert_eq!(query["code_challenge_method"], "S256");
        assert!(query["scope"].split(' ').any(|scope| scope == "openid"), "{query:?}");
        let mut state = self.state.lock().unwrap();
        let code = format!("code-{}-{:x}", state.grants.len(), rand_number());
        let grant = Grant {
            nonce: query["nonce"].clone(),
            challenge: query["code_challenge"].clone(),
            user: user.clone(),
        };
        state.grants.insert(code.clone(), grant);
        code
    }

    /// Number of requests for this path.
    pub(crate) fn requests(&self, path: &str) -> usize {
        self.state.lock().unwrap().requests.iter().filter(|requested| *requested == path).count()
    }

    /// All secrets that the provider has issued.
    pub(crate) fn issued_secrets(&self) -> Vec<String> {
        self.state.lock().unwrap().issued_secrets.clone()
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some((head, body)) = read(&mut reader) {
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            self.state.lock().unwrap().requests.push(path.clone());
            let (status, answer) = match path.as_str() {
                "/.well-known/openid-configuration" => (200, self.configuration()),
                "/keys" => (200, self.keys()),
                "/token" => self.token(&head, &body),
                "/userinfo" => self.userinfo(&head),
                _ => (404, json!({})),
            };
            let answer = answer.to_string();
            let length = answer.len();
            let head = format!(
                "HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
            );
            if reader.get_mut().write_all(format!("{head}{answer}").as_bytes()).is_err() {
                return;
            }
        }
    }

    fn configuration(&self) -> Value {
        let issuer = &self.issuer;
        let twisted = self.state.lock().unwrap().twist == Some(Twist::DescriptionOfAnother);
        let named = if twisted { "https://accounts.example" } else { issuer.as_str() };
        json!({
            "issuer": named, "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"), "jwks_uri": format!("{issuer}/keys"),
            "userinfo_endpoint": format!("{issuer}/userinfo"), "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256", "HS256", "none"],
        })
    }

    fn keys(&self) -> Value {
        let state = self.state.lock().unwrap();
        let keys = state.keys.iter().map(|key| {
            let public = key.pair.public_key().as_ref();
            json!({"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": key.id,
                "x": URL_SAFE_NO_PAD.encode(&public[1..33]), "y": URL_SAFE_NO_PAD.encode(&public[33..65])})
        });
        json!({"keys": keys.collect::<Vec<_>>()})
    }

    fn token(&self, head: &str, body: &str) -> (u16, Value) {
        let refused = (400, json!({"error": "invalid_grant"}));
        let form = super::browser::query(body);
        let expected = packhouse_tests::http::basic(CLIENT, SECRET);
        if !head.contains(&expected) {
            return (401, json!({"error": "invalid_client"}));
        }
        let mut state = self.state.lock().unwrap();
        let code = form.get("code").cloned().unwrap_or_default();
        let first = state.used.insert(code.clone());
        let Some(grant) = state.grants.get(&code).filter(|_| first) else { return refused };
        let verifier = form.get("code_verifier").cloned().unwrap_or_default();
        if URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes())) != grant.challenge {
            return refused;
        }
        let twist = state.twist.unwrap_or(Twist::Nothing);
        let key = state.keys.last().unwrap();
        let id_token = id_token(&self.issuer, key, grant, twist, &state.further_claims);
        let access = format!("access-{}-{:x}", grant.user.subject, rand_number());
        let mut answer = json!({"access_token": access, "token_type": "Bearer", "expires_in": 60});
        match twist {
            Twist::NoIdToken => {}
            Twist::Nonsense => answer = json!(["nonsense"]),
            _ => answer["id_token"] = json!(id_token),
        }
        state.issued_secrets.extend([code, verifier, access, id_token]);
        (200, answer)
    }

    fn userinfo(&self, head: &str) -> (u16, Value) {
        let lower = head.to_lowercase();
        let Some(at) = lower.find("bearer access-") else { return (401, json!({})) };
        let subject = head[at + "bearer access-".len()..].split('-').next().unwrap().to_owned();
        let state = self.state.lock().unwrap();
        let user = state.grants.values().map(|grant| &grant.user).find(|user| user.subject == subject);
        let email = user.map(|user| user.email.clone());
        let subject =
            if state.twist == Some(Twist::UserinfoOfAnother) { "another".to_owned() } else { subject };
        (200, json!({"sub": subject, "email": email, "email_verified": true, "name": "From Userinfo"}))
    }
}

fn id_token(issuer: &str, key: &SigningKey, grant: &Grant, twist: Twist, further: &Value) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut header = json!({"alg": "ES256", "typ": "JWT", "kid": key.id});
    let mut claims = json!({
        "iss": issuer, "aud": CLIENT, "sub": grant.user.subject, "nonce": grant.nonce, "iat": now, "exp": now + 60,
        "auth_time": now, "email": grant.user.email, "email_verified": true, "name": "Some One",
    });
    claims.as_object_mut().unwrap().extend(further.as_object().cloned().unwrap_or_default());
    match twist {
        Twist::Issuer => claims["iss"] = json!("https://accounts.example"),
        Twist::Audience => claims["aud"] = json!("another-client"),
        Twist::OneAudienceTooMany => claims["aud"] = json!([CLIENT, "another-client"]),
        Twist::Nonce => claims["nonce"] = json!("of-another-sign-in"),
        Twist::NoNonce => drop(claims.as_object_mut().unwrap().remove("nonce")),
        Twist::Expired => claims["exp"] = json!(now - 1),
        Twist::NotYetValid => claims["nbf"] = json!(now + 600),
        Twist::AnAccessToken => header["typ"] = json!("at+jwt"),
        Twist::AlgorithmNone => header = json!({"alg": "none", "typ": "JWT"}),
        Twist::SignedWithTheClientsSecret => header = json!({"alg": "HS256", "typ": "JWT"}),
        Twist::Unverified => claims["email_verified"] = json!(false),
        Twist::VerifiedMissing => drop(claims.as_object_mut().unwrap().remove("email_verified")),
        Twist::NoEmail | Twist::UserinfoOfAnother => drop(claims.as_object_mut().unwrap().remove("email")),
        Twist::OtherDomain => claims["email"] = json!("owner@elsewhere.example"),
        Twist::NoSubject => claims["sub"] = json!(""),
        Twist::SignedInLongAgo => claims["auth_time"] = json!(now - 3600),
        Twist::SignInTimeMissing => drop(claims.as_object_mut().unwrap().remove("auth_time")),
        _ => {}
    }
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", encode(&header), encode(&claims));
    let signature = match twist {
        Twist::AlgorithmNone => Vec::new(),
        Twist::SignedWithTheClientsSecret => {
            let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, SECRET.as_bytes());
            aws_lc_rs::hmac::sign(&key, signed.as_bytes()).as_ref().to_vec()
        }
        Twist::AnotherKey => {
            let other = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
            other.sign(&SystemRandom::new(), signed.as_bytes()).unwrap().as_ref().to_vec()
        }
        _ => key.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap().as_ref().to_vec(),
    };
    let mut signature = URL_SAFE_NO_PAD.encode(signature);
    if twist == Twist::SignatureDamaged {
        let first = if signature.starts_with('A') { "B" } else { "A" };
        signature.replace_range(0..1, first);
    }
    format!("{signed}.{signature}")
}

fn rand_number() -> u64 {
    let bytes = aws_lc_rs::rand::generate::<[u8; 8]>(&SystemRandom::new()).unwrap().expose();
    u64::from_be_bytes(bytes)
}

/// Reads a request's head and body; `None` at the end of the connection.
fn read(reader: &mut BufReader<TcpStream>) -> Option<(String, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lower = head.to_lowercase();
    let length =
        lower.split("content-length:").nth(1).and_then(|rest| rest.lines().next()?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).ok()?))
}
