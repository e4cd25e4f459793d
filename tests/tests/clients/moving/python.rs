//! Python projects with times, yanked versions and signatures. The tests move them from one index
//! to another, export them into a folder from which pip installs, and import the folder.

use packhouse_tests::python::{Home, PythonRepository};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Request, Server, skip};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::world::{BEGIN_2020_MS, lines, moved, moved_with, version};
use crate::wheel;

/// Publishes three projects. One of them has two versions, of which one is yanked.
fn fill(repository: &PythonRepository, server: &Server) {
    for (project, number) in [("demo-one", "1.0"), ("demo-one", "2.0rc1"), ("demo-two", "1.0.post1")] {
        let file = wheel::wheel_name(project, number);
        repository.publish(project, number, &file, &wheel::wheel(project, number, "")).expect(200);
    }
    repository
        .publish("demo-one", "1.0", "demo_one-1.0.tar.gz", &wheel::sdist("demo-one", "1.0"))
        .expect(200);
    signed(repository);
    let path = repository.path("projects/demo-three/status");
    repository.client.put(&path, r#"{"status": "archived", "reason": "done"}"#).expect(200);
    let state = json!({"state": "yanked", "reason": "it <breaks>"});
    let path = format!("/v1/repositories/{}/packages/demo-one/versions/1.0/state", repository.id);
    Api::sign_in(server).send("PUT", &path, &state).expect(200);
}

/// Publishes a file with a signature and an attestation.
fn signed(repository: &PythonRepository) {
    let (name, file) = (wheel::wheel_name("demo-three", "1.0"), wheel::wheel("demo-three", "1.0", ""));
    let encoded = |text: &str| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1", "predicateType": "https://docs.pypi.org/attestations/publish/v1", "predicate": null,
        "subject": [{"name": name, "digest": {"sha256": packhouse_tests::digests::sha256(&file)}}],
    });
    let attestations = json!([{
        "version": 1, "verification_material": {"certificate": encoded("certificate"), "transparency_entries": [{}]},
        "envelope": {"statement": encoded(&statement.to_string()), "signature": encoded("signature")},
    }]);
    let part = |what: &str| format!("--x\r\nContent-Disposition: form-data; name={what}\r\n\r\n");
    let mut form = Vec::new();
    for (field, value) in
        [("name", "demo-three"), ("version", "1.0"), ("attestations", &attestations.to_string())]
    {
        form.extend(format!("{}{value}\r\n", part(&format!("\"{field}\""))).bytes());
    }
    form.extend(
        format!("{}a signature\r\n", part(&format!("\"gpg_signature\"; filename=\"{name}.asc\""))).bytes(),
    );
    form.extend(part(&format!("\"content\"; filename=\"{name}\"")).bytes());
    form.extend(&file);
    form.extend(b"\r\n--x--\r\n");
    let request =
        Request::new("POST", &repository.path("")).header("Content-Type", "multipart/form-data; boundary=x");
    repository.client.send(request.body(form)).expect(200);
}

const PROJECTS: [&str; 3] = ["demo-one", "demo-two", "demo-three"];
const FILES: usize = 5;

/// A project as installers read it: its status, the data of its files, and the contents of their
/// signature and provenance files.
fn listing(repository: &PythonRepository, project: &str) -> Value {
    let page = repository.page(project);
    let mut files = page["files"].as_array().unwrap().clone();
    files.sort_by_key(|file| file["filename"].to_string());
    let members = ["filename", "hashes", "yanked", "upload-time", "requires-python", "size", "gpg-sig"];
    let mut beside = Vec::new();
    for file in &files {
        let name = file["filename"].as_str().unwrap();
        for (more, there) in
            [("asc", file["gpg-sig"] == true), ("provenance", file["provenance"].is_string())]
        {
            if there {
                beside.push(repository.file(project, "1.0", &format!("{name}.{more}")).expect(200).text());
            }
        }
    }
    let files: Vec<Value> = files
        .iter()
        .map(|file| members.iter().map(|member| (*member, file[member].clone())).collect())
        .collect();
    json!({"files": files, "beside": beside, "status": page["project-status"]})
}

