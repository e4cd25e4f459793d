//! A docker daemon of a test's own, which ends when the test drops it.

use crate::clients::{ProgramOutput, has, run};
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
    /// Starts a daemon; the error says why it did not start.
    pub fn start() -> Result<Self, String> {
        Self::with_settings("{}")
    }

    /// Starts a daemon with these settings in its `daemon.json`.
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

    /// The daemon's folder; `docker` commands run in it.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// A command that runs in that folder and uses this daemon.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("DOCKER_HOST", format!("unix://{}", self.home.path().join("socket").display()));
        command.env("DOCKER_CONFIG", self.home.path().join("config")).env("DOCKER_BUILDKIT", "0");
        command.current_dir(self.home.path());
        command
    }

    /// Runs `docker` with these arguments.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> ProgramOutput {
        run(self.command("docker").args(arguments))
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        // SIGTERM also ends the daemon's containerd.
        let _ = Command::new("kill").arg(self.daemon.id().to_string()).status();
        let _ = self.daemon.wait();
        // A container that used the machine's network leaves a mount in the folder. The mount would
        // prevent the removal of the folder.
        let _ = Command::new("umount")
            .args(["--lazy", "--quiet"])
            .arg(self.home.path().join("run/netns/default"))
            .status();
    }
}
