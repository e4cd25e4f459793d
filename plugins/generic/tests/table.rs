//! The format's protocol as a table of requests and expected responses.
//!
//! Each row runs in two environments. In `protocol.rs`, the plugin is native code on an in-memory
//! host. The workspace's tests include this file too; there, the plugin is a WebAssembly component
//! in the host's runtime. The two environments have different clocks, so rows must not depend on
//! times. All rows of [`cases`] run in one repository, from the first to the last, so a row sees
//! the files that earlier rows uploaded.

use packhouse_testkit::Case;

const TOOL: &str = "a tool";
const MD5: &str = "0748ccf156f3f0f4779549d45a73964f";
const SHA1: &str = "226a7f3a350819133972f2dac2ff92224ca33b28";
const SHA256: &str = "38af692dd9d8ad23452d6fa0eea8c069bcffb7baa53c479b9172d559e0b2f8b0";
const NOTES_SHA256: &str = "ab5aa97074c454a0632057e704220d9a6678fbf773a0a5806fc09b8173b07309";

/// The cases for an empty repository with default settings.
pub(crate) fn cases() -> Vec<Case> {
    [nothing_there(), storing(), stated_checksums(), refused_paths(), listings(), deletions()].concat()
}

/// The cases for a repository whose `overwrite` is true.
pub(crate) fn overwriting() -> Vec<Case> {
    vec![
        put("first", "/nightly/tool", "one"),
        put("other bytes", "/nightly/tool", "two"),
        get("they replace the first", "/nightly/tool", "two"),
        put("the same bytes again", "/nightly/tool", "two"),
        Case::new("the file is deleted", "DELETE", "/nightly/tool", 204),
        get_status("it is gone", "/nightly/tool", 404),
        put("it is uploaded again", "/nightly/tool", "three"),
        get("it is there", "/nightly/tool", "three"),
    ]
}

/// The cases for a repository whose `redeploy` is `identical`.
pub(crate) fn identical() -> Vec<Case> {
    vec![
        put("first", "/a/tool", "one"),
        put("the same bytes again", "/a/tool", "one"),
        Case::new("other bytes", "PUT", "/a/tool", 409).body("two").code("version_already_exists"),
        Case::new("another size is refused before the bytes", "PUT", "/a/tool", 409)
            .with("content-length", "9")
            .body("one")
            .code("version_already_exists"),
        get("the first bytes stay", "/a/tool", "one"),
    ]
}

fn put(name: &str, path: &str, body: &str) -> Case {
    Case::new(name, "PUT", path, 201).body(body)
}

fn get(name: &str, path: &str, content: &str) -> Case {
    Case::new(name, "GET", path, 200).content(content)
}

fn get_status(name: &str, path: &str, status: u16) -> Case {
    Case::new(name, "GET", path, status)
}

fn nothing_there() -> Vec<Case> {
    vec![
        get_status("no file", "/tools/tool", 404)
            .code("not_found")
            .contains("Nothing is stored at tools/tool"),
        get_status("no checksum", "/tools/tool.sha256", 404).code("not_found"),
        get_status("no folder", "/tools/", 404).code("not_found"),
        get_status("an empty repository", "/", 200)
            .with("accept", "application/json")
            .contains("\"entries\":[]"),
        Case::new("nothing to delete", "DELETE", "/tools/tool", 404).code("not_found"),
        Case::new("no folder to delete", "DELETE", "/tools/", 404).code("not_found"),
    ]
}

