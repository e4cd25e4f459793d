//! Long lists in the portal: a hundred thousand packages, tokens and events. A page of one costs what the same call of the API costs, wherever
//! in the list it stands, and weighs what every page does.

use packhouse_tests::person::Person;
use packhouse_tests::{Api, Response, Server, database};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// How long the lists are.
const MANY: usize = 100_000;
/// How often each page is asked for.
const ROUNDS: usize = 15;
/// How much longer a page may take than the call: it is made of it and of who is asking, and then of HTML.
const TIMES: f64 = 4.0;
/// What does not count, on a machine that does other things beside.
const JITTER: Duration = Duration::from_millis(10);
/// The most that a page weighs with its style sheet and its script, uncompressed.
const WEIGHT: usize = 60 * 1024;

/// Fills the database behind the server's back.
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
        // Of the index of names those that are looked for: what it costs among very many is the store's own test.
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

/// How long it takes until the first byte of the answer, at best: the median of several.
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

/// The address of the page after this one.
fn next(answer: &Response) -> String {
    let text = answer.text();
    let link = text.split("rel=\"next\" href=\"").nth(1).expect("a next page");
    link.split('"').next().unwrap().replace("&amp;", "&")
}

#[test]
fn a_page_of_a_long_list_takes_what_the_call_takes() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let repository = api.create_maven("long", &json!({}));
    let token = api.create_token(&[&repository], &["read"], None);
    fill(&server, &repository, &token.id);
    // A search first takes in what the commits left for it to do; that is done once.
    let indexed = Instant::now();
    while api.call("GET", "/v1/search?q=library-079000").expect(200).json()["items"]
        .as_array()
        .unwrap()
        .is_empty()
    {
        assert!(indexed.elapsed() < Duration::from_secs(120), "the index does not come to its end");
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
        ("/organization".to_owned(), "/v1/usage".to_owned()),
    ] {
        let (mut shown, mut called) =
            (first_byte(&server, &page, &cookie), first_byte(&server, &same, &cookie));
        // Somebody else may have had the machine for a moment.
        if shown > called.mul_f64(TIMES) + JITTER {
            (shown, called) = (first_byte(&server, &page, &cookie), first_byte(&server, &same, &cookie));
        }
        let weight = owner.get(&page).expect(200).body.len() + assets;
        println!(
            "{page}: {:.1} ms beside {:.1} ms, {weight} bytes",
            shown.as_secs_f64() * 1e3,
            called.as_secs_f64() * 1e3
        );
        if shown > called.mul_f64(TIMES) + JITTER {
            wrong.push(format!("{page} takes {shown:?} and the call {called:?}"));
        }
        if weight > WEIGHT {
            wrong.push(format!("{page} weighs {weight} bytes"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
