//! Configuration as code: `packhouse apply` brings a server to the state of documents in a folder,
//! and `packhouse export-config` writes such documents.

use packhouse_tests::cli::RemoteCli;
use packhouse_tests::clients::ProgramOutput;
use packhouse_tests::http::basic;
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Server, images};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Actions of an API token that applies documents.
const SENSITIVE: [&str; 3] = ["set_upstream_credentials", "manage_publishers", "manage_webhooks"];

const REPOSITORIES: &str = "\
kind: Repository
name: all
spec:
  format: maven
  kind: group
  members: [libs, outside]
---
kind: Repository
name: libs
spec:
  format: maven
  kind: hosted
  settings: {trash_days: 3}
---
kind: Repository
name: outside
spec:
  format: maven
  kind: proxy
  upstream: {url: https://repo.example/maven2}
  settings: {offline: true, claimed_names: [\"org.example:*\"]}
";

const PEOPLE: &str = "\
kind: ServiceAccount
name: ci
spec:
  permissions:
    repositories:
      - {repository: libs, actions: [publish, read], packages: [\"org.example:*\"]}
---
kind: Team
name: developers
spec:
  description: All who develop
  permissions:
    organization: [manage-subscribers]
    repositories:
      - {repository: \"*\", actions: [read]}
      - {repository_name: \"lib*\", actions: [publish]}
  external_groups: [dev]
  members: [ci, owner@example.com]
";

const RULES: &str = "\
kind: TrustedPublisher
name: release of widgets
spec:
  repository: libs
  provider: github
  claims: {repository_owner: acme, repository: widgets, workflow: release.yml}
  packages: [\"org.example:*\"]
  scope: [read, write]
---
kind: Policy
name: licences
spec:
  component: licences
  settings: {allow: [MIT]}
  repositories: [libs]
  mode: enforced
---
kind: RetentionPolicy
name: old snapshots
spec:
  repositories: [libs]
  match: {versions: [\"*-SNAPSHOT\"]}
  delete: {published_before_days: 90}
  max_deletes: 100
  mode: enforced
---
kind: Webhook
name: http://127.0.0.1:9/hook
spec:
  events: [package.published, package.deleted]
  repositories: \"*\"
  state: paused
  secret_file: hook.secret
";

struct ApplyFixture {
    server: Server,
    api: Api,
    remote: RemoteCli,
    folder: PathBuf,
}

impl ApplyFixture {
    fn new() -> Self {
        let server = Server::with().arg("--upstream-allow-networks").arg("127.0.0.0/8:*").start();
        let api = Api::sign_in(&server);
        let token = api.create_api_token("me", &["all"], &SENSITIVE);
        let remote = RemoteCli::new(&server, &token.secret);
        let folder = remote.home().join("config");
        fs::create_dir(&folder).unwrap();
        Self { server, api, remote, folder }
    }

    /// A fixture whose server has everything that the documents describe.
    fn applied() -> Self {
        let fixture = Self::new();
        fixture.write_all();
        fixture.apply(&[]).success();
        fixture
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).unwrap();
    }

    fn write_all(&self) {
        for (name, text) in
            [("repositories.yaml", REPOSITORIES), ("people.yaml", PEOPLE), ("rules.yaml", RULES)]
        {
            self.write(name, text);
        }
    }

    fn words<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        [&["apply", "-f", self.folder.to_str().unwrap()][..], more].concat()
    }

    #[track_caller]
    fn apply(&self, more: &[&str]) -> ProgramOutput {
        self.remote.run(&self.words(more))
    }

    /// Applies the documents and returns the last line of the output.
    #[track_caller]
    fn last_line(&self, more: &[&str]) -> String {
        let text = self.apply(more).success().text;
        text.lines().last().unwrap_or_default().to_owned()
    }

    #[track_caller]
    fn list(&self, path: &str) -> Vec<Value> {
        let listed = self.api.call("GET", &format!("/v1/{path}?limit=200")).expect(200).json();
        listed["items"].as_array().unwrap().clone()
    }

    /// The only object of a list with this value in a field.
    #[track_caller]
    fn object(&self, path: &str, field: &str, value: &str) -> Value {
        let found: Vec<Value> = self.list(path).into_iter().filter(|one| one[field] == value).collect();
        assert_eq!(found.len(), 1, "{path} {value}: {found:?}");
        found[0].clone()
    }

    fn id(&self, path: &str, name: &str) -> String {
        self.object(path, "name", name)["id"].as_str().unwrap().to_owned()
    }
}

const UNCHANGED: &str = "0 created, 0 changed, 0 deleted, 9 unchanged, 0 left alone";

#[test]
fn documents_create_everything_and_a_second_run_changes_nothing() {
    let fixture = ApplyFixture::new();
    fixture.write_all();
    let planned = fixture.apply(&["--dry-run"]).success().text;
    assert!(
        planned.ends_with("9 to create, 0 to change, 0 to delete, 0 unchanged, 0 left alone\n"),
        "{planned}"
    );
    assert!(fixture.list("repositories").is_empty() && fixture.list("teams").is_empty());

    let text = fixture.apply(&[]).success().text;
    let created: Vec<&str> = text.lines().filter(|line| line.starts_with("create ")).collect();
    let expected = [
        "create Repository libs",
        "create Repository outside",
        "create Repository all",
        "create Team developers",
        "create ServiceAccount ci",
        "create TrustedPublisher release of widgets",
        "create Policy licences",
        "create RetentionPolicy old snapshots",
        "create Webhook http://127.0.0.1:9/hook",
    ];
    assert_eq!(created, expected, "{text}");
    assert!(text.ends_with("9 created, 0 changed, 0 deleted, 0 unchanged, 0 left alone\n"), "{text}");

    let libs = fixture.id("repositories", "libs");
    let all = fixture.object("repositories", "name", "all");
    assert_eq!(all["members"], json!([libs, fixture.id("repositories", "outside")]));
    let team = fixture.object("teams", "name", "developers");
    assert_eq!((&team["members"], &team["external_groups"]), (&json!(2), &json!(["dev"])));
    let account = fixture.object("service-accounts", "name", "ci");
    let entry = &account["permissions"]["repositories"][0];
    assert_eq!((&entry["repository"], &entry["packages"]), (&json!(libs), &json!(["org.example:*"])));
    assert_eq!(account["teams"], json!([team["id"]]));
    assert_eq!(fixture.object("policies", "name", "licences")["mode"], "enforced");
    assert_eq!(fixture.object("retention-policies", "name", "old snapshots")["mode"], "enforced");
    assert_eq!(fixture.list("webhooks")[0]["state"], "paused");
    let secret = fixture.folder.join("hook.secret");
    assert!(fs::read_to_string(&secret).unwrap().starts_with("whsec_"));
    assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!text.contains("whsec_"), "{text}");

    let events = fixture.list("audit-events").len();
    assert_eq!(fixture.apply(&[]).success().text.trim_end(), UNCHANGED);
    assert_eq!(fixture.list("audit-events").len(), events, "a second run writes nothing");
}

#[test]
fn drift_is_listed_by_name_and_removed() {
    let fixture = ApplyFixture::applied();
    let libs = format!("/v1/repositories/{}", fixture.id("repositories", "libs"));
    fixture.api.patch(&libs, &json!({"settings": {"trash_days": 9}})).expect(200);
    let team = format!("/v1/teams/{}", fixture.id("teams", "developers"));
    fixture.api.patch(&team, &json!({"description": "Some"})).expect(200);
    let owner = fixture.api.call("GET", "/v1/me").expect(200).field("id");
    fixture.api.call("DELETE", &format!("{team}/members/{owner}")).expect(204);
    let retention = format!("/v1/retention-policies/{}", fixture.id("retention-policies", "old snapshots"));
    fixture.api.patch(&retention, &json!({"max_deletes": 7})).expect(200);
    let publisher = fixture.list("trusted-publishers")[0]["id"].as_str().unwrap().to_owned();
    fixture.api.call("DELETE", &format!("/v1/trusted-publishers/{publisher}")).expect(204);

    let text = fixture.apply(&[]).success().text;
    for line in [
        "change Repository libs",
        "  settings.trash_days: 9 → 3",
        "change Team developers",
        "  description: \"Some\" → \"All who develop\"",
        "  members: [\"ci\"] → [\"ci\",\"owner@example.com\"]",
        "change RetentionPolicy old snapshots",
        "  max_deletes: 7 → 100",
        "  mode: \"paused\" → \"enforced\"",
        "create TrustedPublisher release of widgets",
        "1 created, 3 changed, 0 deleted, 5 unchanged, 0 left alone",
    ] {
        assert!(text.lines().any(|found| found == line), "{line:?}:\n{text}");
    }
    assert_eq!(fixture.last_line(&[]), UNCHANGED);
    assert_eq!(fixture.object("retention-policies", "name", "old snapshots")["mode"], "enforced");

    // A changed publisher is replaced, because the API cannot change it.
    fixture
        .write("rules.yaml", &RULES.replace("packages: [\"org.example:*\"]", "packages: [\"org.other:*\"]"));
    assert!(fixture.last_line(&[]).starts_with("0 created, 1 changed, 0 deleted"));
    let publishers = fixture.list("trusted-publishers");
    assert_eq!((publishers.len(), &publishers[0]["packages"]), (1, &json!(["org.other:*"])));
}

#[test]
fn an_interrupted_run_is_continued_by_the_next_one() {
    let fixture = ApplyFixture::new();
    let document = |number: usize| {
        format!(
            "kind: Repository\nname: r{number:03}\nspec: {{format: maven, kind: hosted, settings: {{trash_days: 2}}}}\n"
        )
    };
    let documents: Vec<String> = (0..150).map(document).collect();
    fixture.write_all();
    fixture.write("many.yaml", &documents.join("---\n"));
    let words = [&fixture.words(&[])[..], &["--server", fixture.remote.address()]].concat();
    let mut child = fixture.remote.command(&words).spawn().unwrap();
    eventually("the first repositories exist", || (fixture.list("repositories").len() > 3).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    fixture.apply(&[]).success();
    assert_eq!(fixture.list("repositories").len(), 153);
    let unchanged = "0 created, 0 changed, 0 deleted, 159 unchanged, 0 left alone";
    assert_eq!(fixture.last_line(&[]), unchanged);
}

#[test]
fn pruning_deletes_only_what_is_safe() {
    let fixture = ApplyFixture::applied();
    for name in ["empty", "full"] {
        fixture.api.create_maven(name, &json!({}));
    }
    let full = fixture.id("repositories", "full");
    let token = fixture.api.create_token(&[&full], &["read", "write"], None);
    let client = fixture.server.anonymous().basic(OWNER, &token.secret);
    client.put("/repositories/full/org/example/a/1.0/a-1.0.jar", "hello").expect(201);
    let body = json!({"name": "old team", "permissions": {}});
    fixture.api.post("/v1/teams", &body).expect(201);

    let text = fixture.apply(&[]).success().text;
    assert!(text.contains("left alone Repository empty: no document describes it"), "{text}");
    assert!(text.ends_with("0 created, 0 changed, 0 deleted, 9 unchanged, 3 left alone\n"), "{text}");
    let planned = fixture.apply(&["--prune", "--dry-run"]).success().text;
    assert!(
        planned.contains("delete Repository empty\n") && planned.contains("delete Team old team\n"),
        "{planned}"
    );
    assert_eq!(fixture.list("repositories").len(), 5);
    eventually("the package is counted", || {
        (fixture.object("repositories", "name", "full")["packages"] == 1).then_some(())
    });
    let text = fixture.apply(&["--prune"]).success().text;
    assert!(text.contains("left alone Repository full: it has packages"), "{text}");
    assert!(text.ends_with("9 unchanged, 1 left alone\n"), "{text}");
    let names: Vec<Value> = fixture.list("repositories").iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    assert_eq!(fixture.list("teams").len(), 1);
    let deleted = fixture.last_line(&["--prune", "--prune-repositories"]);
    assert_eq!(deleted, "0 created, 0 changed, 1 deleted, 9 unchanged, 0 left alone");

    // Kinds without a document stay untouched.
    fs::remove_file(fixture.folder.join("rules.yaml")).unwrap();
    fs::remove_file(fixture.folder.join("people.yaml")).unwrap();
    assert_eq!(fixture.last_line(&["--prune"]), "0 created, 0 changed, 0 deleted, 3 unchanged, 0 left alone");
    assert_eq!((fixture.list("webhooks").len(), fixture.list("teams").len()), (1, 1));
}

#[test]
fn the_owner_of_the_api_token_is_not_pruned() {
    let fixture = ApplyFixture::applied();
    let all = json!({"organization": ["manage-members", "manage-repositories"], "repositories": [
        {"repository": "*", "actions": ["read", "publish", "delete", "manage"]}]});
    let body = json!({"name": "automation", "permissions": all});
    let account = fixture.api.post("/v1/service-accounts", &body).expect(201).field("id");
    let token = fixture.api.create_api_token(&account, &["all"], &SENSITIVE);
    let remote = RemoteCli::new(&fixture.server, &token.secret);
    fs::remove_file(fixture.folder.join("rules.yaml")).unwrap();
    fixture.write("people.yaml", "kind: ServiceAccount\nname: ci\nspec: {}\n");
    let text = remote.run(&fixture.words(&["--prune"])).success().text;
    assert!(text.contains("left alone ServiceAccount automation: it owns the API token"), "{text}");
}

#[test]
fn secrets_come_from_outside_of_the_documents() {
    let fixture = ApplyFixture::new();
    let upstream = Upstream::start();
    let manifest = images::manifest(&[b"layer"]);
    let digest = images::digest(manifest.as_bytes());
    let answer = Answer::ok(manifest)
        .header("Content-Type", images::MANIFEST)
        .header("Docker-Content-Digest", &digest)
        .guarded(&basic("robot", "a canary"), "Basic realm=\"registry\"");
    for reference in ["1", &digest] {
        upstream.on(&format!("/v2/lib/app/manifests/{reference}"), answer.clone());
    }
    let document = format!(
        "kind: Repository\nname: mirror\nspec:\n  format: docker\n  kind: proxy\n  upstream:\n    url: {}\n    credentials: {{username: robot, password: {{from_env: UPSTREAM_PASSWORD}}}}\n",
        upstream.url()
    );
    fixture.write("mirror.yaml", &document);
    fixture.apply(&["--dry-run"]).success();
    fixture.apply(&[]).refused("UPSTREAM_PASSWORD");
    assert!(fixture.list("repositories").is_empty(), "nothing is created if a secret is missing");
    let words = [&fixture.words(&[])[..], &["--server", fixture.remote.address()]].concat();
    let run = || -> ProgramOutput {
        fixture.remote.command(&words).env("UPSTREAM_PASSWORD", "a canary").output().unwrap().into()
    };
    let text = run().success().text;
    assert!(text.contains("1 created") && !text.contains("canary"), "{text}");
    let id = fixture.id("repositories", "mirror");
    let token = fixture.api.create_token(&[&id], &["read"], None);
    let client = fixture.server.anonymous().basic(OWNER, &token.secret);
    client.get("/v2/repositories/mirror/lib/app/manifests/1").expect(200);
    // The credentials cannot be compared, so each run writes them and says so.
    let text = run().success().text;
    assert!(text.contains("write Repository mirror") && text.contains("0 changed"), "{text}");

    let into = fixture.remote.home().join("exported");
    let output = fixture.remote.run(&["export-config", "--into", into.to_str().unwrap()]).success().text;
    assert!(output.contains("repositories.yaml: 1 documents"), "{output}");
    let text = fs::read_to_string(into.join("repositories.yaml")).unwrap();
    assert!(text.contains("mirror") && !text.contains("canary") && !text.contains("credentials"), "{text}");
}

#[test]
fn an_export_changes_nothing_on_its_server_and_makes_the_same_on_another() {
    let fixture = ApplyFixture::applied();
    let into = fixture.remote.home().join("exported");
    let export = ["export-config", "--into", into.to_str().unwrap()];
    fixture.remote.run(&export).success();
    fixture.remote.run(&export).refused("--overwrite");
    fixture.remote.run(&[&export[..], &["--overwrite"]].concat()).success();
    let exported: Vec<PathBuf> = files(&into);
    assert_eq!(exported.len(), 7, "{exported:?}");
    assert!(exported.iter().all(|file| !fs::read_to_string(file).unwrap().contains("whsec_")));
    let text = fixture.remote.run(&["export-config"]).success().text;
    assert!(text.contains("kind: \"Webhook\"") && text.contains("kind: \"Team\""), "{text}");

    let apply = ["apply", "-f", into.to_str().unwrap(), "--prune"];
    let text = fixture.remote.run(&apply).success().text;
    assert_eq!(text.trim_end(), UNCHANGED);

    // The secret of a webhook is never exported, so a new one needs a file.
    let other = ApplyFixture::new();
    other.remote.run(&apply).refused("secret_file");
    let hooks = into.join("webhooks.yaml");
    let named = fs::read_to_string(&hooks).unwrap() + "  secret_file: hook.secret\n";
    fs::write(&hooks, named).unwrap();
    assert!(
        other
            .remote
            .run(&apply)
            .success()
            .text
            .ends_with("9 created, 0 changed, 0 deleted, 0 unchanged, 0 left alone\n")
    );
    assert_eq!(other.remote.run(&apply).success().text.trim_end(), UNCHANGED);
    assert_eq!(other.object("policies", "name", "licences")["mode"], "enforced");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn wrong_documents_are_refused_with_file_and_line() {
    let fixture = ApplyFixture::new();
    fixture.apply(&[]).refused("has no file whose name ends with .yaml");
    for (text, words) in [
        (REPOSITORIES.replace("kind: hosted", "kind: hosted\n  colour: red"), "`colour`"),
        (format!("{REPOSITORIES}---\n{REPOSITORIES}"), "is also described in a.yaml:1"),
        (
            REPOSITORIES.replace("[libs, outside]", "[libs, absent]"),
            "a.yaml:1: Repository \"all\": `members` names",
        ),
        (PEOPLE.replace("owner@example.com", "absent@example.com"), "absent@example.com"),
    ] {
        fixture.write("a.yaml", &text);
        let refused = fixture.apply(&[]).refused(words).text;
        assert!(refused.contains("a.yaml") && refused.contains("nothing was changed"), "{refused}");
    }
    assert!(fixture.list("repositories").is_empty());
    // A sentence of the API names the document, and what was done stays done.
    let bad = REPOSITORIES.replace("offline: true", "offline: perhaps");
    fixture.write("a.yaml", &bad);
    fixture.apply(&[]).refused("Repository \"outside\" failed: The setting `offline`");
    fixture.write("a.yaml", REPOSITORIES);
    assert_eq!(fixture.last_line(&[]), "2 created, 0 changed, 0 deleted, 1 unchanged, 0 left alone");
    fixture.write("a.yaml", &REPOSITORIES.replace("kind: hosted", "kind: proxy"));
    fixture.apply(&[]).refused("cannot be changed");
}

#[test]
fn the_token_needs_the_rights_and_the_confirmations() {
    let fixture = ApplyFixture::new();
    fixture.write_all();
    let reads = fixture.api.create_api_token("me", &["read"], &[]);
    let reads = RemoteCli::new(&fixture.server, &reads.secret);
    reads.run(&fixture.words(&["--dry-run"])).success();
    reads.run(&fixture.words(&[])).refused("Repository \"libs\" failed: This API token may not do this");
    let plain = fixture.api.create_api_token("me", &["all"], &[]);
    let plain = RemoteCli::new(&fixture.server, &plain.secret);
    plain.run(&fixture.words(&[])).refused("failed: Confirm your identity for the action manage_publishers");
}

#[test]
fn the_schema_describes_the_documents() {
    let fixture = ApplyFixture::new();
    let output = fixture.remote.command(&["apply", "--schema"]).output().unwrap();
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(schema["properties"]["kind"]["enum"].as_array().unwrap().len(), 7);
    assert!(schema["$defs"]["TeamSpec"]["properties"]["external_groups"].is_object(), "{schema}");
}
