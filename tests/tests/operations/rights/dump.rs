//! The database, its dumps and its backups contain no credential, and no key with which a reader
//! could make one.

use std::collections::BTreeSet;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use packhouse_tests::database::{self, Postgres};
use packhouse_tests::images::{ImageRepository, digest};
use packhouse_tests::server::OWNER;
use packhouse_tests::{Client, Request, Server};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The domain separator of bearer signatures; anyone can read it in the source.
const DOMAIN: &[u8] = b"packhouse bearer 1\0";
/// Upper bound for the candidates in the dump of a small database.
const BOUND: usize = 20_000;
const SCOPE: &str = "/v2/token?service=x&scope=repository:repositories/images/app:pull,push";

/// Returns a bearer with push rights for the token with this hash, signed with this key.
fn forged(organization: i64, sha256: &str, key: &[u8]) -> String {
    let soon =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() + 200_000;
    let soon = u64::try_from(soon).unwrap();
    let grant = json!({"r": "images", "s": "app", "f": true, "p": true, "d": true});
    let claims = json!({"o": organization, "a": "docker", "h": {"t": sha256}, "g": [grant], "e": soon});
    let body = format!("pkb_{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let mac = sign(&Key::new(HMAC_SHA256, key), &[DOMAIN, body.as_bytes()].concat());
    format!("{body}.{}", URL_SAFE_NO_PAD.encode(mac.as_ref()))
}

/// Returns the status of a push with a bearer.
fn push(client: &Client, bearer: &str, layer: &str) -> u16 {
    let target = format!("/v2/repositories/images/app/blobs/uploads/?digest={}", digest(layer.as_bytes()));
    let bearer = format!("Bearer {bearer}");
    client.send(Request::new("POST", &target).header("Authorization", &bearer).body(layer)).status
}

/// Returns every possible key in a dump: each word, as text and decoded.
fn candidates(dump: &str) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    let parts: [&[char]; 2] =
        [&['\'', ',', ' ', '\n', '"', ';'], &['\'', ',', ' ', '\n', '"', ';', '.', ':', '$', '=', '|']];
    for separators in parts {
        for word in dump.split(separators).filter(|word| word.len() >= 16) {
            found.insert(word.as_bytes().to_vec());
            found.extend(hex::decode(word));
            found.extend(URL_SAFE_NO_PAD.decode(word));
            found.extend(STANDARD_NO_PAD.decode(word));
        }
    }
    found
}

fn one(server: &Server, sql: &str) -> String {
    database::sqlite(server, sql).trim().to_owned()
}

#[test]
fn nothing_in_a_dump_signs_a_bearer() {
    let mut server = Server::start();
    let images = ImageRepository::create(&server, "images", &json!({}));
    let organization: i64 = one(&server, "select id from organizations").parse().unwrap();
    let sha256 = one(&server, "select lower(hex(secret_sha256)) from tokens").to_owned();
    let genuine = images.client.get(SCOPE).expect(200).field("token");
    // The forged bearers below have the same shape as a real bearer.
    let shape = |bearer: &str| {
        let claims = bearer.strip_prefix("pkb_").unwrap().split('.').next().unwrap();
        let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
        (claims["o"].clone(), claims["a"].clone(), claims["h"].clone())
    };
    assert_eq!(shape(&genuine), shape(&forged(organization, &sha256, b"x")));
    assert_eq!(push(&server.anonymous(), &genuine, "genuine"), 201);

    // The database of an earlier version contained the key itself. The server must discard a key
    // that a dump may have disclosed.
    let disclosed = hex::encode([7; 32]);
    server.terminate();
    server.wait();
    database::sqlite(&server, &format!("insert or replace into meta values ('bearer_key', '{disclosed}')"));
    server.restart();
    assert_eq!(push(&server.anonymous(), &forged(organization, &sha256, &[7; 32]), "disclosed"), 401);

    let dump = database::sqlite(&server, ".dump");
    assert!(dump.contains(&sha256) && !dump.contains(&disclosed), "the disclosed key is discarded");
    let keys = candidates(&dump);
    assert!((20..BOUND).contains(&keys.len()), "{} candidates", keys.len());
    for key in &keys {
        let status = push(&server.anonymous(), &forged(organization, &sha256, key), "forged");
        assert_eq!(status, 401, "{} of the dump signs a bearer", String::from_utf8_lossy(key));
    }

    // This forgery uses the real key, which is outside of the database, and works. So the attempts
    // above failed only because of the key.
    let file = std::fs::read_to_string(server.data().join("sealing.key")).unwrap();
    assert!(!dump.contains(file.trim()), "the sealing key is in the dump");
    let sealing = Sha256::new_with_prefix("packhouse sealing key 1\0").chain_update(file.trim()).finalize();
    let salt = one(&server, "select value from meta where name = 'bearer_salt'");
    let purpose = format!("packhouse derived key 1\0bearers\0{salt}");
    let key = sign(&Key::new(HMAC_SHA256, &sealing), purpose.as_bytes());
    assert_eq!(push(&server.anonymous(), &forged(organization, &sha256, key.as_ref()), "control"), 201);
}

#[test]
fn servers_of_one_database_share_the_key_or_warn_about_different_keys() {
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let data = tempfile::tempdir().unwrap();
    let start = |key: &str| {
        let server = Server::with().data(data.path()).arg("--database-url").arg(&postgres.url());
        server.env("PACKHOUSE_SEALING_KEY", key).start()
    };
    let (one, two) = (start("a key of some length"), start("a key of some length"));
    let images = ImageRepository::create(&one, "images", &json!({}));
    let bearer = images.client.get(SCOPE).expect(200).field("token");
    assert_eq!(push(&two.anonymous(), &bearer, "by another server"), 201);
    assert!(!two.log().contains("sealing_key"), "{}", two.log());

    let three = start("another key of some length");
    assert!(three.log().contains("set `sealing_key` to the same text for all of them"), "{}", three.log());
    assert_eq!(push(&three.anonymous(), &bearer, "by a third"), 401);
    // The server with another key accepts its own bearers.
    let there = three.anonymous().basic(OWNER, &images.token.secret);
    let bearer = there.get(SCOPE).expect(200).field("token");
    assert_eq!(push(&three.anonymous(), &bearer, "by its own"), 201);
    for secret in ["a key of some length", "another key of some length"] {
        assert!(!three.log().contains(secret), "the log contains the key");
    }
}
