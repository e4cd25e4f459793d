//! The setting `max_file_bytes` limits the file itself. It does not limit the request around it,
//! such as base64 in a document or a form.

use crate::release;
use crate::wheel;

use packhouse_tests::npm::NpmRepository;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::{Api, Connection, MavenRepository, Request, Response, Server};
use release::Release;

/// A server on which a file of this format has at most this many bytes.
fn limited(format: &str, bytes: usize) -> Server {
    let name = format!("PACKHOUSE_PLUGINS_{}_MAX_FILE_BYTES", format.to_uppercase());
    Server::with().env(&name, &bytes.to_string()).start()
}

/// Asserts a refusal that names the limit.
fn too_large(answer: Response, bytes: usize) {
    let answer = answer.expect(413);
    assert_eq!(answer.field("error"), "file_too_large");
    assert!(answer.text().contains(&bytes.to_string()), "{}", answer.text());
}

#[test]
fn npms_limit_applies_to_the_tarball() {
    let fits = Release::new("lib", "1.0.0").file("data", "some of it");
    let limit = fits.tarball().len();
    let server = limited("npm", limit);
    let repository = NpmRepository::create(&server, "npm");
    let document = fits.document();
    assert!(document.to_string().len() > limit, "its base64 and the document around it are larger");
    repository.put("lib", &document).expect(201);
    let larger = Release::new("lib", "1.0.1").file("data", "some of it").file("more", "x");
    too_large(repository.put("lib", &larger.document()), limit);
    repository.get("lib/1.0.1").expect(404);

    let formats = Api::sign_in(&server).call("GET", "/v1/formats").expect(200).json();
    let npm = formats["items"].as_array().unwrap().iter().find(|one| one["format"] == "npm").unwrap();
    assert_eq!(npm["limits"]["max_file_bytes"], limit);
}

#[test]
fn pythons_limit_applies_to_the_file() {
    let (fits, larger) = (wheel::wheel("lib", "1.0", ""), wheel::wheel("lib", "1.1", "Author: somebody\n"));
    let server = limited("python", fits.len());
    let repository = PythonRepository::create(&server, "python");
    let upload = |version: &str, file: &[u8]| {
        repository.publish("lib", version, &wheel::wheel_name("lib", version), file)
    };
    upload("1.0", &fits).expect(200);
    too_large(upload("1.1", &larger), fits.len());
    assert_eq!(repository.page("lib")["files"].as_array().unwrap().len(), 1);
}

#[test]
fn mavens_limit_applies_to_the_body() {
    let server = limited("maven", 1000);
    let repository = MavenRepository::create(&server, "maven");
    repository.put("org/example/a/1.0/a-1.0.jar", [0; 1000]).expect(201);
    too_large(repository.put("org/example/a/1.1/a-1.1.jar", [0; 1001]), 1000);
}

/// The server refuses a body before the client sends it if its length alone proves that the file is
/// too large.
#[test]
fn a_far_too_large_body_is_refused_before_it_is_sent() {
    let server = limited("npm", 1000);
    let repository = NpmRepository::create(&server, "npm");
    let head = Request::new("PUT", &repository.path("lib"))
        .header("Content-Length", "200000000")
        .header("Expect", "100-continue");
    let mut connection = Connection::open(server.packages()).unwrap();
    connection.send(&repository.client.head_bytes(head)).unwrap();
    let answer = connection.read_response(false).unwrap();
    assert_eq!((answer.status, answer.interim.as_slice()), (413, &[][..]));
}
