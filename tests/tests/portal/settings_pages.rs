//! Settings of a repository in the portal, the pages of formats, and the filters of the audit log.
//! The forms show only settings that apply, in words and units for people; the API keeps its units.

use packhouse_tests::person::Person;
use packhouse_tests::{Api, Server};
use serde_json::{Value, json};

/// Settings that have a meaning only for a proxy.
const OF_PROXIES: [&str; 11] = [
    "metadata_ttl_s",
    "negative_ttl_s",
    "stale_on_error",
    "min_release_age_s",
    "min_release_age_except",
    "keep_withdrawn",
    "offline",
    "upstream_timeout_s",
    "cache_max_bytes",
    "egress_proxy",
    "ca_pem",
];

fn server() -> Server {
    Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start()
}

fn hosted(api: &Api, name: &str, format: &str) -> String {
    let body = json!({"name": name, "format": format, "kind": "hosted"});
    api.post("/v1/repositories", &body).expect(201).field("id")
}

/// Returns whether a page has a field for this setting.
fn has_field(page: &str, setting: &str) -> bool {
    page.contains(&format!("name=\"setting-{setting}\""))
}

#[test]
fn a_repository_shows_only_settings_that_apply_to_its_kind_and_format() {
    let server = server();
    let api = Api::sign_in(&server);
    let jars = hosted(&api, "jars", "maven");
    hosted(&api, "js", "npm");
    hosted(&api, "images", "docker");
    api.create_proxy("mirror", "maven", "http://127.0.0.1:9/maven2/", &json!({}));
    let group = json!({"name": "all", "format": "maven", "kind": "group", "members": [jars]});
    api.post("/v1/repositories", &group).expect(201);
    let mut owner = Person::owner(&server);
    let mut page = |name: &str| owner.get(&format!("/repositories/{name}/settings")).expect(200).text();
    let (js, images, mirror, all) = (page("js"), page("images"), page("mirror"), page("all"));
    for setting in OF_PROXIES {
        assert!(!has_field(&js, setting) && !has_field(&all, setting), "{setting}");
        assert!(has_field(&mirror, setting), "{setting}: {mirror}");
    }
    for (page, setting, expected) in [
        (&js, "quota_bytes", true),
        (&js, "legacy_names", true),
        (&js, "redeploy", false),
        (&js, "keep_untagged", false),
        (&images, "keep_untagged", true),
        (&images, "republish_deleted", false),
        (&mirror, "quota_bytes", false),
        (&mirror, "checksum_policy", true),
        (&all, "checksum_policy", false),
        (&all, "claimed_names", true),
        (&all, "public", true),
    ] {
        assert_eq!(has_field(page, setting), expected, "{setting}: {page}");
    }
    // Each field has help, labels are words, and dangerous settings are the last ones.
    for page in [&js, &images, &mirror, &all] {
        let settings = page.matches("=\"setting-").count();
        assert!(settings > 0 && !page.contains("ttl (seconds)"), "{page}");
        for field in page.split("name=\"setting-").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            assert!(
                field.ends_with("-unit") || page.contains(&format!("id=\"setting-{field}-hint\"")),
                "{field}: {page}"
            );
        }
        let (before, danger) = page.split_once("Dangerous settings").unwrap_or_else(|| panic!("{page}"));
        assert!(has_field(danger, "public") && !has_field(before, "public"), "{page}");
        assert!(danger.contains(">Save<"), "one button saves all: {page}");
    }
    assert!(mirror.contains("Checksums") && js.contains("Old package names"), "labels of the plugins");
}

