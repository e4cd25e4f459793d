//! nginx as the peer. It serves the same bytes from files, with the same Basic credentials, in one
//! process on the first core.

use crate::table::ResultTable;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use packhouse_tests::clients::has;
use packhouse_tests::server::free_port;
use sha1::Digest as _;
use std::fs;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running nginx, which is stopped on drop.
#[derive(Debug)]
pub(crate) struct Nginx {
    home: TempDir,
    child: Child,
    port: u16,
}

impl Nginx {
    /// Starts nginx for a user with this password. Returns `None` and adds a note to the table if
    /// nginx is not installed.
    pub(crate) fn start(user: &str, password: &str, table: &mut ResultTable) -> Option<Self> {
        if !has("nginx") {
            table.skip("nginx as the peer", "no nginx on the path");
            return None;
        }
        let home = TempDir::new().expect("a folder");
        let folder = home.path().display().to_string();
        fs::create_dir(home.path().join("www")).expect("a folder");
        let sum = STANDARD.encode(sha1::Sha1::digest(password));
        fs::write(home.path().join("users"), format!("{user}:{{SHA}}{sum}\n")).expect("a file");
        // A worker may run as another user, which must be able to read the files.
        let open: fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(home.path(), open).expect("rights");
        let port = free_port();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {folder}/{name};\n"))
            .concat();
        let configuration = format!(
            "daemon off; master_process off; worker_rlimit_nofile 16384; pid {folder}/pid; error_log {folder}/errors;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000;\n\
             open_file_cache max=10000 inactive=600s; default_type application/octet-stream;\n{temporary}\
             server {{ listen 127.0.0.1:{port} backlog=1024; root {folder}/www;\n\
             location / {{ auth_basic x; auth_basic_user_file {folder}/users; }} }} }}\n"
        );
        let file = home.path().join("nginx.conf");
        fs::write(&file, configuration).expect("a file");
        let mut command = Command::new("nginx");
        command.arg("-c").arg(&file).stdin(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("nginx");
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(child.try_wait().expect("waits").is_none(), "nginx stopped: see {}", file.display());
            std::thread::yield_now();
        }
        Some(Self { home, child, port })
    }

    /// Id of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Serves these bytes. Returns their address.
    pub(crate) fn serve(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.home.path().join("www").join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
        format!("{}/{name}", self.url())
    }

    /// Base address.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
