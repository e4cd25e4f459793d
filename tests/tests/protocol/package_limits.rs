//! Credentials that may publish and delete only some packages: passwords and tokens of limited
//! members, and tokens that are limited themselves. Reads are not limited.

mod paths;
mod publishing;

use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, Client, Response, Server};
use publishing::{FORMATS, FormatCase};
use serde_json::{Value, json};

const EMAIL: &str = "limited@example.com";
const PASSWORD: &str = "a password of some length";

/// A hosted repository of a format.
struct LimitedRepository {
    case: &'static FormatCase,
    name: String,
    id: String,
}

/// A server with these repositories.
struct LimitedServer {
    server: Server,
    api: Api,
    repositories: Vec<LimitedRepository>,
}

impl LimitedServer {
    /// Starts a server with a repository of each of these formats.
    fn start(formats: &[&str]) -> Self {
        let server = Server::start();
        let api = Api::sign_in(&server);
        let create = |case: &'static FormatCase| {
            let name = format!("own-{}", case.format);
            let body = json!({"name": name, "format": case.format, "kind": "hosted"});
            let id = api.post("/v1/repositories", &body).expect(201).field("id");
            LimitedRepository { case, name, id }
        };
        let cases = FORMATS.iter().filter(|case| formats.contains(&case.format));
        let repositories = cases.map(create).collect();
        Self { server, api, repositories }
    }

    fn of_all_formats() -> Self {
        Self::start(&FORMATS.map(|case| case.format))
    }

    /// Creates a member who may write only the packages of each case's pattern.
    fn limited_member(&self) {
        let entry = |one: &LimitedRepository| {
            json!({"repository": one.id, "actions": ["read", "publish", "delete"],
                "packages": [one.case.pattern]})
        };
        let entries: Vec<Value> = self.repositories.iter().map(entry).collect();
        let member = json!({"email": EMAIL, "password": PASSWORD, "permissions": {"repositories": entries}});
        self.api.post("/v1/members", &member).expect(201);
    }

    fn password_client(&self) -> Client {
        self.server.anonymous().basic(EMAIL, PASSWORD)
    }

    /// A client of the owner, who is not limited.
    fn owner_client(&self) -> Client {
        let ids: Vec<&str> = self.repositories.iter().map(|one| one.id.as_str()).collect();
        let token = self.api.create_token(&ids, &["read", "write"], None);
        self.server.anonymous().basic(OWNER, &token.secret)
    }

    /// The names of the packages that a repository lists.
    fn packages(&self, repository: &LimitedRepository) -> Vec<String> {
        let path = format!("/v1/repositories/{}/packages", repository.id);
        let listed = self.api.call("GET", &path).expect(200).json();
        let items = listed["items"].as_array().expect("a list").iter();
        items.map(|item| item["name"].as_str().expect("a name").to_owned()).collect()
    }
}

/// Checks the refusal of a package outside the credential's packages, in the format's own form.
#[track_caller]
fn is_refused(case: &FormatCase, answer: Response, verb: &str, package: &str) {
    let answer = answer.expect(403);
    let sentence = format!("This credential may not {verb} {package} here.");
    assert!(answer.text().contains(&sentence), "{}: {}", case.format, answer.text());
    has_code(case, &answer, "scope_mismatch_package");
}

/// Checks the refusal's code where the format's errors have one, and Docker's own code.
#[track_caller]
fn has_code(case: &FormatCase, answer: &Response, code: &str) {
    // The errors of these formats consist of the sentence alone.
    if !matches!(case.format, "cargo" | "go") {
        assert_eq!(answer.field("reason_code"), code, "{}: {}", case.format, answer.text());
    }
    if case.format == "docker" {
        assert_eq!(answer.json()["errors"][0]["code"], "DENIED", "{}", answer.text());
    }
}

/// Publishes the package within the pattern, and checks that nothing else is listed.
#[track_caller]
fn publishes_only_its_own(world: &LimitedServer, repository: &LimitedRepository, client: &Client) {
    let case = repository.case;
    let answer = (case.publish)(client, &repository.name, case.own);
    assert!(answer.status < 300, "{}: {} {}", case.format, answer.status, answer.text());
    assert_eq!(world.packages(repository), [case.own], "{}", case.format);
}

#[test]
fn a_password_publishes_only_the_packages_of_its_member_in_every_format() {
    let world = LimitedServer::of_all_formats();
    world.limited_member();
    let client = world.password_client();
    for repository in &world.repositories {
        let case = repository.case;
        let refused = (case.publish)(&client, &repository.name, case.other);
        is_refused(case, refused, "publish", case.other);
        assert_eq!(world.packages(repository), [""; 0], "{}", case.format);
        publishes_only_its_own(&world, repository, &client);
    }
}

#[test]
fn a_limited_token_publishes_only_its_packages_in_every_format() {
    let world = LimitedServer::of_all_formats();
    for repository in &world.repositories {
        let case = repository.case;
        let body = json!({
            "name": "limited", "scope": ["read", "write"], "format": "generic", "expires_at": null,
            "repositories": [repository.id], "packages": [case.pattern],
            "confirmation_token": world.api.confirm("create_token"),
        });
        let secret = world.api.post("/v1/tokens", &body).expect(201).field("secret");
        let client = world.server.anonymous().basic(OWNER, &secret);
        let refused = (case.publish)(&client, &repository.name, case.other);
        is_refused(case, refused, "publish", case.other);
        publishes_only_its_own(&world, repository, &client);
    }
}

#[test]
fn a_token_of_a_limited_member_has_the_limits_of_its_owner_in_every_format() {
    let world = LimitedServer::of_all_formats();
    world.limited_member();
    let member = Api::sign_in_as(&world.server, EMAIL, PASSWORD);
    for repository in &world.repositories {
        let case = repository.case;
        let token = member.create_token(&[&repository.id], &["read", "write"], None);
        let client = world.server.anonymous().basic(EMAIL, &token.secret);
        let refused = (case.publish)(&client, &repository.name, case.other).expect(403);
        has_code(case, &refused, "revoked-authority-clamp");
        assert_eq!(world.packages(repository), [""; 0], "{}", case.format);
        publishes_only_its_own(&world, repository, &client);
    }
}
