//! Runs the format's test table on the in-memory host. Other tests check behaviour that a table row
//! cannot express: proxies, groups, published versions and upkeep.

use super::table;

use packhouse_generic::Generic;
use packhouse_sdk::VersionId;
use packhouse_testkit::{MemoryHost, Mount, run};
use serde_json::{Value, json};

fn hosted(settings: Value) -> (MemoryHost, Mount<Generic>) {
    let host = MemoryHost::new();
    let mount = host.mount::<Generic>("releases", "hosted", settings);
    (host, mount)
}

#[test]
fn the_table_holds() {
    let (_, mut mount) = hosted(json!({}));
    run(&mut mount, &table::cases());
}

#[test]
fn the_tables_of_other_settings_hold() {
    let (_, mut mount) = hosted(json!({"overwrite": true}));
    run(&mut mount, &table::overwriting());
    let (_, mut mount) = hosted(json!({"redeploy": "identical"}));
    run(&mut mount, &table::identical());
}

#[test]
fn a_setting_allows_to_use_a_deleted_path_again() {
    let (_, mount) = hosted(json!({"republish_deleted": true}));
    mount.put("/a/b").body("1").send().expect(201);
    mount.delete("/a/b").send().expect(204);
    mount.put("/a/b").body("2").send().expect(201);
    assert_eq!(mount.get("/a/b").send().expect(200).text(), "2");
}

#[test]
fn a_refused_put_changes_nothing() {
    let (host, mount) = hosted(json!({}));
    mount.put("/a/b").body("1").send().expect(201);
    let before = mount.effects();
    mount.put("/a/b").body("2").send().expect(409);
    mount.put("/a/c").header("x-checksum-md5", &"0".repeat(32)).body("2").send().expect(400);
    host.end_grace();
    assert_eq!(mount.effects(), before);
}

#[test]
fn a_folder_is_a_package_and_a_file_a_version() {
    let (_, mount) = hosted(json!({}));
    mount.put("/tools/linux/tool%20one").body("1").send().expect(201);
    mount.put("/top").body("2").send().expect(201);
    let effects = mount.effects().to_string();
    assert!(effects.contains("shown tools/linux tool one ") && effects.contains("shown - top "), "{effects}");
    mount.delete_version(&VersionId::new("tools/linux", "tool one")).unwrap();
    mount.delete_version(&VersionId::new("-", "top")).unwrap();
    for id in [VersionId::new("-", "top"), VersionId::new("tools", "linux/tool"), VersionId::new("", "")] {
        assert_eq!(mount.delete_version(&id).unwrap_err().status, 404, "{id:?}");
    }
    assert_eq!(mount.mark_version(&VersionId::new("-", "top"), "deprecated", "").unwrap_err().status, 405);
    mount.get("/tools/").send().expect(404);
}

#[test]
fn one_request_deletes_a_folder_of_thousands_of_files() {
    let (_, mount) = hosted(json!({}));
    for number in 0..2100 {
        mount.put(&format!("/many/{number}")).body("x").send().expect(201);
    }
    mount.delete("/many/").send().expect(204);
    mount.get("/many/").send().expect(404);
}

#[test]
fn a_proxy_serves_files_and_checksums_of_its_upstream() {
    let host = MemoryHost::new();
    let proxy = host.mount::<Generic>("mirror", "proxy", json!({"immutable": true}));
    let sum = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
    host.answer_upstream("GET", "/a/foo", 200, &[("x-checksum-sha256", sum)], b"foo");
    for missing in ["/a/foo.sha256", "/a/bar"] {
        host.answer_upstream("GET", missing, 404, &[], b"");
    }
    let answer = proxy.get("/a/foo").send().expect(200);
    assert_eq!((answer.text().as_str(), answer.header("x-checksum-sha256")), ("foo", Some(sum)));
    assert_eq!(proxy.get("/a/foo.sha256").send().expect(200).text(), format!("{sum}  foo\n"));
    proxy.get("/a/bar").send().expect(404);
    host.answer_upstream("GET", "/a/foo", 200, &[("x-checksum-sha256", &sum.replace('2', "3"))], b"foo");
    proxy.get("/a/foo").send().expect(502);
    host.answer_upstream("GET", "/a/foo", 500, &[], b"");
    let failed = proxy.get("/a/foo").send().expect(502).text();
    assert!(failed.contains("status 500") && failed.contains("/a/foo"), "{failed}");
    for status in [410, 401, 402, 403, 405, 409, 451] {
        host.answer_upstream("GET", "/a/foo", status, &[], b"");
        proxy.get("/a/foo").send().expect(404);
    }
}

/// Makes the upstream answer with HTML at a path. If `from` is not empty, the upstream first
/// redirects the request to that address.
fn answer_html(host: &MemoryHost, path: &str, from: &str) {
    let html = [("content-type", "text/html; charset=utf-8")];
    host.answer_upstream("GET", path, 200, &html, b"<html>hello</html>");
    if !from.is_empty() {
        host.redirect_upstream("GET", path, from);
    }
}

