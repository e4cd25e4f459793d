//! Commands of docs/guides. The tests replace the names and places that a reader fills in.
//! `dist.rs` runs the commands of install.md and tls.md, because these commands need the built
//! packages.

use packhouse_tests::clients::{ProgramOutput, run};
use packhouse_tests::database::Postgres;
use packhouse_tests::s3::S3;
use packhouse_tests::server::{OWNER, program};
use packhouse_tests::{MavenRepository, Server, checkout, skip};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// An age identity and its recipient, made for this test only.
const IDENTITY: &str = "AGE-SECRET-KEY-1RFMGGUF0EWSW460TP483D2564T0MQMR463PK9QZNK22D4VP9T6GSZDNQZ5";
const RECIPIENT: &str = "age1y4506l9l3sdaruew28s4wrcxf82ck0mq2jlg3t2cwe3amf434q5q2y2jr5";

/// Commands in the text of the guides. Each has an example that the test runs. If the text names
/// only a group, such as `token`, one command of the group is enough here.
const COMMANDS: &[(&str, &str)] = &[
    ("healthcheck", "healthcheck"),
    ("doctor", "doctor"),
    ("config show", "config show"),
    ("migrate", "migrate"),
    ("migrate --check", "migrate --check"),
    ("scrub", "scrub"),
    ("scrub [--rate 50MB]", "scrub --rate 50MB"),
    ("gc", "gc"),
    ("retention run [--policy ID]", "retention run"),
    ("advisories import PATH", "advisories import record.json"),
    ("advisories list", "advisories list"),
    ("advisories show ID", "advisories show MAL-2026-1"),
    ("advisories status", "advisories status"),
    ("plugins list", "plugins list"),
    ("plugins check FILE", "plugins check PLUGINS/maven.wasm"),
    ("plugins lock --out packhouse-plugins.lock", "plugins lock --out packhouse-plugins.lock"),
    ("plugins install --locked packhouse-plugins.lock", "plugins install --locked packhouse-plugins.lock"),
    ("plugins compile", "plugins compile"),
    ("member create EMAIL", "member create dev@example.com"),
    ("member set-password EMAIL", "member set-password dev@example.com"),
    ("member grant EMAIL --owner", "member grant dev@example.com --owner"),
    ("org list", "org list"),
    ("apply --schema", "apply --schema"),
    ("repo list", "repo list"),
    ("plugins precompile --into FOLDER", "plugins precompile --into code"),
    ("repo create NAME --format FORMAT", "repo create libs --format maven"),
    (
        "token create --name N --member EMAIL --repository R --scope read,write --expires-in 90d",
        "token create --name ci --member dev@example.com --repository libs --scope read,write --expires-in 90d",
    ),
    ("token list", "token list"),
    ("token import --legacy FILE", "token import --legacy legacy.jsonl"),
    ("token purge --older-than 30d", "token purge --older-than 30d"),
    ("org create NAME --base-url URL", "org create second --base-url http://second.example"),
    ("member create EMAIL --org NAME --owner", "member create other@example.com --org second --owner"),
];
/// Commands in the text of the guides that other tests run. The other tests run fenced blocks,
/// start a server, or are in `operator_commands`, `forged_backups`, `packaging`, `remote_cli` and
/// `second_factor`.
const ELSEWHERE: &[&str] = &[
    "backup key",
    "plugins precompile --into compiled --plugins plugins",
    "repo delete NAME",
    "repo members NAME [--set a,b] [--add c] [--remove d]",
    "repo set NAME SETTING=VALUE… [--upstream URL]",
    "serve",
    "repo create NAME --format FORMAT --kind proxy --upstream URL",
    "backup TO",
    "backup verify FROM [--backup ID]",
    "restore FROM",
    "plugins install FILE",
    "plugins install oci://HOST/PATH:1.2",
    "plugins activate FORMAT DIGEST",
    "plugins rollback FORMAT",
    "plugins pin REPOSITORY DIGEST",
    "plugins replay FILE",
    "logout URL",
    "member remove-second-factor EMAIL",
];

