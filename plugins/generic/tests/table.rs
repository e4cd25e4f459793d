//! The format's protocol as a table: what clients ask, and what must come back.
//!
//! It runs natively over the memory host (`protocol.rs`), and through the component and the runtime (the workspace's tests
//! include this file). Times differ between the two, so that no row depends on one. All parts run in one repository, in their order.

use packhouse_testkit::Case;

const TOOL: &str = "a tool";
const MD5: &str = "0748ccf156f3f0f4779549d45a73964f";
const SHA1: &str = "226a7f3a350819133972f2dac2ff92224ca33b28";
const SHA256: &str = "38af692dd9d8ad23452d6fa0eea8c069bcffb7baa53c479b9172d559e0b2f8b0";
const NOTES_SHA256: &str = "ab5aa97074c454a0632057e704220d9a6678fbf773a0a5806fc09b8173b07309";

/// For a repository with the settings that it has if nothing is said, in which nothing is published.
pub(crate) fn cases() -> Vec<Case> {
    [nothing_there(), storing(), stated_checksums(), refused_paths(), listings(), deletions()].concat()
}

/// For a repository whose `overwrite` is true.
pub(crate) fn overwriting() -> Vec<Case> {
    vec![
        put("first", "/nightly/tool", "one"),
        put("other bytes", "/nightly/tool", "two"),
        get("they stand", "/nightly/tool", "two"),
        put("the same again", "/nightly/tool", "two"),
        Case::new("away", "DELETE", "/nightly/tool", 204),
        asked("it is away", "/nightly/tool", 404),
        put("and comes again", "/nightly/tool", "three"),
        get("it is there", "/nightly/tool", "three"),
    ]
}

/// For a repository whose `redeploy` is `identical`.
pub(crate) fn identical() -> Vec<Case> {
    vec![
        put("first", "/a/tool", "one"),
        put("the same bytes again", "/a/tool", "one"),
        Case::new("other bytes", "PUT", "/a/tool", 409).body("two").code("version_already_exists"),
        Case::new("another size is told before the bytes", "PUT", "/a/tool", 409)
            .with("content-length", "9")
            .body("one")
            .code("version_already_exists"),
        get("the first bytes stand", "/a/tool", "one"),
    ]
}

fn put(name: &str, path: &str, body: &str) -> Case {
    Case::new(name, "PUT", path, 201).body(body)
}

fn get(name: &str, path: &str, content: &str) -> Case {
    Case::new(name, "GET", path, 200).content(content)
}

fn asked(name: &str, path: &str, status: u16) -> Case {
    Case::new(name, "GET", path, status)
}

fn nothing_there() -> Vec<Case> {
    vec![
        asked("no file", "/tools/tool", 404).code("not_found").contains("Nothing is stored at tools/tool"),
        asked("no checksum", "/tools/tool.sha256", 404).code("not_found"),
        asked("no folder", "/tools/", 404).code("not_found"),
        asked("an empty repository", "/", 200).with("accept", "application/json").contains("\"entries\":[]"),
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
        asked("sha512", "/tools/linux/tool.sha512", 200).contains("  tool\n"),
        Case::new("again", "PUT", "/tools/linux/tool", 409).body(TOOL).code("version_already_exists"),
        put("a file at the top", "/notes.txt", "notes").header("x-checksum-sha256", NOTES_SHA256),
        get("has a type", "/notes.txt", "notes").header("content-type", "text/plain; charset=utf-8"),
        put("no page is run", "/page.html", "<script>"),
        asked("as bytes", "/page.html", 200).header("content-type", "application/octet-stream"),
        put("a checksum of one's own", "/notes.txt.sha256", "mine"),
        get("stands as it is", "/notes.txt.sha256", "mine"),
        put("letters of any kind", "/w%C3%B6rter/ein%20Wort", "wort"),
        get("are kept", "/w%C3%B6rter/ein%20Wort", "wort"),
    ]
}

fn stated_checksums() -> Vec<Case> {
    let put = |name: &str, status: u16| Case::new(name, "PUT", "/stated/tool", status).body(TOOL);
    vec![
        put("another's sum", 400)
            .with("x-checksum-sha1", &"0".repeat(40))
            .code("checksum_mismatch")
            .contains(SHA1),
        put("no sum at all", 400).with("x-checksum-sha256", "abc").code("invalid_checksum"),
        put("another's digest", 400)
            .with("content-digest", "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:")
            .code("checksum_mismatch"),
        put("no digest", 400).with("content-digest", "sha-256=x").code("invalid_checksum"),
        asked("nothing came of it", "/stated/tool", 404),
        put("its own sum", 201).with("x-checksum-sha256", SHA256).with("x-checksum-md5", &MD5.to_uppercase()),
        get("it is there", "/stated/tool", TOOL),
    ]
}

fn refused_paths() -> Vec<Case> {
    let put = |name: &str, path: &str| Case::new(name, "PUT", path, 400).body("x").code("invalid_path");
    vec![
        put("a folder is no file", "/a/"),
        put("an empty segment", "/a//b"),
        put("a backslash", "/a%5Cb"),
        put("the name of what lies in no folder", "/-/a"),
        put("too long", &format!("/{}", "a/".repeat(600))),
        Case::new("all of it", "DELETE", "/", 405).code("method_not_allowed"),
        Case::new("no such method", "POST", "/a", 405).code("method_not_allowed"),
    ]
}

fn listings() -> Vec<Case> {
    let json = |name: &str, path: &str| asked(name, path, 200).with("accept", "application/json");
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
        json("the page behind it", "/?limit=1&after=notes.txt")
            .contains("notes.txt.sha256")
            .lacks("\"tools\""),
        asked("for people", "/tools/linux/", 200)
            .header("content-type", "text/html; charset=utf-8")
            .contains("<a href=\"./tool\">tool</a>"),
        asked("a folder without its slash", "/tools/linux", 302)
            .header("location", "https://packhouse.test/repositories/releases/tools/linux/"),
        asked("no such limit", "/?limit=0", 400).code("invalid_request"),
    ]
}

fn deletions() -> Vec<Case> {
    vec![
        Case::new("a folder needs its slash", "DELETE", "/tools/linux", 404).contains("ask for tools/linux/"),
        Case::new("a file", "DELETE", "/notes.txt", 204),
        asked("it is away", "/notes.txt", 404),
        Case::new("its path stays used", "PUT", "/notes.txt", 409).body("x").contains("was deleted here"),
        Case::new("a folder", "DELETE", "/tools/", 204),
        asked("its files are away", "/tools/linux/tool", 404),
        asked("it is away too", "/tools/", 404),
    ]
}
