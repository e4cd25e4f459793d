//! The steps to a first `pip install` on an installed server: a repository and a token by the
//! program, a publish by twine, an install by pip.

use super::{lines, wheel};
use packhouse_tests::clients::{ProgramOutput, run};
use packhouse_tests::python::Home;
use std::path::Path;
use std::process::Command;

/// The guide that installs a server.
pub(crate) const INSTALL: &str = "docs/guides/install.md";
/// The guide that sets up TLS.
pub(crate) const TLS: &str = "docs/guides/tls.md";

/// A user who published and installed once, with the token.
pub(crate) struct User {
    home: Home,
    token: String,
}

/// Makes a repository and a token as the guide says, then publishes and installs at this address.
/// `shell` runs lines that know a command `packhouse`; `client` adapts the command of a client.
/// `None` if twine is missing.
pub(crate) fn to_a_first_install(
    shell: impl Fn(&str) -> ProgramOutput,
    client: impl Fn(Command) -> Command,
    address: &str,
) -> Option<User> {
    let home = Home::with("twine").ok()?;
    let made =
        shell(&(lines(INSTALL, "## Create the first repository") + "\necho \"token=$TOKEN\"")).success();
    let token = made.text.lines().find_map(|line| line.strip_prefix("token=")).unwrap_or_default().to_owned();
    assert!(!token.is_empty(), "no token in: {}", made.text);
    home.write("dist/hello-1.0-py3-none-any.whl", wheel::wheel("hello", "1.0", ""));
    let script =
        lines(INSTALL, "## Publish and install the first package").replace("127.0.0.1:8080", address);
    let mut command = client(home.shell());
    run(command.args(["-euo", "pipefail", "-c", &script]).env("TOKEN", &token)).success();
    assert!(home.folder().join("elsewhere/hello/__init__.py").is_file());
    Some(User { home, token })
}

/// Makes the certificate and the key of the guide in this folder: `tls.crt`, `tls.key`.
pub(crate) fn certificate(folder: &Path) {
    let text = lines(TLS, "## Use a certificate from files");
    run(Command::new("bash").args(["-euo", "pipefail", "-c", &text]).current_dir(folder)).success();
}

impl User {
    /// Installs the published package again, through TLS with the certificate in this folder.
    pub(crate) fn install_through_tls(
        &self,
        folder: &Path,
        client: impl Fn(Command) -> Command,
        address: &str,
    ) {
        std::fs::copy(folder.join("tls.crt"), self.home.folder().join("tls.crt")).unwrap();
        let script = lines(TLS, "### Install a package through TLS").replace("127.0.0.1:8080", address);
        let mut command = client(self.home.shell());
        run(command.args(["-euo", "pipefail", "-c", &script]).env("TOKEN", &self.token)).success();
        assert!(self.home.folder().join("through-tls/hello/__init__.py").is_file());
    }
}

/// Wraps a command in another one (`nsenter`), with its arguments, variables and folder.
pub(crate) fn through(words: &[&str], command: &Command) -> Command {
    let mut outer = Command::new(words[0]);
    outer.args(&words[1..]).arg(command.get_program()).args(command.get_args()).env_clear();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            outer.env(name, value);
        }
    }
    if let Some(folder) = command.get_current_dir() {
        outer.current_dir(folder);
    }
    outer
}
