//! Invalid ID tokens of every kind, with the words that the client prints. Also tests when minted
//! tokens end.

use super::issuer::{TokenSignature, now};
use super::{World, mint};
use packhouse_tests::database::Postgres;
use packhouse_tests::{Api, Server, skip};
use serde_json::{Value, json};

#[track_caller]
fn refused(world: &World, id_token: &str, code: &str, words: &str) {
    let answer = world.mint(id_token).expect(422).json();
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains(words), "{words:?}: {message}");
    assert_eq!(answer["errors"][0]["code"], code, "{answer}");
    assert_eq!(answer["errors"][0]["description"], message);
    // The server refuses the same ID token as a password too.
    let client = world.client_as("ci", id_token);
    client.get("/repositories/wheels/simple/").expect(401);
}

#[test]
fn an_invalid_id_token_is_refused_with_a_reason() {
    let world = World::start();
    let repository = world.repository("python", "wheels");
    world.trust(&repository, &json!({}));
    let audience = world.server.anonymous().get("/_/oidc/audience").expect(200).field("audience");
    assert_eq!(audience, world.audience());
    for (claims, code, words) in [
        (json!({"repository": "octo-org/other"}), "invalid-publisher", "octo-org/other"),
        (json!({"repository_owner": "evil"}), "invalid-publisher", "`repository_owner`"),
        (
            json!({"workflow_ref": "octo-org/octo-repo/.github/workflows/test.yml@refs/heads/main"}),
            "invalid-publisher",
            "`workflow`",
        ),
        (
            json!({"job_workflow_ref": "evil/x/.github/workflows/release.yml@v1"}),
            "invalid-publisher",
            "`workflow`",
        ),
        (json!({"environment": "test"}), "invalid-publisher", "`environment`"),
        (json!({"environment": null}), "invalid-publisher", "`environment`"),
        (json!({"event_name": "pull_request_target"}), "invalid-token", "pull_request_target"),
        (json!({"exp": now() - 30}), "invalid-token", "has expired"),
        (json!({"nbf": now() + 120}), "invalid-token", "not valid yet"),
        (json!({"iat": now() + 120}), "invalid-token", "not valid yet"),
        (json!({"aud": "pypi"}), "invalid-token", audience.as_str()),
        (json!({"aud": [audience, "elsewhere"]}), "invalid-token", "audience"),
        (json!({"aud": null}), "invalid-payload", "not an ID token"),
        (json!({"iss": "https://token.actions.githubusercontent.com"}), "invalid-publisher", "issuer"),
        (json!({"iss": 1}), "invalid-payload", "not an ID token"),
    ] {
        refused(&world, &world.issuer.token(&world.github_but(&claims)), code, words);
    }
    for (how, words) in [
        (TokenSignature::OtherKey, "not signed by its issuer"),
        (TokenSignature::Damaged, "not signed by its issuer"),
        (TokenSignature::UnknownKey, "not signed by its issuer"),
        (TokenSignature::None, "asymmetric algorithm"),
        (TokenSignature::Hmac, "asymmetric algorithm"),
    ] {
        refused(&world, &world.issuer.token_signed(&world.github(), &how), "invalid-token", words);
    }
    let long = format!("eyJ{}.e30.e30", "a".repeat(20_000));
    assert!(world.mint(&long).expect(422).text().contains("too long"));
    assert!(world.mint("").expect(422).text().contains("three parts"));
    assert_eq!(world.events("exchange_id_token").len(), 0);

    // The server accepts a valid ID token once, and stores the repository owner's id from it.
    let id_token = world.issuer.token_signed(&world.github(), &TokenSignature::Ecdsa);
    world.mint(&id_token).expect(200);
    let again = world.mint(&id_token).expect(422).json();
    assert_eq!(again["errors"][0]["code"], "invalid-reuse-token", "{again}");
    let renamed = world.github_but(&json!({"repository_owner_id": "66"}));
    refused(&world, &world.issuer.token(&renamed), "invalid-publisher", "`repository_owner_id`");
}

#[test]
fn gitlabs_address_of_the_pipelines_file_is_compared_as_a_whole() {
    let world = World::start();
    let repository = world.repository("python", "wheels");
    world.trust(
        &repository,
        &json!({
            "provider": "gitlab",
            "claims": {"namespace": "my-group", "project": "my-project", "workflow": ".gitlab-ci.yml"},
        }),
    );
    let host = world.issuer.url.trim_start_matches("http://");
    let token = |address: String| {
        let mut claims = world.gitlab();
        claims["ci_config_ref_uri"] = json!(address);
        world.issuer.token(&claims)
    };
    for address in [
        format!("evil.example/{host}/my-group/my-project//.gitlab-ci.yml@refs/tags/v1"),
        format!("{host}/evil/my-group/my-project//.gitlab-ci.yml@refs/tags/v1"),
        "evil.example/my-group/my-project//.gitlab-ci.yml@refs/tags/v1".to_owned(),
        "/my-group/my-project//.gitlab-ci.yml@refs/tags/v1".to_owned(),
        format!("{host}/my-group/my-project//evil//.gitlab-ci.yml@refs/tags/v1"),
        format!("{host}/my-group/my-project//.gitlab-ci.yml.evil@refs/tags/v1"),
    ] {
        refused(&world, &token(address), "invalid-publisher", "`workflow`");
    }
    let right = format!("{host}/my-group/my-project//.gitlab-ci.yml@refs/tags/v1");
    world.mint(&token(right)).expect(200);
}

