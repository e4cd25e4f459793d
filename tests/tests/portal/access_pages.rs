//! The pages for access over plain HTTP, without scripts: teams, permissions as a matrix,
//! suspension, service accounts, API tokens, and the page that explains who may do what.

use packhouse_tests::person::{Person, inside};
use packhouse_tests::server::PASSWORD;
use packhouse_tests::{Api, Client, Server};
use serde_json::{Value, json};

/// A name that would run a script if a page rendered it as HTML.
const HOSTILE: &str = "<script>alert('x')</script>\"><img src=x>";

struct AccessFixture {
    server: Server,
    api: Api,
    owner: Person,
    repository: String,
    member: String,
}

fn world() -> AccessFixture {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let repository = api.create_maven("lib", &json!({}));
    let member = json!({"email": "m@example.com", "name": "A member", "password": PASSWORD,
        "permissions": {"organization": [], "repositories": []}});
    let member = api.post("/v1/members", &member).expect(201).field("id");
    let owner = Person::owner(&server);
    AccessFixture { server, api, owner, repository, member }
}

impl AccessFixture {
    /// Creates a team through its page. Returns its id.
    #[track_caller]
    fn create_team(&mut self, fields: &[(&str, &str)]) -> String {
        let answer = self.owner.send_form("/teams", fields).expect(303);
        let location = answer.header("location").unwrap();
        location.strip_prefix("/teams/").unwrap().split('?').next().unwrap().to_owned()
    }

    #[track_caller]
    fn show(&self, path: &str) -> Value {
        self.api.call("GET", path).expect(200).json()
    }

