//! Long lists in the portal: a hundred thousand packages, tokens and events. At any position, a
//! page takes about as long as the same API call. Its size is limited like that of every page.

use packhouse_tests::person::Person;
use packhouse_tests::{Api, Response, Server, database};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Length of the lists.
const MANY: usize = 100_000;
/// Number of requests for each measured page.
const ROUNDS: usize = 15;
/// Maximum ratio of a page's time to the time of the same API call. The page adds the session check
/// and the HTML.
const TIMES: f64 = 4.0;
/// Additional time that a page may take because of other work on the machine.
const JITTER: Duration = Duration::from_millis(10);
/// Maximum size of a page with its style sheet and its script, uncompressed.
const WEIGHT: usize = 60 * 1024;

/// Writes the rows directly into the database.
fn fill(server: &Server, repository: &str, token: &str) {
    let numbers =
        format!("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MANY})");
    let now = "unixepoch() * 1000";
    let name = "printf('org.example:library-%06d', i)";
    let columns = "id, organization, name, secret_sha256";
    let rest: Vec<String> = database::sqlite(server, "SELECT name FROM pragma_table_info('tokens')")
        .lines()
        .filter(|column| !columns.split(", ").any(|known| known == *column))
        .map(str::to_owned)
        .collect();
    let rest = rest.join(", ");
    for sql in [
        format!(
            "{numbers} INSERT INTO packages (repository, name, search, updated_at) SELECT {repository}, {name}, {name}, {now} FROM n"
        ),
        format!(
            "{numbers} INSERT INTO versions (repository, name, version, published, summary, search, properties, state, shown_at, updated_at) \
             SELECT {repository}, {name}, '1.' || (i % 10), {now} - i, 'Library ' || i, {name}, '[]', '', {now}, {now} FROM n"
        ),
        // Queues only the names that the test searches for. A test of the store covers the cost of
        // many names.
        format!(
            "{numbers} INSERT INTO search_queue (id, repository, name) SELECT i, {repository}, {name} FROM n WHERE i BETWEEN 77000 AND 79000"
        ),
        format!(
            "{numbers} INSERT INTO tokens ({columns}, {rest}) SELECT {token} + i, organization, 'token ' || i, randomblob(32), {rest} \
             FROM tokens, n WHERE id = {token}"
        ),
        format!(
            "{numbers} INSERT INTO audit_events (id, organization, at, actor, action, subject, address, allowed, detail) \
             SELECT (SELECT MAX(id) FROM audit_events) + i, organization, at, actor, 'create_token', 'token ' || i, address, 1, '{{}}' \
             FROM n, (SELECT * FROM audit_events LIMIT 1)"
        ),
    ] {
        database::sqlite(server, &sql);
    }
}

/// Returns the median time to the first byte of several responses.
fn first_byte(server: &Server, path: &str, header: &str) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let mut stream = TcpStream::connect(server.api()).unwrap();
            stream.set_nodelay(true).unwrap();
            let request = format!(
                "GET {path} HTTP/1.1\r\nHost: {}\r\n{header}\r\nConnection: close\r\n\r\n",
                server.api()
            );
            let begun = Instant::now();
            stream.write_all(request.as_bytes()).unwrap();
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            let took = begun.elapsed();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).unwrap();
            assert!(rest.starts_with(b"TTP/1.1 200 "), "{path}: {}", String::from_utf8_lossy(&rest));
            took
        })
        .collect();
    times.sort();
    times[ROUNDS / 2]
}

/// Returns the link to the next page.
fn next(answer: &Response) -> String {
    let text = answer.text();
    let link = text.split("rel=\"next\" href=\"").nth(1).expect("a next page");
    link.split('"').next().unwrap().replace("&amp;", "&")
}

#[test]
fn a_page_of_a_long_list_is_as_fast_as_the_api_call() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let repository = api.create_maven("long", &json!({}));
    let token = api.create_token(&[&repository], &["read"], None);
    fill(&server, &repository, &token.id);
    // The first search also indexes the names in the queue, so it takes longer. This happens once.
    let indexed = Instant::now();
    while api.call("GET", "/v1/search?q=library-079000").expect(200).json()["items"]
        .as_array()
        .unwrap()
        .is_empty()
    {
        assert!(indexed.elapsed() < Duration::from_secs(120), "indexing does not finish");
    }
    let mut owner = Person::owner(&server);
    let cookie = format!("Cookie: packhouse_session={}", owner.cookie("packhouse_session").unwrap());
    let assets: usize = {
        let page = owner.get("/account").text();
        let mut names: Vec<&str> =
            page.split("\"/assets/").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        names.sort_unstable();
        names.dedup();
        names.iter().map(|name| owner.get(&format!("/assets/{name}")).expect(200).body.len()).sum()
    };
    let second = next(&owner.get("/repositories/long").expect(200));
    let own_tokens = next(&owner.get("/tokens").expect(200));
    let events = next(&owner.get("/audit").expect(200));
    let call = format!("/v1/repositories/{repository}/packages");
    let middle = "org.example%3Alibrary-050000";
    let mut wrong = Vec::new();
    for (page, same) in [
        ("/repositories/long".to_owned(), format!("{call}?limit=50")),
        (second, format!("{call}?limit=50&after=org.example%3Alibrary-000050")),
        (format!("/repositories/long?after={middle}"), format!("{call}?limit=50&after={middle}")),
        ("/repositories/long?q=library-0777".to_owned(), format!("{call}?limit=50&q=library-0777")),
        ("/search?q=library-0777".to_owned(), "/v1/search?limit=50&q=library-0777".to_owned()),
        ("/tokens".to_owned(), "/v1/tokens?limit=50".to_owned()),
        (own_tokens, "/v1/tokens?limit=50".to_owned()),
        ("/audit".to_owned(), "/v1/audit-events?limit=50".to_owned()),
        (events, "/v1/audit-events?limit=50".to_owned()),
        ("/settings".to_owned(), "/v1/usage".to_owned()),
        ("/home".to_owned(), "/v1/usage".to_owned()),
    ] {
        let (mut page_time, mut called) =
            (first_byte(&server, &page, &cookie), first_byte(&server, &same, &cookie));
        // Another process may have delayed the page, so the test measures once more.
        if page_time > called.mul_f64(TIMES) + JITTER {
            (page_time, called) = (first_byte(&server, &page, &cookie), first_byte(&server, &same, &cookie));
        }
        let weight = owner.get(&page).expect(200).body.len() + assets;
        println!(
            "{page}: {:.1} ms beside {:.1} ms, {weight} bytes",
            page_time.as_secs_f64() * 1e3,
            called.as_secs_f64() * 1e3
        );
        if page_time > called.mul_f64(TIMES) + JITTER {
            wrong.push(format!("{page} takes {page_time:?} and the call {called:?}"));
        }
        if weight > WEIGHT {
            wrong.push(format!("{page} weighs {weight} bytes"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
