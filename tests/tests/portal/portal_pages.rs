//! Accessibility of every page: axe-core in light and dark mode, 320 and 1280 pixels wide. No page
//! is wider than the screen, is heavier than 60 KiB with its assets, or loads anything from another
//! host.

use packhouse_tests::chromium::Chromium;
use packhouse_tests::person::Person;
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Request, Server, checkout, skip};
use serde_json::{Value, json};

/// Maximum size of a page with its style sheet and its script, uncompressed.
const WEIGHT: usize = 60 * 1024;
/// A script that runs axe with the rules of WCAG 2.2 at level AA.
const LOOK: &str = "const done = arguments[arguments.length - 1]; \
    axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']}).then( \
    found => done(found.violations.map(one => one.id + ': ' + one.nodes.map(node => node.html + ' ' + node.failureSummary).join(' | '))), \
    error => done([String(error)]))";

/// Returns the time one hour from now, in ms since 1970.
fn soon() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_millis() as i64 + 3_600_000
}

/// A server with content for every page, and the paths of these pages.
struct PortalContent {
    server: Server,
    pages: Vec<String>,
}

fn world() -> PortalContent {
    let server = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
    let api = Api::sign_in(&server);
    let repository = api.create_maven("releases", &json!({}));
    api.create_proxy("central", "maven", "http://127.0.0.1:9/maven2/", &json!({}));
    let group = json!({"name": "all", "format": "maven", "kind": "group", "members": [repository]});
    api.post("/v1/repositories", &group).expect(201);
    let images = api.create_proxy("hub", "docker", "http://127.0.0.1:9/", &json!({}));
    assert!(!images.is_empty());
    let token = api.create_token(&[&repository], &["read", "write"], None);
    let client = server.anonymous().with("Authorization", &format!("Bearer {}", token.secret));
    for version in ["1.0", "1.1"] {
        let jar = format!("/repositories/releases/org/example/hello/{version}/hello-{version}");
        client.put(&format!("{jar}.jar"), "a jar").expect(201);
        let pom = format!(
            "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId><artifactId>hello</artifactId>\
            <version>{version}</version><description>Says hello</description></project>"
        );
        client.put(&format!("{jar}.pom"), pom).expect(201);
    }
    let expired = api.create_token(&[&repository], &["read"], Some(4_102_444_800_000));
    api.call("DELETE", &format!("/v1/tokens/{}", expired.id)).expect(204);
    let subscriber = api
        .post("/v1/subscribers", &json!({"name": "A customer", "repositories": [repository]}))
        .expect(201)
        .field("id");
    let group = json!({"name": "All customers", "subscribers": [subscriber], "repositories": [repository]});
    let group = api.post("/v1/subscriber-groups", &group).expect(201).field("id");
    let key = json!({"name": "theirs", "expires_at": null, "confirmation_token": api.confirm("manage_access_keys")});
    let key = api.post(&format!("/v1/subscribers/{subscriber}/access-keys"), &key).expect(201).field("id");
    let member = json!({"email": "member@example.com", "name": "A member", "password": PASSWORD,
        "permissions": {"organization": ["manage-members"], "repositories": [{"repository": repository, "actions": ["read"]}]}});
    let member = api.post("/v1/members", &member).expect(201).field("id");
    let team = json!({"name": "backend", "description": "Servers", "external_groups": ["eng"], "permissions": {"repositories": [
        {"repository": repository, "actions": ["read", "publish"], "packages": ["org.example:*"]},
        {"repository_name": "team-*", "actions": ["read", "manage"]}]}});
    let team = api.post("/v1/teams", &team).expect(201).field("id");
    api.call("PUT", &format!("/v1/teams/{team}/members/{member}")).expect(204);
    let account = json!({"name": "inventory", "permissions": {}, "teams": [team]});
    let account = api.post("/v1/service-accounts", &account).expect(201).field("id");
    let program = api.create_api_token(&account, &["read"], &[]).id;
    let policy = json!({"name": "old ones", "repositories": [repository], "delete": {"not_downloaded_days": 90}, "keep": {"newest": 3},
        "max_deletes": 100});
    let policy = api.post("/v1/retention-policies", &policy).expect(201).field("id");
    let rule = json!({"name": "our licences", "component": "licences", "settings": {"allow": ["MIT"], "unknown": "deny"}, "repositories": [repository]});
    let rule = api.post("/v1/policies", &rule).expect(201).field("id");
    let exception = json!({"package": "*", "reason": "until it is sorted out", "until": soon()});
    api.post(&format!("/v1/policies/{rule}/exceptions"), &exception).expect(201);
    let claims =
        json!({"repository_owner": "octo-org", "repository": "octo-repo", "workflow": "release.yml"});
    let publisher = json!({"repository": repository, "provider": "github", "claims": claims, "packages": ["*"], "scope": ["write"]});
    api.post("/v1/trusted-publishers", &publisher).expect(201);
    let hook = json!({"url": "https://hooks.example/x", "events": ["package.published", "tag.moved"], "repositories": [repository]});
    let hook = api.post("/v1/webhooks", &hook).expect(201).field("id");
    let packages = api.call("GET", &format!("/v1/repositories/{repository}/packages")).expect(200).json();
    let package = packages["items"][0]["name"].as_str().unwrap().replace(':', "%3A");
    let login = Request::new("POST", "/repositories/js/-/v1/login")
        .header("Content-Type", "application/json")
        .body("{}");
    api.post("/v1/repositories", &json!({"name": "js", "format": "npm", "kind": "hosted"})).expect(201);
    let login = server.anonymous().send(login).expect(200).field("loginUrl");
    let login = login.split_once("/npm-login/").unwrap().1.to_owned();
    let component = std::fs::read(checkout().join("target/release/guests/raw.wasm")).unwrap();
    let component =
        Request::new("POST", "/v1/plugins").header("Content-Type", "application/wasm").body(component);
    api.request(component).expect(201);
    let pages = [
        "/home".to_owned(),
        "/repositories".to_owned(),
        "/repositories/new".to_owned(),
        "/repositories/releases".to_owned(),
        "/repositories/releases?q=none".to_owned(),
        "/repositories/js".to_owned(),
        "/repositories/central/connection".to_owned(),
        "/repositories/releases/connection".to_owned(),
        "/repositories/js/connection".to_owned(),
        "/repositories/hub/connection".to_owned(),
        "/repositories/releases/settings".to_owned(),
        "/repositories/releases/trusted-publishers".to_owned(),
        "/repositories/all/settings".to_owned(),
        "/repositories/hub/settings".to_owned(),
        "/repositories/js/settings".to_owned(),
        "/repositories/central/settings".to_owned(),
        "/repositories/central/cache".to_owned(),
        format!("/repositories/releases/packages/{package}"),
        format!("/repositories/releases/packages/{package}/versions/1.0"),
        "/search?q=hello".to_owned(),
        "/tokens".to_owned(),
        format!("/tokens?rotate={}", token.id),
        "/service-keys".to_owned(),
        "/subscribers".to_owned(),
        format!("/subscribers/{subscriber}"),
        format!("/subscribers/{subscriber}?rotate={key}"),
        format!("/subscribers/{subscriber}?revoke={key}"),
        "/subscriber-groups".to_owned(),
        format!("/subscriber-groups/{group}"),
        "/members".to_owned(),
        "/members?new=member".to_owned(),
        format!("/members?member={member}"),
        "/teams".to_owned(),
        format!("/teams/{team}"),
        "/service-accounts".to_owned(),
        format!("/service-accounts/{account}"),
        format!("/api-tokens?owner={account}"),
        format!("/api-tokens?rotate={program}"),
        "/access".to_owned(),
        format!("/access?member={member}&repository={repository}&action=publish&package=a"),
        "/settings/sign-in".to_owned(),
        "/formats".to_owned(),
        "/formats/maven".to_owned(),
        "/formats/raw".to_owned(),
        "/audit".to_owned(),
        "/audit?action=create_repository&outcome=allowed".to_owned(),
        "/health".to_owned(),
        "/jobs".to_owned(),
        "/backups".to_owned(),
        "/settings".to_owned(),
        "/trusted-publishers".to_owned(),
        "/retention".to_owned(),
        format!("/retention/{policy}"),
        "/policies".to_owned(),
        format!("/policies/{rule}"),
        "/webhooks".to_owned(),
        format!("/webhooks/{hook}"),
        "/repositories/releases/trash".to_owned(),
        "/account".to_owned(),
        "/account/second-factor".to_owned(),
        "/sign-out".to_owned(),
        format!("/npm-login/{login}"),
        "/repositories/none".to_owned(),
    ];
    PortalContent { server, pages: pages.into() }
}

