//! Maven's protocol as a table of requests and expected responses.
//!
//! `protocol.rs` runs the table with the native plugin and the memory host. The workspace's tests
//! include this file, and run the table with the WebAssembly component in the runtime. Times differ
//! between the two runs, so no row depends on a time. Each part of the table uses Maven groups of
//! its own. All parts run in one repository, in the order of `cases`.

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

/// The metadata that Maven writes when lib 1.0 is deployed, and its SHA-1.
const LIB: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<metadata>\n  <groupId>org.example</groupId>\n  \
    <artifactId>lib</artifactId>\n  <versioning>\n    <release>1.0</release>\n    <versions>\n      <version>1.0</version>\n    \
    </versions>\n    <lastUpdated>20200229000000</lastUpdated>\n  </versioning>\n</metadata>\n";
const LIB_SHA1: &str = "8939a3545f769ae2d23ffbb0847cbcb4448496c7";

/// All parts, for an empty repository with default settings.
pub(crate) fn cases() -> Vec<Case> {
    [
        nothing_published(),
        mvn_deploy(),
        mvn_deploy_again(),
        mvn_deploys_a_snapshot_twice(),
        moving_snapshots(),
        gradle_publishes(),
        checksums(),
        checksums_before_their_files(),
        plugins(),
        plain_files(),
        refused_paths(),
        listings(),
        deletions(),
    ]
    .concat()
}

/// The rows for a repository whose `redeploy` is `identical`.
pub(crate) fn identical() -> Vec<Case> {
    let jar = "/same/lib/1.0/lib-1.0.jar";
    vec![
        put("first", jar, JAR),
        put("the same bytes again", jar, JAR),
        Case::new("other bytes", "PUT", jar, 409).body("jar of lib 1.1").code("version_already_exists"),
        Case::new("another size is refused before the bytes arrive", "PUT", jar, 409)
            .with("content-length", "3")
            .body("jar")
            .code("version_already_exists"),
        get("the first bytes are served", jar, JAR),
    ]
}

fn put(name: &str, path: &str, body: &str) -> Case {
    Case::new(name, "PUT", path, 201).body(body)
}

fn get(name: &str, path: &str, content: &str) -> Case {
    Case::new(name, "GET", path, 200).content(content)
}

fn status_of(name: &str, path: &str, status: u16) -> Case {
    Case::new(name, "GET", path, status)
}

fn delete(name: &str, path: &str, status: u16) -> Case {
    Case::new(name, "DELETE", path, status)
}

fn nothing_published() -> Vec<Case> {
    vec![
        status_of("an empty repository's root", "/", 404).code("not_found"),
        status_of("a missing file", "/org/example/lib/1.0/lib-1.0.jar", 404).code("not_found"),
        status_of("a missing checksum", "/org/example/lib/1.0/lib-1.0.jar.sha1", 404).code("not_found"),
        status_of("missing metadata", "/org/example/lib/maven-metadata.xml", 404).code("not_found"),
        status_of("a checksum of missing metadata", "/org/example/lib/maven-metadata.xml.sha1", 404)
            .code("not_found"),
        status_of("a missing folder", "/org/", 404).code("not_found"),
        status_of("a missing list of groups", "/.meta/prefixes.txt", 404).code("not_found"),
        status_of("a missing catalogue of archetypes", "/archetype-catalog.xml", 404).code("not_found"),
        Case::new("an unsupported method", "POST", "/org/example/lib/", 405)
            .code("method_not_allowed")
            .header("allow", "DELETE, GET, HEAD, PUT"),
    ]
}

/// A release with jar, POM and sources, as Maven 3.8 uploads it.
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
        status_of("metadata lists the version before it is uploaded", &metadata, 200)
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
        status_of("the POM", &at("1.0/lib-1.0.pom"), 200).header("content-type", "text/xml"),
        get("a checksum that was put", &at("1.0/lib-1.0.jar.sha1"), JAR_SHA1),
        get("a checksum that was not put", &at("1.0/lib-1.0.jar.sha512"), JAR_SHA512),
        Case::new("HEAD of the jar", "HEAD", &at("1.0/lib-1.0.jar"), 200)
            .header("x-checksum-sha1", JAR_SHA1)
            .content(""),
        get("the first folders of groups", "/.meta/prefixes.txt", "## repository-prefixes/2.0\n/org\n"),
    ]);
    cases
}