#[test]
fn numbers_are_entered_in_units_and_stored_in_those_of_the_api() {
    let server = server();
    let api = Api::sign_in(&server);
    let upstream = "http://127.0.0.1:9/maven2/";
    let id = api.create_proxy("mirror", "maven", upstream, &json!({"negative_ttl_s": 90}));
    let settings =
        || api.call("GET", &format!("/v1/repositories/{id}")).expect(200).json()["settings"].clone();
    let mut owner = Person::owner(&server);
    let path = "/repositories/mirror/settings";
    let mut save = |fields: &[(&str, &str)]| {
        let always =
            [("do", "settings"), ("sent", "yes"), ("upstream", upstream), ("setting-stale_on_error", "yes")];
        owner.send_form(path, &[&always[..], fields].concat())
    };
    save(&[
        ("setting-metadata_ttl_s", "2"),
        ("setting-metadata_ttl_s-unit", "hours"),
        ("setting-cache_max_bytes", "1.5"),
        ("setting-cache_max_bytes-unit", "GB"),
        ("setting-min_release_age_s", "7"),
        ("setting-min_release_age_s-unit", "days"),
    ])
    .expect(303);
    let stored = settings();
    assert_eq!(
        (&stored["metadata_ttl_s"], &stored["cache_max_bytes"], &stored["min_release_age_s"]),
        (&json!(7200), &json!(1_500_000_000), &json!(604_800))
    );
    assert_eq!(stored["negative_ttl_s"], json!(90), "a setting that the form does not contain stays");
    // A number without a unit counts in the API's unit, and an empty field restores the default.
    save(&[("setting-metadata_ttl_s", "77"), ("setting-cache_max_bytes", "")]).expect(303);
    assert_eq!((&settings()["metadata_ttl_s"], &settings()["cache_max_bytes"]), (&json!(77), &Value::Null));
    // The refusal is the API's sentence, next to the field that it is about.
    let wrong = [("setting-metadata_ttl_s", "soon"), ("setting-metadata_ttl_s-unit", "hours")];
    let refused = save(&wrong).expect(400).text();
    let alert =
        refused.split("id=\"setting-metadata_ttl_s-wrong\"").nth(1).unwrap_or_else(|| panic!("{refused}"));
    assert!(alert.starts_with(">The setting `metadata_ttl_s` must be an integer"), "{refused}");
    assert!(refused.contains("value=\"soon\"") && refused.contains("value=\"hours\" selected"), "{refused}");
    let page = owner.get(path).expect(200).text();
    let field = page.split("name=\"setting-min_release_age_s\"").nth(1).unwrap();
    let (field, _) = field.split_once("</select>").unwrap();
    assert!(field.contains("value=\"7\"") && field.contains("value=\"days\" selected"), "{field}");
}

#[test]
fn the_form_of_a_new_repository_explains_its_choices() {
    let server = Server::start();
    let mut owner = Person::owner(&server);
    let page = owner.get("/repositories/new?format=npm&kind=proxy").expect(200).text();
    for part in
        ["value=\"npm\" selected", "value=\"proxy\" selected", "id=\"format-hint\"", "id=\"kind-hint\""]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn formats_are_a_table_and_their_details_have_a_page() {
    let server = Server::start();
    let mut owner = Person::owner(&server);
    let page = owner.get("/formats").expect(200).text();
    assert!(page.contains("href=\"/formats/maven\"") && page.contains("<table>"), "{page}");
    assert!(!page.contains("Memory limit per call") && !page.contains("sha256:"), "{page}");
    let details = owner.get("/formats/maven").expect(200).text();
    for part in ["Memory limit per call", "sha256:", "Checksums", "Switch off"] {
        assert!(details.contains(part), "{part}: {details}");
    }
    owner.get("/formats/none").expect(404);
    let back =
        owner.send_form("/formats", &[("format", "maven"), ("to", "off"), ("details", "yes")]).expect(303);
    assert_eq!(back.header("location"), Some("/formats/maven?done=saved"));
    assert!(owner.get("/formats/maven").expect(200).text().contains("status 503"));
    let back = owner.send_form("/formats", &[("format", "maven"), ("to", "on")]).expect(303);
    assert_eq!(back.header("location"), Some("/formats?done=saved"));
}

#[test]
fn the_audit_log_is_filtered_by_links() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    api.create_maven("one", &json!({}));
    let mut owner = Person::owner(&server);
    let page = owner.get("/audit").expect(200).text();
    let link = "/audit?action=create_repository";
    for part in [link, "/audit?outcome=refused", "/audit?since="] {
        assert!(page.contains(&format!("href=\"{part}")), "{part}: {page}");
    }
    let filtered = owner.get(link).expect(200).text();
    assert_eq!(filtered.matches("<tr>").count(), 2, "the head and one event: {filtered}");
    for part in
        ["Remove action", "href=\"/audit\"", "href=\"/audit?action=create_repository&amp;outcome=refused\""]
    {
        assert!(filtered.contains(part), "{part}: {filtered}");
    }
}
