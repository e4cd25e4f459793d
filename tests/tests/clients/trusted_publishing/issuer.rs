//! An issuer of ID tokens for the tests. It serves its configuration and its keys, and answers the
//! request with which a GitHub job gets its ID token.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

/// The credential of a job when it requests an ID token.
pub(crate) const REQUEST_TOKEN: &str = "the-jobs-own-request-token";

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// The signature of a token.
pub(crate) enum TokenSignature {
    /// RS256, as GitHub and GitLab do.
    Rsa,
    /// ES256.
    Ecdsa,
    /// ES256 with another key under the key id of the issuer's key.
    OtherKey,
    /// `alg: none` without a signature.
    None,
    /// HS256, with the public key as the secret.
    Hmac,
    /// RS256 with one changed letter in the signature.
    Damaged,
    /// RS256 with the key id of an unknown key.
    UnknownKey,
}

/// The running issuer; it ends with the test's process.
#[derive(Clone)]
pub(crate) struct Issuer {
    pub(crate) url: String,
    state: Arc<IssuerState>,
}

struct IssuerState {
    rsa: RsaKeyPair,
    ecdsa: EcdsaKeyPair,
    requests: Mutex<Vec<String>>,
    job: Mutex<Value>,
    given: Mutex<Vec<String>>,
}