/// Guides whose commands run elsewhere: those of moving.md in `moving/page.rs`, those of policies
/// in `plugins/policies/recordings.rs` and `plugins/authoring.rs`, with other names.
const OTHER_GUIDES: [&str; 3] = ["moving.md", "policies.md", "write-a-policy.md"];

/// Returns the text of all guides that this test covers.
fn guides() -> String {
    let folder = checkout().join("docs/guides");
    let mut guides: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    guides.retain(|guide| !OTHER_GUIDES.iter().any(|name| guide.ends_with(name)));
    guides.sort();
    guides.iter().map(|guide| std::fs::read_to_string(guide).unwrap()).collect()
}

/// Runs these lines in a shell that knows the command `packhouse`, in `folder` with these settings.
fn shell(folder: &Path, text: &str, settings: &[(&str, String)]) -> ProgramOutput {
    let text = format!("packhouse() {{ '{}' \"$@\"; }}\n{text}", program().display());
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", &text]).current_dir(folder);
    command.envs(settings.iter().map(|(name, value)| (*name, value)));
    run(&mut command)
}

/// Returns the settings of a running server, for commands that run beside it.
fn beside(server: &Server) -> Vec<(&'static str, String)> {
    vec![
        ("PACKHOUSE_DATA", server.data().display().to_string()),
        ("PACKHOUSE_PACKAGES_LISTEN", server.packages().to_string()),
        ("PACKHOUSE_API_LISTEN", server.api().to_string()),
    ]
}

#[test]
fn each_command_of_the_text_is_known_to_this_test() {
    let guides = guides();
    let named: BTreeSet<&str> = guides
        .split('`')
        .filter_map(|code| code.strip_prefix("packhouse "))
        .filter(|command| {
            command.starts_with(|letter: char| letter.is_ascii_lowercase()) && !command.contains('\n')
        })
        .collect();
    assert!(named.len() > 20, "the guides were not read: {named:?}");
    let run: Vec<&str> = COMMANDS.iter().map(|(text, _)| *text).chain(ELSEWHERE.iter().copied()).collect();
    let unknown: Vec<_> =
        named.iter().filter(|command| !run.iter().any(|known| known.starts_with(**command))).collect();
    assert!(unknown.is_empty(), "no test runs {unknown:?}");
    let gone: Vec<_> = run.iter().filter(|command| !named.contains(*command)).collect();
    assert!(gone.is_empty(), "no guide has {gone:?} any more");
}

#[test]
fn each_command_of_the_text_does_its_work_beside_a_server() {
    let server = Server::start();
    let home = TempDir::new().unwrap();
    let legacy = r#"{"name": "old", "sha256": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", "scope": ["read"], "repositories": ["libs"], "expires_at": null}"#;
    std::fs::write(home.path().join("legacy.jsonl"), format!("{legacy}\n")).unwrap();
    let record = r#"{"id": "MAL-2026-1", "modified": "2026-01-01T00:00:00Z"}"#;
    std::fs::write(home.path().join("record.json"), record).unwrap();
    let plugins = program().with_file_name("plugins").display().to_string();
    for (_, command) in COMMANDS {
        let text = format!("packhouse {}", command.replace("PLUGINS", &plugins));
        shell(home.path(), &text, &beside(&server)).success();
    }
    for (command, what) in [
        ("member list --org default", "dev@example.com"),
        ("repo list --org default", "libs"),
        ("token list --org default", "old"),
        ("org list", "second"),
    ] {
        let said = shell(home.path(), &format!("packhouse {command}"), &beside(&server)).success();
        assert!(said.text.contains(what), "{command}: {}", said.text);
    }
}

