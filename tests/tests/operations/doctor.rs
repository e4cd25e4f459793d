//! Typical mistakes of operators, as `packhouse doctor` and the start of the server report them.
//! Each error names the setting, the place and the remedy. Also `doctor` on a server without
//! problems.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use packhouse_tests::authority::Authority;
use packhouse_tests::clients::{ProgramOutput, run};
use packhouse_tests::{Server, cli, server, skip};

/// A typical mistake, and the words that the error must contain so that an operator can fix it.
struct Mistake {
    file: &'static str,
    environment: &'static [(&'static str, &'static str)],
    flags: &'static [&'static str],
    words: &'static [&'static str],
}

const fn file(file: &'static str, words: &'static [&'static str]) -> Mistake {
    Mistake { file, environment: &[], flags: &[], words }
}

const fn variable(
    environment: &'static [(&'static str, &'static str)],
    words: &'static [&'static str],
) -> Mistake {
    Mistake { file: "", environment, flags: &[], words }
}

const fn flag(flags: &'static [&'static str], words: &'static [&'static str]) -> Mistake {
    Mistake { file: "", environment: &[], flags, words }
}

/// `FOLDER` stands for a folder of the test, `TAKEN` for a port that is in use.
const MISTAKES: &[Mistake] = &[
    file("log = \"loud\"", &["log = \"loud\"", "line 1", "expected one of error, warn, info"]),
    file("packages_listen = \"8080\"", &["packages_listen = \"8080\"", "line 1", "HOST:PORT"]),
    file("api_listen = \"localhost\"", &["api_listen", "line 1", "HOST:PORT"]),
    file("base_url = \"packages.example\"", &["base_url", "line 1", "https://packages.example"]),
    file(
        "base_url = \"https://packages.example/?a=b\"",
        &["base_url", "it has a query", "expected for example"],
    ),
    file(
        "base_url = \"https://packages.example/a%20b\"",
        &["base_url", "single slashes", "expected for example"],
    ),
    file("api_url = \"http://0.0.0.0:8081\"", &["api_url", "unspecified", "expected for example"]),
    file("\n\nunknwon = 1", &["unknwon", "line 3", "nearest"]),
    file("[limits]\nheader_ms = \"30s\"", &["limits.header_ms = \"30s\"", "line 2", "digits"]),
    file("[limits]\napi_body_bytes = \"1 XB\"", &["limits.api_body_bytes = \"1 XB\"", "line 2", "64 MiB"]),
    file("[limits]\nhandshake_ms = 5", &["limits.handshake_ms = \"5\"", "line 2", "100 to 3600000"]),
    file("[tls]\ncert = \"a.pem\"", &["tls.cert = \"a.pem\"", "line 2", "set tls.key"]),
    file("[tls]\nkey = \"a.key\"", &["tls.key = \"a.key\"", "line 2", "set tls.cert"]),
    file(
        "[tls]\ncert = [\"a\", \"b\"]\nkey = \"a\"",
        &["tls.key = \"a\"", "line 3", "one key for each certificate"],
    ),
    file("[tls]\nredirect_listen = \"127.0.0.1:0\"", &["tls.redirect_listen", "line 2", "tls.cert"]),
    file("[tls.acme]\nenabled = true", &["tls.acme.enabled", "line 2", "set base_url and api_url"]),
    file(
        "base_url = \"https://127.0.0.1\"\n[tls.acme]\nenabled = true",
        &["base_url", "line 1", "not a host name"],
    ),
    file(
        "[tls.acme]\nenabled = true\ndomains = \"a.example\"\nchallenge = \"dns-01\"",
        &["tls.acme.challenge = \"dns-01\"", "line 4", "http-01"],
    ),
    file(
        "[tls.acme]\nenabled = true\ndomains = \"a.example\"\nchallenge = \"http-01\"",
        &["tls.acme.challenge", "line 4", "set tls.redirect_listen"],
    ),
    file(
        "[tls.acme]\ndirectory = \"http://ca.example\"",
        &["tls.acme.directory", "line 2", "does not begin with https://"],
    ),
    file("proxy_protocol = true", &["proxy_protocol = \"true\"", "line 1", "set trusted_proxies"]),
    file("blobs = \"/srv/blobs\"", &["blobs", "line 1", "expected fs or s3://"]),
    file(
        "[plugins.maven]\nwasi = \"perhaps\"",
        &["plugins.maven.wasi = \"perhaps\"", "line 2", "expected true or false"],
    ),
    file("this is not TOML", &["line 1", "is not valid TOML"]),
    file("data = { a = 1.5 }", &["data.a", "line 1", "nearest"]),
    file("limits = { header_ms = 1.5 }", &["limits.header_ms", "line 1", "an integer"]),
    variable(
        &[("PACKHOUSE_TRUSTED_PROXIES", "10.0.0.0/33")],
        &["trusted_proxies", "PACKHOUSE_TRUSTED_PROXIES", "10.0.0.0/8"],
    ),
    variable(
        &[("PACKHOUSE_LIMTS_HEADER_MS", "1")],
        &["PACKHOUSE_LIMTS_HEADER_MS", "PACKHOUSE_LIMITS_HEADER_MS"],
    ),
    variable(&[("PACKHOUSE_SEALING_KEY", "short")], &["sealing_key", "PACKHOUSE_SEALING_KEY", "at least 16"]),
    variable(
        &[("PACKHOUSE_OWNER_PASSWORD", "short")],
        &["owner.password", "PACKHOUSE_OWNER_PASSWORD", "at least 8"],
    ),
    variable(
        &[("PACKHOUSE_OWNER_EMAIL", "nobody")],
        &["owner.email = \"nobody\"", "PACKHOUSE_OWNER_EMAIL", "owner@example.com"],
    ),
    variable(
        &[("PACKHOUSE_DATABASE_URL", "mysql://x")],
        &["database_url", "PACKHOUSE_DATABASE_URL", "postgres://"],
    ),
    variable(
        &[("PACKHOUSE_CONFIG", "FOLDER/absent.toml")],
        &["absent.toml", "PACKHOUSE_CONFIG", "name a file that exists"],
    ),
    variable(
        &[("PACKHOUSE_PLUGINS_TRUSTED_KEYS", "FOLDER/absent.pub")],
        &["plugins.trusted_keys", "PACKHOUSE_PLUGINS_TRUSTED_KEYS", "absent.pub cannot be read"],
    ),
    flag(
        &["--upstream-allow-networks", "everything"],
        &["upstream.allow_networks", "--upstream-allow-networks", "10.0.0.0/8"],
    ),
    flag(
        &["--packages-listen", "127.0.0.1:TAKEN"],
        &["packages_listen", "--packages-listen", "another port"],
    ),
    flag(&["--plugins", "FOLDER/absent"], &["plugins.dir", "--plugins", "FOLDER/absent"]),
];

