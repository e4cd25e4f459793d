//! Occasional tasks in the portal, in a real browser with scripts disabled and enabled. The tasks
//! concern several organizations, sign-in by a provider, a proxy's cache, a disabled format,
//! members, groups and retention. Also a member's own account.

use crate::release;

use packhouse_tests::certified::{Certified, SECRET};
use packhouse_tests::chromium::Chromium;
use packhouse_tests::cli::{json as packhouse_json, packhouse};
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::portal::{at, both, confirm, no_complaints, secret, sign_in};
use packhouse_tests::proxy::{JAR, World};
use packhouse_tests::server::{OWNER, PASSWORD, eventually};
use packhouse_tests::upstream::Answer;
use packhouse_tests::{Api, MavenRepository, Server, skip};
use release::Release;
use serde_json::{Value, json};

/// Waits for the status message of a form.
fn says(browser: &Chromium, words: &str) {
    let path = format!("//*[@role='status' and normalize-space(.)='{words}']");
    eventually(words, || browser.has(&path).then_some(()));
}

fn items(api: &Api, path: &str) -> Vec<Value> {
    api.call("GET", path).expect(200).json()["items"].as_array().unwrap().clone()
}

#[test]
fn each_of_two_organizations_shows_only_its_own_content() {
    both(|browser, _| {
        let server = Server::with().arg("--base-url").arg("http://one.example").start();
        packhouse_json(server.data(), &["org", "create", "second", "--base-url", "https://two.example/"]);
        let create = ["member", "create", "--org", "second", "--owner", "--password-stdin", OWNER];
        packhouse(server.data(), &create, PASSWORD).success();
        let enter = |organization: &str| {
            browser.open(&at(&server, "/sign-in"));
            browser.fill("E-mail", OWNER);
            browser.fill("Password", PASSWORD);
            browser.press("Sign in");
            assert!(
                browser.text("[role=alert]").contains("organization"),
                "{}",
                browser.text("[role=alert]")
            );
            browser.fill("Password", PASSWORD);
            browser.fill("Organization", organization);
            browser.press("Sign in");
            browser.comes_to("Repositories - Packhouse");
        };
        for (organization, address, name) in
            [("default", "http://one.example", "ours"), ("second", "https://two.example", "theirs")]
        {
            enter(organization);
            browser.open(&at(&server, "/repositories/new"));
            browser.fill("Name", name);
            browser.choose("Format", "maven");
            browser.press("Create repository");
            browser.comes_to(&format!("{name} - Packhouse"));
            assert_eq!(browser.text("#address"), format!("{address}/repositories/{name}/"));
            browser.press("Sign out");
            browser.comes_to("Sign in - Packhouse");
        }
        for (organization, own, foreign) in [("default", "ours", "theirs"), ("second", "theirs", "ours")] {
            enter(organization);
            assert!(
                browser.has(&format!("//main//a[.='{own}']")) && !browser.has(&format!("//a[.='{foreign}']"))
            );
            browser.open(&at(&server, &format!("/repositories/{foreign}")));
            assert!(browser.has("//*[@role='alert']"), "{}", browser.title());
            browser.open(&at(&server, "/tokens"));
            assert!(!browser.has(&format!("//label[normalize-space(.)='{foreign}']")));
            // Only the first organization manages the server.
            assert_eq!(browser.has("//nav//a[.='Backups']"), organization == "default");
            browser.press("Sign out");
            browser.comes_to("Sign in - Packhouse");
        }
        no_complaints(browser);
    });
}

/// Fills in the provider's pages until the browser shows the portal's page with this title.
fn through_the_provider(browser: &Chromium, provider: &Certified, user: &str, title: &str) {
    eventually(title, || {
        if browser.title() == title {
            return Some(());
        }
        if browser.address().starts_with(&provider.issuer) {
            if browser.has("//input[@name='login']") {
                browser.write("input[name=login]", user);
                browser.write("input[name=password]", "any");
                browser.click("button[type=submit]");
            } else if browser.has("//button[@type='submit']") {
                browser.click("button[type=submit]");
            }
        }
        None
    });
}

