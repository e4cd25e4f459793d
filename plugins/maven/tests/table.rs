//! Maven's protocol as a table: what clients ask, and what must come back.
//!
//! It runs natively over the memory host (`protocol.rs`), and through the component and the runtime (the workspace's tests
//! include this file). Times differ between the two, so that no row depends on one. Each part has groups of its own, and
//! all run in one repository, in their order.

use packhouse_testkit::Case;

const JAR: &str = "jar of lib 1.0";
const JAR_MD5: &str = "a8e795f5945299c6983a13665f6ba2fb";
const JAR_SHA1: &str = "09d55bc2c89df13b7d3f03a8d1d60eecb51c7613";
const JAR_SHA256: &str = "ca5e23b1b92f672e11808dc51fb09eea2d5c572da179d76be1a523ca8fc50b38";
const JAR_SHA512: &str = "a9b23479047e12307d6c5cd6fa53501a917d08cb9c283ec4be142e6483cad943\
                          d9fcab4433c328e39e0102c84e71f5b83c044399a7c56d9a0cf0bffe02f094a2";
const MODULE: &str = "module of kit 1.0";
const MODULE_SHA256: &str = "484e2512547e14c72ee8f175d61232bb1868f6059ebd159096c666b6fe3d09d7";
const MODULE_SHA512: &str = "761d872d850e874baa51204653b6169ba4154499f943be13c468b8ce136765d9\
                             18da8d689212e503a5804998b373cef6bd1a77ad0e4622e65590f8c59b6a8d07";
const BUILD_2: &str = "build 2 of app 2.0";
const BUILD_2_SHA1: &str = "d8df39b029a46c4f0b9ae434c4f86ad66cec7bab";
const HELD_SHA1: &str = "2c034395963ed14c03b16e3b6e089a1aafb603f9";
const HELD_MD5: &str = "0eb29f5d6149e84750bcd6f6e741a7a1";

/// As Maven writes it when lib 1.0 is deployed; with this SHA-1.
const LIB: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<metadata>\n  <groupId>org.example</groupId>\n  \
    <artifactId>lib</artifactId>\n  <versioning>\n    <release>1.0</release>\n    <versions>\n      <version>1.0</version>\n    \
    </versions>\n    <lastUpdated>20200229000000</lastUpdated>\n  </versioning>\n</metadata>\n";
const LIB_SHA1: &str = "8939a3545f769ae2d23ffbb0847cbcb4448496c7";

/// All parts, for a repository with the settings that it has if nothing is said, in which nothing is published.
pub(crate) fn cases() -> Vec<Case> {
    [
        nothing_published(),
        mvn_deploy(),
        mvn_deploy_again(),
        mvn_deploys_a_snapshot_twice(),
        moving_snapshots(),
        gradle_publishes(),
        checksums(),
        held_checksums(),
        plugins(),
        plain_files(),
        refused_paths(),
        listings(),
        deletions(),
    ]
    .concat()
}

