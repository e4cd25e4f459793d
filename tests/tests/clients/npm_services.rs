//! Registry services besides packages, tested with npm: the current user, the user's tokens,
//! signing out, signatures.

use packhouse_tests::npm::{Js, NpmRepository, Tool};
use packhouse_tests::{Api, Server, skip};
use serde_json::{Value, json};

/// Runs `work` for both versions of npm, each with a repository of its own, at the same time.
fn with_each(work: fn(&Server, NpmRepository, Js)) {
    let server = Server::start();
    std::thread::scope(|scope| {
        for tool in [Tool::Npm10, Tool::Npm11] {
            let server = &server;
            scope.spawn(move || {
                let repository = NpmRepository::create(server, tool.name());
                match Js::new(tool, &repository.url(server), &repository.token.secret) {
                    Ok(js) => work(server, repository, js),
                    Err(reason) => skip(tool.name(), &reason),
                }
            });
        }
    });
}

/// npm's output for a token that is no longer valid. The status is 404, as for a missing package.
const NOBODY: &str = "The token that was sent was revoked or replaced; use a new one";

#[test]
fn tokens_are_listed_and_revoked() {
    with_each(|server, repository, js| {
        let other = Api::sign_in(server).create_token(&[&repository.id], &["read"], None);
        let listed = js.run("", &["token", "list", "--json", "--silent"]).success();
        let tokens: Vec<Value> = serde_json::from_str(&listed.text).expect("a list in JSON");
        let listed_as =
            |id: &str| tokens.iter().find(|token| token["key"] == id).cloned().unwrap_or_default();
        assert_eq!(listed_as(&other.id)["readonly"], true, "{}", listed.text);
        assert_eq!(listed_as(&repository.token.id)["readonly"], false, "{}", listed.text);
        assert!(!listed.text.contains(&repository.token.secret), "a secret is in the list");

        js.run("", &["token", "revoke", &other.id]).success();
        js.run("", &["token", "revoke", &other.id]).refused("Unknown token id");
        let events =
            Api::sign_in(server).call("GET", "/v1/audit-events?action=revoke_token").expect(200).json();
        let event = &events["items"][0];
        assert!(event["request_id"].as_str().is_some_and(|id| !id.is_empty()), "{events}");
        let left = js.run("", &["token", "list"]).success().text;
        assert!(left.contains(repository.token.id.get(..6).unwrap()), "{left}");
        js.credential(&other.secret);
        js.run("", &["whoami"]).refused(NOBODY);
    });
}

#[test]
fn signing_out_revokes_the_token() {
    with_each(|_, repository, js| {
        assert!(js.run("", &["whoami"]).success().text.contains("owner@"));
        js.run("", &["logout"]).success();
        let npmrc = std::fs::read_to_string(js.folder().join(".npmrc")).unwrap();
        assert!(!npmrc.contains(&repository.token.secret), "npm still has the token:\n{npmrc}");
        js.run("", &["whoami"]).refused("ENEEDAUTH");
        js.credential(&repository.token.secret);
        js.run("", &["whoami"]).refused(NOBODY);
    });
}

/// Script that verifies each package like `npm audit signatures`, with the same library. It
/// verifies a second time with a different key. The tests in `attestations/npm_audit.rs` run the
/// command itself.
const AUDIT: &str = r"
const pacote = require('pacote'), { generateKeyPairSync } = require('crypto');
const [registry, token, cache] = process.argv.slice(1).filter(word => word !== '--');
const address = registry.replace('http:', '');
const pem = key => `-----BEGIN PUBLIC KEY-----\n${key}\n-----END PUBLIC KEY-----`;
const check = keys => pacote.manifest('@acme/lib@1.0.0', {
  registry, cache, verifySignatures: true, [`${address}:_authToken`]: token, [`${address}:_keys`]: keys,
});
(async () => {
  const answer = await fetch(`${registry}-/npm/v1/keys`, { headers: { authorization: `Bearer ${token}` } });
  const keys = (await answer.json()).keys.map(key => ({ ...key, pemkey: pem(key.key) }));
  console.log('verified', (await check(keys))._signatures.length);
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'der' });
  const wrong = keys.map(key => ({ ...key, pemkey: pem(other.toString('base64')) }));
  await check(wrong).then(() => console.log('accepted'), error => console.log(error.code));
})();
";

#[test]
fn published_packages_are_signed_with_a_key_of_the_registry() {
    with_each(|server, repository, js| {
        js.package("lib", &json!({"name": "@acme/lib", "version": "1.0.0"}));
        js.publish("lib").success();
        let registry = format!("{}/", repository.url(server));
        let cache = js.folder().join("audited");
        let output =
            js.script(AUDIT, &[&registry, &repository.token.secret, cache.to_str().unwrap()]).success();
        assert_eq!(output.text.trim(), "verified 1\nEINTEGRITYSIGNATURE", "{:?}", js.tool);
    });
}