#[test]
fn a_provider_signs_in_and_confirms() {
    both(|browser, _| {
        let server = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
        let provider = match Certified::start(&server) {
            Ok(provider) => provider,
            Err(reason) => return skip("oidc-provider", &reason),
        };
        let api = Api::sign_in(&server);
        api.create_maven("releases", &json!({}));
        sign_in(browser, &server, OWNER);
        browser.follow("Sign-in");
        browser.comes_to("Sign-in settings - Packhouse");
        browser.fill("Issuer", &provider.issuer);
        browser.fill("Client ID", "packhouse");
        browser.fill("Client secret", SECRET);
        browser.press_under("Single sign-on", "Save");
        browser.comes_to("Confirm the sign-in settings - Packhouse");
        confirm(browser);
        says(browser, "Saved.");
        assert_eq!(api.call("GET", "/v1/sso").expect(200).field("issuer"), provider.issuer);
        browser.press("Sign out");
        browser.comes_to("Sign in - Packhouse");

        // A person without a session opens a page. The portal leads to its sign-in page, the
        // sign-in page to the provider, and the provider back to the first page.
        browser.open(&at(&server, "/tokens?repository=releases"));
        browser.comes_to("Sign in - Packhouse");
        browser.follow("Sign in with your organization");
        through_the_provider(browser, &provider, "owner", "Confirm the sign-in - Packhouse");
        confirm(browser);
        browser.comes_to("Repository Tokens - Packhouse");
        assert!(browser.has(&format!("//*[.='{OWNER}']")));
        browser.fill("Name", "by the provider");
        browser.press("Create token");
        browser.comes_to("Confirm the new token - Packhouse");
        browser.click("main form.card a.button");
        eventually("the page asks again", || browser.address().starts_with(&provider.issuer).then_some(()));
        through_the_provider(browser, &provider, "owner", "Confirm the new token - Packhouse");
        browser.press("Confirm");
        browser.comes_to("Token created - Packhouse");
        let made = secret(browser);
        let tokens = items(&api, "/v1/tokens");
        assert_eq!(
            (tokens.len(), &tokens[0]["name"]),
            (1, &json!("by the provider")),
            "the form values were kept"
        );
        assert_eq!(server.anonymous().basic(OWNER, &made).get("/repositories/releases/none").status, 404);

        // A person who signed in through the provider can sign out.
        browser.press("Sign out");
        browser.comes_to("Sign in - Packhouse");
        no_complaints(browser);
    });
}

#[test]
fn a_proxys_cache_is_listed_and_purged() {
    both(|browser, _| {
        let world = World::new(&json!({}));
        world.offer(JAR, Answer::ok("a jar"), b"a jar");
        world.get(JAR).expect(200);
        world.get(JAR).expect(200);
        let target = format!("/{JAR}");
        assert_eq!(world.upstream.count(&target), 1);
        sign_in(browser, &world.server, OWNER);
        browser.open(&at(&world.server, "/repositories/proxy/cache"));
        let cached = world.cached_paths();
        let row = format!("//th[contains(., '{}')]", cached.iter().find(|path| path.ends_with(JAR)).unwrap());
        assert!(browser.has(&row), "{cached:?}");
        // The filter shows only paths that begin with this text.
        browser.fill("Paths that begin with", "nothing/begins/so");
        browser.press("Show");
        eventually("the list is empty", || (!browser.has(&row)).then_some(()));
        browser.press("Purge");
        says(browser, "Purged.");
        assert_eq!(world.cached_paths(), cached);
        browser.open(&at(&world.server, "/repositories/proxy/cache"));
        browser.press("Purge");
        says(browser, "Purged.");
        assert!(world.cached_paths().is_empty() && !browser.has(&row));
        world.get(JAR).expect(200);
        assert_eq!(world.upstream.count(&target), 2, "the proxy fetches the file again");
        no_complaints(browser);
    });
}