/// For a repository whose `redeploy` is `identical`.
pub(crate) fn identical() -> Vec<Case> {
    let jar = "/same/lib/1.0/lib-1.0.jar";
    vec![
        put("first", jar, JAR),
        put("the same bytes again", jar, JAR),
        Case::new("other bytes", "PUT", jar, 409).body("jar of lib 1.1").code("version_already_exists"),
        Case::new("another size is told before the bytes", "PUT", jar, 409)
            .with("content-length", "3")
            .body("jar")
            .code("version_already_exists"),
        get("the first bytes stand", jar, JAR),
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

fn delete(name: &str, path: &str, status: u16) -> Case {
    Case::new(name, "DELETE", path, status)
}

fn nothing_published() -> Vec<Case> {
    vec![
        asked("an empty repository's root", "/", 404).code("not_found"),
        asked("no file", "/org/example/lib/1.0/lib-1.0.jar", 404).code("not_found"),
        asked("no checksum either", "/org/example/lib/1.0/lib-1.0.jar.sha1", 404).code("not_found"),
        asked("no metadata", "/org/example/lib/maven-metadata.xml", 404).code("not_found"),
        asked("no metadata's checksum", "/org/example/lib/maven-metadata.xml.sha1", 404).code("not_found"),
        asked("no folder", "/org/", 404).code("not_found"),
        asked("no list of groups", "/.meta/prefixes.txt", 404).code("not_found"),
        asked("no catalogue of archetypes", "/archetype-catalog.xml", 404).code("not_found"),
        Case::new("another method", "POST", "/org/example/lib/", 405)
            .code("method_not_allowed")
            .header("allow", "DELETE, GET, HEAD, PUT"),
    ]
}

/// A release with jar, POM and sources, as Maven 3.8 sends it.
fn mvn_deploy() -> Vec<Case> {
    let at = |name: &str| format!("/org/example/lib/{name}");
    let metadata = at("maven-metadata.xml");
    let mut cases = Vec::new();
    for (file, body) in [("lib-1.0.jar", JAR), ("lib-1.0.pom", JAR), ("lib-1.0-sources.jar", JAR)] {
        let path = at(&format!("1.0/{file}"));
        cases.push(put("a file", &path, body));
        cases.push(put("its SHA-1", &format!("{path}.sha1"), JAR_SHA1));
        cases.push(put("its MD5", &format!("{path}.md5"), JAR_MD5));
    }
    cases.extend([
        asked("metadata knows of it already", &metadata, 200)
            .contains("<version>1.0</version>")
            .contains("<release>1.0</release>")
            .header("content-type", "text/xml"),
        put("metadata", &metadata, LIB),
        put("metadata's SHA-1", &format!("{metadata}.sha1"), LIB_SHA1),
        put("metadata's MD5, of other bytes", &format!("{metadata}.md5"), JAR_MD5),
        get("metadata as it was put", &metadata, LIB).header("x-checksum-sha1", LIB_SHA1),
        get("its checksum", &format!("{metadata}.sha1"), LIB_SHA1),
        get("the jar", &at("1.0/lib-1.0.jar"), JAR)
            .header("content-type", "application/java-archive")
            .header("x-checksum-sha1", JAR_SHA1)
            .header("x-checksum-md5", JAR_MD5)
            .header("x-checksum-sha256", JAR_SHA256)
            .no_header("x-checksum-sha512"),
        asked("the POM", &at("1.0/lib-1.0.pom"), 200).header("content-type", "text/xml"),
        get("a checksum that was put", &at("1.0/lib-1.0.jar.sha1"), JAR_SHA1),
        get("one that was not", &at("1.0/lib-1.0.jar.sha512"), JAR_SHA512),
        Case::new("HEAD", "HEAD", &at("1.0/lib-1.0.jar"), 200)
            .header("x-checksum-sha1", JAR_SHA1)
            .content(""),
        get("first folders of groups", "/.meta/prefixes.txt", "## repository-prefixes/2.0\n/org\n"),
    ]);
    cases
}

/// Overwrite Protection is by path: a second version and a late classifier are welcome.
fn mvn_deploy_again() -> Vec<Case> {
    let at = |name: &str| format!("/org/example/lib/{name}");
    let metadata = at("maven-metadata.xml");
    vec![
        Case::new("other bytes", "PUT", &at("1.0/lib-1.0.jar"), 409)
            .body("other")
            .code("version_already_exists")
            .contains("publish a new version"),
        Case::new("the same bytes", "PUT", &at("1.0/lib-1.0.jar"), 409)
            .body(JAR)
            .code("version_already_exists"),
        get("the first bytes stand", &at("1.0/lib-1.0.jar"), JAR),
        put("its checksum again", &at("1.0/lib-1.0.jar.sha1"), JAR_SHA1),
        put("a late classifier", &at("1.0/lib-1.0-javadoc.jar"), JAR),
        put("a fix of an old line", &at("0.9.1/lib-0.9.1.jar"), JAR),
        put("a tenth", &at("1.10/lib-1.10.jar"), JAR),
        put("a candidate", &at("1.10-rc1/lib-1.10-rc1.jar"), JAR),
        put("metadata that says less than the store", &metadata, LIB),
        asked("versions in Maven's order", &metadata, 200)
            .contains("<latest>1.10</latest>")
            .contains("<release>1.10</release>")
            .contains(
                "<versions>\n      <version>0.9.1</version>\n      <version>1.0</version>\n      \
                 <version>1.10-rc1</version>\n      <version>1.10</version>\n    </versions>",
            )
            .lacks("20200229000000"),
        asked("its checksum is not of what was put", &format!("{metadata}.sha1"), 200).lacks(LIB_SHA1),
    ]
}

fn snapshot_metadata(build: &str, number: u32) -> String {
    let file = |extension: &str| {
        format!(
            "<snapshotVersion><extension>{extension}</extension><value>2.0-{build}-{number}</value>\
             <updated>20261121050140</updated></snapshotVersion>"
        )
    };
    format!(
        "<metadata modelVersion=\"1.1.0\"><groupId>org.snap</groupId><artifactId>app</artifactId>\
         <version>2.0-SNAPSHOT</version><versioning><snapshot><timestamp>{build}</timestamp><buildNumber>{number}</buildNumber>\
         </snapshot><lastUpdated>20261121050140</lastUpdated><snapshotVersions>{}{}</snapshotVersions></versioning></metadata>",
        file("jar"),
        file("pom"),
    )
}

fn mvn_deploys_a_snapshot_twice() -> Vec<Case> {
    let at = |name: &str| format!("/org/snap/app/2.0-SNAPSHOT/{name}");
    let metadata = at("maven-metadata.xml");
    let (first, second) = (snapshot_metadata("20261121.050140", 1), snapshot_metadata("20261121.050200", 2));
    vec![
        asked("which build was the last", &metadata, 404),
        put("build 1", &at("app-2.0-20261121.050140-1.jar"), "build 1"),
        put("its POM", &at("app-2.0-20261121.050140-1.pom"), "pom 1"),
        asked("the artifact's metadata", "/org/snap/app/maven-metadata.xml", 200)
            .contains("<latest>2.0-SNAPSHOT</latest>")
            .lacks("<release>"),
        put("its metadata", &metadata, &first),
        get("as it was put", &metadata, &first),
        get("the newest by its base name", &at("app-2.0-SNAPSHOT.jar"), "build 1"),
        put("build 2", &at("app-2.0-20261121.050200-2.jar"), BUILD_2),
        asked("the store is ahead of the client", &metadata, 200)
            .contains("<buildNumber>2</buildNumber>")
            .contains("<value>2.0-20261121.050200-2</value>\n        <updated>20261121050200</updated>")
            .contains("<extension>pom</extension>\n        <value>2.0-20261121.050140-1</value>"),
        put("its POM", &at("app-2.0-20261121.050200-2.pom"), "pom 2"),
        put("its metadata", &metadata, &second),
        get("as it was put", &metadata, &second),
        get("the newest by its base name", &at("app-2.0-SNAPSHOT.jar"), BUILD_2),
        get("its checksum too", &at("app-2.0-SNAPSHOT.jar.sha1"), BUILD_2_SHA1),
        asked("no classifier of any build", &at("app-2.0-SNAPSHOT-sources.jar"), 404),
        get("an older build stays", &at("app-2.0-20261121.050140-1.jar"), "build 1"),
        put("a build sent again", &at("app-2.0-20261121.050200-2.jar"), BUILD_2),
        Case::new("a build with other bytes", "PUT", &at("app-2.0-20261121.050200-2.jar"), 409)
            .body("build 3")
            .code("version_already_exists"),
        delete("a build goes", &at("app-2.0-20261121.050200-2.jar"), 204),
        asked("metadata follows", &metadata, 200)
            .contains("<extension>jar</extension>\n        <value>2.0-20261121.050140-1</value>")
            .contains("<extension>pom</extension>\n        <value>2.0-20261121.050200-2</value>"),
    ]
}

fn moving_snapshots() -> Vec<Case> {
    let at = |name: &str| format!("/org/moving/app/1-SNAPSHOT/{name}");
    vec![
        put("first", &at("app-1-SNAPSHOT.jar"), "first"),
        put("overwritten", &at("app-1-SNAPSHOT.jar"), "second"),
        get("the newest stands", &at("app-1-SNAPSHOT.jar"), "second").header("cache-control", "no-cache"),
        asked("metadata names no build", &at("maven-metadata.xml"), 200)
            .contains("<version>1-SNAPSHOT</version>")
            .lacks("snapshotVersion")
            .lacks("<snapshot>"),
        put("a build beside it", &at("app-1-20261121.050140-1.jar"), "build"),
        get("a file of that very name comes first", &at("app-1-SNAPSHOT.jar"), "second"),
    ]
}

/// Gradle's `maven-publish` sends four checksums of everything, of metadata too.
fn gradle_publishes() -> Vec<Case> {
    let module = "/org/gradle/kit/1.0/kit-1.0.module";
    let metadata = "/org/gradle/kit/maven-metadata.xml";
    let sent = "<metadata><groupId>org.gradle</groupId><artifactId>kit</artifactId><versioning><latest>1.0</latest>\
                <release>1.0</release><versions><version>1.0</version></versions></versioning></metadata>";
    vec![
        put("module metadata", module, MODULE),
        put("its SHA-256", &format!("{module}.sha256"), MODULE_SHA256),
        put("its SHA-512", &format!("{module}.sha512"), MODULE_SHA512),
        asked("is known from then on", module, 200)
            .header("x-checksum-sha512", MODULE_SHA512)
            .header("content-type", "application/json"),
        put("a signature", &format!("{module}.asc"), JAR),
        put("a signature's checksum", &format!("{module}.asc.sha256"), JAR_SHA256),
        put("a bundle of Sigstore", &format!("{module}.sigstore.json"), "{}"),
        put("metadata", metadata, sent),
        put("metadata's SHA-256", &format!("{metadata}.sha256"), JAR_SHA256),
        put("metadata's SHA-512", &format!("{metadata}.sha512"), JAR_SHA512),
        get("metadata as it was put", metadata, sent),
        Case::new("a probe", "HEAD", module, 200).header("x-checksum-sha256", MODULE_SHA256),
        get("and its checksum", &format!("{module}.sha256"), MODULE_SHA256),
    ]
}

fn checksums() -> Vec<Case> {
    let jar = "/org/sums/lib/1.0/lib-1.0.jar";
    let sha1 = format!("{jar}.sha1");
    vec![
        put("a file", jar, JAR),
        get("a checksum that nobody put", &sha1, JAR_SHA1),
        Case::new("nobody put it", "HEAD", &sha1, 404),
        Case::new("a wrong checksum", "PUT", &sha1, 400)
            .body(HELD_SHA1)
            .code("checksum_mismatch")
            .contains(HELD_SHA1)
            .contains(JAR_SHA1),
        Case::new("a checksum of another kind", "PUT", &sha1, 400).body(JAR_MD5).code("invalid_checksum"),
        Case::new("an empty one", "PUT", &sha1, 400).code("invalid_checksum"),
        put("as sha1sum writes it", &sha1, &format!("{}  lib-1.0.jar\n", JAR_SHA1.to_uppercase())),
        get("served as it was put", &sha1, &format!("{}  lib-1.0.jar\n", JAR_SHA1.to_uppercase()))
            .header("content-type", "text/plain; charset=utf-8"),
        Case::new("it was put", "HEAD", &sha1, 200),
        put("with a newline", &sha1, &format!("{JAR_SHA1}\n")),
        get("that stays", &sha1, &format!("{JAR_SHA1}\n")),
        put("bare", &sha1, JAR_SHA1),
        get("served bare", &sha1, JAR_SHA1),
        Case::new("still put", "HEAD", &sha1, 200),
        Case::new("another was not put", "HEAD", &format!("{jar}.md5"), 404),
        Case::new("a checksum of a checksum", "PUT", &format!("{sha1}.md5"), 400)
            .body(JAR_MD5)
            .code("invalid_path"),
        asked("nor is there one", &format!("{sha1}.md5"), 404),
        Case::new("too large for a checksum", "PUT", &sha1, 413)
            .body(" ".repeat(1025))
            .code("file_too_large"),
        delete("it goes with its file", &sha1, 400).code("invalid_path"),
    ]
}

fn held_checksums() -> Vec<Case> {
    let jar = "/org/held/lib/1.0/lib-1.0.jar";
    vec![
        put("before its file", &format!("{jar}.sha1"), &format!("{HELD_SHA1}\n")),
        put("another", &format!("{jar}.md5"), HELD_MD5),
        get("is read back", &format!("{jar}.sha1"), &format!("{HELD_SHA1}\n")),
        Case::new("is there", "HEAD", &format!("{jar}.md5"), 200),
        asked("no other is", &format!("{jar}.sha256"), 404),
        Case::new("a file that differs", "PUT", jar, 400)
            .body(JAR)
            .code("checksum_mismatch")
            .contains(HELD_MD5),
        asked("is not there", jar, 404),
        asked("nor is its version", "/org/held/lib/maven-metadata.xml", 404),
        put("the right file", jar, "held"),
        get("its checksum as it was put", &format!("{jar}.sha1"), &format!("{HELD_SHA1}\n")),
        put("before its file again", "/org/held/x.bin.sha1", HELD_SHA1),
        put("replaced", "/org/held/x.bin.sha1", JAR_SHA1),
        put("by what is right", "/org/held/x.bin", JAR),
        put("held and given up", "/org/held/y.bin.sha1", HELD_SHA1),
        delete("forgotten", "/org/held/y.bin.sha1", 204),
        delete("once", "/org/held/y.bin.sha1", 404),
        put("any file is right then", "/org/held/y.bin", JAR),
    ]
}

fn plugin(name: &str) -> String {
    format!(
        "<plugin><name>The {name} &amp; more</name><prefix>{name}</prefix><artifactId>{name}-maven-plugin</artifactId></plugin>"
    )
}

/// Two plugins of one group are deployed at a time: neither knows of the other.
fn plugins() -> Vec<Case> {
    let metadata = "/org/plug/maven-metadata.xml";
    let group = |plugins: &str| format!("<metadata><plugins>{plugins}</plugins></metadata>");
    let both = group(&format!("{}{}", plugin("b"), plugin("a")));
    vec![
        put("one", "/org/plug/a-maven-plugin/1/a-maven-plugin-1.jar", JAR),
        put("another", "/org/plug/b-maven-plugin/1/b-maven-plugin-1.jar", JAR),
        put("the group as one knows it", metadata, &group(&plugin("a"))),
        get("as it was put", metadata, &group(&plugin("a"))),
        put("as the other knows it", metadata, &group(&plugin("b"))),
        asked("both are there", metadata, 200)
            .contains("<prefix>a</prefix>\n      <artifactId>a-maven-plugin</artifactId>")
            .contains("<name>The b &amp; more</name>\n      <prefix>b</prefix>"),
        put("both", metadata, &both),
        get("as it was put", metadata, &both),
        delete("a plugin's only version", "/org/plug/b-maven-plugin/1/", 204),
        asked("takes its prefix along", metadata, 200)
            .contains("<prefix>a</prefix>")
            .lacks("<prefix>b</prefix>"),
        delete("what clients put is forgotten", metadata, 204),
        asked("so that nothing is left", metadata, 404),
        delete("once", metadata, 404),
        Case::new("no metadata", "PUT", metadata, 400).body("hello").code("invalid_metadata"),
        Case::new("a document type", "PUT", metadata, 400)
            .body("<!DOCTYPE metadata [<!ENTITY a 'a'>]><metadata/>")
            .code("invalid_metadata"),
        Case::new("a plugin without a name", "PUT", metadata, 400)
            .body(group("<plugin><prefix>x</prefix></plugin>"))
            .code("invalid_metadata"),
    ]
}

fn plain_files() -> Vec<Case> {
    vec![
        put("at the root", "/archetype-catalog.xml", "<archetype-catalog/>"),
        asked("is served", "/archetype-catalog.xml", 200)
            .header("content-type", "text/xml")
            .header("cache-control", "no-cache"),
        put("with other bytes", "/archetype-catalog.xml", "<archetype-catalog></archetype-catalog>"),
        get("the newest stand", "/archetype-catalog.xml", "<archetype-catalog></archetype-catalog>"),
        put("named by its version", "/org.example/lib/1.0/lib-1.0.jar", JAR),
        Case::new("once", "PUT", "/org.example/lib/1.0/lib-1.0.jar", 409)
            .body("x")
            .code("version_already_exists"),
        put("where a folder is", "/org/example/lib/1.0", "a file"),
        get("both are there", "/org/example/lib/1.0", "a file"),
        get("the folder's file too", "/org/example/lib/1.0/lib-1.0.jar", JAR),
        put("a page", "/site/index.html", "<script>"),
        asked("is bytes", "/site/index.html", 200).header("content-type", "application/octet-stream"),
        put("an empty file", "/site/empty", ""),
        get("is one", "/site/empty", ""),
        put("odd characters", "/site/a%20b+c;d=%C3%A9", JAR),
        get("are kept", "/site/a%20b+c;d=%C3%A9", JAR),
        asked("as they are", "/site/a%20b%20c;d=%C3%A9", 404),
        asked("a list of groups without files", "/.meta/prefixes.txt", 200)
            .lacks("archetype")
            .contains("/site\n"),
    ]
}

fn refused_paths() -> Vec<Case> {
    let bad = |name: &str, path: &str, code: &str| Case::new(name, "PUT", path, 400).body(JAR).code(code);
    vec![
        bad("the root", "/", "invalid_path"),
        bad("a folder", "/org/example/", "invalid_path"),
        bad("two slashes", "/org//lib", "invalid_path"),
        bad("what the repository makes itself", "/.meta/prefixes.txt", "invalid_path"),
        bad("a path that is too long", &format!("/{}", "a".repeat(1000)), "invalid_path"),
        bad("a placeholder", "/org/x/lib/$%7Brev%7D/lib-$%7Brev%7D.jar", "invalid_coordinates")
            .contains("`${rev}`"),
        bad("a blank", "/org/x/l%20b/1/l%20b-1.jar", "invalid_coordinates"),
        bad("its checksum", "/org/x/l%20b/1/l%20b-1.jar.sha1", "invalid_coordinates"),
        delete("the whole repository", "/", 400).code("invalid_path"),
        delete("what the repository makes itself", "/.meta/prefixes.txt", 400).code("invalid_path"),
    ]
}

fn listings() -> Vec<Case> {
    let json = |name: &str, path: &str| asked(name, path, 200).with("accept", "application/json");
    vec![
        asked("the root", "/", 200).contains("<a href=\"./org/\">org/</a>").lacks("../").header("vary", "accept"),
        asked("for people", "/org/example/lib/", 200)
            .with("accept", "text/html,application/xhtml+xml,*/*;q=0.8")
            .header("content-type", "text/html; charset=utf-8")
            .contains("<a href=\"../\">../</a>")
            .contains("<a href=\"./1.10/\">1.10/</a>")
            .contains("<a href=\"./maven-metadata.xml\">"),
        json("for tools", "/org/example/lib/1.0/")
            .header("content-type", "application/json")
            .contains("{\"path\":\"/org/example/lib/1.0/\",\"entries\":[{\"name\":\"lib-1.0-javadoc.jar\",\"kind\":\"file\",\"size\":14,")
            .contains("\"next\":null"),
        json("a page", "/org/example/lib/?limit=2")
            .contains("[{\"name\":\"0.9.1\",\"kind\":\"folder\"},{\"name\":\"1.0\",\"kind\":\"file\",\"size\":6,")
            .contains("\"next\":\"1.0\""),
        json("the next", "/org/example/lib/?limit=2&after=1.0")
            .contains("[{\"name\":\"1.0\",\"kind\":\"folder\"},{\"name\":\"1.10-rc1\",\"kind\":\"folder\"}]")
            .contains("\"next\":\"1.10-rc1/\""),
        json("the last", "/org/example/lib/?limit=2&after=1.10-rc1/")
            .contains("[{\"name\":\"1.10\",\"kind\":\"folder\"},{\"name\":\"maven-metadata.xml\",\"kind\":\"file\"")
            .contains("\"next\":null"),
        json("beyond it", "/org/example/lib/?after=z").contains("\"entries\":[]"),
        asked("a page without an end", "/org/?limit=0", 400).code("invalid_request"),
        asked("names are harmless", "/site/", 200).contains("href=\"./a%20b%2Bc%3Bd%3D%C3%A9\"").contains(">a b+c;d=é<"),
        asked("a folder without its slash", "/org/example/lib", 302),
        asked("nothing", "/org/nothing/", 404).code("not_found"),
        asked("nothing without its slash", "/org/nothing", 404).code("not_found"),
    ]
}

fn deletions() -> Vec<Case> {
    let at = |name: &str| format!("/org/gone/lib/{name}");
    let metadata = at("maven-metadata.xml");
    vec![
        put("a jar", &at("1.0/lib-1.0.jar"), JAR),
        put("a POM", &at("1.0/lib-1.0.pom"), JAR),
        put("another version", &at("1.1/lib-1.1.jar"), JAR),
        delete("a file", &at("1.0/lib-1.0.jar"), 204),
        asked("is gone", &at("1.0/lib-1.0.jar"), 404),
        asked("with its checksum", &at("1.0/lib-1.0.jar.sha1"), 404),
        delete("once", &at("1.0/lib-1.0.jar"), 404).code("not_found"),
        asked("its version stays while it has a file", &metadata, 200).contains("<version>1.0</version>"),
        put("it may be published again", &at("1.0/lib-1.0.jar"), "other"),
        get("with other bytes", &at("1.0/lib-1.0.jar"), "other"),
        delete("a folder without its slash", &at("1.0"), 404).contains("is a folder"),
        delete("a folder", &at("1.0/"), 204),
        asked("its files are gone", &at("1.0/lib-1.0.pom"), 404),
        asked("metadata follows", &metadata, 200)
            .contains("<version>1.1</version>")
            .lacks("<version>1.0</version>"),
        delete("once", &at("1.0/"), 404),
        delete("a group", "/org/gone/", 204),
        asked("and all below it", &metadata, 404),
        asked("is gone", "/org/gone/", 404),
        delete("metadata that is not there", &metadata, 404),
        asked("others stay", "/org/example/lib/1.10/lib-1.10.jar", 200),
    ]
}
