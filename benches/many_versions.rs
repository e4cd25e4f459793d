//! Compares a package of 2,000 versions with packages of ten versions and with a bare handler. They
//! take turns in one run, and the results are ratios. The benchmark measures the next publish, the
//! first read of each form of the index after this publish, and repeated reads.
//!
//! The bare handler is this program again (`--bare FILE PORT`). It uses hyper and serves the bytes
//! of the index.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot be run must stop loudly"
)]

#[path = "../plugins/npm/tests/release.rs"]
#[allow(dead_code, reason = "shared with tests that use more of this module")]
mod release;
#[path = "../plugins/python/tests/wheel.rs"]
mod wheel;

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use packhouse_benches::{BareServer, cpu_ms, load, median};
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::server::OWNER;
use packhouse_tests::{Client, Request, Server};
use release::Release;

const MANY: usize = 2000;
const FEW: usize = 10;
/// Number of measured publishes into packages of each size. Each small package gets one publish.
const ROUNDS: usize = 20;
const TIME: Duration = Duration::from_secs(2);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().position(|argument| argument == "--bare") {
        Some(at) => bare(&arguments[at + 1], arguments[at + 2].parse().expect("a port")),
        None => compare(),
    }
}

/// The publish of a version in one format, and the forms of its index, each with name and `Accept`.
struct FormatBench<'a> {
    name: &'a str,
    client: &'a Client,
    secret: &'a str,
    publish: &'a dyn Fn(&str, usize),
    path: &'a dyn Fn(&str) -> String,
    forms: [(&'a str, &'a str); 2],
}

fn compare() {
    let mut server = Server::start();
    // The first start compiles the plugins. This start uses the compiled plugins, like every later
    // start.
    server.restart();
    let npm = NpmRepository::create(&server, "npm");
    FormatBench {
        name: "npm",
        client: &npm.client,
        secret: &npm.token.secret,
        publish: &|package, number| {
            let document = Release::new(package, &format!("1.{number}.0")).document();
            npm.put(package, &document).expect(201);
        },
        path: &|package| npm.path(package),
        forms: [
            ("full packument", "application/json"),
            ("abbreviated packument", "application/vnd.npm.install-v1+json"),
        ],
    }
    .measure(&server);
    let python = PythonRepository::create(&server, "python");
    FormatBench {
        name: "Python",
        client: &python.client,
        secret: &python.token.secret,
        publish: &|project, number| {
            let version = format!("1.{number}");
            let file = wheel::wheel(project, &version, "");
            python.publish(project, &version, &wheel::wheel_name(project, &version), &file).expect(200);
        },
        path: &|project| python.path(&format!("simple/{project}/")),
        forms: [("index in JSON", "application/vnd.pypi.simple.v1+json"), ("index in HTML", "text/html")],
    }
    .measure(&server);
}

impl FormatBench<'_> {
    fn measure(&self, server: &Server) {
        let small: Vec<String> = (0..ROUNDS).map(|number| format!("small{number}")).collect();
        (0..MANY).for_each(|number| (self.publish)("large", number));
        for package in &small {
            (0..FEW).for_each(|number| (self.publish)(package, number));
        }
        let (pid, mut few, mut many) = (server.pid(), Vec::new(), Vec::new());
        let mut rendered = self.forms.map(|_| (Vec::new(), Vec::new()));
        for (round, package) in small.iter().enumerate() {
            few.push(timed(pid, || (self.publish)(package, FEW)));
            many.push(timed(pid, || (self.publish)("large", MANY + round)));
            for ((_, accept), (few, many)) in self.forms.iter().zip(&mut rendered) {
                few.push(timed(pid, || self.index(package, accept)));
                many.push(timed(pid, || self.index("large", accept)));
            }
        }
        self.print("next publish", few, many);
        for ((form, accept), (few, many)) in self.forms.iter().zip(rendered) {
            self.print(&format!("{form}, first read after a publish"), few, many);
            self.measure_repeated(server, form, accept);
        }
    }

    /// Reads the index in this form.
    fn index(&self, package: &str, accept: &str) -> Vec<u8> {
        let request = Request::new("GET", &(self.path)(package)).header("Accept", accept);
        self.client.send(request).expect(200).body
    }

    fn print(&self, what: &str, few: Vec<Cost>, many: Vec<Cost>) {
        for (of, part) in [("time", 0), ("CPU", 1)] {
            let middle = |costs: &[Cost]| median(costs.iter().map(|cost| cost[part]).collect());
            let (few, many) = (middle(&few), middle(&many));
            println!(
                "{}: {what}: {many:.1} ms of {of} with {MANY} versions, {few:.1} ms with {FEW}: {:.2}",
                self.name,
                many / few
            );
        }
    }

    /// Compares repeated reads of the same index with the bare handler.
    fn measure_repeated(&self, server: &Server, form: &str, accept: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("index");
        let index = self.index("large", accept);
        std::fs::write(&file, &index).expect("a file");
        let bare = BareServer::start(&file);
        let credential = STANDARD.encode(format!("{OWNER}:{}", self.secret));
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\nAuthorization: Basic {credential}\r\n\r\n",
            (self.path)("large")
        );
        let round = |_| {
            let plugin = load(server.packages(), server.pid(), &request, 1, TIME);
            let bare = load(bare.address, bare.pid(), &request, 1, TIME);
            (plugin.rate / bare.rate, plugin.cpu_us / bare.cpu_us)
        };
        let (rates, costs): (Vec<f64>, Vec<f64>) = (0..3).map(round).unzip();
        println!(
            "{}: {form} of {} bytes, repeated reads, plugin / bare = {:.2} in responses per second, {:.2} in CPU",
            self.name,
            index.len(),
            median(rates),
            median(costs)
        );
    }
}

/// Elapsed time and CPU time of the server, in ms.
type Cost = [f64; 2];

/// Measures the cost of `work`.
fn timed<T>(pid: u32, work: impl FnOnce() -> T) -> Cost {
    let (before, start) = (cpu_ms(pid), Instant::now());
    drop(work());
    [start.elapsed().as_secs_f64() * 1e3, cpu_ms(pid) - before]
}

#[tokio::main]
async fn bare(file: &str, port: u16) {
    let content = Bytes::from(std::fs::read_to_string(file).expect("the file"));
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.expect("binds");
    loop {
        let (stream, _) = listener.accept().await.expect("accepts");
        stream.set_nodelay(true).expect("nodelay");
        let content = content.clone();
        let service = service_fn(move |_| {
            let content = content.clone();
            async move { Ok::<_, Infallible>(hyper::Response::new(Full::new(content))) }
        });
        tokio::spawn(
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
        );
    }
}