#[test]
fn a_disabled_format_is_served_again_once_it_is_enabled() {
    both(|browser, _| {
        let server = Server::start();
        let repository = MavenRepository::create(&server, "releases");
        repository.put(JAR, "a jar").expect(201);
        sign_in(browser, &server, OWNER);
        browser.follow("Formats");
        browser.press("Switch off maven");
        eventually("the format is disabled", || browser.has("//button[.='Switch on maven']").then_some(()));
        assert_eq!(repository.get(JAR).expect(503).field("error"), "format_disabled");
        browser.press("Switch on maven");
        eventually("the format is enabled", || browser.has("//button[.='Switch off maven']").then_some(()));
        assert_eq!(repository.get(JAR).expect(200).text(), "a jar");
        no_complaints(browser);
    });
}

#[test]
fn members_are_created_changed_given_a_new_password_and_deleted() {
    both(|browser, _| {
        let server = Server::start();
        let api = Api::sign_in(&server);
        let repository = api.create_maven("releases", &json!({}));
        sign_in(browser, &server, OWNER);
        browser.follow("Members");
        browser.follow("Create a member with a password instead");
        eventually("the fields are visible", || browser.has("//button[.='Create member']").then_some(()));
        browser.fill("E-mail", "new@example.com");
        browser.fill("Name", "Newcomer");
        browser.fill("Password", PASSWORD);
        browser.tick("Read");
        browser.press("Create member");
        browser.comes_to("Confirm the new member - Packhouse");
        confirm(browser);
        says(browser, "Created.");
        let member = || items(&api, "/v1/members").into_iter().find(|one| one["email"] == "new@example.com");
        assert_eq!(member().unwrap()["permissions"]["repositories"][0]["actions"], json!(["read"]));
        browser.press("Change new@example.com");
        browser.comes_to("new@example.com - Packhouse");
        browser.tick("Manage repositories");
        browser.press_under("Permissions", "Save");
        says(browser, "Saved.");
        assert_eq!(member().unwrap()["permissions"]["organization"], json!(["manage-repositories"]));

        // The owner sees and revokes the member's token.
        let theirs = Api::sign_in_as(&server, "new@example.com", PASSWORD);
        let token = theirs.create_token(&[&repository], &["read"], None);
        let use_it = || {
            server
                .anonymous()
                .basic("new@example.com", &token.secret)
                .get("/repositories/releases/none")
                .status
        };
        assert_eq!(use_it(), 404);
        browser.open(&at(&server, "/tokens?member=new%40example.com"));
        browser.press("Revoke");
        browser.press("Yes, revoke");
        eventually("the token is revoked", || (use_it() == 401).then_some(()));

        browser.open(&at(&server, "/members"));
        browser.press("Change new@example.com");
        browser.comes_to("new@example.com - Packhouse");
        browser.press("Create password reset code");
        browser.comes_to("Confirm the password reset code - Packhouse");
        confirm(browser);
        browser.comes_to("Password reset code - Packhouse");
        let address = browser.text("[data-secret]");
        browser.press("Sign out");
        browser.comes_to("Sign in - Packhouse");
        browser.open(&address);
        browser.comes_to("Set a new password - Packhouse");
        browser.fill("Password", "another long password");
        browser.press("Save");
        browser.comes_to("Password set - Packhouse");
        theirs.call("GET", "/v1/me").expect(401);
        Api::sign_in_as(&server, "new@example.com", "another long password");

        sign_in(browser, &server, OWNER);
        browser.follow("Members");
        browser.press("Change new@example.com");
        browser.comes_to("new@example.com - Packhouse");
        browser.press("Delete");
        browser.press("Yes, delete");
        says(browser, "Deleted.");
        assert_eq!(member(), None);
        no_complaints(browser);
    });
}

