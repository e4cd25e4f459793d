//! The Debian package on a new Debian 12 with nothing else, with systemd as the first process.

use super::used::{INSTALL, TLS, certificate, through, to_a_first_install};
use super::{lines, package};
use packhouse_tests::clients::{has, run};
use packhouse_tests::debian::Debian;
use packhouse_tests::server::eventually;
use packhouse_tests::skip;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

/// Boots a system with the package in `/root`.
fn with_package() -> Option<Debian> {
    match Debian::boot() {
        Ok(debian) => {
            let deb = package("packhouse_", ".deb");
            std::fs::copy(&deb, debian.path("root").join(deb.file_name().unwrap())).unwrap();
            Some(debian)
        }
        Err(reason) => {
            skip("Debian package", &reason);
            None
        }
    }
}

fn ready(debian: &Debian) {
    eventually("the service is ready", || {
        debian
            .run(&["packhouse", "healthcheck", "--config", "/etc/packhouse/packhouse.toml"])
            .success
            .then_some(())
    });
}

#[test]
fn lintian_finds_no_error() {
    if !has("lintian") {
        return skip("lintian", "no lintian on the path; `./bootstrap test-dist` installs it");
    }
    let mut command = Command::new("lintian");
    command.args(["--fail-on", "error", "--allow-root"]).arg(package("packhouse_", ".deb"));
    run(&mut command).success();
}

#[test]
fn a_new_debian_comes_to_a_first_install_by_the_documented_lines() {
    let Some(debian) = with_package() else { return };
    let output = debian.shell(&format!("cd /root\n{}", lines(INSTALL, "## Debian package"))).success();
    assert!(output.text.contains("The first owner is owner@localhost"), "{}", output.text);
    ready(&debian);
    let init = debian.init().to_string();
    let command = lines(INSTALL, "### Run other commands");
    let client = |client: Command| through(&["nsenter", "-t", &init, "-n", "--"], &client);
    let shell = |text: &str| debian.shell(&format!("{command}\n{text}"));
    let Some(user) = to_a_first_install(shell, client, "127.0.0.1:8080") else {
        return skip("Debian package: a first install", "no twine; `./bootstrap test-dist` installs it");
    };
    let root = debian.path("root");
    certificate(&root);
    debian.shell(&format!("cd /root\n{}", lines(TLS, "### Debian package"))).success();
    ready(&debian);
    user.install_through_tls(&root, client, "127.0.0.1:8080");
}

#[test]
fn the_service_has_readiness_a_watchdog_and_a_sandbox() {
    let Some(debian) = with_package() else { return };
    debian.shell("cd /root && apt-get install -y ./packhouse_*.deb").success();
    ready(&debian);
    let show = |property: &str| {
        let words = ["systemctl", "show", "packhouse", "--value", "--property", property];
        debian.run(&words).success().text.trim().to_owned()
    };
    assert_eq!(
        ["Type", "ActiveState", "User", "NRestarts"].map(show),
        ["notify", "active", "packhouse", "0"]
    );
    assert_eq!(show("UnitFileState"), "enabled");
    let pid = show("MainPID");
    let status = debian.shell(&format!("cat /proc/{pid}/status")).success().text;
    for line in ["CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(status.contains(line), "{line}: {status}");
    }
    let output = debian.run(&["systemd-analyze", "security", "--threshold=20", "packhouse.service"]);
    assert!(output.success, "{}", output.text);

    // systemd restarts a server that stops answering the watchdog.
    debian.shell("mkdir -p /run/systemd/system/packhouse.service.d").success();
    let drop_in = debian.path("run/systemd/system/packhouse.service.d/watchdog.conf");
    std::fs::write(drop_in, "[Service]\nWatchdogSec=2\nRestartSec=0\n").unwrap();
    debian.shell("systemctl daemon-reload && systemctl restart packhouse").success();
    let pid = show("MainPID");
    debian.shell(&format!("kill -STOP {pid}")).success();
    eventually("the watchdog has restarted it", || {
        (show("NRestarts") != "0" && show("ActiveState") == "active").then_some(())
    });
    ready(&debian);
}

#[test]
fn files_have_the_right_owner_and_a_purge_keeps_the_packages() {
    let Some(debian) = with_package() else { return };
    debian.shell("cd /root && apt-get install -y ./packhouse_*.deb").success();
    ready(&debian);
    let stat = |path: &str| debian.run(&["stat", "-c", "%U:%G %a", path]).success().text.trim().to_owned();
    assert_eq!(stat("/var/lib/packhouse"), "packhouse:packhouse 700");
    assert_eq!(stat("/etc/packhouse/packhouse.toml"), "root:packhouse 640");
    assert_eq!(stat("/usr/lib/packhouse/packhouse"), "root:root 755");
    assert!(debian.run(&["packhouse", "plugins", "list"]).success().text.lines().count() >= 4);
    assert!(debian.path("usr/lib/packhouse/plugins/policies/provenance.wasm").is_file());
    assert!(debian.path("usr/share/doc/packhouse/docs/clients/python.md").is_file());

    // An operator's changes outlive a new version, which starts over the same data.
    let settings = debian.path("etc/packhouse/packhouse.toml");
    let mine = std::fs::read_to_string(&settings).unwrap() + "\n[limits]\nidle_ms = 50000\n";
    std::fs::write(&settings, &mine).unwrap();
    let database = std::fs::metadata(debian.path("var/lib/packhouse/packhouse.db")).unwrap().ino();
    debian.shell("cd /root && dpkg -i ./packhouse_*.deb").success();
    ready(&debian);
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), mine);

    debian.run(&["apt-get", "remove", "-y", "packhouse"]).success();
    debian.run(&["systemctl", "is-active", "packhouse"]).refused("inactive");
    assert!(settings.exists());
    let output = debian.run(&["apt-get", "purge", "-y", "packhouse"]).success().text;
    assert!(output.contains("the packages in /var/lib/packhouse are kept"), "{output}");
    assert!(!settings.exists());
    assert_eq!(std::fs::metadata(debian.path("var/lib/packhouse/packhouse.db")).unwrap().ino(), database);
    debian.shell("cd /root && apt-get install -y ./packhouse_*.deb").success();
    ready(&debian);
    let output = debian.shell("journalctl -u packhouse | grep -c 'The first owner is'").success().text;
    assert_eq!(output.trim(), "1", "the same database, with its owner");
}
