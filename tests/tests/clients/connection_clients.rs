//! Connection Settings of the clients that `connection.rs` does not test. Each installed client
//! runs with the pasted texts; only the e-mail address and the token are changed. For missing
//! clients, the tests parse the files as strictly as their languages allow, and report the clients
//! as skipped.

use base64::Engine as _;
use packhouse_tests::clients::{has, run};
use packhouse_tests::docker::Docker;
use packhouse_tests::go::Go;
use packhouse_tests::images::ImageRepository;
use packhouse_tests::long;
use packhouse_tests::npm::{Js, NpmRepository, Tool};
use packhouse_tests::python::{Home, PythonRepository};
use packhouse_tests::said::ConnectionTexts;
use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, MavenRepository, Server, skip};
use serde_json::{Value, json};
use std::process::Command;

/// The arguments of a command, without the program's name.
fn words(command: &str) -> Vec<&str> {
    command.split_whitespace().skip(1).collect()
}

/// Settings that a JavaScript client needs to run in a test; none of them names a registry.
const YARN_4: &str =
    "nodeLinker: node-modules\nenableTelemetry: false\nenableGlobalCache: false\nnpmMinimalAgeGate: 0\n";

#[test]
fn pnpm_yarn_and_bun_work_with_the_pasted_settings() {
    if !long() {
        return;
    }
    let server = Server::start();
    let repository = NpmRepository::create(&server, "js");
    let texts = ConnectionTexts::of(&server, &repository.id, &repository.token.secret);
    for (client, tool, read, publish, more) in [
        ("pnpm", Tool::Pnpm, ".npmrc", ".npmrc", &["--no-git-checks"][..]),
        ("yarn 1", Tool::Yarn1, ".npmrc", ".npmrc", &["--non-interactive"][..]),
        ("yarn 4", Tool::Yarn4, ".yarnrc.yml", ".yarnrc.yml", &[][..]),
        ("bun", Tool::Bun, "bunfig.toml", ".npmrc", &[][..]),
    ] {
        let js = match Js::new(tool, &repository.url(&server), "none") {
            Ok(js) => js,
            Err(reason) => {
                skip(client, &reason);
                continue;
            }
        };
        // Remove the test client's own settings, so that only the pasted ones are used.
        std::fs::remove_file(js.folder().join(".npmrc")).unwrap();
        js.write(".yarnrc.yml", YARN_4);
        let name = format!("@acme/by-{}", client.replace(' ', "-"));
        js.package("lib", &json!({"name": name, "version": "1.0.0"}));
        js.write(&format!("lib/{publish}"), &texts.text(client, "publish", Some(publish)));
        if tool == Tool::Yarn4 {
            js.run("lib", &["install"]).success();
        }
        let command = texts.text(client, "publish", None);
        js.run("lib", &[&words(&command)[..], more].concat()).success();
        js.package(
            "project",
            &json!({"name": "project", "version": "0.0.0", "dependencies": {&name: "1.0.0"}}),
        );
        js.write(&format!("project/{read}"), &texts.text(client, "read", Some(read)));
        js.run("project", &["install"]).success();
        assert_eq!(js.installed("project", &name).as_deref(), Some("1.0.0"), "{client}");
    }
}

#[test]
fn poetry_works_with_the_pasted_settings() {
    if !long() {
        return;
    }
    let home = match Home::with("poetry") {
        Ok(home) => home,
        Err(reason) => return skip("poetry", &reason),
    };
    let server = Server::start();
    let repository = PythonRepository::create(&server, "py");
    let texts = ConnectionTexts::of(&server, &repository.id, &repository.token.secret);
    let poetry = |folder: &str, text: &str| {
        for line in text.lines() {
            home.run(folder, "poetry", &[&words(line)[..], &["--no-interaction"]].concat(), &[]).success();
        }
    };
    let project = |name: &str| {
        format!(
            "[project]\nname = \"{name}\"\nversion = \"1.0\"\nrequires-python = \">=3.9\"\ndependencies = []\n\
             [build-system]\nrequires = [\"poetry-core\"]\nbuild-backend = \"poetry.core.masonry.api\"\n"
        )
    };
    home.write("lib/pyproject.toml", project("hello"));
    home.write("lib/hello/__init__.py", "");
    home.write("lib/README.md", "");
    poetry("lib", &texts.text("poetry", "publish", None));
    assert_eq!(repository.page("hello")["files"].as_array().unwrap().len(), 2);
    home.write(
        "app/pyproject.toml",
        project("app").replace("[build-system]", "[tool.poetry]\npackage-mode = false\n[build-system]"),
    );
    poetry("app", &texts.text("poetry", "read", None));
    poetry("app", "poetry add --source py hello==1.0");
    let lock = std::fs::read_to_string(home.folder().join("app/poetry.lock")).unwrap();
    assert!(lock.contains("name = \"hello\"") && !lock.contains(&repository.token.secret), "{lock}");
}

