//! Compares authenticated GETs through the server with the same GETs through a bare handler that
//! reads the same store. The two take turns in one run. The ratio shows what the sandbox and the
//! data path cost and what cached responses save.
//!
//! The bare handler is this program again (`--bare FOLDER PORT`). It uses hyper, looks up the
//! credential, and reads one record and one blob.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot be run must stop loudly"
)]

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use packhouse_benches::{BareServer, LoadResult, load, median};
use packhouse_store::{Sha256, Store, StoreConfig};
use packhouse_tests::server::OWNER;
use packhouse_tests::{MavenRepository, Server, payload};
use sha2::Digest as _;

const ROUNDS: usize = 3;
const TIME: Duration = Duration::from_secs(2);
const JAR: &str = "org/example/lib/1.0/lib-1.0.jar";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().position(|argument| argument == "--bare") {
        Some(at) => bare(&arguments[at + 1], arguments[at + 2].parse().expect("a port")),
        None => compare(),
    }
}

fn compare() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Server::with().data(folder.path()).start();
    let repository = MavenRepository::create(&server, "bench");
    repository.put(JAR, payload::bytes(1, 4096)).expect(201);
    let credential = STANDARD.encode(format!("{OWNER}:{}", repository.token.secret));
    let request = format!(
        "GET /repositories/bench/{JAR} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic {credential}\r\n\r\n"
    );
    for connections in [1, 64] {
        let mut ratios = Vec::new();
        for _ in 0..ROUNDS {
            let plugin = load(server.packages(), server.pid(), &request, connections, TIME);
            server.kill9();
            let bare =
                with_bare(folder.path(), |address, pid| load(address, pid, &request, connections, TIME));
            server.restart();
            println!("{connections:>3} connections: plugin {}, bare {}", describe(plugin), describe(bare));
            ratios.push(plugin.rate / bare.rate);
        }
        println!("{connections:>3} connections: plugin / bare = {:.2}", median(ratios));
    }
}

fn describe(result: LoadResult) -> String {
    format!("{:.0}/s at {:.1} µs CPU", result.rate, result.cpu_us)
}

fn with_bare(folder: &std::path::Path, measure: impl Fn(SocketAddr, u32) -> LoadResult) -> LoadResult {
    let bare = BareServer::start(folder);
    measure(bare.address, bare.pid())
}

#[tokio::main]
async fn bare(folder: &str, port: u16) {
    let store = Store::open(StoreConfig::new(folder)).await.expect("opens");
    let organization = store.organizations().await.expect("reads").first().expect("one").id;
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.expect("binds");
    loop {
        let (stream, _) = listener.accept().await.expect("accepts");
        stream.set_nodelay(true).expect("nodelay");
        let store = store.clone();
        let service = service_fn(move |request| {
            let store = store.clone();
            async move { Ok::<_, Infallible>(answer(&store, organization, &request).await) }
        });
        tokio::spawn(
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
        );
    }
}

async fn answer(
    store: &Store,
    organization: packhouse_store::OrganizationId,
    request: &hyper::Request<Incoming>,
) -> hyper::Response<Full<Bytes>> {
    let mut path = request.uri().path().trim_start_matches("/repositories/").splitn(2, '/');
    let (name, file) = (path.next().expect("a name"), path.next().expect("a file"));
    let header = request.headers()["authorization"].to_str().expect("text");
    let credential = STANDARD.decode(header.trim_start_matches("Basic ")).expect("base64");
    let secret = credential.rsplit(|byte| *byte == b':').next().expect("a password");
    let hash: [u8; 32] = sha2::Sha256::digest(secret).into();
    let known = store.look_up(organization, name, Some(&hash)).await.expect("looks up");
    let repository = known.repository.as_ref().expect("the repository").id;
    let entry = store.get(repository, &format!("f/{file}")).await.expect("reads").expect("the record");
    let record: serde_json::Value = serde_json::from_slice(&entry.value).expect("JSON");
    let digest = record["sha256"].as_str().expect("a digest").trim_start_matches("sha256:");
    let digest: Sha256 = digest.parse().expect("a digest in hex");
    let blob = store.blob(repository, digest).await.expect("reads").expect("the blob");
    let bytes = blob.read_at(0, u32::try_from(blob.size()).expect("small")).await.expect("reads");
    hyper::Response::new(Full::new(bytes))
}