/// Runs a command of the program with one mistake, without the environment of the test's process.
fn planted(command: &str, mistake: &Mistake, folder: &Path, taken: u16) -> ProgramOutput {
    let text =
        |text: &str| text.replace("FOLDER", &folder.to_string_lossy()).replace("TAKEN", &taken.to_string());
    let mut program = Command::new(server::program());
    program.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).current_dir(folder);
    program.arg(command);
    if !mistake.flags.contains(&"--packages-listen") {
        program.args(["--packages-listen", "127.0.0.1:0"]);
    }
    if mistake.file.contains("packages_listen") {
        // The flag `--packages-listen` would override the mistake, so the test builds the command
        // again without the flag.
        program = Command::new(server::program());
        program.env_clear().current_dir(folder).arg(command);
    }
    if !mistake.file.contains("data") {
        program.arg("--data").arg(folder.join("data"));
    }
    if !mistake.file.contains("api_listen") {
        program.args(["--api-listen", "127.0.0.1:0"]);
    }
    if !mistake.file.is_empty() {
        let file = folder.join("packhouse.toml");
        std::fs::write(&file, text(mistake.file)).unwrap();
        program.arg("--config").arg(&file);
    }
    program.envs(mistake.environment.iter().map(|(name, value)| (name, text(value))));
    program.args(mistake.flags.iter().map(|word| text(word)));
    run(&mut program)
}