/// Overwrite Protection applies to each path separately. A second version is accepted, and so is a
/// classifier that is uploaded later.
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
        get("the first bytes are served", &at("1.0/lib-1.0.jar"), JAR),
        put("the checksum of the jar again", &at("1.0/lib-1.0.jar.sha1"), JAR_SHA1),
        put("a later classifier", &at("1.0/lib-1.0-javadoc.jar"), JAR),
        put("a fix of an old version", &at("0.9.1/lib-0.9.1.jar"), JAR),
        put("version 1.10", &at("1.10/lib-1.10.jar"), JAR),
        put("a release candidate", &at("1.10-rc1/lib-1.10-rc1.jar"), JAR),
        put("metadata with fewer versions than are stored", &metadata, LIB),
        status_of("versions in Maven's order", &metadata, 200)
            .contains("<latest>1.10</latest>")
            .contains("<release>1.10</release>")
            .contains(
                "<versions>\n      <version>0.9.1</version>\n      <version>1.0</version>\n      \
                 <version>1.10-rc1</version>\n      <version>1.10</version>\n    </versions>",
            )
            .lacks("20200229000000"),
        status_of("the checksum is that of the generated metadata", &format!("{metadata}.sha1"), 200)
            .lacks(LIB_SHA1),
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
        status_of("the client asks for the last build", &metadata, 404),
        put("build 1", &at("app-2.0-20261121.050140-1.jar"), "build 1"),
        put("its POM", &at("app-2.0-20261121.050140-1.pom"), "pom 1"),
        status_of("the artifact's metadata", "/org/snap/app/maven-metadata.xml", 200)
            .contains("<latest>2.0-SNAPSHOT</latest>")
            .lacks("<release>"),
        put("its metadata", &metadata, &first),
        get("as it was put", &metadata, &first),
        get("the newest by its base name", &at("app-2.0-SNAPSHOT.jar"), "build 1"),
        put("build 2", &at("app-2.0-20261121.050200-2.jar"), BUILD_2),
        status_of("metadata lists the build before the client uploads it", &metadata, 200)
            .contains("<buildNumber>2</buildNumber>")
            .contains("<value>2.0-20261121.050200-2</value>\n        <updated>20261121050200</updated>")
            .contains("<extension>pom</extension>\n        <value>2.0-20261121.050140-1</value>"),
        put("its POM", &at("app-2.0-20261121.050200-2.pom"), "pom 2"),
        put("its metadata", &metadata, &second),
        get("as it was put", &metadata, &second),
        get("the newest by its base name", &at("app-2.0-SNAPSHOT.jar"), BUILD_2),
        get("its checksum too", &at("app-2.0-SNAPSHOT.jar.sha1"), BUILD_2_SHA1),
        status_of("a classifier that no build has", &at("app-2.0-SNAPSHOT-sources.jar"), 404),
        get("an older build stays", &at("app-2.0-20261121.050140-1.jar"), "build 1"),
        put("a build sent again", &at("app-2.0-20261121.050200-2.jar"), BUILD_2),
        Case::new("a build with other bytes", "PUT", &at("app-2.0-20261121.050200-2.jar"), 409)
            .body("build 3")
            .code("version_already_exists"),
        delete("a build is deleted", &at("app-2.0-20261121.050200-2.jar"), 204),
        status_of("metadata lists the older build again", &metadata, 200)
            .contains("<extension>jar</extension>\n        <value>2.0-20261121.050140-1</value>")
            .contains("<extension>pom</extension>\n        <value>2.0-20261121.050200-2</value>"),
    ]
}

fn moving_snapshots() -> Vec<Case> {
    let at = |name: &str| format!("/org/moving/app/1-SNAPSHOT/{name}");
    vec![
        put("first", &at("app-1-SNAPSHOT.jar"), "first"),
        put("an overwrite", &at("app-1-SNAPSHOT.jar"), "second"),
        get("the newest bytes are served", &at("app-1-SNAPSHOT.jar"), "second")
            .header("cache-control", "no-cache"),
        status_of("metadata names no build", &at("maven-metadata.xml"), 200)
            .contains("<version>1-SNAPSHOT</version>")
            .lacks("snapshotVersion")
            .lacks("<snapshot>"),
        put("a build beside it", &at("app-1-20261121.050140-1.jar"), "build"),
        get("the file with exactly this name comes first", &at("app-1-SNAPSHOT.jar"), "second"),
    ]
}