fn storing() -> Vec<Case> {
    vec![
        put("a file", "/tools/linux/tool", TOOL).header("x-checksum-sha256", SHA256),
        get("it is there", "/tools/linux/tool", TOOL)
            .header("content-type", "application/octet-stream")
            .header("cache-control", "no-cache")
            .header("x-checksum-md5", MD5)
            .header("x-checksum-sha1", SHA1)
            .header("x-checksum-sha256", SHA256)
            .no_header("x-checksum-sha512"),
        get("md5", "/tools/linux/tool.md5", &format!("{MD5}  tool\n")),
        get("sha1", "/tools/linux/tool.sha1", &format!("{SHA1}  tool\n")),
        get("sha256", "/tools/linux/tool.sha256", &format!("{SHA256}  tool\n"))
            .header("content-type", "text/plain; charset=utf-8"),
        get_status("sha512", "/tools/linux/tool.sha512", 200).contains("  tool\n"),
        Case::new("again", "PUT", "/tools/linux/tool", 409).body(TOOL).code("version_already_exists"),
        put("a file at the top", "/notes.txt", "notes").header("x-checksum-sha256", NOTES_SHA256),
        get("has a type", "/notes.txt", "notes").header("content-type", "text/plain; charset=utf-8"),
        put("an HTML file", "/page.html", "<script>"),
        get_status("is not served as HTML", "/page.html", 200)
            .header("content-type", "application/octet-stream"),
        put("an uploaded checksum file", "/notes.txt.sha256", "mine"),
        get("is served unchanged", "/notes.txt.sha256", "mine"),
        put("a path with other letters", "/w%C3%B6rter/ein%20Wort", "wort"),
        get("is stored unchanged", "/w%C3%B6rter/ein%20Wort", "wort"),
    ]
}

fn stated_checksums() -> Vec<Case> {
    let put = |name: &str, status: u16| Case::new(name, "PUT", "/stated/tool", status).body(TOOL);
    vec![
        put("the checksum of another file", 400)
            .with("x-checksum-sha1", &"0".repeat(40))
            .code("checksum_mismatch")
            .contains(SHA1),
        put("an invalid checksum", 400).with("x-checksum-sha256", "abc").code("invalid_checksum"),
        put("the digest of another file", 400)
            .with("content-digest", "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:")
            .code("checksum_mismatch"),
        put("an invalid digest", 400).with("content-digest", "sha-256=x").code("invalid_checksum"),
        get_status("nothing was stored", "/stated/tool", 404),
        put("the right checksums", 201)
            .with("x-checksum-sha256", SHA256)
            .with("x-checksum-md5", &MD5.to_uppercase()),
        get("it is there", "/stated/tool", TOOL),
    ]
}

fn refused_paths() -> Vec<Case> {
    let put = |name: &str, path: &str| Case::new(name, "PUT", path, 400).body("x").code("invalid_path");
    vec![
        put("a folder is not a file", "/a/"),
        put("an empty segment", "/a//b"),
        put("a backslash", "/a%5Cb"),
        put("the name that stands for no folder", "/-/a"),
        put("too long", &format!("/{}", "a/".repeat(600))),
        Case::new("the whole repository", "DELETE", "/", 405).code("method_not_allowed"),
        Case::new("no such method", "POST", "/a", 405).code("method_not_allowed"),
    ]
}

fn listings() -> Vec<Case> {
    let json = |name: &str, path: &str| get_status(name, path, 200).with("accept", "application/json");
    vec![
        json("the top", "/")
            .header("content-type", "application/json")
            .contains("{\"name\":\"tools\",\"kind\":\"folder\"}")
            .contains("{\"name\":\"notes.txt\",\"kind\":\"file\",\"size\":5,")
            .contains("\"next\":null"),
        json("a folder", "/tools/")
            .contains("\"path\":\"/tools/\"")
            .contains("\"name\":\"linux\"")
            .lacks("notes"),
        json("a page of one", "/?limit=1").contains("\"next\":\"notes.txt\""),
        json("the next page", "/?limit=1&after=notes.txt").contains("notes.txt.sha256").lacks("\"tools\""),
        get_status("as HTML", "/tools/linux/", 200)
            .header("content-type", "text/html; charset=utf-8")
            .contains("<a href=\"./tool\">tool</a>"),
        get_status("a folder without its slash", "/tools/linux", 302)
            .header("location", "https://packhouse.test/repositories/releases/tools/linux/"),
        get_status("an invalid limit", "/?limit=0", 400).code("invalid_request"),
    ]
}

fn deletions() -> Vec<Case> {
    vec![
        Case::new("a folder needs its slash", "DELETE", "/tools/linux", 404).contains("use tools/linux/"),
        Case::new("a file", "DELETE", "/notes.txt", 204),
        get_status("it is gone", "/notes.txt", 404),
        Case::new("its path cannot be used again", "PUT", "/notes.txt", 409)
            .body("x")
            .contains("was deleted here"),
        Case::new("a folder", "DELETE", "/tools/", 204),
        get_status("its files are gone", "/tools/linux/tool", 404),
        get_status("the folder is gone", "/tools/", 404),
    ]
}
