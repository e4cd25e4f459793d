//! Publishes at the same moment: for one path only one publish succeeds, and the list of versions
//! has every published version.

use packhouse_tests::race::{at_once, winner};
use packhouse_tests::{MavenRepository, Server, digests};

#[test]
fn one_of_eight_puts_of_one_path_wins() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "race");
    for round in 0..20 {
        // Every other file is small enough for the database; the rest are stored on disk.
        let length = if round % 2 == 0 { 100 } else { 100_000 };
        let file = format!("org/example/race/{round}/race-{round}.jar");
        let body = |number: usize| vec![u8::try_from(number).unwrap(); length];
        let statuses = at_once(8, |number| repository.put(&file, body(number)).status);
        let won = winner(&statuses, 201, 409);
        assert_eq!(repository.get(&file).expect(200).body, body(won), "the winner's bytes are served");
    }
}

/// The `maven-metadata.xml` that a client puts: it only knows its own version.
fn metadata(version: &str) -> String {
    format!(
        "<metadata><groupId>org.example</groupId><artifactId>many</artifactId><versioning><release>{version}</release>\
         <versions><version>{version}</version></versions><lastUpdated>20260101000000</lastUpdated></versioning></metadata>"
    )
}

#[test]
fn sixty_four_parallel_deploys_are_all_listed() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "many");
    let list = "org/example/many/maven-metadata.xml";
    at_once(64, |number| {
        let version = format!("1.{number}");
        for end in ["pom", "jar"] {
            let file = format!("org/example/many/{version}/many-{version}.{end}");
            let body = format!("{end} of {version}");
            repository.put(&file, body.clone()).expect(201);
            for algorithm in ["sha1", "md5"] {
                repository
                    .put(&format!("{file}.{algorithm}"), digests::by_name(algorithm, body.as_bytes()))
                    .expect(201);
            }
        }
        repository.put(list, metadata(&version)).expect(201);
        repository.put(&format!("{list}.sha1"), digests::sha1(metadata(&version).as_bytes())).expect(201);
    });

    let served = repository.get(list).expect(200);
    let text = served.text();
    for number in 0..64 {
        assert!(text.contains(&format!("<version>1.{number}</version>")), "1.{number} is lost:\n{text}");
    }
    assert!(text.contains("<release>1.63</release>"), "the newest by Maven's order:\n{text}");
    for algorithm in ["md5", "sha1", "sha256", "sha512"] {
        let sum = repository.get(&format!("{list}.{algorithm}")).expect(200).text();
        assert_eq!(sum.trim(), digests::by_name(algorithm, &served.body), "{algorithm} of what is served");
    }
}
