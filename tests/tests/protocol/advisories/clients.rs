//! Real clients that query advisories. pnpm and yarn use npm's interface; pip-audit and uv use
//! OSV's.

use super::*;
use packhouse_tests::python::{Home, PythonRepository};
use packhouse_tests::{checkout, skip};
use std::process::Command;

/// Starts a server with public access to its advisories. Imports an advisory about versions of
/// `lib` below 2.0. Also returns the API's address.
fn open() -> (AdvisoryServer, String) {
    let world = AdvisoryServer::of(Server::with().env("PACKHOUSE_ADVISORIES_PUBLIC", "true").start());
    let leak = Record::new("GHSA-leak-leak-leak", "PyPI", "lib").below("2.0").high("It leaks");
    world.import(&[leak], &[]);
    world.known_of("PyPI", "lib", "1.0");
    let address = format!("http://{}", world.server.api());
    (world, address)
}

/// Runs a client. Returns its output, and `true` if the client reports no advisory.
fn run_client(command: &mut Command) -> (String, bool) {
    let output = command.output().expect("the client runs");
    let printed = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&printed).into_owned(), output.status.success())
}

#[test]
fn audits_of_pnpm_and_yarn_find_an_advisory() {
    let world = AdvisoryServer::start();
    let hosted = NpmRepository::create(&world.server, "hosted");
    publish(
        &hosted,
        &[Part::new("leaky", "1.0.0"), Part::new("leaky", "2.0.0"), Part::new("sound", "1.0.0")],
    );
    let leak = Record::new("GHSA-leak-leak-leak", "npm", "leaky").below("1.5.0").high("It leaks everything");
    world.import(&[leak], &[]);
    world.known("leaky", "1.0.0");
    // Yarn 1 is left out, because it audits at its built-in registry, whichever registry it
    // installs from.
    let audits: [(Tool, &[&str]); 2] =
        [(Tool::Pnpm, &["audit"]), (Tool::Yarn4, &["npm", "audit", "--recursive"])];
    for (tool, words) in audits {
        let Some(js) = client(&world.server, tool, &hosted) else { continue };
        for (version, found) in [("1.0.0", true), ("2.0.0", false)] {
            let required = json!({"leaky": version, "sound": "1.0.0"});
            js.package(
                "project",
                &json!({"name": "app", "version": "0.0.0", "private": true, "dependencies": required}),
            );
            js.install("project").success();
            let printed = js.run("project", words);
            assert_eq!(
                (printed.success, printed.text.contains("It leaks everything")),
                (!found, found),
                "{tool:?} {version}: {}",
                printed.text
            );
        }
    }
}

#[test]
fn pip_audit_finds_advisories_about_pinned_versions() {
    let python = checkout().join(".tools/pip-audit/bin/python");
    if !python.is_file() {
        return skip("pip-audit", "no .tools/pip-audit: `./bootstrap test` installs it");
    }
    let (_world, address) = open();
    let folder = TempDir::new().unwrap();
    let audit = |pinned: &str| {
        std::fs::write(folder.path().join("requirements.txt"), pinned).unwrap();
        let options = [
            "-m",
            "pip_audit",
            "-r",
            "requirements.txt",
            "--no-deps",
            "--disable-pip",
            "--progress-spinner=off",
        ];
        let mut command = Command::new(&python);
        command.args(options).args([
            "--vulnerability-service",
            "osv",
            "--osv-url",
            &format!("{address}/v1/query"),
        ]);
        run_client(command.current_dir(folder.path()).env("HOME", folder.path()))
    };
    let (printed, clean) = audit("lib==1.0\nother==1.0\n");
    assert!(!clean && printed.contains("Found 1 known vulnerability in 1 package"), "{printed}");
    let row = printed.lines().find(|line| line.starts_with("lib")).unwrap_or_else(|| panic!("{printed}"));
    assert_eq!(row.split_whitespace().collect::<Vec<_>>()[..4], ["lib", "1.0", "GHSA-leak-leak-leak", "2.0"]);
    let (printed, clean) = audit("lib==2.0\nother==1.0\n");
    assert!(clean && printed.contains("No known vulnerabilities found"), "{printed}");
}

#[test]
fn uv_audits_a_lock_file() {
    let home = match Home::with("uv") {
        Ok(home) => home,
        Err(reason) => return skip("uv audit", &reason),
    };
    let (world, address) = open();
    let python = PythonRepository::create(&world.server, "py");
    for version in ["1.0", "2.0"] {
        let (name, file) = (wheel::wheel_name("lib", version), wheel::wheel("lib", version, ""));
        python.publish("lib", version, &name, &file).expect(200);
    }
    let audit = |pinned: &str| {
        let project = format!(
            "[project]\nname = \"app\"\nversion = \"0.1\"\nrequires-python = \">=3.11\"\ndependencies = [\"lib=={pinned}\"]\n"
        );
        home.write("app/pyproject.toml", project);
        let (printed, locked) = run_client(home.command("app", "uv").args([
            "lock",
            "--default-index",
            &python.index_of(&python.token.secret),
        ]));
        assert!(locked, "{printed}");
        run_client(home.command("app", "uv").args([
            "audit",
            "--frozen",
            "--preview",
            "--service-url",
            &address,
        ]))
    };
    let (printed, clean) = audit("1.0");
    assert!(
        !clean && printed.contains("GHSA-leak-leak-leak: It leaks") && printed.contains("Fixed in: 2.0"),
        "{printed}"
    );
    let (printed, clean) = audit("2.0");
    assert!(clean && !printed.contains("GHSA-leak-leak-leak"), "{printed}");
}
