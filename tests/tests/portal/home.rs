//! The home page and the page about the server's health, over plain HTTP, so without scripts.

use packhouse_tests::person::Person;
use packhouse_tests::server::{PASSWORD, eventually};
use packhouse_tests::{Api, MavenRepository, Server, days_ahead};
use serde_json::{Value, json};

const STEPS: &str = "Four steps to the first package";
const NO_ACCESS: &str = "You do not have access to any repository yet";

/// Creates a member with these permissions and signs the member in.
fn member(server: &Server, email: &str, permissions: &Value) -> Person {
    let member = json!({"email": email, "password": PASSWORD, "permissions": permissions});
    Api::sign_in(server).post("/v1/members", &member).expect(201);
    Person::signed_in(server, email, PASSWORD)
}

fn home(person: &mut Person) -> String {
    person.get("/home").expect(200).text()
}

/// Returns the section of the page whose heading has this id.
fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let begin = format!("aria-labelledby=\"{id}\"");
    let rest = page.split_once(&begin).unwrap_or_else(|| panic!("no {id} in {page}")).1;
    rest.split_once("</section>").unwrap().0
}

fn publish(repository: &MavenRepository, package: &str, version: &str) {
    let jar = format!("org/example/{package}/{version}/{package}-{version}.jar");
    repository.put(&jar, "a jar").expect(201);
}

#[test]
fn an_empty_server_shows_the_four_steps_to_the_first_package() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let mut owner = Person::owner(&server);
    let page = home(&mut owner);
    assert!(page.contains(STEPS) && page.contains("/repositories/NAME/"), "{page}");
    assert!(page.contains("href=\"/repositories/new\"") && page.contains("href=\"/tokens\""), "{page}");
    assert!(!page.contains(">done<") && !page.contains(NO_ACCESS), "{page}");
    assert!(!page.contains("There is no complete backup"), "an empty server needs no backup: {page}");

    let body = json!({"name": "jars", "format": "maven", "kind": "hosted"});
    let repository = api.post("/v1/repositories", &body).expect(201);
    let (id, address) = (repository.field("id"), repository.field("connection_address"));
    let page = home(&mut owner);
    assert_eq!(page.matches(">done<").count(), 1, "{page}");
    assert!(section(&page, "home-steps").contains(&address), "{address} in {page}");
    assert!(page.contains("href=\"/repositories/jars/connection\""), "{page}");
    assert!(page.contains("href=\"/tokens?repository=jars\""), "{page}");

    api.create_token(&[&id], &["read", "write"], None);
    assert_eq!(home(&mut owner).matches(">done<").count(), 2);

    let mut reader = member(&server, "reader@example.com", &json!({"organization": []}));
    let page = home(&mut reader);
    assert!(page.contains(NO_ACCESS) && !page.contains(STEPS), "{page}");
}

#[test]
fn the_home_page_lists_new_and_used_packages_that_the_member_may_read() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let (jars, other) = (MavenRepository::create(&server, "jars"), MavenRepository::create(&server, "other"));
    publish(&jars, "first", "1.0");
    publish(&jars, "second", "1.0");
    publish(&other, "secret", "1.0");
    let mut owner = Person::owner(&server);
    let page = home(&mut owner);
    assert!(!page.contains(STEPS), "{page}");
    let newest = section(&page, "home-newest");
    for package in ["jars/packages/org.example%3Afirst", "other/packages/org.example%3Asecret"] {
        assert!(newest.contains(&format!("href=\"/repositories/{package}\"")), "{newest}");
    }
    assert!(section(&page, "home-used").contains("Nothing was downloaded"), "{page}");
    assert!(section(&page, "home-storage").contains("href=\"/repositories/jars\""), "{page}");
    assert!(page.contains("Publishes by day: 3 in all"), "{page}");

    publish(&jars, "first", "1.1");
    eventually("the new version comes first", || {
        let page = home(&mut owner);
        let newest = section(&page, "home-newest");
        let place = |text: &str| newest.find(text).unwrap_or(usize::MAX);
        (newest.contains(">1.1<") && place("org.example:first") < place("org.example:second")).then_some(())
    });
    let second = format!("/v1/repositories/{}/packages/org.example%3Asecond", jars.id);
    assert!(api.call("DELETE", &second).status < 300);
    eventually("the package is gone", || {
        let page = home(&mut owner);
        (!section(&page, "home-newest").contains("org.example:second")).then_some(())
    });

    for _ in 0..2 {
        jars.get("org/example/first/1.1/first-1.1.jar").expect(200);
    }
    eventually("the package is counted", || {
        section(&home(&mut owner), "home-used").contains("2 downloads").then_some(())
    });

    let rights = json!({"organization": [], "repositories": [{"repository": jars.id, "actions": ["read"]}]});
    let mut reader = member(&server, "reader@example.com", &rights);
    let page = home(&mut reader);
    assert!(section(&page, "home-newest").contains("org.example:first"), "{page}");
    assert!(section(&page, "home-used").contains("org.example:first"), "{page}");
    assert!(section(&page, "home-repositories").contains(">jars<"), "{page}");
    for hidden in ["secret", "/repositories/other", "home-storage", "home-policies", "home-server"] {
        assert!(!page.contains(hidden), "{hidden} in {page}");
    }
    reader.get("/health").expect(403);
}

