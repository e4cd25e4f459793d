//! A docker daemon of a test's own, which ends with it.

use crate::clients::{Said, has, run};
use crate::server::eventually;
use std::path::Path;
use std::process::{Child, Command};
use tempfile::TempDir;

/// A running daemon.
#[derive(Debug)]
pub struct Docker {
    daemon: Child,
    home: TempDir,
}

impl Docker {
    /// None, with the reason, where there is none or it does not start.
    pub fn start() -> Result<Self, String> {
        Self::with_settings("{}")
    }

    /// The same with these settings, which stand in its `daemon.json`.
    pub fn with_settings(settings: &str) -> Result<Self, String> {
        if !has("docker") || !has("dockerd") {
            return Err("no docker and dockerd on the path".to_owned());
        }
        let home = TempDir::new().map_err(|error| error.to_string())?;
        let at = |name: &str| home.path().join(name);
        let log = std::fs::File::create(at("log")).map_err(|error| error.to_string())?;
        std::fs::write(at("daemon.json"), settings).map_err(|error| error.to_string())?;
        let mut command = Command::new("dockerd");
        command.args(["--storage-driver=vfs", "--iptables=false", "--ip6tables=false", "--bridge=none"]);
        command.arg("--config-file").arg(at("daemon.json"));
        command.arg("--data-root").arg(at("root")).arg("--exec-root").arg(at("run"));
        command.arg("--pidfile").arg(at("pid")).arg("-H").arg(format!("unix://{}", at("socket").display()));
        let daemon = command
            .stdout(log.try_clone().map_err(|error| error.to_string())?)
            .stderr(log)
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut docker = Self { daemon, home };
        let up = eventually("the docker daemon answers or ends", || match docker.daemon.try_wait() {
            Ok(Some(_)) => Some(false),
            _ => docker.run(&["version"]).success.then_some(true),
        });
        let log = || std::fs::read_to_string(docker.home.path().join("log")).unwrap_or_default();
        if up {
            Ok(docker)
        } else {
            Err(format!("dockerd does not run here: {}", log().lines().last().unwrap_or_default()))
        }
    }

    /// Its folder, in which `docker` runs.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// A program that runs there and finds the daemon.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("DOCKER_HOST", format!("unix://{}", self.home.path().join("socket").display()));
        command.env("DOCKER_CONFIG", self.home.path().join("config")).env("DOCKER_BUILDKIT", "0");
        command.current_dir(self.home.path());
        command
    }

    /// Runs `docker` with these words.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Said {
        run(self.command("docker").args(arguments))
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        // Asked to end, it takes its containerd with it.
        let _ = Command::new("kill").arg(self.daemon.id().to_string()).status();
        let _ = self.daemon.wait();
        // What is left of a container that had the machine's network, and keeps the folder from being removed.
        let _ = Command::new("umount")
            .args(["--lazy", "--quiet"])
            .arg(self.home.path().join("run/netns/default"))
            .status();
    }
}
