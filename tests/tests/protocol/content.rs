//! Responses with stored bytes: whole files, ranges, and 304 if the client has the bytes already.

use packhouse_tests::{MavenRepository, Request, Response, Server, digests, payload};

const SMALL: &str = "org/example/a/1.0/a-1.0.jar";
const LARGE: &str = "org/example/a/1.0/a-1.0-large.jar";

/// Publishes two files. The server stores one in the database and the other outside of it.
fn published(server: &Server) -> (MavenRepository, [(&'static str, Vec<u8>); 2]) {
    let repository = MavenRepository::create(server, "content");
    let files = [(SMALL, payload::bytes(1, 1000)), (LARGE, payload::bytes(2, 1_000_000))];
    for (file, bytes) in &files {
        repository.put(file, bytes.clone()).expect(201);
    }
    (repository, files)
}

fn get(repository: &MavenRepository, file: &str, headers: &[(&str, &str)]) -> Response {
    let request =
        headers.iter().fold(Request::new("GET", &repository.path(file)), |request, (name, value)| {
            request.header(name, value)
        });
    repository.client.send(request)
}

#[test]
fn a_file_comes_back_with_its_validators_and_digests() {
    let server = Server::start();
    let (repository, files) = published(&server);
    for (file, bytes) in &files {
        let answer = repository.get(file).expect(200);
        assert_eq!(digests::sha256(&answer.body), digests::sha256(bytes), "{file}");
        assert_eq!(answer.header("content-length"), Some(bytes.len().to_string().as_str()));
        assert_eq!(answer.header("accept-ranges"), Some("bytes"));
        let etag = answer.header("etag").unwrap_or_default();
        assert!(etag.starts_with('"') && etag.ends_with('"') && etag.len() > 2, "a strong ETag: {etag}");
        assert!(answer.header("last-modified").is_some_and(|date| date.ends_with(" GMT")));
        assert_eq!(answer.header("x-checksum-sha1"), Some(digests::sha1(bytes).as_str()));
        assert_eq!(answer.header("x-checksum-sha256"), Some(digests::sha256(bytes).as_str()));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        let cache = answer.header("cache-control").unwrap_or_default();
        assert!(
            cache.contains("private"),
            "the response needed a credential, so shared caches must not store it: {cache:?}"
        );

        let head = repository.client.send(Request::new("HEAD", &repository.path(file))).expect(200);
        for name in
            ["content-length", "etag", "last-modified", "accept-ranges", "content-type", "x-checksum-sha1"]
        {
            assert_eq!(head.header(name), answer.header(name), "HEAD {file}: {name}");
        }
    }
}

#[test]
fn ranges_are_parts_of_the_file() {
    let server = Server::start();
    let (repository, files) = published(&server);
    for (file, bytes) in &files {
        let length = bytes.len();
        let (first, last) = (length / 2, length - 1);
        let tail = length - 100;
        for (range, from, to) in [
            ("bytes=0-0".to_owned(), 0, 0),
            ("bytes=0-99".to_owned(), 0, 99),
            (format!("bytes={first}-"), first, last),
            ("bytes=-100".to_owned(), tail, last),
            (format!("bytes={tail}-{}", length + 1000), tail, last),
            (format!("bytes=-{}", length + 1000), 0, last),
        ] {
            let answer = get(&repository, file, &[("Range", &range)]).expect(206);
            assert_eq!(
                answer.header("content-range"),
                Some(format!("bytes {from}-{to}/{length}").as_str()),
                "{range}"
            );
            assert_eq!(answer.body, bytes[from..=to], "{file} {range}");
        }
        for beyond in [format!("bytes={length}-"), "bytes=5-2".to_owned()] {
            let answer = get(&repository, file, &[("Range", &beyond)]).expect(416);
            assert_eq!(answer.header("content-range"), Some(format!("bytes */{length}").as_str()));
        }
        for whole in ["lines=1-2", "bytes=a-b"] {
            assert_eq!(
                get(&repository, file, &[("Range", whole)]).expect(200).body.len(),
                length,
                "{whole} is not a range"
            );
        }
    }
}

#[test]
fn a_file_that_the_client_has_is_not_sent_again() {
    let server = Server::start();
    let (repository, files) = published(&server);
    for (file, bytes) in &files {
        let first = repository.get(file).expect(200);
        let etag = first.header("etag").unwrap();
        let modified = first.header("last-modified").unwrap();

        for value in [etag, "*", &format!("\"other\", {etag}"), &format!("W/{etag}")] {
            let answer = get(&repository, file, &[("If-None-Match", value)]).expect(304);
            assert_eq!(answer.header("etag"), Some(etag));
        }
        get(&repository, file, &[("If-None-Match", "\"other\"")]).expect(200);
        get(&repository, file, &[("If-Modified-Since", modified)]).expect(304);
        get(&repository, file, &[("If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT")]).expect(200);
        get(&repository, file, &[("If-None-Match", "\"other\""), ("If-Modified-Since", modified)])
            .expect(200);
        get(&repository, file, &[("If-Match", "\"other\"")]).expect(412);
        get(&repository, file, &[("If-Match", etag)]).expect(200);
        get(&repository, file, &[("If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT")]).expect(412);

        let range = ("Range", "bytes=0-9");
        assert_eq!(get(&repository, file, &[range, ("If-Range", etag)]).expect(206).body, bytes[..10]);
        assert_eq!(get(&repository, file, &[range, ("If-Range", modified)]).expect(206).body, bytes[..10]);
        assert_eq!(
            get(&repository, file, &[range, ("If-Range", "\"other\"")]).expect(200).body.len(),
            bytes.len()
        );
    }
}

#[test]
fn a_connection_serves_one_request_after_another() {
    let server = Server::start();
    let (repository, files) = published(&server);
    let mut connection = packhouse_tests::Connection::open(server.packages()).unwrap();
    for round in 0..10 {
        let (file, bytes) = &files[round % 2];
        let request = Request::new("GET", &repository.path(file)).header("Connection", "keep-alive");
        connection.send(&repository.client.head_bytes(request)).unwrap();
        assert_eq!(connection.read_response(false).unwrap().expect(200).body.len(), bytes.len());
    }
}
