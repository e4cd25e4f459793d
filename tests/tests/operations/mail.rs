//! Invitations and password resets by mail, where there is a mail server; and without it nothing is lost.

use packhouse_tests::server::free_port;
use packhouse_tests::smtp::Sink;
use packhouse_tests::{Api, Client, Request, Server};
use serde_json::{Value, json};

fn invite(api: &Api, email: &str) -> Value {
    api.post("/v1/invitations", &json!({"email": email, "permissions": {}})).expect(201).json()
}

#[test]
fn invitations_and_password_resets_are_mailed_and_told_all_the_same() {
    let sink = Sink::start();
    let server = Server::with()
        .env("PACKHOUSE_SMTP_URL", &sink.url("smtp-password"))
        .env("PACKHOUSE_SMTP_FROM", "Packages <packages@example.com>")
        .env(
            "PACKHOUSE_LOG",
            "trace,wasmtime=off,cranelift_codegen=off,cranelift_frontend=off,wasmtime_internal_cranelift=off",
        )
        .start();
    let api = Api::sign_in(&server);
    let invitation = invite(&api, "new@example.com");
    assert_eq!(invitation["mailed"], true);
    let code = invitation["code"].as_str().unwrap().to_owned();
    let letter = sink.letters().pop().unwrap();
    assert_eq!(letter.envelope, ["MAIL FROM:<packages@example.com>", "RCPT TO:<new@example.com>"]);
    assert!(letter.text.contains(&code), "{}", letter.text);
    assert!(
        letter.text.contains(&format!("http://{}/v1/invitations/{code}/accept", server.api())),
        "{}",
        letter.text
    );
    assert!(letter.text.contains("Content-Type: text/plain; charset=utf-8"), "{}", letter.text);

    let accept = Request::new("POST", &format!("/v1/invitations/{code}/accept"))
        .header("Content-Type", "application/json")
        .body(json!({"password": "a password of theirs"}).to_string());
    let member = Client::new(server.api()).send(accept).expect(201).field("id");
    let reset = api.post(&format!("/v1/members/{member}/password-reset"), &json!({})).expect(201).json();
    assert_eq!(reset["mailed"], true);
    let letters = sink.letters();
    assert_eq!(letters.len(), 2);
    assert!(letters[1].text.contains(reset["reset_code"].as_str().unwrap()), "{}", letters[1].text);
    for secret in [&code, reset["reset_code"].as_str().unwrap(), "smtp-password"] {
        assert!(!server.log().contains(secret), "the log holds {secret}");
    }
}

#[test]
fn a_mail_that_cannot_be_sent_costs_the_mail_alone() {
    let refusing = Sink::refusing();
    let nobody = format!("smtp://127.0.0.1:{}", free_port());
    for url in [refusing.url("smtp-password"), nobody] {
        let server = Server::with().env("PACKHOUSE_SMTP_URL", &url).start();
        let invitation = invite(&Api::sign_in(&server), "new@example.com");
        assert_eq!(invitation["mailed"], false);
        assert!(invitation["code"].as_str().unwrap().len() > 20);
        assert!(server.log().contains("a mail could not be sent"), "{}", server.log());
        assert!(!server.log().contains("smtp-password"));
    }
    let server = Server::start();
    assert_eq!(invite(&Api::sign_in(&server), "new@example.com")["mailed"], Value::Null);
    assert!(refusing.letters().is_empty());
}

#[test]
fn a_mail_server_that_makes_no_sense_stops_the_start_and_is_not_repeated() {
    for (url, from, words) in [
        ("imap://u:canary-password@mail.example", "", "smtp_url"),
        ("smtp://u:canary-password@mail.example", "nobody", "smtp_from"),
    ] {
        let server = Server::with().env("PACKHOUSE_SMTP_URL", url).env("PACKHOUSE_SMTP_FROM", from);
        let (status, said) = server.start_refused();
        assert!(!status.success() && said.contains(words), "{said}");
        assert!(!said.contains("canary-password"), "{said}");
    }
}
