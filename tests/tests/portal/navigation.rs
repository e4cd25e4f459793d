//! The frame around every page: the search field, the navigation by groups, the paths that moved,
//! and the order of lists. Over plain HTTP, so without scripts.

use packhouse_tests::person::Person;
use packhouse_tests::server::PASSWORD;
use packhouse_tests::{Api, Server};
use serde_json::json;

const FIELD: &str = "<label class=\"away\" for=\"everywhere\">Search everywhere</label>";

/// Returns the part of a page between two texts.
fn between<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let rest = page.split_once(from).unwrap_or_else(|| panic!("no {from} in {page}")).1;
    rest.split_once(to).unwrap_or_else(|| panic!("no {to} in {page}")).0
}

/// Returns the paths of the navigation's group with this name, in their order.
fn group(page: &str, name: &str) -> Vec<String> {
    let navigation = between(page, "<nav aria-label=\"Main\">", "</nav>");
    let Some((_, rest)) = navigation.split_once(&format!(">{name}</h2>")) else { return Vec::new() };
    let list = rest.split_once("</ul>").unwrap().0;
    list.split("href=\"").skip(1).map(|link| link.split('"').next().unwrap().to_owned()).collect()
}

#[test]
fn every_page_but_the_search_has_a_field_that_searches_everywhere() {
    let server = Server::start();
    Api::sign_in(&server).create_maven("lib", &json!({}));
    let mut owner = Person::owner(&server);
    for page in ["/home", "/repositories", "/repositories/lib", "/tokens", "/settings", "/account"] {
        let text = owner.get(page).expect(200).text();
        assert!(text.contains(FIELD), "{page}: {text}");
        let form = between(&text, "<form class=\"everywhere\"", "</form>");
        assert!(form.contains("method=\"get\" action=\"/search\"") && form.contains("name=\"q\""), "{form}");
        assert!(!form.contains("<button"), "{page} has no second button to search");
    }
    for page in ["/search", "/search?q=x"] {
        assert!(!owner.get(page).expect(200).text().contains("Search everywhere"), "{page}");
    }
    assert!(owner.get("/repositories/none").expect(404).text().contains(FIELD), "also an error has it");
    assert!(!Person::new(&server).get("/sign-in").expect(200).text().contains(FIELD));
}

#[test]
fn the_navigation_has_three_groups_with_what_the_member_may_use() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let repository = api.create_maven("lib", &json!({}));
    let mut owner = Person::owner(&server);
    let page = owner.get("/home").expect(200).text();
    assert_eq!(group(&page, "Packages"), ["/home", "/repositories", "/search"]);
    let access = [
        "/members",
        "/teams",
        "/tokens",
        "/service-keys",
        "/service-accounts",
        "/api-tokens",
        "/subscribers",
        "/subscriber-groups",
        "/trusted-publishers",
        "/access",
    ];
    assert_eq!(group(&page, "Access"), access);
    let about_the_server = [
        "/formats",
        "/health",
        "/jobs",
        "/backups",
        "/audit",
        "/policies",
        "/retention",
        "/webhooks",
        "/settings/sign-in",
        "/settings",
    ];
    assert_eq!(group(&page, "Server"), about_the_server);
    for path in [&access[..], &about_the_server].concat() {
        let text = owner.get(path).expect(200).text();
        let current = format!("href=\"{path}\" aria-current=\"page\"");
        let navigation = between(&text, "<nav aria-label=\"Main\">", "</nav>");
        assert!(navigation.contains(&current), "{path}: {navigation}");
        assert_eq!(navigation.matches("aria-current").count(), 1, "{path}: {navigation}");
    }

    let rights =
        json!({"organization": [], "repositories": [{"repository": repository, "actions": ["read"]}]});
    let body = json!({"email": "reader@example.com", "password": PASSWORD, "permissions": rights});
    api.post("/v1/members", &body).expect(201);
    let mut reader = Person::signed_in(&server, "reader@example.com", PASSWORD);
    let page = reader.get("/home").expect(200).text();
    assert_eq!(group(&page, "Packages"), ["/home", "/repositories", "/search"]);
    assert_eq!(group(&page, "Access"), ["/tokens", "/api-tokens", "/access"]);
    assert!(group(&page, "Server").is_empty() && !page.contains(">Server</h2>"), "{page}");
}