fn axe() -> Option<String> {
    let file = checkout().join(".tools/axe-core/node_modules/axe-core/axe.min.js");
    std::fs::read_to_string(file).ok()
}

/// Collects the problems of the browser's current page, for each colour scheme and width.
fn look(browser: &Chromium, axe: &str, page: &str, wrong: &mut Vec<String>) {
    for dark in [false, true] {
        for width in [320, 1280] {
            browser.screen(width, 900, dark);
            browser.run(axe, &json!([]));
            let found = browser.run_to_its_end(LOOK, &json!([]));
            let found = found.as_array().unwrap().iter().filter_map(Value::as_str);
            wrong.extend(found.map(|one| format!("{page} at {width}, dark {dark}: {one}")));
            let wide =
                browser.run("return document.documentElement.scrollWidth", &json!([])).as_u64().unwrap();
            if wide > u64::from(width) {
                wrong.push(format!("{page} is {wide} pixels wide on a screen of {width}"));
            }
            let name: String = page
                .chars()
                .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
                .collect();
            if dark == (width == 320) {
                browser.picture(&checkout().join(format!("target/pictures/portal/{width}{name}.png")));
            }
        }
    }
}

#[test]
fn every_page_passes_axe_in_light_and_dark_narrow_and_wide() {
    let browser = match Chromium::with_scripts() {
        Ok(browser) => browser,
        Err(reason) => return skip("chromium", &reason),
    };
    let Some(axe) = axe() else { return skip("axe-core", "npm did not give it") };
    let PortalContent { server, pages } = world();
    let at = |path: &str| format!("http://{}{path}", server.api());
    let mut wrong = Vec::new();
    for path in ["/sign-in", "/invitations/none"] {
        browser.open(&at(path));
        look(&browser, &axe, path, &mut wrong);
    }
    browser.open(&at("/sign-in"));
    browser.fill("E-mail", OWNER);
    browser.fill("Password", "wrong");
    browser.press("Sign in");
    browser.text("[role=alert]");
    look(&browser, &axe, "/sign-in refused", &mut wrong);
    browser.fill("Password", PASSWORD);
    browser.press("Sign in");
    browser.comes_to("Repositories - Packhouse");
    for page in &pages {
        browser.open(&at(page));
        look(&browser, &axe, page, &mut wrong);
    }
    // The test also checks the pages that appear after submitting a form.
    let retention = pages.iter().find(|page| page.starts_with("/retention/")).unwrap();
    browser.open(&at(retention));
    browser.press("Preview");
    browser.text("section[role=status]");
    look(&browser, &axe, "/retention preview", &mut wrong);
    let rule = pages.iter().find(|page| page.starts_with("/policies/")).unwrap();
    browser.open(&at(rule));
    browser.press("Preview");
    browser.text("section[role=status]");
    look(&browser, &axe, "/policies preview", &mut wrong);
    browser.open(&at("/tokens?repository=releases"));
    browser.fill("Name", "looked at");
    browser.press("Create token");
    browser.comes_to("Confirm the new token - Packhouse");
    look(&browser, &axe, "/tokens confirm", &mut wrong);
    browser.fill("Password", PASSWORD);
    browser.press("Confirm");
    browser.comes_to("Token created - Packhouse");
    look(&browser, &axe, "/tokens created", &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let policy: Vec<String> =
        browser.complaints().into_iter().filter(|line| line.contains("Security Policy")).collect();
    assert!(policy.is_empty(), "{policy:?}");
}

#[test]
fn no_page_exceeds_60_kib_or_requests_another_host() {
    let PortalContent { server, pages } = world();
    let mut owner = Person::owner(&server);
    let api = Api::sign_in(&server);
    // Long lists of repositories to choose from, tokens and packages.
    let mut ids = Vec::new();
    for number in 0..120 {
        ids.push(api.create_maven(&format!("a-repository-with-a-long-name-{number}"), &json!({})));
    }
    for _ in 0..25 {
        api.create_token(&ids.iter().map(String::as_str).collect::<Vec<_>>(), &["read", "write"], None);
    }
    let assets = owner.get("/account").text();
    let assets: Vec<String> = assets
        .split("\"/assets/")
        .skip(1)
        .map(|rest| format!("/assets/{}", rest.split('"').next().unwrap()))
        .collect();
    let mut names = assets.clone();
    names.sort();
    names.dedup();
    let assets: usize = names.iter().map(|path| owner.get(path).expect(200).body.len()).sum();
    for page in &pages {
        let answer = owner.get(page);
        let weight = answer.body.len() + assets;
        assert!(weight <= WEIGHT, "{page} weighs {weight} bytes");
        let text = answer.text();
        for (attribute, own) in
            [("src=\"", "/assets/"), ("action=\"", "/"), ("rel=\"stylesheet\" href=\"", "/assets/")]
        {
            for value in text.split(attribute).skip(1) {
                assert!(
                    value.starts_with(own) && !value.starts_with("//"),
                    "{page}: {attribute}{}",
                    &value[..40.min(value.len())]
                );
            }
        }
    }
}
