//! Tests that an upstream's project with many files is listed and served like a small one.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use super::proxy::{JSON, names, page, proxy, sha256};

use packhouse_python::Python;
use packhouse_testkit::MemoryHost;
use serde_json::{Value, json};

/// Builds a page with this number of files of `demo`, five for each version. The files are on a
/// separate host.
fn large_page(files: usize) -> Vec<u8> {
    let file = |number: usize| {
        let filename = format!("demo-1.{}-cp3{}-none-any.whl", number / 5, number % 5);
        json!({
            "filename": filename, "url": format!("https://files.test/x/{filename}"),
            "hashes": {"sha256": sha256(filename.as_bytes())}, "size": number, "requires-python": ">=3.8",
            "upload-time": "2020-01-01T00:00:00Z", "yanked": false, "core-metadata": {"sha256": sha256(b"METADATA")},
        })
    };
    let files: Vec<Value> = (0..files).map(file).collect();
    json!({"meta": {"api-version": "1.1"}, "name": "demo", "files": files}).to_string().into_bytes()
}

#[test]
fn a_large_page_is_listed_like_a_small_one() {
    let host = MemoryHost::new();
    let proxy = proxy(&host, json!({}));
    host.answer_upstream("GET", "simple/demo/", 200, &[("content-type", JSON)], &large_page(20_000));
    let many = page(&proxy);
    assert_eq!(names(&many).len(), 20_000);
    assert_eq!(many["versions"].as_array().unwrap().len(), 4_000);
    let versions: Vec<&str> =
        many["versions"].as_array().unwrap().iter().map(|version| version.as_str().unwrap()).collect();
    assert_eq!((versions[0], versions[10], versions[3_999]), ("1.0", "1.10", "1.3999"));
    let html = proxy.get("/simple/demo/").header("accept", "text/html").send().expect(200).text().to_owned();
    assert_eq!(html.matches("<a href").count(), 20_000);

    // Each entry of a small page, whose files are sorted in memory, is also in the large page.
    host.answer_upstream("GET", "simple/demo/", 200, &[("content-type", JSON)], &large_page(100));
    let few = page(&proxy);
    for file in few["files"].as_array().unwrap() {
        assert!(many["files"].as_array().unwrap().contains(file), "{file}");
    }
}

#[test]
fn a_file_of_a_large_page_is_found() {
    let host = MemoryHost::new();
    let proxy = proxy(&host, json!({}));
    host.answer_upstream("GET", "simple/demo/", 200, &[("content-type", JSON)], &large_page(20_000));
    let name = "demo-1.3999-cp34-none-any.whl";
    host.answer_upstream("GET", &format!("https://files.test/x/{name}"), 200, &[], name.as_bytes());
    let path = format!("/packages/demo/1.3999/{name}");
    assert_eq!(proxy.get(&path).send().expect(200).body, name.as_bytes());
    proxy.get("/packages/demo/1.4000/demo-1.4000-cp34-none-any.whl").send().expect(404);
}

#[test]
fn a_group_lists_each_file_of_large_pages_once() {
    let host = MemoryHost::new();
    proxy(&host, json!({}));
    host.mount::<Python>("other", "proxy", json!({"upstream": "https://upstream.test"}));
    let group = host.mount::<Python>("group", "group", json!({})).members(&["proxy", "other"]);
    host.answer_upstream("GET", "simple/demo/", 200, &[("content-type", JSON)], &large_page(12_000));
    let all = page(&group);
    let mut once = names(&all);
    once.dedup();
    assert_eq!((once.len(), all["files"].as_array().unwrap().len()), (12_000, 12_000));
    host.deny_version("demo", "1.7", "Its licence is not accepted (policy ours)");
    let denied = page(&group);
    assert_eq!(names(&denied), names(&all));
    let yanked = |file: &&Value| file["yanked"] != json!(false);
    assert_eq!(denied["files"].as_array().unwrap().iter().filter(yanked).count(), 5);
}

#[test]
fn pypis_own_document_of_a_large_project_has_all_releases() {
    let host = MemoryHost::new();
    let proxy = proxy(&host, json!({}));
    host.answer_upstream("GET", "simple/demo/", 200, &[("content-type", JSON)], &large_page(20_000));
    let document = proxy.get("/pypi/demo/json").send().expect(200).json();
    assert_eq!(document["info"]["version"], "1.3999");
    let releases = document["releases"].as_object().unwrap();
    assert_eq!(releases.len(), 4_000);
    assert!(releases.values().all(|files| files.as_array().unwrap().len() == 5));
    assert_eq!(document["urls"], releases["1.3999"]);
    let one = proxy.get("/pypi/demo/1.17/json").send().expect(200).json();
    assert_eq!((&one["urls"], one["urls"].as_array().unwrap().len()), (&releases["1.17"], 5));
    proxy.get("/pypi/demo/2.0/json").send().expect(404);
}