    /// The expiry that the form for a new API token suggests.
    #[track_caller]
    fn expiry(&mut self) -> String {
        let page = self.owner.get("/api-tokens").expect(200).text();
        let field = page.split("name=\"expires\"").nth(1).unwrap();
        field.split("value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    }

    /// Creates a service account with an API token of the scope `read` through their pages. Returns
    /// the account's id and the token's secret.
    #[track_caller]
    fn create_api_token(&mut self, name: &str) -> (String, String) {
        let fields = [("name", name), ("organization", "manage-members"), ("all", "read")];
        let made = self.owner.send_form("/service-accounts", &fields).expect(303);
        let id = made.header("location").unwrap().strip_prefix("/service-accounts/").unwrap();
        let id = id.split('?').next().unwrap().to_owned();
        let expires = self.expiry();
        let (owner, expires) = (id.as_str(), expires.as_str());
        let fields =
            [("do", "create"), ("name", name), ("owner", owner), ("scopes", "read"), ("expires", expires)];
        let page = self.owner.confirm_form("/api-tokens", &fields).expect(201).text();
        (id, inside(&page, "data-secret").unwrap())
    }
}

/// Status of a call with an API token that its scope allows.
fn status(server: &Server, secret: &str) -> u16 {
    Client::new(server.api()).with("Authorization", &format!("Bearer {secret}")).get("/v1/members").status
}

#[test]
fn a_team_is_created_filled_changed_and_deleted() {
    let mut world = world();
    let id = world.create_team(&[
        ("name", "backend"),
        ("description", "Servers and services"),
        ("all", "read"),
        ("external_groups", "eng\r\n\r\n ops "),
    ]);
    let team = world.show(&format!("/v1/teams/{id}"));
    assert_eq!((&team["name"], &team["description"]), (&json!("backend"), &json!("Servers and services")));
    assert_eq!(team["external_groups"], json!(["eng", "ops"]));
    assert_eq!(
        team["permissions"]["repositories"],
        json!([{"repository": "*", "actions": ["read"]}]),
        "{team}"
    );
    let page = format!("/teams/{id}");
    // The page offers only accounts that are not in the team.
    let offer = format!("name=\"members\" value=\"{}\"", world.member);
    assert!(world.owner.get(&page).expect(200).text().contains(&offer));
    world.owner.send_form(&page, &[("do", "add")]).expect(400);
    let member = world.member.clone();
    world.owner.send_form(&page, &[("do", "add"), ("members", &member)]).expect(303);
    let text = world.owner.get(&page).expect(200).text();
    assert!(text.contains(">m@example.com<") && text.contains(">manual<"), "{text}");
    assert!(!text.contains(&offer), "{text}");
    assert!(world.owner.get("/teams").text().contains("<span>1 member</span>"));
    let listed = world.show(&format!("/v1/teams/{id}/members"));
    assert_eq!(listed["items"][0]["id"], json!(member));

    world.owner.send_form(&page, &[("do", "save"), ("name", "platform"), ("all", "publish")]).expect(303);
    let team = world.show(&format!("/v1/teams/{id}"));
    assert_eq!((&team["name"], &team["external_groups"]), (&json!("platform"), &json!([])));
    // The member's page shows what the team gives, and can leave the team.
    let own = format!("/members?member={member}");
    let text = world.owner.get(&own).expect(200).text();
    assert!(text.contains(">platform<") && text.contains("All repositories: publish."), "{text}");
    world.owner.send_form(&own, &[("do", "leave"), ("id", &member), ("team", &id)]).expect(303);
    assert_eq!(world.show(&format!("/v1/teams/{id}/members"))["items"], json!([]));
    world.owner.send_form(&own, &[("do", "join"), ("id", &member), ("team", &id)]).expect(303);
    world.owner.send_form(&page, &[("do", "remove"), ("member", &member)]).expect(303);
    assert!(world.owner.get("/teams").text().contains("<span>0 members</span>"));

    // A name in use is refused next to its field, and the form keeps its values.
    let again = world.owner.send_form("/teams", &[("name", "platform"), ("all", "read")]).expect(409).text();
    assert!(again.contains("id=\"name-wrong\"") && again.contains("name=\"all\" value=\"read\" checked"));
    world.owner.send_form(&page, &[("do", "delete")]).expect(303);
    world.owner.get(&page).expect(404);
}

#[test]
fn permissions_are_saved_and_listed_as_a_matrix() {
    let mut world = world();
    let (member, repository) = (world.member.clone(), world.repository.clone());
    let (member, lib) = (member.as_str(), repository.as_str());
    let page = format!("/members?member={member}");
    let fields = [
        ("do", "permissions"),
        ("id", member),
        ("organization", "manage-subscribers"),
        ("all", "read"),
        ("repositories", lib),
        ("chosen", "publish"),
        ("chosen", "manage"),
        ("chosen-packages", "org.example:*\r\ntool"),
        ("like-0", "team-*"),
        ("like-0-may", "read"),
    ];
    world.owner.send_form(&page, &fields).expect(303);
    let packages = ["org.example:*", "tool"];
    let limited = json!({"repository": lib, "actions": ["publish", "manage"], "packages": packages});
    let named = json!({"repository_name": "team-*", "actions": ["read"]});
    let expected = json!([{"repository": "*", "actions": ["read"]}, limited, named]);
    let permissions = |world: &AccessFixture| {
        world.show(&format!("/v1/members/{member}"))["permissions"]["repositories"].clone()
    };
    assert_eq!(permissions(&world), expected);
    let text = world.owner.get(&page).expect(200).text();
    for part in [
        "name=\"all\" value=\"read\" checked".to_owned(),
        format!("name=\"named\" value=\"{lib}\""),
        format!("name=\"of-{lib}\" value=\"manage\" checked"),
        "org.example:*\ntool</textarea>".to_owned(),
        "name=\"like-0-may\" value=\"read\" checked".to_owned(),
        "publish only packages named".to_owned(),
    ] {
        assert!(text.contains(&part), "{part} in {text}");
    }
    // A role only fills in the form.
    let role = [("do", "permissions"), ("id", member), ("template", "Publisher")];
    let text = world.owner.send_form(&page, &role).expect(200).text();
    assert!(text.contains("name=\"all\" value=\"publish\" checked"), "{text}");
    assert!(!text.contains("name=\"all\" value=\"delete\" checked"), "{text}");
    assert_eq!(permissions(&world), expected);
    // Rows without actions grant nothing.
    let named = format!("of-{lib}");
    let row = named.as_str();
    let fields = [("do", "permissions"), ("id", member), ("named", lib), (row, "read"), ("like-0", "x*")];
    world.owner.send_form(&page, &fields).expect(303);
    assert_eq!(permissions(&world), json!([{"repository": lib, "actions": ["read"]}]));
    // A refusal stands in the form, which keeps its values.
    let wrong = [("do", "permissions"), ("id", member), ("like-0", " "), ("like-0-may", "read")];
    let text = world.owner.send_form(&page, &wrong).expect(400).text();
    assert!(text.contains("role=\"alert\"") && text.contains("name=\"like-0-may\" value=\"read\" checked"));
}

#[test]
fn a_member_is_suspended_and_reactivated() {
    let mut world = world();
    let member = world.member.clone();
    let mut person = Person::signed_in(&world.server, "m@example.com", PASSWORD);
    let page = format!("/members?member={member}");
    assert!(world.owner.get(&page).text().contains(">Suspend</button>"));
    let answer = world.owner.send_form(&page, &[("do", "suspend"), ("id", &member)]).expect(303);
    assert_eq!(answer.header("location").unwrap(), format!("{page}&done=suspended"));
    person.get("/account").expect(303);
    assert_eq!(world.show(&format!("/v1/members/{member}"))["active"], json!(false));
    assert!(world.owner.get("/members").text().contains(">suspended<"));
    let text = world.owner.get(&page).text();
    assert!(text.contains(">Reactivate</button>") && !text.contains(">Suspend</button>"), "{text}");
    world.owner.send_form(&page, &[("do", "reactivate"), ("id", &member)]).expect(303);
    person.get("/account").expect(200);
    // The last owner stays.
    let own = world.show("/v1/me")["id"].as_str().unwrap().to_owned();
    let own_page = format!("/members?member={own}");
    let refused = world.owner.send_form(&own_page, &[("do", "suspend"), ("id", &own)]);
    assert!([403, 409].contains(&refused.status), "{}", refused.text());
    assert!(refused.text().contains("role=\"alert\""), "{}", refused.text());
}

#[test]
fn a_service_account_gets_api_tokens_that_are_rotated_and_revoked() {
    let mut world = world();
    let team = world.create_team(&[("name", "readers"), ("all", "read")]);
    let (id, secret) = world.create_api_token("inventory");
    assert!(secret.starts_with("pka_"), "{secret}");
    assert_eq!(status(&world.server, &secret), 200);
    let account = format!("/service-accounts/{id}");
    let team = team.as_str();
    let saved = [("do", "save"), ("name", "stock"), ("organization", "manage-members"), ("teams", team)];
    world.owner.send_form(&account, &saved).expect(303);
    let text = world.owner.get(&account).expect(200).text();
    assert!(text.contains(&format!("name=\"teams\" value=\"{team}\" checked")), "{text}");
    assert!(text.contains("All repositories: read.") && text.contains(&format!("/api-tokens?owner={id}")));
    assert_eq!(world.show(&format!("/v1/service-accounts/{id}"))["name"], json!("stock"));

    // The tokens of the account are not among the owner's own.
    assert!(!world.owner.get("/api-tokens").expect(200).text().contains(">inventory<"));
    let list = format!("/api-tokens?owner={id}");
    let text = world.owner.get(&list).expect(200).text();
    assert!(text.contains(">inventory<") && text.contains(">active<") && !text.contains(&secret), "{text}");
    let listed = world.show(&format!("/v1/api-tokens?owner={id}"));
    let token = listed["items"][0]["id"].as_str().unwrap();
    let rotate = format!("/api-tokens?rotate={token}");
    assert!(world.owner.get(&rotate).expect(200).text().contains("type=\"password\""));
    let fields = [("do", "rotate"), ("id", token), ("overlap_hours", "2")];
    world.owner.send_form(&rotate, &fields).expect(401);
    let page = world.owner.confirm_form(&rotate, &fields).expect(201).text();
    let successor = inside(&page, "data-secret").unwrap();
    assert_eq!((status(&world.server, &secret), status(&world.server, &successor)), (200, 200));
    assert!(world.owner.get(&list).text().contains(">rotating<"));
    let listed = world.show(&format!("/v1/api-tokens?owner={id}"));
    for one in listed["items"].as_array().unwrap() {
        let (token, owner) = (one["id"].as_str().unwrap(), id.as_str());
        let revoke = [("do", "revoke"), ("id", token), ("owner", owner)];
        let answer = world.owner.send_form(&list, &revoke).expect(303);
        assert_eq!(answer.header("location").unwrap(), format!("/api-tokens?done=revoked&owner={id}"));
    }
    assert_eq!((status(&world.server, &secret), status(&world.server, &successor)), (401, 401));
    world.owner.send_form(&account, &[("do", "delete")]).expect(303);
    world.owner.get(&account).expect(404);
}

#[test]
fn an_api_token_needs_scopes_an_end_and_a_confirmation() {
    let mut world = world();
    let form = [("do", "create"), ("name", "My <b>token</b>"), ("owner", "me")];
    let text = world.owner.send_form("/api-tokens", &form).expect(400).text();
    assert!(text.contains("role=\"alert\""), "{text}");
    assert!(text.contains("value=\"My &lt;b&gt;token&lt;/b&gt;\""), "{text}");
    let page = world.owner.get("/api-tokens").expect(200).text();
    assert!(!page.contains("name=\"never\""), "an API token ends");
    let expires = world.expiry();
    let more = [("scopes", "members"), ("scopes", "read"), ("expires", expires.as_str())];
    let form = [&form[..], &more].concat();
    let text = world.owner.send_form("/api-tokens", &form).expect(200).text();
    assert!(text.contains(">Confirm<") && text.contains("name=\"scopes\" value=\"members\""), "{text}");
    assert_eq!(world.show("/v1/api-tokens")["items"], json!([]));
    world.owner.confirm_form("/api-tokens", &form).expect(201);
    assert_eq!(world.show("/v1/api-tokens")["items"][0]["scopes"], json!(["members", "read"]));
}

#[test]
fn a_token_is_limited_to_packages() {
    let mut world = world();
    let repository = world.repository.clone();
    let repository = repository.as_str();
    let fields = [
        ("do", "create"),
        ("name", "ci"),
        ("scope", "read"),
        ("scope", "write"),
        ("repositories", repository),
        ("packages", "org.example:*"),
        ("format", "generic"),
        ("never", "yes"),
    ];
    world.owner.confirm_form("/tokens", &fields).expect(201);
    assert_eq!(world.show("/v1/tokens")["items"][0]["packages"], json!(["org.example:*"]));
    let text = world.owner.get("/tokens").text();
    assert!(text.contains("writes only packages named <bdi>org.example:*</bdi>"), "{text}");
}

#[test]
fn the_access_page_says_who_may_do_what_and_why() {
    let mut world = world();
    let (member, lib) = (world.member.clone(), world.repository.clone());
    let team = world.create_team(&[
        ("name", "backend"),
        ("repositories", &lib),
        ("chosen", "read"),
        ("chosen", "publish"),
        ("chosen-packages", "org.example:*"),
    ]);
    world.owner.send_form(&format!("/teams/{team}"), &[("do", "add"), ("members", &member)]).expect(303);
    let mut ask = |action: &str, package: &str| {
        let path = format!("/access?member={member}&repository={lib}&action={action}&package={package}");
        world.owner.get(&path).expect(200).text()
    };
    let text = ask("publish", "org.example%3Aa");
    assert!(text.contains(">allowed<") && text.contains(">backend<"), "{text}");
    assert!(text.contains("packages named <bdi>org.example:*</bdi>"), "{text}");
    assert!(ask("publish", "other%3Aa").contains(">denied<"));
    assert!(ask("delete", "").contains(">denied<"));
    // A member sees the own access only.
    let mut person = Person::signed_in(&world.server, "m@example.com", PASSWORD);
    let text = person.get("/access").expect(200).text();
    assert!(text.contains("lib: read; publish only packages named"), "{text}");
    let text = person.get(&format!("/access?repository={lib}&action=read")).expect(200).text();
    assert!(text.contains(">allowed<"), "{text}");
    let owner = world.show("/v1/me")["id"].as_str().unwrap().to_owned();
    let other = format!("/access?member={owner}&repository={lib}&action=read");
    assert!(person.get(&other).expect(403).text().contains("role=\"alert\""));
}

/// The navigation names only the pages that the member's rights open. A refused page contains the
/// API's sentence.
#[test]
fn a_member_without_rights_sees_only_the_own_pages() {
    let world = world();
    let mut person = Person::signed_in(&world.server, "m@example.com", PASSWORD);
    let api = Api::sign_in_as(&world.server, "m@example.com", PASSWORD);
    let text = person.get("/api-tokens").expect(200).text();
    assert!(!text.contains("name=\"owner\""), "only the own account is offered: {text}");
    for (page, is_linked) in
        [("/teams", false), ("/service-accounts", false), ("/api-tokens", true), ("/access", true)]
    {
        assert_eq!(text.contains(&format!("href=\"{page}\"")), is_linked, "{page} in {text}");
        if !is_linked {
            let sentence = api.call("GET", &format!("/v1{page}")).expect(403).field("message");
            let refused = person.get(page).expect(403).text();
            assert!(refused.contains("role=\"alert\"") && refused.contains(&sentence), "{page}: {refused}");
        }
    }
    let csrf = person.csrf("/api-tokens");
    for page in ["/teams", "/service-accounts"] {
        person.post(page, &[("csrf", &csrf), ("name", "mine")]).expect(403);
    }
    assert_eq!(world.show("/v1/teams")["items"], json!([]));
}

#[test]
fn hostile_names_of_teams_and_accounts_are_text() {
    let mut world = world();
    let member = world.member.clone();
    let fields = [
        ("name", HOSTILE),
        ("description", HOSTILE),
        ("all", "publish"),
        ("all-packages", HOSTILE),
        ("like-0", HOSTILE),
        ("like-0-may", "read"),
        ("external_groups", HOSTILE),
    ];
    let team = world.create_team(&fields);
    world.owner.send_form(&format!("/teams/{team}"), &[("do", "add"), ("members", &member)]).expect(303);
    let (account, _) = world.create_api_token(HOSTILE);
    let question = format!("member={member}&repository={}&action=publish", world.repository);
    for page in [
        "/teams",
        &format!("/teams/{team}"),
        "/members",
        &format!("/members?member={member}"),
        "/service-accounts",
        &format!("/service-accounts/{account}"),
        &format!("/api-tokens?owner={account}"),
        "/api-tokens?owner=%22%3E%3Cimg%20src%3Dx%3E",
        &format!("/access?{question}&package=%3Cimg%20src%3Dx%3E"),
        "/audit",
    ] {
        let answer = world.owner.get(page);
        assert!([200, 400, 404].contains(&answer.status), "{page}: {}", answer.status);
        let text = answer.text();
        assert!(!text.contains("<script>") && !text.contains("<img src=x"), "{page}: {text}");
    }
}
