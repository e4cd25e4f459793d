//! Delivery while the server and the receiver are killed repeatedly. The receiver also fails and
//! hangs up. Each publish is delivered at least once, and the publishes of a package arrive in
//! order.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use packhouse_tests::race::at_once;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::{eventually, free_port};
use packhouse_tests::{Api, Request, long};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::order::{hook_drained, in_order};
use super::receiver::Message;
use super::{Hook, allowing};

/// A receiver in its own process. It writes each message to a file before it answers. It hangs up
/// on one message in 31 and answers 500 to one in 7.
const RECEIVER: &str = r#"
import http.server, json, os, sys
taken = os.open(sys.argv[1], os.O_APPEND | os.O_CREAT | os.O_WRONLY)
count = 0

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        global count
        count += 1
        number = count
        body = self.rfile.read(int(self.headers["content-length"]))
        status = 0 if number % 31 == 5 else 500 if number % 7 == 3 else 200
        headers = {name.lower(): value for name, value in self.headers.items()}
        line = json.dumps({"headers": headers, "body": body.decode(), "status": status}) + "\n"
        os.write(taken, line.encode())
        if status == 0:
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass

http.server.ThreadingHTTPServer.request_queue_size = 128
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
"#;

struct Process {
    port: u16,
    folder: TempDir,
    child: Child,
    reader: BufReader<File>,
    line: Vec<u8>,
    count: usize,
}

impl Process {
    fn start() -> Process {
        let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
        let taken = folder.path().join("taken");
        let reader = BufReader::new(File::create_new(&taken).and_then(|_| File::open(&taken)).unwrap());
        let child = Process::spawn(&folder, port);
        Process { port, folder, child, reader, line: Vec::new(), count: 0 }
    }

    fn spawn(folder: &TempDir, port: u16) -> Child {
        let mut command = Command::new("python3");
        command.args(["-c", RECEIVER]).arg(folder.path().join("taken")).arg(port.to_string());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        eventually("the receiver listens", || TcpStream::connect(("127.0.0.1", port)).ok());
        child
    }

    fn kill9(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn restart(&mut self) {
        self.kill9();
        self.child = Process::spawn(&self.folder, self.port);
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    fn taken(&self) -> PathBuf {
        self.folder.path().join("taken")
    }

    /// Number of messages received so far.
    fn count(&mut self) -> usize {
        // Counts a partial line only once the line is complete.
        while self.reader.read_until(b'\n', &mut self.line).is_ok_and(|read| read > 0) {
            self.count += usize::from(self.line.ends_with(b"\n"));
            if self.line.ends_with(b"\n") {
                self.line.clear();
            }
        }
        self.count
    }

    /// The received messages, in order.
    fn messages(&self) -> Vec<Message> {
        let text = std::fs::read_to_string(self.taken()).unwrap();
        let read = |line: &str| {
            let entry: Value = serde_json::from_str(line).unwrap();
            let headers: HashMap<String, String> = serde_json::from_value(entry["headers"].clone()).unwrap();
            let status = entry["status"].as_u64().unwrap().try_into().unwrap();
            Message { headers, body: entry["body"].as_str().unwrap().as_bytes().to_vec(), status }
        };
        text.lines().map(read).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill9();
    }
}

/// Publishes the versions of these packages one after another while the server may be killed. Sends
/// a publish again after no response or a 503. The server refuses the second request if the first
/// one had succeeded.
fn publish_through_deaths(repository: &FormatRepository, packages: usize, versions: usize) {
    const PUBLISHERS: usize = 16;
    at_once(PUBLISHERS, |publisher| {
        for version in 0..versions {
            for package in (publisher..packages).step_by(PUBLISHERS) {
                let path = format!("org/a/lib{package}/{version}/lib{package}-{version}.jar");
                eventually(&path, || {
                    let request = Request::new("PUT", &repository.path(&path)).body(path.as_bytes());
                    let status = repository.client.try_send(request).map_or(503, |answer| answer.status);
                    assert!([201, 409, 503].contains(&status), "{path}: {status}");
                    (status != 503).then_some(())
                });
            }
        }
    });
}

#[test]
fn each_publish_is_delivered_in_order_though_server_and_receiver_are_killed() {
    let (packages, versions, kills) = if long() { (100, 100, 40) } else { (16, 10, 3) };
    let mut server = allowing().start();
    let api = Api::sign_in(&server);
    let repository = FormatRepository::hosted(&server, "maven", "releases", &json!({}));
    let mut receiver = Process::start();
    let hook = Hook::create(&api, &receiver.url(), &["package.published"], json!("*"));
    let begun = Instant::now();
    let (mut published, mut killed) = (Duration::ZERO, [0, 0]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            publish_through_deaths(&repository, packages, versions);
            published = begun.elapsed();
        });
        for kill in 1..=kills {
            let reached = packages * versions * kill / (kills + 1);
            eventually("enough messages were delivered", || (receiver.count() >= reached).then_some(()));
            // Kills the server, the receiver, or the server while the receiver is down.
            match kill % 3 {
                0 => server.restart(),
                1 => receiver.restart(),
                _ => {
                    receiver.kill9();
                    server.restart();
                    receiver.restart();
                }
            }
            killed[0] += usize::from(kill % 3 != 1);
            killed[1] += usize::from(kill % 3 != 0);
        }
    });
    server.restart();
    hook_drained(&Api::sign_in(&server), &hook);
    let messages = receiver.messages();
    in_order(&messages, packages, versions);
    assert!(messages.iter().all(|message| message.is_signed_with(&hook.secret)));
    let taken = messages.iter().filter(|message| message.status == 200).count();
    let events = packages * versions;
    println!(
        "{events} publishes in {:.1} s, delivered after {:.1} s; killed: server {}, receiver {}; {} messages, of which {taken} \
         were taken, {} of them again",
        published.as_secs_f64(),
        begun.elapsed().as_secs_f64(),
        killed[0] + 1,
        killed[1],
        messages.len(),
        taken - events,
    );
}
