//! Uploads at the same moment: for one file name only one upload succeeds, and the index has every
//! uploaded version.

use crate::wheel;

use packhouse_tests::Server;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::race::{at_once, winner};
use sha2::{Digest as _, Sha256};

#[test]
fn one_of_eight_uploads_of_one_file_wins() {
    let server = Server::start();
    let repository = PythonRepository::create(&server, "race");
    for round in 0..5 {
        let version = format!("1.{round}");
        // Half of the clients spell the version differently. The server must treat both spellings
        // as one version.
        let spelt =
            |number: usize| if number.is_multiple_of(2) { version.clone() } else { format!("{version}.0") };
        let file = |number: usize| wheel::wheel("race", &spelt(number), &format!("Author: {number}\n"));
        let answers = at_once(8, |number| {
            let (version, file) = (spelt(number), file(number));
            repository.publish("race", &version, &wheel::wheel_name("race", &version), &file)
        });
        let won = winner(&answers.iter().map(|answer| answer.status).collect::<Vec<_>>(), 200, 409);
        for lost in answers.iter().filter(|answer| answer.status == 409) {
            assert_eq!(lost.field("error"), "version_already_exists");
        }
        let page = repository.page("race");
        let files = page["files"].as_array().unwrap();
        assert_eq!(files.len(), round + 1, "each version has one file: {files:?}");
        let entry = files.iter().find(|entry| entry["filename"] == wheel::wheel_name("race", &spelt(won)));
        assert_eq!(entry.unwrap()["hashes"]["sha256"], hex::encode(Sha256::digest(file(won))));
        let address = entry.unwrap()["url"].as_str().unwrap().trim_start_matches("../../");
        let served = repository.client.get(&repository.path(address)).expect(200).body;
        assert_eq!(served, file(won), "the winner's bytes are served");
    }
}

#[test]
fn eight_concurrent_versions_are_all_in_the_index() {
    let server = Server::start();
    let repository = PythonRepository::create(&server, "many");
    for round in 0..3 {
        at_once(8, |number| {
            let version = format!("{round}.{number}");
            let file = wheel::wheel("many", &version, "");
            repository.publish("many", &version, &wheel::wheel_name("many", &version), &file).expect(200);
        });
    }
    let page = repository.page("many");
    let versions: Vec<String> =
        (0..3).flat_map(|round| (0..8).map(move |number| format!("{round}.{number}"))).collect();
    assert_eq!(page["versions"], serde_json::json!(versions));
    assert_eq!(page["files"].as_array().unwrap().len(), versions.len());
    let html = repository.client.get(&repository.path("simple/many/")).expect(200).text();
    for version in versions {
        assert!(html.contains(&format!(">{}</a>", wheel::wheel_name("many", &version))), "{version}: {html}");
    }
}

#[test]
fn concurrent_files_of_one_version_are_all_listed() {
    let server = Server::start();
    let repository = PythonRepository::create(&server, "files");
    let file = wheel::wheel("files", "1.0", "");
    let name = |number: usize| format!("files-1.0-cp3{number}-none-any.whl");
    at_once(8, |number| repository.publish("files", "1.0", &name(number), &file).expect(200).status);
    let page = repository.page("files");
    assert_eq!(page["versions"], serde_json::json!(["1.0"]));
    let entry: Vec<&str> =
        page["files"].as_array().unwrap().iter().map(|file| file["filename"].as_str().unwrap()).collect();
    assert_eq!(entry, (0..8).map(name).collect::<Vec<_>>());
}