#[test]
fn a_thousand_forged_tokens_are_refused() {
    let world = World::start();
    let repository = world.repository("generic", "files");
    world.trust(&repository, &json!({"packages": ["*"]}));
    let before = world.issuer.requests("/.well-known/");
    let right = world.issuer.token(&world.github());
    let words: Vec<&str> = right.split('.').collect();
    for number in 0_usize..1000 {
        let mut claims = world.github();
        claims["run_id"] = json!(number.to_string());
        let made_up = match number % 5 {
            0 => world.issuer.token_signed(&claims, &TokenSignature::OtherKey),
            1 => world.issuer.token_signed(&claims, &TokenSignature::UnknownKey),
            2 => world.issuer.token_signed(&claims, &TokenSignature::None),
            3 => format!("{}.{}.{}", words[0], words[1], "A".repeat(words[2].len() - number % 7)),
            _ => {
                let elsewhere = format!("http://127.0.0.1:1/{number}");
                claims["iss"] = json!(elsewhere);
                world.issuer.token(&claims)
            }
        };
        let status = world
            .client_as("ci", &made_up)
            .put(&format!("/repositories/files/a/{number}"), b"x".to_vec())
            .status;
        assert_eq!(status, 401, "{number}");
    }
    // A look-up of the issuer's keys makes two requests. The made-up tokens may cause only a few
    // look-ups.
    let requests = world.issuer.requests("/.well-known/") - before;
    assert!(requests <= 40, "the issuer got {requests} requests");
    world.client_as("ci", &right).put("/repositories/files/a/right", b"x".to_vec()).expect(201);
}

#[test]
fn a_minted_token_ends() {
    let world = World::start();
    let repository = world.repository("generic", "files");
    let publisher = world.trust(&repository, &json!({}));
    let answer = world.exchange(&world.issuer.token(&world.github()), "files", &[]).expect(200);
    let token = answer.field("access_token");
    let client = world.client_as("any", &token);
    client.put("/repositories/files/a/b", b"x".to_vec()).expect(201);
    let expires = packhouse_tests::database::sqlite(
        &world.server,
        "SELECT (expires_at - created_at) / 1000 FROM tokens WHERE backing = 'publisher'",
    );
    assert!(["899", "900"].contains(&expires.trim()), "{expires}");
    let direct = world.issuer.token(&world.github());
    world.client_as("ci", &direct).get("/repositories/files/a/b").expect(200);
    world.api.call("DELETE", &format!("/v1/trusted-publishers/{publisher}")).expect(204);
    client.get("/repositories/files/a/b").expect(401);
    world.client_as("ci", &direct).get("/repositories/files/a/b").expect(401);
    // When a publisher trusts the workflow again, the ID token is valid again. Tokens that were
    // minted before stay invalid.
    world.trust(&repository, &json!({}));
    world.client_as("ci", &direct).get("/repositories/files/a/b").expect(200);
    client.get("/repositories/files/a/b").expect(401);
    assert_eq!(world.events("delete_trusted_publisher").len(), 1);
}

#[test]
fn an_id_token_counts_once_on_both_servers_of_a_database() {
    let postgres = match Postgres::start() {
        Ok(postgres) => postgres,
        Err(reason) => return skip("PostgreSQL", &reason),
    };
    let data = tempfile::tempdir().unwrap();
    let start = || {
        let server = Server::with().data(data.path()).arg("--database-url").arg(&postgres.url());
        let server = server.arg("--base-url").arg("http://packages.test");
        server.arg("--upstream-allow-networks").arg("127.0.0.0/8").start()
    };
    let servers = [start(), start()];
    let [first, second] = servers;
    let api = Api::sign_in(&first);
    let world = World { server: first, api, issuer: super::Issuer::start() };
    let repository = world.repository("python", "wheels");
    let publisher = world.trust(&repository, &json!({}));
    let claims = |more: Value| {
        let mut claims = world.github_but(&json!({"aud": "packages.test"}));
        for (name, value) in more.as_object().unwrap() {
            claims[name] = value.clone();
        }
        world.issuer.token(&claims)
    };
    for _ in 0..10 {
        let id_token = claims(json!({}));
        let answers = std::thread::scope(|scope| {
            let one = scope.spawn(|| mint(&world.server, &id_token));
            let other = scope.spawn(|| mint(&second, &id_token));
            [one.join().unwrap(), other.join().unwrap()]
        });
        let mut statuses = answers.each_ref().map(|answer| answer.status);
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 422], "{}", answers[1].text());
    }
    // The second server uses the owner's id that the first server recorded. A token that one server
    // minted also ends on the second server.
    let renamed = claims(json!({"repository_owner_id": "66"}));
    mint(&second, &renamed).expect(422);
    let token = mint(&world.server, &claims(json!({}))).expect(200).field("token");
    let elsewhere = second.anonymous().basic("__token__", &token);
    elsewhere.get("/repositories/wheels/simple/").expect(200);
    world.api.call("DELETE", &format!("/v1/trusted-publishers/{publisher}")).expect(204);
    elsewhere.get("/repositories/wheels/simple/").expect(401);
}