#[test]
fn the_home_page_lists_what_needs_attention() {
    let server = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
    let api = Api::sign_in(&server);
    let repository = api.create_maven("jars", &json!({}));
    let proxy = api.create_proxy("central", "maven", "http://127.0.0.1:9/maven2/", &json!({}));
    let token = api.create_token(&[&repository, &proxy], &["read", "write"], None);
    let client = server.anonymous().with("Authorization", &format!("Bearer {}", token.secret));
    client.put("/repositories/jars/org/example/a/1.0/a-1.0.jar", "a jar").expect(201);
    assert!(client.get("/repositories/central/org/example/b/1.0/b-1.0.jar").status >= 400);
    for (name, days) in [("old key", 5), ("new key", 40)] {
        let key = json!({"name": name, "scope": ["read"], "format": "generic", "repositories": [repository],
            "expires_at": days_ahead(days), "backing": {"kind": "org"}, "confirmation_token": api.confirm("create_token")});
        api.post("/v1/tokens", &key).expect(201);
    }
    for (name, days) in [("old program", 9), ("new program", 40)] {
        let program = json!({"name": name, "owner": "me", "scopes": ["read"], "sensitive": [],
            "expires_at": days_ahead(days)});
        api.post("/v1/api-tokens", &program).expect(201);
    }
    let rule = json!({"name": "our licences", "component": "licences", "settings": {"allow": ["MIT"], "unknown": "deny"},
        "repositories": [repository]});
    let rule = api.post("/v1/policies", &rule).expect(201).field("id");
    let mut owner = Person::owner(&server);
    assert!(!home(&mut owner).contains("our licences"), "a paused policy checks nothing");
    api.patch(&format!("/v1/policies/{rule}"), &json!({"mode": "warn"})).expect(200);

    let page = home(&mut owner);
    let attention = section(&page, "home-attention");
    for expected in [
        "The upstream of <a href=\"/repositories/central\">central</a> cannot be used since ",
        "<bdi>old key</bdi>",
        "expires in 4 days, on ",
        "href=\"/api-tokens\"><bdi>old program</bdi>",
        "expires in 8 days, on ",
        "There is no complete backup",
    ] {
        assert!(attention.contains(expected), "{expected} in {attention}");
    }
    assert!(!attention.contains("new key") && !attention.contains("new program"), "{attention}");
    let policies = section(&page, "home-policies");
    assert!(policies.contains("our licences") && policies.contains("Warning: 1"), "{policies}");

    // Only the people who manage something see that it needs attention.
    let rights =
        json!({"organization": [], "repositories": [{"repository": repository, "actions": ["read"]}]});
    let page = home(&mut member(&server, "reader@example.com", &rights));
    assert!(!page.contains("home-attention") && !page.contains("central"), "{page}");
    assert!(!page.contains("Nothing needs your attention"), "{page}");
}

#[test]
fn operators_see_the_health_of_the_server() {
    let server = Server::start();
    let mut owner = Person::owner(&server);
    let page = owner.get("/health").expect(200).text();
    for expected in [">Health<", "href=\"/jobs\"", "href=\"/backups\"", ", none fails", " free of "] {
        assert!(page.contains(expected), "{expected} in {page}");
    }
    assert!(section(&home(&mut owner), "home-server").contains("href=\"/health\""));
    let page = owner.get("/jobs").expect(200).text();
    assert!(page.contains("Running: ") && page.contains("href=\"/health\""), "{page}");

    let rights = json!({"organization": ["manage-members", "manage-repositories"]});
    let mut manager = member(&server, "manager@example.com", &rights);
    manager.get("/health").expect(403);
    let page = home(&mut manager);
    assert!(!page.contains("home-server") && page.contains(STEPS), "{page}");
}