#[test]
fn gradle_resolves_with_the_pasted_settings() {
    if !long() {
        return;
    }
    if !has("gradle") {
        return skip("Gradle", "no gradle on the path");
    }
    let server = Server::start();
    let repository = MavenRepository::create(&server, "jars");
    let pom = "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId><artifactId>lib</artifactId>\
               <version>1.0</version></project>";
    repository.put("org/example/lib/1.0/lib-1.0.pom", pom).expect(201);
    repository.put("org/example/lib/1.0/lib-1.0.jar", "a jar").expect(201);
    let texts = ConnectionTexts::of(&server, &repository.id, &repository.token.secret);
    let text = texts.text("Gradle (Groovy)", "read", Some("build.gradle"));
    // Newer versions of Gradle require a setting for plain HTTP. Debian's Gradle does not know this
    // setting and uses plain HTTP without it.
    let version = run(Command::new("gradle").arg("--version")).text;
    let is_old = version.lines().any(|line| line.starts_with("Gradle 4."));
    let pasted: String = text
        .lines()
        .filter(|line| !is_old || !line.contains("allowInsecureProtocol"))
        .map(|line| format!("{line}\n"))
        .collect();
    let rest = "configurations { wanted }\ndependencies { wanted 'org.example:lib:1.0' }\n\
                task fetch(type: Copy) { from configurations.wanted; into 'out' }\n";
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("build.gradle"), format!("{pasted}{rest}")).unwrap();
    let mut gradle = Command::new("gradle");
    gradle
        .current_dir(home.path())
        .env("GRADLE_USER_HOME", home.path().join("home"))
        .env("HOME", home.path());
    let done = run(gradle.args(["--no-daemon", "--quiet", "fetch"]));
    if !done.success
        && (done.text.contains("Could not determine java version")
            || done.text.contains("Unsupported class file"))
    {
        return skip("Gradle", "this Gradle does not run on this JDK");
    }
    done.success();
    assert_eq!(std::fs::read(home.path().join("out/lib-1.0.jar")).unwrap(), b"a jar");
}

/// A server with images, and its Connection Settings.
fn images() -> (Server, ImageRepository, ConnectionTexts) {
    let server = Server::start();
    let repository = ImageRepository::create(&server, "images", &json!({}));
    let texts = ConnectionTexts::of(&server, &repository.id, &repository.token.secret);
    (server, repository, texts)
}

