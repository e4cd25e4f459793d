//! Tests with Gradle: it resolves packages. Debian's version cannot publish in Maven's layout.

use packhouse_tests::clients::{has, run};
use packhouse_tests::server::OWNER;
use packhouse_tests::{MavenRepository, Server, digests, payload, skip};
use std::process::Command;

fn publish(repository: &MavenRepository, version: &str) -> Vec<u8> {
    let jar = payload::bytes(version.len() as u64, 5_000);
    let pom = format!(
        "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId><artifactId>lib</artifactId>\
         <version>{version}</version></project>"
    );
    repository.put(&format!("org/example/lib/{version}/lib-{version}.pom"), pom).expect(201);
    repository.put(&format!("org/example/lib/{version}/lib-{version}.jar"), jar.clone()).expect(201);
    jar
}

#[test]
fn gradle_resolves_a_version_and_a_range() {
    if !has("gradle") {
        return skip("Gradle", "no gradle on the path");
    }
    let server = Server::start();
    let repository = MavenRepository::create(&server, "gradle");
    publish(&repository, "1.9");
    let newest = publish(&repository, "1.10");

    let home = tempfile::TempDir::new().unwrap();
    let script = format!(
        "repositories {{ maven {{ url '{}'; credentials {{ username '{OWNER}'; password '{}' }} }} }}\n\
         configurations {{ exact; range }}\n\
         dependencies {{ exact 'org.example:lib:1.9'; range 'org.example:lib:1.+' }}\n\
         task fetch(type: Copy) {{ from configurations.exact, configurations.range; into 'out' }}\n",
        repository.url(&server),
        repository.token.secret,
    );
    std::fs::write(home.path().join("build.gradle"), script).unwrap();
    let mut command = Command::new("gradle");
    command
        .current_dir(home.path())
        .env("GRADLE_USER_HOME", home.path().join("home"))
        .env("HOME", home.path());
    let output = run(command.args(["--no-daemon", "--quiet", "fetch"]));
    // Debian's Gradle 4.4 is patched for Debian's own JDK. If another JDK is first on the path,
    // Gradle fails with these words.
    if !output.success
        && (output.text.contains("Could not determine java version")
            || output.text.contains("Unsupported class file"))
    {
        return skip("Gradle", "this Gradle does not run on this JDK");
    }
    output.success();
    let out = |name: &str| std::fs::read(home.path().join("out").join(name)).unwrap();
    assert!(out("lib-1.9.jar").len() == 5_000);
    assert_eq!(digests::sha256(&out("lib-1.10.jar")), digests::sha256(&newest));
}