/// Gradle's `maven-publish` sends four checksums of every file, and of metadata.
fn gradle_publishes() -> Vec<Case> {
    let module = "/org/gradle/kit/1.0/kit-1.0.module";
    let metadata = "/org/gradle/kit/maven-metadata.xml";
    let sent = "<metadata><groupId>org.gradle</groupId><artifactId>kit</artifactId><versioning><latest>1.0</latest>\
                <release>1.0</release><versions><version>1.0</version></versions></versioning></metadata>";
    vec![
        put("module metadata", module, MODULE),
        put("its SHA-256", &format!("{module}.sha256"), MODULE_SHA256),
        put("its SHA-512", &format!("{module}.sha512"), MODULE_SHA512),
        status_of("its SHA-512 is then in the headers", module, 200)
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
        get("the checksum for the probe", &format!("{module}.sha256"), MODULE_SHA256),
    ]
}

fn checksums() -> Vec<Case> {
    let jar = "/org/sums/lib/1.0/lib-1.0.jar";
    let sha1 = format!("{jar}.sha1");
    vec![
        put("a file", jar, JAR),
        get("a checksum that nobody put", &sha1, JAR_SHA1),
        Case::new("HEAD of a checksum that nobody put", "HEAD", &sha1, 404),
        Case::new("a wrong checksum", "PUT", &sha1, 400)
            .body(HELD_SHA1)
            .code("checksum_mismatch")
            .contains(HELD_SHA1)
            .contains(JAR_SHA1),
        Case::new("a checksum of another kind", "PUT", &sha1, 400).body(JAR_MD5).code("invalid_checksum"),
        Case::new("an empty one", "PUT", &sha1, 400).code("invalid_checksum"),
        put(
            "the checksum as sha1sum writes it",
            &sha1,
            &format!("{}  lib-1.0.jar\n", JAR_SHA1.to_uppercase()),
        ),
        get("served as it was put", &sha1, &format!("{}  lib-1.0.jar\n", JAR_SHA1.to_uppercase()))
            .header("content-type", "text/plain; charset=utf-8"),
        Case::new("HEAD of a checksum that was put", "HEAD", &sha1, 200),
        put("the checksum with a newline", &sha1, &format!("{JAR_SHA1}\n")),
        get("the newline is kept", &sha1, &format!("{JAR_SHA1}\n")),
        put("the bare checksum", &sha1, JAR_SHA1),
        get("served bare", &sha1, JAR_SHA1),
        Case::new("HEAD of the bare checksum", "HEAD", &sha1, 200),
        Case::new("HEAD of another checksum that nobody put", "HEAD", &format!("{jar}.md5"), 404),
        Case::new("a checksum of a checksum", "PUT", &format!("{sha1}.md5"), 400)
            .body(JAR_MD5)
            .code("invalid_path"),
        status_of("a checksum of a checksum does not exist", &format!("{sha1}.md5"), 404),
        Case::new("a checksum file that is too large", "PUT", &sha1, 413)
            .body(" ".repeat(1025))
            .code("file_too_large"),
        delete("a checksum is deleted only with its file", &sha1, 400).code("invalid_path"),
    ]
}

fn checksums_before_their_files() -> Vec<Case> {
    let jar = "/org/held/lib/1.0/lib-1.0.jar";
    vec![
        put("a checksum before its file", &format!("{jar}.sha1"), &format!("{HELD_SHA1}\n")),
        put("a second checksum", &format!("{jar}.md5"), HELD_MD5),
        get("the checksum is read back", &format!("{jar}.sha1"), &format!("{HELD_SHA1}\n")),
        Case::new("HEAD of the second checksum", "HEAD", &format!("{jar}.md5"), 200),
        status_of("a third checksum does not exist", &format!("{jar}.sha256"), 404),
        Case::new("a file that differs", "PUT", jar, 400)
            .body(JAR)
            .code("checksum_mismatch")
            .contains(HELD_MD5),
        status_of("the refused file does not exist", jar, 404),
        status_of("the version of the refused file does not exist", "/org/held/lib/maven-metadata.xml", 404),
        put("the right file", jar, "held"),
        get("the checksum as it was put", &format!("{jar}.sha1"), &format!("{HELD_SHA1}\n")),
        put("another checksum before its file", "/org/held/x.bin.sha1", HELD_SHA1),
        put("the checksum is replaced", "/org/held/x.bin.sha1", JAR_SHA1),
        put("a file that matches the new checksum", "/org/held/x.bin", JAR),
        put("a checksum whose file never comes", "/org/held/y.bin.sha1", HELD_SHA1),
        delete("the waiting checksum is deleted", "/org/held/y.bin.sha1", 204),
        delete("the checksum is deleted only once", "/org/held/y.bin.sha1", 404),
        put("any file is accepted then", "/org/held/y.bin", JAR),
    ]
}

