//! Messages of the server to a supervisor: readiness, watchdog, reload and stop (`sd_notify(3)`).
//! Also the greeting at a terminal.

use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use packhouse_tests::clients::has;
use packhouse_tests::server::{self, eventually, free_port};
use packhouse_tests::{Server, skip};

/// Waits for the next message that contains this text.
fn next_message(socket: &UnixDatagram, words: &str) -> String {
    eventually(words, || {
        let mut buffer = [0; 4096];
        let length = socket.recv(&mut buffer).ok()?;
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        text.contains(words).then_some(text)
    })
}

#[test]
fn a_supervisor_is_notified_of_readiness_watchdog_reload_and_stop() {
    let home = tempfile::TempDir::new().unwrap();
    let path = home.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let server = Server::with().env("NOTIFY_SOCKET", &path.to_string_lossy()).env("WATCHDOG_USEC", "400000");
    let mut server = server.start();
    next_message(&socket, "READY=1");
    for _ in 0..3 {
        next_message(&socket, "WATCHDOG=1");
    }
    server.signal("-HUP");
    assert!(next_message(&socket, "RELOADING=1").contains("MONOTONIC_USEC="));
    next_message(&socket, "READY=1");
    server.terminate();
    next_message(&socket, "STOPPING=1");
    assert!(server.wait().success());
}

/// A server that runs without a supervisor sends no message.
#[test]
fn without_a_supervisor_there_are_no_notifications() {
    let server = Server::start();
    assert!(!server.log().contains("sd_notify"), "{}", server.log());
}

#[test]
fn the_greeting_at_a_terminal_leads_to_a_first_token() {
    if !has("script") {
        return skip("the greeting", "no script (util-linux) to make a terminal");
    }
    let home = tempfile::TempDir::new().unwrap();
    let data = home.path().join("data");
    server::share_compiled(&data);
    let [packages, api] = [free_port(), free_port()];
    let words = format!(
        "PACKHOUSE_LOG=error exec {} serve --data {} --packages-listen 127.0.0.1:{packages} --api-listen 127.0.0.1:{api}",
        server::program().display(),
        data.display()
    );
    let typescript = home.path().join("terminal");
    let mut child = Command::new("script")
        .args(["--quiet", "--flush", "--command", &words])
        .arg(&typescript)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let text = eventually("the greeting", || {
        let text = std::fs::read_to_string(&typescript).ok()?;
        text.contains("a first token:").then_some(text).filter(|text| text.contains("--expires-in 90d"))
    });
    let line = |word: &str| {
        text.lines().find(|line| line.starts_with(word)).unwrap_or_else(|| panic!("{text}")).trim().to_owned()
    };
    assert!(line("Packages:").contains(&format!("http://127.0.0.1:{packages}/repositories/")), "{text}");
    assert!(line("Portal:").contains(&format!("http://127.0.0.1:{api}/")), "{text}");
    // The command that the greeting prints works.
    let (_, command) = text.split_once("a first token: ").unwrap();
    let command = command.lines().next().unwrap().trim();
    let program = server::program();
    let command = command.replace("packhouse ", &format!("{} ", program.display()));
    let output = Command::new("sh").args(["-c", &command]).env("PACKHOUSE_LOG", "error").output().unwrap();
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && printed.contains("pkh_"), "{command}\n{printed}");
    let _ = child.kill();
    let _ = child.wait();
}