#[test]
fn docker_and_a_kubernetes_secret_work_with_the_pasted_settings() {
    let docker = match Docker::start() {
        Ok(docker) => docker,
        Err(reason) => return skip("docker", &reason),
    };
    let (server, repository, texts) = images();
    let shell = |text: &str| run(docker.command("bash").args(["-euo", "pipefail", "-c", text]));
    std::fs::write(docker.home().join("Dockerfile"), "FROM scratch\nCOPY hello /hello\n").unwrap();
    std::fs::write(docker.home().join("hello"), "hello").unwrap();
    std::fs::write(docker.home().join(".dockerignore"), "*\n!hello\n").unwrap();
    docker.run(&["build", "-t", "hello:1", "."]).success();
    let pushes =
        texts.text("docker", "publish", None).replace("IMAGE:TAG", "hello:1").replace(" IMAGE ", " hello:1 ");
    shell(&pushes).success();
    let image = format!("{}/repositories/images/hello:1", server.packages());
    docker.run(&["rmi", &image]).success();
    docker.run(&["logout", &server.packages().to_string()]).success();
    docker.run(&["pull", &image]).refused("denied");
    shell(&texts.text("docker", "read", None)).success();
    docker.run(&["pull", &image]).success();
    assert_eq!(repository.get("hello/tags/list").expect(200).json()["tags"], json!(["1"]));

    if !has("kubectl") {
        return skip("Kubernetes", "no kubectl on the path");
    }
    // The secret that kubectl makes contains settings in docker's form. The test pulls the image
    // with these settings alone.
    let make = format!("{} --dry-run=client --output=json", texts.text("Kubernetes", "read", None));
    let made = run(Command::new("bash").args(["-euo", "pipefail", "-c", &make])).success().text;
    let made: Value = serde_json::from_str(&made).unwrap_or_else(|error| panic!("{error}: {made}"));
    assert_eq!(
        (&made["type"], &made["metadata"]["name"]),
        (&json!("kubernetes.io/dockerconfigjson"), &json!("images"))
    );
    let settings =
        base64::engine::general_purpose::STANDARD.decode(made["data"][".dockerconfigjson"].as_str().unwrap());
    docker.run(&["rmi", &image]).success();
    std::fs::write(docker.home().join("config/config.json"), settings.unwrap()).unwrap();
    docker.run(&["pull", &image]).success();
    let pod: Value = serde_saphyr::from_str(&texts.text("Kubernetes", "read", Some("pod.yaml"))).unwrap();
    assert_eq!(pod, json!({"imagePullSecrets": [{"name": "images"}]}));
}

#[test]
fn podman_works_with_the_pasted_settings() {
    if !has("podman") {
        return skip("podman", "no podman on the path");
    }
    let (server, repository, texts) = images();
    let home = tempfile::tempdir().unwrap();
    let policy = r#"{"default":[{"type":"insecureAcceptAnything"}]}"#;
    std::fs::create_dir_all(home.path().join(".config/containers")).unwrap();
    std::fs::write(home.path().join(".config/containers/policy.json"), policy).unwrap();
    let storage = format!(
        "[storage]\ndriver = \"vfs\"\ngraphroot = \"{0}/root\"\nrunroot = \"{0}/run\"\n",
        home.path().display()
    );
    let file = home.path().join("storage.conf");
    std::fs::write(&file, storage).unwrap();
    let shell = |text: &str| {
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", text]).current_dir(home.path()).env("HOME", home.path());
        command
            .env("CONTAINERS_STORAGE_CONF", &file)
            .env("REGISTRY_AUTH_FILE", home.path().join("auth.json"));
        run(&mut command)
    };
    std::fs::create_dir(home.path().join("context")).unwrap();
    std::fs::write(home.path().join("context/Containerfile"), "FROM scratch\nCOPY hello /hello\n").unwrap();
    std::fs::write(home.path().join("context/hello"), "hello").unwrap();
    let built = shell("podman --cgroup-manager cgroupfs build --isolation chroot -t hello:1 context");
    if !built.success {
        return skip(
            "podman",
            &format!("it cannot build here: {}", built.text.lines().last().unwrap_or_default()),
        );
    }
    let pushes =
        texts.text("podman", "publish", None).replace("IMAGE:TAG", "hello:1").replace(" IMAGE ", " hello:1 ");
    shell(&pushes).success();
    std::fs::write(home.path().join("auth.json"), "{}").unwrap();
    let pull = format!("podman pull --tls-verify=false {}/repositories/images/hello:1", server.packages());
    shell(&pull).refused("unauthorized");
    shell(&texts.text("podman", "read", None)).success();
    shell(&pull).success();
    assert_eq!(repository.get("hello/tags/list").expect(200).json()["tags"], json!(["1"]));
}

#[test]
fn helm_works_with_the_pasted_settings() {
    let helm = match Go::client("helm") {
        Ok(helm) => helm,
        Err(reason) => return skip("helm", &reason),
    };
    let (server, repository, texts) = images();
    helm.write("hello/Chart.yaml", "apiVersion: v2\nname: hello\nversion: 1.0.0\n");
    helm.run(&["package", "hello"]).success();
    for line in texts.text("helm", "publish", None).lines() {
        let line = line.replace("CHART.tgz", "hello-1.0.0.tgz");
        helm.run(&words(&line)).success();
    }
    assert_eq!(repository.get("hello/tags/list").expect(200).json()["tags"], json!(["1.0.0"]));
    helm.run(&["registry", "logout", &server.packages().to_string()]).success();
    helm.run(&words(&texts.text("helm", "read", None))).success();
    let chart = format!("oci://{}/repositories/images/hello", server.packages());
    helm.run(&["pull", "--plain-http", &chart, "--version", "1.0.0"]).success();
}