#[test]
fn paths_that_moved_lead_to_the_new_ones() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let rule = json!({"name": "ours", "component": "names", "settings": {"publish": ["acme:*"]},
        "repositories": "*"});
    let id = api.post("/v1/policies", &rule).expect(201).field("id");
    let mut owner = Person::owner(&server);
    for (old, new) in [
        ("/".to_owned(), "/home".to_owned()),
        ("/organization/retention".to_owned(), "/retention".to_owned()),
        ("/organization/webhooks".to_owned(), "/webhooks".to_owned()),
        ("/organization/policies".to_owned(), "/policies".to_owned()),
        (
            format!("/organization/policies/{id}?package=a%3Ab&version=1"),
            format!("/policies/{id}?package=a%3Ab&version=1"),
        ),
    ] {
        assert_eq!(owner.get(&old).expect(303).header("location"), Some(new.as_str()), "{old}");
        if new != "/home" {
            owner.get(&new).expect(200);
        }
    }
    // The settings of the organization have both addresses.
    for path in ["/settings", "/organization"] {
        let page = owner.get(path).expect(200).text();
        assert!(page.contains(">Usage<") && page.contains("name=\"quota_bytes\""), "{path}: {page}");
    }
    let fields = [("name", "Acme"), ("quota_bytes", "5000000")];
    let saved = owner.send_form("/settings", &fields).expect(303);
    assert_eq!(saved.header("location"), Some("/settings?done=saved"));
    assert_eq!(api.call("GET", "/v1/organization").expect(200).json()["quota_bytes"], json!(5_000_000));
    let refused = owner.send_form("/settings", &[("name", "Acme"), ("quota_bytes", "much")]);
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("role=\"alert\"") && refused.text().contains("value=\"much\""));
    let mut visitor = Person::new(&server);
    let answer = visitor.get("/organization/policies/1").expect(303);
    assert!(answer.header("location").unwrap().starts_with("/sign-in?return_to="), "the sign-in comes first");
}

#[test]
fn lists_say_their_length_and_begin_with_the_newest_or_the_first_name() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let ids = ["pears", "apples", "quinces"].map(|name| api.create_maven(name, &json!({})));
    for email in ["z@example.com", "a@example.com"] {
        let rights = json!({"organization": [], "repositories": []});
        let body = json!({"email": email, "password": PASSWORD, "permissions": rights});
        api.post("/v1/members", &body).expect(201);
    }
    for number in 0..22 {
        let body = json!({"name": format!("token-{number:02}"), "scope": ["read"], "format": "generic",
            "repositories": ids, "expires_at": null, "confirmation_token": api.confirm("create_token")});
        api.post("/v1/tokens", &body).expect(201);
    }
    let mut owner = Person::owner(&server);
    let ordered = |page: &str, names: &[&str]| {
        let main = between(page, "<ul class=\"rows\">", "<form class=\"card\"");
        let places: Vec<usize> = names.iter().map(|name| main.find(name).expect(name)).collect();
        assert!(places.is_sorted(), "{names:?} at {places:?} in {main}");
    };
    let page = owner.get("/repositories").expect(200).text() + "<form class=\"card\"";
    assert!(page.contains("3 repositories"), "{page}");
    ordered(&page, &[">apples<", ">pears<", ">quinces<"]);
    let page = owner.get("/members").expect(200).text();
    assert!(page.contains("3 members"), "{page}");
    ordered(&page, &["a@example.com", "owner@", "z@example.com"]);
    let page = owner.get("/tokens").expect(200).text();
    assert!(page.contains("The first 20 tokens; more are on the next page"), "{page}");
    ordered(&page, &["token-21", "token-20", "token-02"]);
    let next = page.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let page = owner.get(&next).expect(200).text();
    assert!(page.contains("The last 2 tokens"), "{page}");
    ordered(&page, &["token-01", "token-00"]);
    let listed = api.call("GET", "/v1/tokens?limit=1").expect(200).json();
    assert_eq!(listed["items"][0]["name"], "token-00", "the API keeps its order");
}
