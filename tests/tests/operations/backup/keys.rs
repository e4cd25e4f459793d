//! Encrypted backups, and the key that seals the server's secrets.

use std::process::Command;

use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::totp::{Authenticator, secret_of};
use packhouse_tests::{Api, Client, Request, skip};
use serde_json::json;
use tempfile::TempDir;

use super::world::{Published, Stand, file, files, listed, place, run};

/// An age identity and its recipient, made for this test only.
const IDENTITY: &str = "AGE-SECRET-KEY-1RFMGGUF0EWSW460TP483D2564T0MQMR463PK9QZNK22D4VP9T6GSZDNQZ5";
const RECIPIENT: &str = "age1y4506l9l3sdaruew28s4wrcxf82ck0mq2jlg3t2cwe3amf434q5q2y2jr5";

fn holds(folder: &str, what: &str) -> bool {
    files(folder.as_ref()).iter().any(|path| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(what.len()).any(|window| window == what.as_bytes())
    })
}

#[test]
fn without_the_right_passphrase_a_backup_cannot_be_read_or_extended() {
    let home = TempDir::new().unwrap();
    let (right, wrong) =
        (file(&home, "right", "correct horse battery"), file(&home, "wrong", "staple, staple"));
    let stand = Stand::folder();
    let server = stand.server().start();
    let published = Published::some(&server);
    let text = "text that is published as a file of its own ".repeat(2000);
    published.client(&server).put("/repositories/maven/org/example/w/1/w-1.jar", text.clone()).expect(201);
    let folder = place(&home);
    stand.run(&["backup", &folder, "--passphrase-file", &right]).success();
    assert!(!holds(&folder, &text[..200]), "the content can be read");
    let refusal = "this is not the passphrase of these backups";
    stand.run(&["backup", &folder, "--passphrase-file", &wrong]).refused(refusal);
    stand.run(&["backup", &folder]).refused("--passphrase-file");
    run(&["backup", "verify", &folder, "--passphrase-file", &wrong]).refused(refusal);
    run(&["backup", "verify", &folder]).refused("--passphrase-file");
    let other = Stand::folder();
    other.run(&["restore", &folder, "--passphrase-file", &wrong]).refused(refusal);
    assert!(other.is_untouched());
    stand.run(&["backup", &folder, "--passphrase-file", &right]).success();
    // Listing and pruning need no key.
    assert_eq!(listed(&folder).len(), 2);
    run(&["backup", "prune", &folder, "--keep-last", "1"]).success();
    run(&["backup", "verify", &folder, "--passphrase-file", &right]).success();
    other.run(&["restore", &folder, "--passphrase-file", &right]).success();
    published.expect(&other.server().start());
}

#[test]
fn recipients_can_decrypt_their_backups_with_age_as_well() {
    let home = TempDir::new().unwrap();
    let recipients = file(&home, "recipients", &format!("# operators\n{RECIPIENT}\n"));
    let identity = file(&home, "identity", &format!("{IDENTITY}\n"));
    let stand = Stand::folder();
    let published = Published::some(&stand.server().start());
    let folder = place(&home);
    stand.run(&["backup", &folder, "--recipients-file", &recipients]).success();
    run(&["backup", "verify", &folder]).refused("--identity-file");
    let key = stand.run(&["backup", "key"]).success().text.trim().to_owned();
    let with = ["--identity-file", &identity, "--signed-by", &key];
    run(&[&["backup", "verify", &folder][..], &with].concat()).success();
    let other = Stand::folder();
    other.run(&[&["restore", &folder][..], &with].concat()).success();
    published.expect(&other.server().start());
    let phrase = file(&home, "phrase", "correct horse battery");
    stand.run(&["backup", &folder, "--passphrase-file", &phrase]).refused("--recipients-file");
    let Some(blob) = files(format!("{folder}/content").as_ref()).pop() else { panic!("no blob") };
    match Command::new("age").args(["-d", "-i", &identity]).arg(&blob).output() {
        Ok(output) => {
            let sha256 = packhouse_tests::digests::sha256(&output.stdout);
            assert_eq!(sha256, blob.file_name().unwrap().to_str().unwrap());
        }
        Err(_) => skip("age", "no `age` on the path"),
    }
}

#[test]
fn a_restored_server_requires_the_same_second_factor() {
    let home = TempDir::new().unwrap();
    let app = Authenticator::new();
    let (stand, other) = (Stand::folder(), Stand::folder());
    let server = stand.server().clock(app.clock()).start();
    let api = Api::sign_in(&server);
    let secret = secret_of(&api.call("POST", "/v1/me/totp").expect(201).field("otpauth_url"));
    let code = json!({"code": app.next_code(&secret)});
    let confirmed = api.post("/v1/me/totp/confirm", &code).expect(200).json();
    drop(server);
    let folder = place(&home);
    stand.run(&["backup", &folder]).success();
    other.run(&["restore", &folder]).success();

    let server = other.server().clock(app.clock()).start();
    let sign_in = |code: Option<&str>| {
        let body = json!({"email": OWNER, "password": PASSWORD, "code": code}).to_string();
        let request = Request::new("POST", "/v1/sessions").header("Content-Type", "application/json");
        Client::new(server.api()).send(request.body(body))
    };
    assert_eq!(sign_in(None).expect(401).field("error"), "second_factor_required");
    sign_in(Some(&app.next_code(&secret))).expect(201);
    let recovery = confirmed["recovery_codes"][0].as_str();
    sign_in(recovery).expect(201);
    sign_in(recovery).expect(401);
}

#[test]
fn a_restored_server_reads_its_sealed_secrets() {
    let home = TempDir::new().unwrap();
    let stand = Stand::folder();
    let server = stand.server().start();
    let api = Api::sign_in(&server);
    let body = json!({"name": "proxy", "format": "docker", "kind": "proxy", "upstream": {"url": "http://127.0.0.1:9/"}});
    let id = api.post("/v1/repositories", &body).expect(201).field("id");
    let credentials = json!({"username": "u", "password": "p",
        "confirmation_token": api.confirm("set_upstream_credentials")});
    let set = api.send("PUT", &format!("/v1/repositories/{id}/upstream-credentials"), &credentials);
    assert!([200, 201, 204].contains(&set.status), "{} {}", set.status, set.text());
    drop(server);
    let key = std::fs::read(stand.data().join("sealing.key")).unwrap();
    let (with, without) = (place(&home), home.path().join("without").to_str().unwrap().to_owned());
    stand.run(&["backup", &with]).success();
    stand.run(&["backup", &without, "--without-sealing-key"]).success();
    assert_eq!(listed(&without)[0]["manifest"]["sealing_key"], "left_out");

    let whole = Stand::folder();
    whole.run(&["restore", &with]).success();
    assert_eq!(std::fs::read(whole.data().join("sealing.key")).unwrap(), key);
    assert!(!whole.server().start().log().contains("sealing key differs"));
    let partly = Stand::folder();
    partly.run(&["restore", &without]).success();
    assert!(!partly.data().join("sealing.key").exists());
    assert!(partly.server().start().log().contains("sealing key differs"));
}