/// Returns true if the brackets outside of quotes are balanced. It checks texts in languages for
/// which the tests have no parser.
fn is_balanced(text: &str) -> bool {
    let (mut open, mut quote) = (Vec::new(), None);
    for letter in text.chars() {
        match (quote, letter) {
            (Some(begun), _) if begun == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '(' | '{' | '[') => open.push(letter),
            (None, ')') if open.pop() != Some('(') => return false,
            (None, '}') if open.pop() != Some('{') => return false,
            (None, ']') if open.pop() != Some('[') => return false,
            (None, _) => {}
        }
    }
    open.is_empty() && quote.is_none()
}

/// Checks every file in the Connection Settings of each format, over plain HTTP and behind a proxy
/// with TLS.
#[test]
fn every_file_is_valid_in_its_language() {
    for base in [None, Some("https://packages.example")] {
        let server = match base {
            Some(base) => Server::with().arg("--base-url").arg(base).start(),
            None => Server::start(),
        };
        let api = Api::sign_in(&server);
        let mut tested = Vec::new();
        let formats = api.call("GET", "/v1/formats").expect(200).json();
        for format in formats["items"].as_array().unwrap() {
            let format = format["format"].as_str().unwrap();
            let body = json!({"name": format!("of-{format}"), "format": format, "kind": "hosted"});
            let id = api.post("/v1/repositories", &body).expect(201).field("id");
            for [client, purpose, language, text] in ConnectionTexts::of(&server, &id, "pkh_secret").all() {
                let what = format!("{client}, {purpose}: {text}");
                match language.as_str() {
                    "toml" => drop(
                        toml::from_str::<toml::Table>(&text)
                            .unwrap_or_else(|error| panic!("{what}: {error}")),
                    ),
                    "yaml" => drop(
                        serde_saphyr::from_str::<Value>(&text)
                            .unwrap_or_else(|error| panic!("{what}: {error}")),
                    ),
                    // Behind TLS a docker daemon needs no settings at all.
                    "json" if text.trim().is_empty() => {}
                    "json" => drop(
                        serde_json::from_str::<Value>(&text)
                            .unwrap_or_else(|error| panic!("{what}: {error}")),
                    ),
                    "xml" => {
                        let python =
                            "import sys, xml.dom.minidom as m; m.parseString('<x>' + sys.argv[1] + '</x>')";
                        assert!(run(Command::new("python3").args(["-c", python, &text])).success, "{what}");
                    }
                    "ini" => {
                        let known = |line: &str| {
                            line.is_empty() || line.starts_with(['[', '#', ';']) || line.contains('=')
                        };
                        assert!(text.lines().all(known), "{what}");
                    }
                    "shell" => drop(run(Command::new("bash").args(["-n", "-c", &text])).success()),
                    "kotlin" | "groovy" | "scala" => assert!(is_balanced(&text), "{what}"),
                    _ => {}
                }
                assert!(
                    !text.contains("{http}") && !text.contains("{https}") && !text.contains("{address}"),
                    "{what}"
                );
                if base.is_some() {
                    assert!(!text.contains("http://") && !text.contains("nsecure"), "{what}");
                }
                tested.push(client);
            }
        }
        for client in ["Gradle (Kotlin)", "sbt", "containerd", "Kubernetes", "bun", "uv", "Maven"] {
            assert!(tested.iter().any(|one| one == client), "{client} of {tested:?}");
        }
    }
    for (client, why) in [
        ("sbt", "not installed; only the brackets of its texts are checked"),
        ("Gradle (Kotlin)", "Debian's Gradle has no Kotlin; only brackets are checked"),
    ] {
        skip(client, why);
    }
    assert!(
        is_balanced("a { b(\"}\") }")
            && !is_balanced("a { b( }")
            && !is_balanced("\"a")
            && OWNER.contains('@')
    );
}