#[test]
fn groups_are_ordered_and_an_upstreams_credentials_set() {
    both(|browser, _| {
        let server = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
        let api = Api::sign_in(&server);
        let (one, two) = (api.create_maven("one", &json!({})), api.create_maven("two", &json!({})));
        let body = json!({"name": "all", "format": "maven", "kind": "group", "members": [one]});
        let group = api.post("/v1/repositories", &body).expect(201).field("id");
        let members =
            || api.call("GET", &format!("/v1/repositories/{group}")).expect(200).json()["members"].clone();
        sign_in(browser, &server, OWNER);
        browser.open(&at(&server, "/repositories/all/settings"));
        browser.tick("two");
        browser.press_under("Members of the group", "Save");
        says(browser, "Saved.");
        assert_eq!(members(), json!([one, two]));
        browser.open(&at(&server, "/repositories/all/settings"));
        browser.fill("Position of one", "2");
        browser.fill("Position of two", "1");
        browser.press_under("Members of the group", "Save");
        says(browser, "Saved.");
        assert_eq!(members(), json!([two, one]));

        api.create_proxy("hub", "docker", "http://127.0.0.1:9/", &json!({}));
        browser.open(&at(&server, "/repositories/hub/settings"));
        browser.fill("Upstream user name", "somebody");
        browser.fill("Upstream password or token", "secret-of-theirs");
        browser.press("Set credentials");
        browser.comes_to("Confirm the upstream credentials - Packhouse");
        confirm(browser);
        says(browser, "Saved.");
        let set = items(&api, "/v1/audit-events?action=set_upstream_credentials");
        assert_eq!(set.len(), 1, "{set:?}");
        assert!(!browser.has("//*[contains(., 'secret-of-theirs')]"), "the password is not shown again");
        no_complaints(browser);
    });
}