fn plugin(name: &str) -> String {
    format!(
        "<plugin><name>The {name} &amp; more</name><prefix>{name}</prefix><artifactId>{name}-maven-plugin</artifactId></plugin>"
    )
}

/// Two plugins of one group are deployed at the same time. Neither client knows of the other
/// plugin.
fn plugins() -> Vec<Case> {
    let metadata = "/org/plug/maven-metadata.xml";
    let group = |plugins: &str| format!("<metadata><plugins>{plugins}</plugins></metadata>");
    let both = group(&format!("{}{}", plugin("b"), plugin("a")));
    vec![
        put("a plugin", "/org/plug/a-maven-plugin/1/a-maven-plugin-1.jar", JAR),
        put("another plugin", "/org/plug/b-maven-plugin/1/b-maven-plugin-1.jar", JAR),
        put("metadata that names the first plugin", metadata, &group(&plugin("a"))),
        get("as it was put", metadata, &group(&plugin("a"))),
        put("metadata that names the second plugin", metadata, &group(&plugin("b"))),
        status_of("both plugins are listed", metadata, 200)
            .contains("<prefix>a</prefix>\n      <artifactId>a-maven-plugin</artifactId>")
            .contains("<name>The b &amp; more</name>\n      <prefix>b</prefix>"),
        put("metadata that names both plugins", metadata, &both),
        get("as it was put", metadata, &both),
        delete("deletion of the only version of a plugin", "/org/plug/b-maven-plugin/1/", 204),
        status_of("the prefix of the deleted plugin is gone", metadata, 200)
            .contains("<prefix>a</prefix>")
            .lacks("<prefix>b</prefix>"),
        delete("deletion of the uploaded metadata", metadata, 204),
        status_of("the metadata is gone", metadata, 404),
        delete("the metadata is deleted only once", metadata, 404),
        Case::new("a body that is not metadata", "PUT", metadata, 400).body("hello").code("invalid_metadata"),
        Case::new("metadata with a document type", "PUT", metadata, 400)
            .body("<!DOCTYPE metadata [<!ENTITY a 'a'>]><metadata/>")
            .code("invalid_metadata"),
        Case::new("a plugin without a name", "PUT", metadata, 400)
            .body(group("<plugin><prefix>x</prefix></plugin>"))
            .code("invalid_metadata"),
    ]
}

fn plain_files() -> Vec<Case> {
    vec![
        put("a file at the root", "/archetype-catalog.xml", "<archetype-catalog/>"),
        status_of("the file is served", "/archetype-catalog.xml", 200)
            .header("content-type", "text/xml")
            .header("cache-control", "no-cache"),
        put("the file with other bytes", "/archetype-catalog.xml", "<archetype-catalog></archetype-catalog>"),
        get(
            "the newest bytes are served",
            "/archetype-catalog.xml",
            "<archetype-catalog></archetype-catalog>",
        ),
        put("a file below the name of its version", "/org.example/lib/1.0/lib-1.0.jar", JAR),
        Case::new("the file cannot be replaced", "PUT", "/org.example/lib/1.0/lib-1.0.jar", 409)
            .body("x")
            .code("version_already_exists"),
        put("a file with the path of a folder", "/org/example/lib/1.0", "a file"),
        get("the file is served", "/org/example/lib/1.0", "a file"),
        get("the file in the folder is served", "/org/example/lib/1.0/lib-1.0.jar", JAR),
        put("an HTML page", "/site/index.html", "<script>"),
        status_of("the page is served as bytes", "/site/index.html", 200)
            .header("content-type", "application/octet-stream"),
        put("an empty file", "/site/empty", ""),
        get("the empty file is served", "/site/empty", ""),
        put("a path with special characters", "/site/a%20b+c;d=%C3%A9", JAR),
        get("special characters are kept", "/site/a%20b+c;d=%C3%A9", JAR),
        status_of("a plus sign does not stand for a space", "/site/a%20b%20c;d=%C3%A9", 404),
        status_of("the list of groups contains no files", "/.meta/prefixes.txt", 200)
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
        bad("the generated list of groups", "/.meta/prefixes.txt", "invalid_path"),
        bad("a path that is too long", &format!("/{}", "a".repeat(1000)), "invalid_path"),
        bad("a placeholder", "/org/x/lib/$%7Brev%7D/lib-$%7Brev%7D.jar", "invalid_coordinates")
            .contains("`${rev}`"),
        bad("a space", "/org/x/l%20b/1/l%20b-1.jar", "invalid_coordinates"),
        bad("a checksum of that path", "/org/x/l%20b/1/l%20b-1.jar.sha1", "invalid_coordinates"),
        delete("the whole repository", "/", 400).code("invalid_path"),
        delete("the generated list of groups", "/.meta/prefixes.txt", 400).code("invalid_path"),
    ]
}

