//! From an installed server to a first `pip install`: a repository and a token by the program, a publish by twine, an install by pip.

use super::{lines, wheel};
use packhouse_tests::clients::{Said, run};
use packhouse_tests::python::Home;
use std::path::Path;
use std::process::Command;

/// The page with the lines that are run here.
pub(crate) const PAGE: &str = "docs/OPERATING.md";

/// Who has published and installed once, with the token for it.
pub(crate) struct User {
    home: Home,
    token: String,
}

/// Makes a repository and a token as OPERATING says, where `shell` runs lines that know a command `packhouse`; then publishes and
/// installs with the clients of `client`, which makes a command of a program, at this address. Answers nobody where there is no twine.
pub(crate) fn to_a_first_install(
    shell: impl Fn(&str) -> Said,
    client: impl Fn(Command) -> Command,
    address: &str,
) -> Option<User> {
    let home = Home::with("twine").ok()?;
    let made = shell(&(lines(PAGE, "### A first repository") + "\necho \"token=$TOKEN\"")).well();
    let token = made.text.lines().find_map(|line| line.strip_prefix("token=")).unwrap_or_default().to_owned();
    assert!(!token.is_empty(), "no token in: {}", made.text);
    home.write("dist/hello-1.0-py3-none-any.whl", wheel::wheel("hello", "1.0", ""));
    let script = lines(PAGE, "### A first install").replace("127.0.0.1:8080", address);
    let mut command = client(home.shell());
    run(command.args(["-euo", "pipefail", "-c", &script]).env("TOKEN", &token)).well();
    assert!(home.folder().join("elsewhere/hello/__init__.py").is_file());
    Some(User { home, token })
}

/// The certificate and the key of OPERATING's lines, made in this folder: `tls.crt`, `tls.key`.
pub(crate) fn certificate(folder: &Path) {
    let text = lines(PAGE, "### To a first install through TLS");
    run(Command::new("bash").args(["-euo", "pipefail", "-c", &text]).current_dir(folder)).well();
}

impl User {
    /// Installs what it has published once more, through TLS with the certificate of this folder: from a server that has been given it.
    pub(crate) fn install_through_tls(
        &self,
        folder: &Path,
        client: impl Fn(Command) -> Command,
        address: &str,
    ) {
        std::fs::copy(folder.join("tls.crt"), self.home.folder().join("tls.crt")).unwrap();
        let script = lines(PAGE, "#### An install through TLS").replace("127.0.0.1:8080", address);
        let mut command = client(self.home.shell());
        run(command.args(["-euo", "pipefail", "-c", &script]).env("TOKEN", &self.token)).well();
        assert!(self.home.folder().join("through-tls/hello/__init__.py").is_file());
    }
}

/// The same command, started through these words (`nsenter`): what it was given stays.
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