#[test]
fn a_policy_is_previewed_enforced_and_undone() {
    both(|browser, _| {
        let server = Server::start();
        let api = Api::sign_in(&server);
        let repository = MavenRepository::create(&server, "releases");
        for version in ["1.0", "2.0"] {
            repository.put(&format!("org/example/a/{version}/a-{version}.jar"), version).expect(201);
        }
        let left = || {
            let path = format!("/v1/repositories/{}/packages/org.example%3Aa/versions", repository.id);
            items(&api, &path)
                .iter()
                .map(|one| one["version"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        sign_in(browser, &server, OWNER);
        browser.open(&at(&server, "/retention"));
        browser.fill("Name", "old ones");
        browser.tick("releases");
        browser.fill("Published before (days)", "0");
        browser.fill("Newest", "1");
        browser.press("Create policy");
        browser.comes_to("old ones - Packhouse");
        assert!(!browser.has("//button[.='Enforce']"), "not before a preview");
        browser.press("Preview");
        assert!(
            browser.text("section[role=status]").contains("1 version"),
            "{}",
            browser.text("section[role=status]")
        );
        assert!(browser.has("//td[contains(., '1.0')]") && !browser.has("//td[contains(., '2.0')]"));
        assert_eq!(left(), ["2.0", "1.0"]);
        browser.press("Enforce");
        eventually("the policy is enforced", || browser.has("//button[.='Run now']").then_some(()));
        browser.press("Run now");
        eventually("it ran", || (left() == ["2.0"]).then_some(()));
        browser.press("Pause");
        eventually("the policy is paused", || {
            browser.has("//*[contains(@class, 'tag') and .='paused']").then_some(())
        });
        browser.open(&at(&server, "/repositories/releases/trash"));
        browser.press("Restore");
        says(browser, "Restored.");
        assert_eq!(left(), ["2.0", "1.0"]);
        // The format does not support this mark, and the page shows the format's message.
        browser.open(&at(&server, "/repositories/releases/packages/org.example%3Aa/versions/1.0"));
        browser.press("Deprecate");
        assert!(!browser.text("[role=alert]").is_empty());
        no_complaints(browser);
    });
}

#[test]
fn a_version_is_deprecated_and_restored() {
    both(|browser, _| {
        let server = Server::start();
        let api = Api::sign_in(&server);
        let repository = NpmRepository::create(&server, "js");
        repository.put("lib", &Release::new("lib", "1.0.0").document()).expect(201);
        let state =
            || items(&api, &format!("/v1/repositories/{}/packages/lib/versions", repository.id))[0].clone();
        sign_in(browser, &server, OWNER);
        browser.open(&at(&server, "/repositories/js/packages/lib/versions/1.0.0"));
        browser.fill("Reason", "use 2.0.0");
        browser.press("Deprecate");
        let tag = "//*[contains(@class, 'tag') and .='deprecated']";
        eventually("the version is deprecated", || browser.has(tag).then_some(()));
        assert_eq!((&state()["state"], &state()["reason"]), (&json!("deprecated"), &json!("use 2.0.0")));
        browser.press("Restore");
        eventually("the version is restored", || (!browser.has(tag)).then_some(()));
        assert_eq!(state()["state"], json!(""));
        no_complaints(browser);
    });
}

#[test]
fn the_own_account_the_organization_and_the_audit_log_work() {
    both(|browser, _| {
        let server = Server::start();
        let api = Api::sign_in(&server);
        let other = Api::sign_in(&server);
        api.create_maven("releases", &json!({}));
        sign_in(browser, &server, OWNER);
        browser.follow("Organization");
        browser.fill("Name", "Acme");
        browser.fill("Quota (bytes)", "5000000");
        browser.press_under("Name and quota", "Save");
        says(browser, "Saved.");
        let own = api.call("GET", "/v1/organization").expect(200).json();
        assert_eq!((&own["name"], &own["quota_bytes"]), (&json!("Acme"), &json!(5_000_000)));

        browser.follow("Audit");
        browser.fill("Action", "create_repository");
        browser.press("Filter");
        eventually("one event is left", || {
            let rows = browser.run("return document.querySelectorAll('tbody tr').length", &json!([]));
            (rows == json!(1)).then_some(())
        });
        for (link, begins) in [("CSV", "id,at,actor"), ("JSON lines", "{\"")] {
            let fetch = "const done = arguments[1]; fetch(arguments[0]).then(answer => answer.text())\
                         .then(done, error => done('failed: ' + error))";
            let href = browser.run(
                "return [...document.querySelectorAll('a')].find(link => link.textContent === arguments[0]).href",
                &json!([link]),
            );
            let text = browser.run_to_its_end(fetch, &json!([href]));
            let text = text.as_str().unwrap();
            assert!(
                text.starts_with(begins) && text.contains("create_repository"),
                "{text}; {:?}",
                browser.complaints()
            );
            assert!(!text.contains("change_organization"), "the export is filtered");
        }

        browser.follow(OWNER);
        browser.comes_to("Account - Packhouse");
        browser.fill("Name", "The Owner");
        browser.press("Save");
        says(browser, "Saved.");
        assert_eq!(api.call("GET", "/v1/me").expect(200).field("name"), "The Owner");
        let others =
            "//li[.//button[starts-with(normalize-space(.), 'End')] and not(contains(., 'current'))]";
        for left in [2, 1] {
            eventually("the other sessions are listed", || (browser.count(others) == left).then_some(()));
            browser.press_at(&format!("{others}//button"));
            says(browser, "The session has ended.");
            browser.open(&at(&server, "/account"));
        }
        for ended in [&api, &other] {
            ended.call("GET", "/v1/me").expect(401);
        }
        assert!(browser.has("//h1[normalize-space(.)='Account']"), "its own session continues");
        no_complaints(browser);
    });
}