fn listings() -> Vec<Case> {
    let json = |name: &str, path: &str| status_of(name, path, 200).with("accept", "application/json");
    vec![
        status_of("the root", "/", 200).contains("<a href=\"./org/\">org/</a>").lacks("../").header("vary", "accept"),
        status_of("the page for people", "/org/example/lib/", 200)
            .with("accept", "text/html,application/xhtml+xml,*/*;q=0.8")
            .header("content-type", "text/html; charset=utf-8")
            .contains("<a href=\"../\">../</a>")
            .contains("<a href=\"./1.10/\">1.10/</a>")
            .contains("<a href=\"./maven-metadata.xml\">"),
        json("the listing for tools", "/org/example/lib/1.0/")
            .header("content-type", "application/json")
            .contains("{\"path\":\"/org/example/lib/1.0/\",\"entries\":[{\"name\":\"lib-1.0-javadoc.jar\",\"kind\":\"file\",\"size\":14,")
            .contains("\"next\":null"),
        json("the first page", "/org/example/lib/?limit=2")
            .contains("[{\"name\":\"0.9.1\",\"kind\":\"folder\"},{\"name\":\"1.0\",\"kind\":\"file\",\"size\":6,")
            .contains("\"next\":\"1.0\""),
        json("the next page", "/org/example/lib/?limit=2&after=1.0")
            .contains("[{\"name\":\"1.0\",\"kind\":\"folder\"},{\"name\":\"1.10-rc1\",\"kind\":\"folder\"}]")
            .contains("\"next\":\"1.10-rc1/\""),
        json("the last page", "/org/example/lib/?limit=2&after=1.10-rc1/")
            .contains("[{\"name\":\"1.10\",\"kind\":\"folder\"},{\"name\":\"maven-metadata.xml\",\"kind\":\"file\"")
            .contains("\"next\":null"),
        json("beyond the last page", "/org/example/lib/?after=z").contains("\"entries\":[]"),
        status_of("a limit of zero", "/org/?limit=0", 400).code("invalid_request"),
        status_of("names are escaped", "/site/", 200).contains("href=\"./a%20b%2Bc%3Bd%3D%C3%A9\"").contains(">a b+c;d=é<"),
        status_of("a folder without its slash", "/org/example/lib", 302),
        status_of("a missing folder", "/org/nothing/", 404).code("not_found"),
        status_of("a missing folder without its slash", "/org/nothing", 404).code("not_found"),
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
        status_of("the file is gone", &at("1.0/lib-1.0.jar"), 404),
        status_of("its checksum is gone", &at("1.0/lib-1.0.jar.sha1"), 404),
        delete("the file is deleted only once", &at("1.0/lib-1.0.jar"), 404).code("not_found"),
        status_of("its version stays while it has a file", &metadata, 200).contains("<version>1.0</version>"),
        put("the file is published again", &at("1.0/lib-1.0.jar"), "other"),
        get("the other bytes are served", &at("1.0/lib-1.0.jar"), "other"),
        delete("a folder without its slash", &at("1.0"), 404).contains("is a folder"),
        delete("a folder", &at("1.0/"), 204),
        status_of("its files are gone", &at("1.0/lib-1.0.pom"), 404),
        status_of("metadata no longer lists the version", &metadata, 200)
            .contains("<version>1.1</version>")
            .lacks("<version>1.0</version>"),
        delete("the folder is deleted only once", &at("1.0/"), 404),
        delete("a group", "/org/gone/", 204),
        status_of("everything below the group is gone", &metadata, 404),
        status_of("the group is gone", "/org/gone/", 404),
        delete("missing metadata", &metadata, 404),
        status_of("other groups stay", "/org/example/lib/1.10/lib-1.10.jar", 200),
    ]
}