#[test]
fn a_sign_in_page_is_not_the_file() {
    let host = MemoryHost::new();
    let proxy = host.mount::<Generic>("mirror", "proxy", json!({}));
    for (path, from) in [
        ("/a/tool.tar.gz", ""),
        ("/a/tool.JAR", ""),
        ("/a/tool.zip.sha256", ""),
        ("/a/install.sh", ""),
        ("/a/index.json", ""),
        ("/a/release.PUB", ""),
        ("/a/tool", "https://upstream.test/login?to=tool"),
        ("/a/index.php", "https://upstream.test/Login.php?to=index"),
        ("/a/index.html", "https://sso.test/realms/all/auth"),
        ("/docs/1.0", "https://upstream.test/docs/1.0/"),
    ] {
        answer_html(&host, path, from);
        let refused = proxy.get(path).send().expect(502).text();
        assert!(refused.contains("it sent an HTML page"), "{path}: {refused}");
    }
}

#[test]
fn html_is_served_as_a_file() {
    let host = MemoryHost::new();
    let proxy = host.mount::<Generic>("mirror", "proxy", json!({}));
    for (path, from) in [
        ("/a/index.html", ""),
        ("/a/index.php", ""),
        ("/a/page", ""),
        ("/a/notes.txt", ""),
        ("/docs/1.0", ""),
        ("/docs/1.0", "https://mirror.test/far/docs/1.0"),
        ("/docs/latest.html", "https://mirror.test/docs/1.0.html"),
    ] {
        answer_html(&host, path, from);
        let answer = proxy.get(path).send().expect(200);
        assert_eq!(answer.text(), "<html>hello</html>", "{path}");
        assert!(!answer.header("content-type").unwrap_or_default().contains("html"), "{path}");
    }
}

#[test]
fn a_head_is_answered_from_the_cached_bytes() {
    let host = MemoryHost::new();
    let proxy = host.mount::<Generic>("mirror", "proxy", json!({}));
    let sum = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
    let head = [
        ("content-length", "1000000"),
        ("last-modified", "Sat, 21 Nov 2026 05:01:40 GMT"),
        ("x-checksum-sha256", sum),
    ];
    host.answer_upstream("GET", "/a/foo", 200, &head, b"foo");
    let answer = proxy.head("/a/foo").send().expect(200);
    assert_eq!((answer.header("content-length"), answer.modified), (Some("1000000"), None));
    assert_eq!(answer.header("x-checksum-sha256"), Some(sum));
    assert!(host.versions("mirror").is_empty(), "a HEAD must not fetch the large file");
    host.answer_upstream("GET", "/a/foo", 200, &[&head[..], &[("age", "7")]].concat(), b"foo");
    let answer = proxy.head("/a/foo").send().expect(200);
    // The host derives the length and the validators from the cached bytes.
    assert_eq!((answer.header("content-length"), answer.modified), (None, Some(1_795_237_300_000)));
}

#[test]
fn a_group_lists_the_files_of_all_members() {
    let (host, first) = hosted(json!({}));
    let second = host.mount::<Generic>("second", "hosted", json!({}));
    let _proxy = host.mount::<Generic>("mirror", "proxy", json!({}));
    let group = host.mount::<Generic>("all", "group", json!({})).members(&["releases", "second", "mirror"]);
    first.put("/a/one").body("1").send().expect(201);
    second.put("/a/one").body("other").send().expect(201);
    second.put("/a/two").body("2").send().expect(201);
    let far = json!({"path": "/", "entries": [{"name": "a", "kind": "folder"}, {"name": "far", "kind": "folder"}], "next": null});
    let headers = [("content-type", "application/json")];
    host.answer_upstream("GET", "/?limit=500&after=", 200, &headers, far.to_string().as_bytes());
    host.answer_upstream("GET", "/a/?limit=500&after=", 200, &headers, far.to_string().as_bytes());
    let names = |path: &str| {
        let page = group.get(path).header("accept", "application/json").send().expect(200).json();
        page["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("/"), ["a", "far"]);
    assert_eq!(names("/a/"), ["a", "far", "one", "two"]);
    assert_eq!(group.get("/a/one").send().expect(200).text(), "1");
    assert_eq!(group.get("/a/two.md5").send().expect(200).text(), "c81e728d9d4c2f636f067f89cc14862c  two\n");
    // A hosted member has the package, so the group does not request the package from an upstream.
    host.answer_upstream("GET", "/a/three", 200, &[], b"far");
    group.get("/a/three").send().expect(404);
}

#[test]
fn the_readme_of_the_folder_is_presented() {
    let (_, mount) = hosted(json!({}));
    mount.put("/tools/README.md").body("# Tools").send().expect(201);
    mount.put("/tools/tool").body("x").send().expect(201);
    let presentation = mount.present_version(&VersionId::new("tools", "tool")).unwrap();
    assert!(presentation.to_string().contains("# Tools"), "{presentation:?}");
}