fn ecdsa() -> EcdsaKeyPair {
    EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap()
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Issuer {
    pub(crate) fn start() -> Issuer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let rsa = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let (requests, job, given) = (Mutex::default(), Mutex::default(), Mutex::default());
        let state = Arc::new(IssuerState { rsa, ecdsa: ecdsa(), requests, job, given });
        let issuer = Issuer { url, state };
        let serving = issuer.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let issuer = serving.clone();
                std::thread::spawn(move || issuer.serve(stream));
            }
        });
        issuer
    }

    /// Number of requests for paths that begin like this.
    pub(crate) fn requests(&self, path: &str) -> usize {
        self.state.requests.lock().unwrap().iter().filter(|request| request.starts_with(path)).count()
    }

    /// Sets the claims of the job's tokens, except the audience.
    pub(crate) fn job(&self, claims: Value) {
        *self.state.job.lock().unwrap() = claims;
    }

    /// All tokens that the issuer gave to jobs.
    pub(crate) fn given(&self) -> Vec<String> {
        self.state.given.lock().unwrap().clone()
    }

    /// The environment variables by which a GitHub job finds the issuer.
    pub(crate) fn variables(&self) -> [(&'static str, String); 4] {
        [
            ("GITHUB_ACTIONS", "true".to_owned()),
            ("CI", "true".to_owned()),
            ("ACTIONS_ID_TOKEN_REQUEST_URL", format!("{}/job/token?api-version=2.0", self.url)),
            ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", REQUEST_TOKEN.to_owned()),
        ]
    }

    /// A token with these claims, signed as GitHub does.
    pub(crate) fn token(&self, claims: &Value) -> String {
        self.token_signed(claims, &TokenSignature::Rsa)
    }

    pub(crate) fn token_signed(&self, claims: &Value, how: &TokenSignature) -> String {
        let header = match how {
            TokenSignature::Rsa | TokenSignature::Damaged => {
                json!({"typ": "JWT", "alg": "RS256", "kid": "rsa", "x5t": "rsa"})
            }
            TokenSignature::UnknownKey => json!({"typ": "JWT", "alg": "RS256", "kid": "gone"}),
            TokenSignature::Ecdsa | TokenSignature::OtherKey => {
                json!({"typ": "JWT", "alg": "ES256", "kid": "ecdsa"})
            }
            TokenSignature::None => json!({"typ": "JWT", "alg": "none"}),
            TokenSignature::Hmac => json!({"typ": "JWT", "alg": "HS256", "kid": "rsa"}),
        };
        let signed = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let random = SystemRandom::new();
        let by = |pair: &EcdsaKeyPair| pair.sign(&random, signed.as_bytes()).unwrap().as_ref().to_vec();
        let signature = match how {
            TokenSignature::Rsa | TokenSignature::Damaged | TokenSignature::UnknownKey => {
                let mut signature = vec![0; self.state.rsa.public_modulus_len()];
                self.state.rsa.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature).unwrap();
                if matches!(how, TokenSignature::Damaged) {
                    signature[7] ^= 1;
                }
                signature
            }
            TokenSignature::Ecdsa => by(&self.state.ecdsa),
            TokenSignature::OtherKey => by(&ecdsa()),
            TokenSignature::None => Vec::new(),
            TokenSignature::Hmac => {
                let key = aws_lc_rs::hmac::Key::new(
                    aws_lc_rs::hmac::HMAC_SHA256,
                    self.state.rsa.public_key().as_ref(),
                );
                aws_lc_rs::hmac::sign(&key, signed.as_bytes()).as_ref().to_vec()
            }
        };
        let token = format!("{signed}.{}", encode(signature));
        self.state.given.lock().unwrap().push(token.clone());
        token
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some(head) = read(&mut reader) {
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            self.state.requests.lock().unwrap().push(path.clone());
            let (status, answer) = match path.split('?').next().unwrap_or_default() {
                "/.well-known/openid-configuration" => (200, self.configuration()),
                "/.well-known/jwks" => (200, self.keys()),
                "/job/token" if head.contains(REQUEST_TOKEN) => (200, self.of_job(&path)),
                _ => (404, json!({})),
            };
            let answer = answer.to_string();
            let head = format!(
                "HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                answer.len()
            );
            if reader.get_mut().write_all(format!("{head}{answer}").as_bytes()).is_err() {
                return;
            }
        }
    }

    /// The configuration in GitHub's form, without a sign-in page.
    fn configuration(&self) -> Value {
        json!({
            "issuer": self.url, "jwks_uri": format!("{}/.well-known/jwks", self.url),
            "subject_types_supported": ["public", "pairwise"], "response_types_supported": ["id_token"],
            "id_token_signing_alg_values_supported": ["RS256"], "scopes_supported": ["openid"],
        })
    }

    fn keys(&self) -> Value {
        let point = self.state.ecdsa.public_key().as_ref();
        let (modulus, exponent) = rsa_parts(self.state.rsa.public_key().as_ref());
        json!({"keys": [
            {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "rsa", "n": encode(modulus), "e": encode(exponent)},
            {"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "ecdsa",
                "x": encode(&point[1..33]), "y": encode(&point[33..65])},
            {"kty": "unheard of", "kid": "new"},
        ]})
    }

    fn of_job(&self, path: &str) -> Value {
        let audience =
            path.split(['?', '&']).find_map(|pair| pair.strip_prefix("audience=")).unwrap_or_default();
        let mut claims = self.state.job.lock().unwrap().clone();
        claims["aud"] = json!(audience.replace("%3A", ":").replace("%2F", "/"));
        claims["jti"] = json!(unique());
        json!({"value": self.token(&claims)})
    }
}

/// Modulus and exponent of a public key in DER: a sequence of two integers.
fn rsa_parts(der: &[u8]) -> (&[u8], &[u8]) {
    fn value(der: &[u8]) -> (&[u8], &[u8]) {
        let (length, begin) = match der[1] {
            short @ 0..=127 => (usize::from(short), 2),
            long => {
                let count = usize::from(long & 127);
                (der[2..2 + count].iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), 2 + count)
            }
        };
        der[begin..].split_at(length)
    }
    let (inner, _) = value(der);
    let (modulus, rest) = value(inner);
    let (exponent, _) = value(rest);
    (modulus.strip_prefix(&[0]).unwrap_or(modulus), exponent)
}

/// A text that is different in each call.
pub(crate) fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("jti-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    Some(head)
}
