//! Metrics of load: waits for a slot of a plugin, the writer and the database, answers from caches,
//! and requests to S3 with retries.

use packhouse_tests::database::Postgres;
use packhouse_tests::fault_proxy::{FaultProxy, Mode};
use packhouse_tests::race::at_once;
use packhouse_tests::s3::{self, S3};
use packhouse_tests::server::eventually;
use packhouse_tests::{Client, MavenRepository, Request, Server, payload, skip};

const LARGE: usize = 100_000;

fn file(version: u32) -> String {
    format!("org/example/a/{version}/a-{version}.jar")
}

/// The sum of the series whose lines begin like this.
fn measured(server: &Server, series: &str) -> f64 {
    let text = Client::new(server.api()).get("/metrics").expect(200).text();
    let lines = text.lines().filter(|line| line.starts_with(series));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

#[test]
fn answers_from_caches_and_waits_are_counted() {
    let server = Server::with().env("PACKHOUSE_PLUGINS_MAVEN_CONCURRENCY", "1").start();
    let repository = MavenRepository::create(&server, "counted");
    let lookups = |result: &str| {
        measured(
            &server,
            &format!("packhouse_cache_lookups_total{{cache=\"responses\",result=\"{result}\"}}"),
        )
    };
    let metadata = || drop(repository.get("org/example/a/maven-metadata.xml").expect(200));
    repository.put(&file(1), "x").expect(201);
    let before = ["miss", "hit", "stale"].map(lookups);
    metadata();
    metadata();
    repository.put(&file(2), "x").expect(201);
    metadata();
    let after = ["miss", "hit", "stale"].map(lookups);
    assert_eq!([0, 1, 2].map(|at| after[at] - before[at]), [1.0, 1.0, 1.0], "{before:?} {after:?}");

    let commits = measured(&server, "packhouse_store_commit_seconds_count");
    assert!(commits >= 2.0, "{commits}");
    assert!(measured(&server, "packhouse_store_commit_wait_seconds_count") >= 2.0);
    eventually("calls wait for the only slot", || {
        let answers = at_once(16, |number| repository.get(&format!("org/example/b{number}/none.jar")).status);
        assert!(answers.iter().all(|status| *status == 404), "{answers:?}");
        (measured(&server, "packhouse_plugin_wait_seconds_count{plugin=\"maven\"}") > 0.0).then_some(())
    });
}

#[test]
fn invented_hosts_do_not_displace_the_servers_own() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "counted");
    let metadata = "org/example/a/maven-metadata.xml";
    // Sends more host names than the server remembers.
    for number in 0..100 {
        let client = repository.client.clone().with("Host", &format!("h{number}.example"));
        client.get(&repository.path(metadata)).expect(404);
    }
    repository.put(&file(1), "x").expect(201);
    let hits = || measured(&server, "packhouse_cache_lookups_total{cache=\"responses\",result=\"hit\"}");
    let before = hits();
    (0..3).for_each(|_| drop(repository.get(metadata).expect(200)));
    assert_eq!(hits() - before, 2.0);
}

#[test]
fn a_query_that_no_plugin_reads_uses_the_cached_answer() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "counted");
    repository.put(&file(1), "x").expect(201);
    let plugin_calls = || measured(&server, "packhouse_plugin_calls_total{");
    let before = plugin_calls();
    for path in [file(1), "org/example/a/maven-metadata.xml".to_owned()] {
        let first = repository.get(&path).expect(200).body;
        for number in 0..5 {
            assert_eq!(repository.get(&format!("{path}?made-up={number}")).expect(200).body, first);
        }
    }
    let made = plugin_calls() - before;
    assert!(made <= 4.0, "{made} calls for two answers");
    // The plugin reads the query of a listing, so each query has an answer of its own.
    let page = |query: &str| repository.get(&format!("org/example/a/{query}")).expect(200).text();
    repository.put(&file(2), "x").expect(201);
    let (one, all) = (page("?limit=1"), page(""));
    assert!(one.contains(">1/<") && !one.contains(">2/<"), "{one}");
    assert!(all.contains(">1/<") && all.contains(">2/<"), "{all}");
}

#[test]
fn small_files_need_no_call_even_if_memory_is_full() {
    const FILES: u32 = 200;
    // The cache has room for about twenty files with their bytes.
    let server = Server::with().env("PACKHOUSE_RESPONSES_CACHE_BYTES", "600 KiB").start();
    let repository = MavenRepository::create(&server, "many");
    let bytes = |number: u32| payload::bytes(number.into(), 4096);
    (0..FILES).for_each(|number| drop(repository.put(&file(number), bytes(number)).expect(201)));
    let plugin_calls = || measured(&server, "packhouse_plugin_calls_total{");
    let fetch = |number: u32| {
        let answer = repository.get(&file(number)).expect(200);
        assert!(answer.body == bytes(number), "{number}");
        let fixed = |(name, _): &(String, String)| !["date", "x-request-id"].contains(&name.as_str());
        let mut headers: Vec<(String, String)> = answer.headers.into_iter().filter(fixed).collect();
        headers.sort();
        headers
    };
    let first: Vec<_> = (0..FILES).map(fetch).collect();
    let before = plugin_calls();
    assert!((0..FILES).map(fetch).eq(first), "it is the same response");
    let made = plugin_calls() - before;
    assert!(made <= 10.0, "{made} calls for {FILES} files");
    // The bodies of the first files are no longer in memory.
    let path = repository.path(&file(0));
    let part =
        repository.client.send(Request::new("GET", &path).header("Range", "bytes=1000-1999")).expect(206);
    assert!(part.body == bytes(0)[1000..2000]);
    repository.client.send(Request::new("DELETE", &path)).expect(204);
    repository.get(&file(0)).expect(404);
    assert!(plugin_calls() - before > made, "a deleted file is looked up by the plugin");
}

#[test]
fn database_and_s3_requests_and_retries_are_counted() {
    let Some(s3) = S3::start() else { return skip("S3 that errs", "no weed") };
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let proxy = FaultProxy::start(s3.endpoint());
    let server = Server::with()
        .env("PACKHOUSE_DATABASE_URL", &postgres.url())
        .env("PACKHOUSE_BLOBS", &s3::address(proxy.address(), "any", "any"))
        .start();
    let repository = MavenRepository::create(&server, "counted");
    repository.put(&file(1), payload::bytes(1, LARGE)).expect(201);
    repository.get(&file(1)).expect(200);
    for purpose in ["read", "commit"] {
        let statements = format!("packhouse_database_statement_seconds_count{{purpose=\"{purpose}\"}}");
        assert!(measured(&server, &statements) > 0.0, "{purpose}");
    }
    assert!(measured(&server, "packhouse_database_connects_total") > 0.0);
    for method in ["PUT", "GET"] {
        let requests = format!("packhouse_s3_requests_total{{method=\"{method}\",status=\"2xx\"}}");
        assert!(measured(&server, &requests) > 0.0, "{method}");
    }
    assert_eq!(measured(&server, "packhouse_s3_retries_total"), 0.0);
    proxy.set(Mode::Err);
    repository.put(&file(2), payload::bytes(2, LARGE)).expect(503);
    assert!(measured(&server, "packhouse_s3_retries_total") > 0.0);
    assert!(measured(&server, "packhouse_s3_requests_total{method=\"PUT\",status=\"5xx\"}") > 1.0);
}