#[test]
fn an_index_is_moved_with_times_and_yanked_versions() {
    let (server, other) = (Server::start(), Server::start());
    let (old, new) = (PythonRepository::create(&server, "old"), PythonRepository::create(&other, "new"));
    fill(&old, &server);
    let login = format!("{}:{}", packhouse_tests::server::OWNER, old.token.secret);
    let index = old.index();
    let words = ["import", "new", "--from", "pypi", &index];
    let login = [("PACKHOUSE_SOURCE_LOGIN", login.as_str())];
    let first = moved_with(&other, &words, &login).success();
    assert_eq!(first.count("moved"), FILES, "{:#?}", first.lines);
    for project in PROJECTS {
        assert_eq!(listing(&old, project), listing(&new, project));
    }
    let three = listing(&new, "demo-three");
    assert_eq!(
        (&three["status"]["status"], three["beside"].as_array().unwrap().len()),
        (&json!("archived"), 2),
        "{three:#}"
    );
    let yanked = version(&other, &new.id, "demo-one", "1.0");
    assert_eq!((&yanked["state"], &yanked["reason"]), (&json!("yanked"), &json!("it <breaks>")));
    moved_with(&other, &words, &login).adds_nothing();

    // When a version is no longer yanked at the source, the next import makes it available here
    // too.
    let path = format!("/v1/repositories/{}/packages/demo-one/versions/1.0/state", old.id);
    Api::sign_in(&server).send("PUT", &path, &json!({"state": "", "reason": ""})).expect(200);
    moved_with(&other, &words, &login).success();
    assert_eq!(version(&other, &new.id, "demo-one", "1.0")["state"], "");
    let one = moved_with(&other, &[&words[..], &["--package", "Demo.Two"]].concat(), &login).success();
    assert_eq!(one.lines.len(), 1, "{:#?}", one.lines);
}

#[test]
fn out_into_a_folder_that_pip_installs_from_and_in_again() {
    let (server, other, home) = (Server::start(), Server::start(), TempDir::new().unwrap());
    let (old, new) = (PythonRepository::create(&server, "old"), PythonRepository::create(&other, "simple"));
    fill(&old, &server);
    let out = home.path().join("out").to_string_lossy().into_owned();
    assert_eq!(moved(&server, &["export", "old", &out]).success().count("moved"), FILES);
    moved(&server, &["export", "old", &out]).adds_nothing();
    let listed = lines(&home.path().join("out/export.jsonl"));
    let yanked = listed.iter().filter(|line| line["state"] == "yanked" && line["reason"] == "it <breaks>");
    assert_eq!((listed.len(), yanked.count()), (FILES + 1, 2), "{listed:#?}");
    let first = moved(&other, &["import", "simple", "--from", "export", &out]).success();
    assert_eq!(first.count("moved"), FILES);
    moved(&other, &["import", "simple", "--from", "export", &out]).adds_nothing();
    for project in PROJECTS {
        assert_eq!(listing(&old, project), listing(&new, project));
    }

    let pip = match Home::with("pip") {
        Ok(pip) => pip,
        Err(reason) => return skip("pip", &reason),
    };
    for index in [format!("file://{out}/simple"), new.index_of(&new.token.secret)] {
        let _ = std::fs::remove_dir_all(pip.folder().join("site"));
        let words = ["install", "--no-cache-dir", "--target", "site", "--index-url", &index];
        pip.run("", "pip", &[&words[..], &["demo-two", "demo-one==1.0"]].concat(), &[]).success();
        assert!(pip.folder().join("site/demo_two/__init__.py").is_file());
        // pip does not choose a yanked version.
        pip.run("", "pip", &[&words[..], &["demo-one<2"]].concat(), &[]).refused("No matching distribution");
    }
}

#[test]
fn simple_pages_and_unusual_files_are_parsed() {
    let (server, upstream) = (Server::start(), Upstream::start());
    let new = PythonRepository::create(&server, "new");
    let (one, two) = (wheel::wheel("odd", "1.0", ""), wheel::sdist("odd", "1.0"));
    let sha256 = packhouse_tests::digests::sha256(&one);
    let html = |text: String| Answer::ok(text).header("Content-Type", "text/html");
    upstream.on("/simple/", html("<a href='odd/'>Odd</a><a href='gone/'>gone</a>".to_owned()));
    upstream.on(
        "/simple/odd/",
        html(format!(
            "<a href='/f/odd-1.0-py3-none-any.whl#sha256={sha256}' data-yanked=''>w</a><a href='/f/odd-1.0.tar.gz'>s</a>\
             <a href='/f/odd-1.0-py2.7.egg'>e</a>"
        )),
    );
    upstream.on(
        "/f/odd-1.0-py3-none-any.whl",
        Answer::ok(one).header("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT"),
    );
    upstream.on("/f/odd-1.0.tar.gz", Answer::ok(two).chunked(100));
    upstream.on("/f/odd-1.0-py2.7.egg", Answer::ok("egg"));
    let url = upstream.url();
    let first = moved(&server, &["import", "new", "--from", "pypi", &url]);
    assert!(!first.output.success);
    assert_eq!(first.count("moved"), 3, "{:#?}", first.lines);
    let gone = first.lines.iter().find(|line| line["package"] == "gone").unwrap();
    assert!(gone["outcome"] == "refused" && gone["reason"].as_str().unwrap().contains("404"), "{gone}");
    // The source yanked one of three files. This server can only yank whole versions, so it yanks
    // the version.
    let state = first.lines.iter().find(|line| line["what"] == "state").unwrap();
    assert!(state["reason"].as_str().unwrap().starts_with("1 of 3 files"), "{state}");
    let files = listing(&new, "odd")["files"].as_array().unwrap().clone();
    let names: Vec<_> = files.iter().map(|file| file["filename"].as_str().unwrap()).collect();
    assert_eq!(names, ["odd-1.0-py2.7.egg", "odd-1.0-py3-none-any.whl", "odd-1.0.tar.gz"]);
    assert_eq!(files[1]["upload-time"], "2020-01-01T00:00:00.000000Z");
    let read = new.client.send(Request::new("GET", &new.path("simple/odd/")));
    assert!(read.text().contains("odd-1.0.tar.gz"));
    let again = moved(&server, &["import", "new", "--from", "pypi", &url]);
    assert_eq!((again.count("moved"), again.count("present")), (0, 3), "{:#?}", again.lines);
    assert_eq!(version(&server, &new.id, "odd", "1.0")["published_at"], BEGIN_2020_MS);
}

