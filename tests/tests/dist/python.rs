//! The wheel: `pip install packhouse` and `uvx packhouse serve` from an index, which is a Packhouse
//! server; and the wheel's tag.

use super::used::{INSTALL, TLS, certificate, to_a_first_install};
use super::{lines, package};
use packhouse_tests::clients::run;
use packhouse_tests::python::{Home, PythonRepository};
use packhouse_tests::server::{eventually, free_port};
use packhouse_tests::{Server, skip};
use std::process::{Child, Command, Stdio};

/// A process group that is killed on drop: uvx starts the program as a child.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", self.0.id())]).status();
        let _ = self.0.wait();
    }
}

/// Runs these lines, whose last one starts a server; returns once the server is ready.
fn started(home: &Home, text: &str, ports: [u16; 2]) -> Running {
    use std::os::unix::process::CommandExt as _;
    let (before, text) = text.trim().rsplit_once('\n').unwrap_or(("true", text.trim()));
    run(home.shell().args(["-euo", "pipefail", "-c", before])).success();
    // The server needs the variables that the lines before it export.
    let exports: String =
        before.lines().filter(|line| line.starts_with("export ")).flat_map(|line| [line, "\n"]).collect();
    let mut command = home.shell();
    command
        .args(["-euo", "pipefail", "-c", &(exports.clone() + text)])
        .process_group(0)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.env("PACKHOUSE_PACKAGES_LISTEN", format!("127.0.0.1:{}", ports[0]));
    command.env("PACKHOUSE_API_LISTEN", format!("127.0.0.1:{}", ports[1]));
    let mut running = Running(command.spawn().unwrap());
    // The exported variables name a certificate; then the API uses TLS too.
    let scheme = if exports.is_empty() { "http" } else { "https" };
    let ready = format!("{scheme}://127.0.0.1:{}/readyz", ports[1]);
    eventually("the server is ready", || {
        assert!(matches!(running.0.try_wait(), Ok(None)), "it ended: {text}");
        let answer = run(Command::new("curl").args(["--silent", "--fail", "--insecure", &ready]));
        answer.success.then_some(())
    });
    running
}

#[test]
fn a_new_environment_comes_to_a_first_install_by_the_documented_lines() {
    let Ok(home) = Home::with("pip") else {
        return skip("wheel", "no pip in .tools/python-clients; `./bootstrap test-dist` installs it");
    };
    let wheel = package("packhouse-", ".whl");
    home.write(&wheel.file_name().unwrap().to_string_lossy(), std::fs::read(&wheel).unwrap());
    let ports = [free_port(), free_port()];
    let server = started(&home, &lines(INSTALL, "## Python environment"), ports);
    let address = format!("127.0.0.1:{}", ports[0]);
    let shell = |text: &str| {
        let mut command = home.shell();
        run(command.args([
            "-euo",
            "pipefail",
            "-c",
            &format!("export PATH=$PWD/packhouse/bin:$PATH\n{text}"),
        ]))
    };
    let Some(user) = to_a_first_install(shell, |client| client, &address) else {
        return skip("wheel: a first install", "no twine; `./bootstrap test-dist` installs it");
    };
    drop(server);
    certificate(home.folder());
    let _server = started(&home, &lines(TLS, "### Python environment or tarball"), ports);
    user.install_through_tls(home.folder(), |client| client, &address);
}

#[test]
fn uvx_and_pip_take_it_from_a_server_of_its_own_kind() {
    let (Ok(home), Ok(_)) = (Home::with("uv"), Home::with("pip")) else {
        return skip(
            "wheel through an index",
            "no uv or pip in .tools/python-clients; `./bootstrap test-dist` installs them",
        );
    };
    let server = Server::start();
    let repository = PythonRepository::create(&server, "tools");
    let wheel = package("packhouse-", ".whl");
    let name = wheel.file_name().unwrap().to_string_lossy().into_owned();
    let version = name.split('-').nth(1).unwrap();
    repository.publish("packhouse", version, &name, &std::fs::read(&wheel).unwrap()).expect(200);
    let index = repository.index_of(&repository.token.secret);

    let ports = [free_port(), free_port()];
    let text = format!("UV_DEFAULT_INDEX='{index}' exec {}", lines("README.md", "### With uv").trim());
    drop(started(&home, &text, ports));

    let python = home.python();
    let text = format!(
        "'{}' -m venv venv && venv/bin/pip install --quiet --index-url '{index}' packhouse\nexec venv/bin/python -m packhouse serve --data other",
        python.display()
    );
    drop(started(&home, &text, [free_port(), free_port()]));
}

#[test]
fn its_tag_is_the_oldest_glibc_that_it_runs_with() {
    let wheel = package("packhouse-", ".whl");
    let name = wheel.file_name().unwrap().to_string_lossy().into_owned();
    let (_, tag) = name.split_once("-py3-none-manylinux_2_").unwrap();
    let minor: u32 = tag.split('_').next().unwrap().parse().unwrap();
    // Debian 12, for which it is built, has 2.36.
    assert!((17..=36).contains(&minor), "{name}");
    let stage = packhouse_tests::checkout().join("target/packages/stage/packhouse");
    let output = run(Command::new("objdump").arg("-T").arg(stage)).success();
    let versions = output.text.match_indices("GLIBC_2.").filter_map(|(at, _)| {
        let digits: String = output.text[at + 8..].chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok()
    });
    assert_eq!(versions.max(), Some(minor), "{name}");
}
