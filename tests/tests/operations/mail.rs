//! Mail for invitations, password resets and changed sign-in methods. The tests run with a mail
//! server and without one.

use packhouse_tests::server::{OWNER, eventually, free_port};
use packhouse_tests::smtp::{Letter, Sink};
use packhouse_tests::{Api, Client, Request, Server};
use serde_json::{Value, json};

fn invite(api: &Api, email: &str) -> Value {
    api.post("/v1/invitations", &json!({"email": email, "permissions": {}})).expect(201).json()
}

#[test]
fn invitations_and_password_resets_are_mailed_and_returned() {
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
        assert!(!server.log().contains(secret), "the log contains {secret}");
    }
}

#[test]
fn every_owner_is_mailed_when_the_sign_in_method_changes() {
    const OTHER_OWNER: &str = "other@example.com";
    let sink = Sink::start();
    let server = Server::with().env("PACKHOUSE_SMTP_URL", &sink.url("smtp-password")).start();
    let api = Api::sign_in(&server);
    // The server sends mail in the order in which the members were created. The second member is
    // not an owner, so mail to this member would arrive before the other owner's.
    for (email, organization) in
        [("dev@example.com", json!([])), (OTHER_OWNER, json!(["manage-owner-account"]))]
    {
        let permissions = json!({"organization": organization, "repositories": []});
        let member = json!({"email": email, "password": "a long password", "permissions": permissions});
        api.post("/v1/members", &member).expect(201);
    }
    let letters = |count: usize| -> Vec<Letter> {
        eventually("the letters arrive", || Some(sink.letters()).filter(|letters| letters.len() >= count))
    };
    let tell = |letters: &[Letter], how: &str| {
        let receivers: Vec<&str> = letters.iter().map(|letter| letter.envelope[1].as_str()).collect();
        assert_eq!(receivers, [OWNER, OTHER_OWNER].map(|owner| format!("RCPT TO:<{owner}>")));
        for letter in letters {
            assert!(letter.text.contains(&format!("{OWNER} changed how members")), "{}", letter.text);
            assert!(letter.text.contains(how), "{}", letter.text);
        }
    };
    let settings = json!({"issuer": "https://login.example.com", "client_id": "packages"});
    api.send("PUT", "/v1/sso", &settings).expect(200);
    tell(&letters(2), "From now on, members sign in through the provider https://login.example.com.");
    api.call("DELETE", "/v1/sso").expect(204);
    tell(&letters(4)[2..], "From now on, members sign in with a password only.");
}

#[test]
fn a_mail_that_cannot_be_sent_does_not_fail_the_request() {
    let refusing = Sink::refusing();
    let nobody = format!("smtp://127.0.0.1:{}", free_port());
    for url in [refusing.url("smtp-password"), nobody] {
        let server = Server::with().env("PACKHOUSE_SMTP_URL", &url).start();
        let invitation = invite(&Api::sign_in(&server), "new@example.com");
        assert_eq!(invitation["mailed"], false);
        assert!(invitation["code"].as_str().unwrap().len() > 20);
        assert!(server.log().contains("sending mail failed"), "{}", server.log());
        assert!(!server.log().contains("smtp-password"));
    }
    let server = Server::start();
    assert_eq!(invite(&Api::sign_in(&server), "new@example.com")["mailed"], Value::Null);
    assert!(refusing.letters().is_empty());
}

#[test]
fn an_invalid_mail_server_setting_stops_the_start_and_is_not_echoed() {
    for (url, from, words) in [
        ("imap://u:canary-password@mail.example", "", "smtp_url"),
        ("smtp://u:canary-password@mail.example", "nobody", "smtp_from"),
    ] {
        let server = Server::with().env("PACKHOUSE_SMTP_URL", url).env("PACKHOUSE_SMTP_FROM", from);
        let (status, output) = server.start_refused();
        assert!(!status.success() && output.contains(words), "{output}");
        assert!(!output.contains("canary-password"), "{output}");
    }
}