/// Files of another server that this server would refuse as a publish: version, name and bytes.
fn old_files() -> Vec<(&'static str, String, Vec<u8>)> {
    let surplus = |lines: Vec<u8>| [&lines[..], b"old/gone.py,,\n"].concat();
    let wrong = |lines: Vec<u8>| {
        String::from_utf8_lossy(&lines).replace("init__.py,,", "init__.py,sha256=x,").into_bytes()
    };
    let latin = |fields: Vec<u8>| [&fields[..], b"Author: Andr\xe9\n"].concat();
    let name = |version: &str| wheel::wheel_name("old", version);
    let mut files = vec![
        ("1.0", name("1.0"), wheel::changed_wheel("old", "1.0", "RECORD", surplus)),
        ("1.1", name("1.1"), wheel::changed_wheel("old", "1.1", "RECORD", |_| Vec::new())),
        ("1.2", name("1.2"), wheel::changed_wheel("old", "1.2", "RECORD", wrong)),
        ("1.3", name("1.3"), wheel::changed_wheel("old", "1.3", "METADATA", latin)),
    ];
    let ends = [".tar.bz2", ".tgz", ".tar.xz", "-py2.7.egg", ".win32.exe", ".win32.msi", "-1.noarch.rpm"];
    files.extend(ends.iter().map(|end| ("1.4", format!("old-1.4{end}"), end.as_bytes().to_vec())));
    files
}

#[test]
fn existing_files_are_moved_although_they_could_not_be_published() {
    let (server, upstream) = (Server::start(), Upstream::start());
    let (new, other) = (PythonRepository::create(&server, "new"), PythonRepository::create(&server, "other"));
    let files = old_files();
    let link = |(_, name, _): &(_, String, _)| {
        format!("<a href='/f/{name}' data-requires-python='&gt;=2.7'>{name}</a>")
    };
    upstream.on("/simple/", Answer::ok("<a href='old/'>old</a>").header("Content-Type", "text/html"));
    let page: String = files.iter().map(link).collect();
    upstream.on("/simple/old/", Answer::ok(page).header("Content-Type", "text/html"));
    for (_, name, bytes) in &files {
        upstream.on(&format!("/f/{name}"), Answer::ok(bytes.clone()));
    }
    let url = upstream.url();
    // An import without times is still an import and not a publish, so the server accepts the
    // files.
    let words = ["import", "new", "--from", "pypi", &url, "--without-times"];
    let first = moved(&server, &words).success();
    assert_eq!(first.count("moved"), files.len(), "{:#?}", first.lines);
    moved(&server, &words).adds_nothing();
    for (version, name, bytes) in &files {
        assert_eq!(new.file("old", version, name).expect(200).body, *bytes, "{name}");
        other.publish("old", version, name, bytes).expect(400);
    }
    let listed = new.page("old")["files"].as_array().unwrap().clone();
    let old_kinds = listed.iter().filter(|file| file["requires-python"] == ">=2.7");
    assert_eq!((listed.len(), old_kinds.count()), (files.len(), 7), "{listed:#?}");

    // Without the right to manage the repository, the import publishes the files as new ones, so
    // the server refuses them.
    let rights = json!({"organization": [], "repositories": [{"repository": other.id, "actions": ["read", "publish", "delete"]}]});
    let password = packhouse_tests::server::PASSWORD;
    let member = json!({"email": "dev@example.com", "password": password, "permissions": rights});
    Api::sign_in(&server).post("/v1/members", &member).expect(201);
    let login = format!("dev@example.com:{password}");
    let words = ["import", "other", "--from", "pypi", &url, "--without-times"];
    let refused = moved_with(&server, &words, &[("PACKHOUSE_LOGIN", login.as_str())]);
    assert_eq!((refused.count("refused"), refused.count("skipped")), (4, 7), "{:#?}", refused.lines);
    other.ask("old").expect(404);
}