#[test]
fn each_mistake_is_reported_with_its_place_and_remedy() {
    assert!(MISTAKES.len() >= 30);
    let folder = tempfile::TempDir::new().unwrap();
    server::share_compiled(&folder.path().join("data"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().port();
    for mistake in MISTAKES {
        for command in ["doctor", "serve"] {
            let output = planted(command, mistake, folder.path(), taken);
            assert!(!output.success, "{command} takes {:?}: {}", mistake.words, output.text);
            for word in mistake.words {
                let word = word.replace("FOLDER", &folder.path().to_string_lossy());
                assert!(output.text.contains(&word), "{command} does not say {word:?}:\n{}", output.text);
            }
        }
    }
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let folder = tempfile::TempDir::new().unwrap();
    let mistake = file("log = \"loud\"\naudit_days = \"many\"\n[gc]\ngrace_ms = \"soon\"", &[]);
    let output = planted("doctor", &mistake, folder.path(), 0).text;
    for name in ["log = ", "audit_days = ", "gc.grace_ms = "] {
        assert!(output.contains(name), "{name}: {output}");
    }
    assert!(output.contains("3 problems found"), "{output}");
}

#[test]
fn a_server_without_problems_is_reported_as_well() {
    let server = Server::start();
    let ports = [server.packages().to_string(), server.api().to_string()];
    let beside = ["doctor", "--packages-listen", &ports[0], "--api-listen", &ports[1]];
    let output = cli::packhouse(server.data(), &beside, "").success().text;
    assert!(output.contains("a server is running") && !output.contains("WRONG"), "{output}");
    for part in ["configuration:", "data:", "database:", "blobs:", "addresses:", "plugins:"] {
        assert!(
            output.lines().any(|line| line.starts_with("ok ") && line.contains(part)),
            "{part}: {output}"
        );
    }
    // Doctor leaves no files behind.
    let left: Vec<_> =
        std::fs::read_dir(server.data()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("doctor")), "{left:?}");
}

#[test]
fn problems_on_the_disk_are_found() {
    let mut server = Server::start();
    let data = server.data().to_owned();
    server.kill9();
    let doctor = |words: &[&str], environment: &[(&str, String)]| {
        let words: Vec<&str> = ["doctor", "--packages-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"]
            .iter()
            .chain(words)
            .copied()
            .collect();
        cli::packhouse_with(&data, &words, environment)
    };
    doctor(&[], &[]).success();
    // The sealing key differs from the key with which the database was last served.
    let output = doctor(&[], &[("PACKHOUSE_SEALING_KEY", "quite another key".to_owned())]);
    output.refused("is not the key that the database was last served with");
    // The plugin folder contains a file that is not a plugin.
    let plugins = tempfile::TempDir::new().unwrap();
    std::fs::write(plugins.path().join("broken.wasm"), "no component").unwrap();
    let output = doctor(&["--plugins", &plugins.path().to_string_lossy()], &[]);
    assert!(output.clone().refused("broken.wasm").text.contains("--plugins"), "{}", output.text);
    // Other accounts may read the data folder.
    let mode = |mode: u32| {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&data, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o755);
    doctor(&[], &[]).refused("chmod 700");
    mode(0o700);
    // The database file is damaged.
    let file = packhouse_tests::database::sqlite_file(&data);
    let original = std::fs::read(&file).unwrap();
    std::fs::write(&file, [&original[..100], &[0x5a; 20_000], &original[20_100..]].concat()).unwrap();
    assert!(!doctor(&[], &[]).success);
    std::fs::write(&file, &original).unwrap();
}

#[test]
fn certificates_are_checked() {
    let authority = match Authority::new() {
        Ok(authority) => authority,
        Err(reason) => return skip("doctor and certificates", &reason),
    };
    let server = Server::start();
    let doctor = |[cert, key]: &[std::path::PathBuf; 2], url: &str| {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let environment = [
            ("PACKHOUSE_TLS_CERT", text(cert)),
            ("PACKHOUSE_TLS_KEY", text(key)),
            ("PACKHOUSE_BASE_URL", url.to_owned()),
        ];
        cli::packhouse_with(server.data(), &["doctor"], &environment)
    };
    let good = authority.issue_for("good", &["DNS:a.test"], "-days 90");
    doctor(&good, "https://a.test").success();
    doctor(&good, "https://b.test").refused("b.test");
    doctor(&good, "http://a.test").refused("change it to https");
    doctor(&[good[0].clone(), authority.issue("other", &["DNS:a.test"])[1].clone()], "https://a.test")
        .refused("private key");
}