/// Returns the `bash` blocks of this guide, in order.
fn blocks(guide: &str) -> Vec<String> {
    let text = std::fs::read_to_string(checkout().join("docs/guides").join(guide)).unwrap();
    let blocks = text.split("```bash\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
    blocks.collect()
}

/// Returns a server with one published file, and the repository of the file.
fn published() -> (Server, MavenRepository) {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "releases");
    repository.put("org/example/a/1.0/a-1.0.jar", "hello").expect(201);
    (server, repository)
}

/// Checks that a server on this data folder serves the published file.
fn has_it(data: &Path, repository: &MavenRepository, settings: &[(&str, String)]) {
    let mut server = Server::with().data(data);
    for (name, value) in settings {
        server = server.env(name, value);
    }
    let server = server.start();
    let client = server.anonymous().basic(OWNER, &repository.token.secret);
    let answer = client.get("/repositories/releases/org/example/a/1.0/a-1.0.jar").expect(200);
    assert_eq!(answer.text(), "hello");
}

#[test]
fn the_lines_about_backups_end_in_a_server_that_has_all() {
    let [first, encrypted, moved] = blocks("backup-and-restore.md").try_into().unwrap();
    let home = TempDir::new().unwrap();
    let at = |name: &str| home.path().join(name).display().to_string();
    let (server, repository) = published();
    let settings = format!("data = {:?}\n", server.data());
    std::fs::write(home.path().join("packhouse.toml"), settings).unwrap();
    std::fs::write(home.path().join("recipients.txt"), format!("{RECIPIENT}\n")).unwrap();
    std::fs::write(home.path().join("key.txt"), format!("{IDENTITY}\n")).unwrap();
    std::fs::write(home.path().join("backup.pass"), "a phrase that is long enough\n").unwrap();
    let fill = |text: &str, place: &str| {
        text.replace("/srv/backups", &at(place))
            .replace("/srv/move", &at(place))
            .replace("/var/lib/packhouse-new", &at(&format!("{place}-new")))
            .replace("/var/lib/packhouse", &server.data().display().to_string())
            .replace("/etc/packhouse", &home.path().display().to_string())
            .replace("--data DIR", &format!("--data {}", at(&format!("{place}-new"))))
    };
    let s3 = S3::start();
    let bucket = |path: &str| {
        s3.as_ref().map(|s3| s3.address().replacen("s3://bucket?", &format!("s3://bucket/{path}?"), 1))
    };

    let mut lines = fill(&first, "plain");
    match bucket("backups") {
        Some(address) => {
            lines = lines.replace("s3://BUCKET/packhouse?endpoint=https://…&region=…", &address);
        }
        None => {
            skip("the guide's backup into S3", "no weed; `./bootstrap test` installs it");
            lines = lines.lines().filter(|line| !line.contains("s3://")).collect::<Vec<_>>().join("\n");
        }
    }
    shell(home.path(), &lines, &[]).success();
    has_it(&home.path().join("plain-new"), &repository, &[]);

    // Each kind of encrypted backup needs a location of its own.
    let data = [("PACKHOUSE_DATA", server.data().display().to_string())];
    for (number, lines) in encrypted.trim().split("\n\n").enumerate() {
        let place = format!("kind-{number}");
        shell(home.path(), &fill(lines, &place), &data).success();
        if lines.contains("restore") {
            has_it(&home.path().join(format!("{place}-new")), &repository, &[]);
        }
    }

    let (Ok(database), Some(address)) = (Postgres::start(), bucket("blobs")) else {
        return skip("the guide's move to PostgreSQL and S3", "no PostgreSQL or no weed");
    };
    let lines = fill(&moved, "move")
        .replace("postgres://packhouse@db/packhouse", &database.url())
        .replace("s3://BUCKET?region=…", &address);
    shell(home.path(), &lines, &[]).success();
    let settings = [("PACKHOUSE_DATABASE_URL", database.url()), ("PACKHOUSE_BLOBS", address)];
    has_it(&home.path().join("move-new"), &repository, &settings);
}
