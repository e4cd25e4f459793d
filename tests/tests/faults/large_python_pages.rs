//! A project with more than a hundred thousand files, read through a proxy and a group. The
//! server's memory use must not grow with the number of files.

use packhouse_tests::http::Request;
use packhouse_tests::python::SIMPLE_JSON;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::{Server, ServerBuilder};
use packhouse_tests::upstream::{Answer, Upstream};
use serde_json::json;

const FEW: usize = 2_000;
const MANY: usize = 200_000;

/// Options for a server with a long timeout of calls, because this test does not measure their
/// duration on a busy machine.
fn builder() -> ServerBuilder {
    Server::with()
        .env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*")
        .env("PACKHOUSE_PLUGINS_PYTHON_CALL_TIMEOUT_MS", "120000")
}

fn filename(number: usize) -> String {
    let (version, python, platform) = (number / 60, number % 6, number / 6 % 10);
    format!("demo-1.{version}-cp3{python}-cp3{python}-manylinux_2_{platform}_x86_64.whl")
}

/// A page of this many files. Each file has as many fields as on the largest public index.
fn page(files: usize) -> String {
    let mut page = String::from(r#"{"meta":{"api-version":"1.1"},"name":"demo","files":["#);
    for number in 0..files {
        let (filename, digest) = (filename(number), format!("{number:064x}"));
        let file = json!({
            "filename": filename, "url": format!("/files/{filename}"), "hashes": {"sha256": digest}, "size": number,
            "requires-python": ">=3.8", "upload-time": "2020-01-01T00:00:00.000000Z", "yanked": false,
            "core-metadata": {"sha256": digest}, "data-dist-info-metadata": {"sha256": digest}, "provenance": null,
        });
        page.push_str(if number == 0 { "" } else { "," });
        page.push_str(&file.to_string());
    }
    page + "]}"
}

/// The project's page in JSON, as a repository lists it.
fn listed(repository: &FormatRepository, project: &str) -> String {
    let request = Request::new("GET", &format!("/repositories/{}/simple/{project}/", repository.name));
    repository.client.send(request.header("Accept", SIMPLE_JSON)).expect(200).text()
}

#[test]
fn a_page_of_many_files_needs_no_more_memory_than_one_of_few() {
    let mut server = builder().start();
    // The first start compiles the plugins. The test restarts the server so that it does not
    // measure that memory.
    server.restart();
    let (upstream, other) = (Upstream::start(), Upstream::start());
    let settings = json!({"metadata_ttl_s": 0});
    let proxy = FormatRepository::proxy(&server, "python", "proxy", &upstream.url(), &settings);
    let second = FormatRepository::proxy(&server, "python", "second", &other.url(), &settings);
    let group = FormatRepository::group(&server, "python", "group", &[&proxy, &second]);

    let mut peaks = Vec::new();
    // Each size has its own project. If a page took long, the proxy would otherwise serve the
    // cached page of the first size.
    for (project, files) in [("few", FEW), ("many", MANY)] {
        let named = |files| {
            page(files)
                .replace("\"demo\"", &format!("\"{project}\""))
                .replace("demo-1.", &format!("{project}-1."))
        };
        let (path, document) = (format!("/simple/{project}/"), named(files));
        other.on(&path, Answer::ok(named(10)).header("Content-Type", SIMPLE_JSON));
        upstream.on(&path, Answer::ok(document.clone()).header("Content-Type", SIMPLE_JSON));
        for repository in [&proxy, &group] {
            let (text, peak) = server.watched(|| listed(repository, project));
            assert_eq!(text.matches("\"filename\":").count(), files, "{} of {files}", repository.name);
            eprintln!("{} of {files} files: {peak} bytes resident at most", repository.name);
            peaks.push((repository.name.clone(), files, peak, document.len() as u64));
        }
    }
    for (name, files, peak, length) in &peaks[2..] {
        let few = peaks.iter().find(|(known, ..)| known == name).unwrap().2;
        let grown = peak.saturating_sub(few);
        assert!(grown < length / 2, "{name} of {files} files: {grown} bytes more, for a page of {length}");
    }
}

#[test]
fn a_file_of_a_large_page_is_served_by_itself_and_in_a_group() {
    let server = builder().start();
    let upstream = Upstream::start();
    let proxy = FormatRepository::proxy(&server, "python", "proxy", &upstream.url(), &json!({}));
    let group = FormatRepository::group(&server, "python", "group", &[&proxy]);
    let files = 50_000;
    let (name, bytes) = (filename(files - 1), b"a wheel".as_slice());
    let digest = packhouse_tests::digests::sha256(bytes);
    let document = page(files).replace(&format!("{:064x}", files - 1), &digest);
    upstream.on("/simple/demo/", Answer::ok(document).header("Content-Type", SIMPLE_JSON));
    upstream.on(&format!("/files/{name}"), Answer::ok(bytes));
    for repository in [&proxy, &group] {
        let path = format!("/repositories/{}/packages/demo/1.{}/{name}", repository.name, (files - 1) / 60);
        assert_eq!(repository.client.get(&path).expect(200).body, bytes, "{}", repository.name);
    }
}
