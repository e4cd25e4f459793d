//! Quick checks of the files that make packages: equal input makes equal bytes, the systemd service
//! has few rights, and versions agree. `just test-dist` makes and installs the packages themselves.

use packhouse_tests::clients::{has, run};
use packhouse_tests::digests::sha256;
use packhouse_tests::{Server, checkout, skip};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const UNIT: &str = "packaging/debian/packhouse.service";

/// Creates a folder of small files in this order, laid out as `packaging/gather` leaves it.
fn stage(home: &Path, order: &[usize]) -> PathBuf {
    let stage = home.join("stage");
    for folder in ["plugins", "sbom", "docs"] {
        fs::create_dir_all(stage.join(folder)).unwrap();
    }
    let files = [
        "LICENSE",
        "THIRD-PARTY-LICENSES",
        "plugins/a.wasm",
        "plugins/b.wasm",
        "sbom/packhouse.cdx.json",
        "docs/X.md",
    ];
    for at in order {
        fs::write(stage.join(files[*at]), files[*at]).unwrap();
    }
    // The build of the wheel reads the platform tag from the program's symbols. Any program will
    // do.
    fs::copy("/bin/true", stage.join("packhouse")).unwrap();
    fs::set_permissions(stage.join("packhouse"), fs::Permissions::from_mode(0o755)).unwrap();
    stage
}

/// Runs a line of bash in the checkout with `$1` as the stage and `$2` as an empty folder. Returns
/// the digests of all files in `$2`, and the temporary folder around it.
fn packed(line: &str, order: &[usize], umask: &str, epoch: &str) -> (String, TempDir) {
    let home = TempDir::new().unwrap();
    let stage = stage(home.path(), order);
    let out = home.path().join("out");
    fs::create_dir(&out).unwrap();
    let mut command = Command::new("bash");
    command
        .args(["-euo", "pipefail", "-c", &format!("umask {umask}; {line}"), "packed"])
        .arg(stage)
        .arg(&out);
    run(command.current_dir(checkout()).env("SOURCE_DATE_EPOCH", epoch).env("TZ", "Asia/Tokyo")).success();
    let mut files: Vec<PathBuf> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "the command made no file");
    let sums: Vec<String> = files.iter().map(|file| sha256(&fs::read(file).unwrap())).collect();
    (sums.join(" "), home)
}

#[test]
fn the_same_files_make_the_same_packages() {
    let tarball = r#"packaging/tarball "$1" "$2/packhouse.tar.gz""#;
    let chart = r#"packaging/tarball deploy/helm/packhouse "$2/chart.tgz""#;
    let wheel = r#"python3 packaging/wheel/build.py "$1" 1.2.3 "$2""#;
    for line in [tarball, chart, wheel] {
        if line == wheel && !has("objdump") {
            skip("the wheel's bytes", "no objdump on the path");
            continue;
        }
        let (first, _) = packed(line, &[0, 1, 2, 3, 4, 5], "022", "1700000000");
        let (again, _) = packed(line, &[5, 3, 1, 4, 2, 0], "077", "1700000000");
        assert_eq!(first, again, "{line}");
        let (later, _) = packed(line, &[0, 1, 2, 3, 4, 5], "022", "1700000002");
        assert_ne!(first, later, "the package contains SOURCE_DATE_EPOCH as its time: {line}");
    }
}

#[test]
fn a_wheel_is_what_pip_takes() {
    let Ok(home) = packhouse_tests::python::Home::with("pip") else {
        return skip("a wheel in pip", "no pip in .tools/python-clients; `./bootstrap test` installs it");
    };
    let (_, made) = packed(
        r#"python3 packaging/wheel/build.py "$1" 1.2.3 "$2""#,
        &[0, 1, 2, 3, 4, 5],
        "022",
        "1700000000",
    );
    let wheel = fs::read_dir(made.path().join("out")).unwrap().next().unwrap().unwrap().path();
    // The wheel contains `/bin/true` in place of the real program. Python starts it in the same
    // way, from the folder with the plugins.
    let wheel = wheel.display().to_string();
    home.run("", "pip", &["install", "--no-index", "--target", "there", &wheel], &[]).success();
    let program = home.folder().join("there/packhouse/bin/packhouse");
    assert_eq!(
        fs::metadata(&program).unwrap().permissions().mode() & 0o111,
        0o111,
        "the program is executable"
    );
    assert!(home.folder().join("there/packhouse/bin/plugins/a.wasm").is_file());
    let said = run(home
        .command("", "python")
        .args(["-m", "packhouse", "--version"])
        .env("PYTHONPATH", home.folder().join("there")));
    let same = run(Command::new(&program).arg("--version"));
    assert_eq!((said.success, said.text), (same.success, same.text), "Python runs the program");
    let record = fs::read_to_string(home.folder().join("there/packhouse-1.2.3.dist-info/METADATA")).unwrap();
    assert!(record.contains("License-Expression: Apache-2.0"), "{record}");
}

#[test]
fn the_service_may_do_little() {
    if !has("systemd-analyze") {
        return skip("the systemd unit", "no systemd-analyze on the path");
    }
    // `systemd-analyze` reads the unit as a file, so the program need not be installed.
    let mut command = Command::new("systemd-analyze");
    command.args(["security", "--offline=true", "--no-pager", "--threshold=20"]).arg(checkout().join(UNIT));
    let said = run(&mut command).success().text;
    let line =
        said.lines().find(|line| line.contains("Overall exposure level")).unwrap_or_else(|| panic!("{said}"));
    let level: f64 = line.split_once(": ").unwrap().1.split_whitespace().next().unwrap().parse().unwrap();
    assert!(level <= 2.0, "{line}");
    let open: Vec<&str> = said.lines().filter(|line| line.starts_with('✗')).collect();
    // The service keeps only the rights that the server and its compiled plugins need.
    for line in open {
        let known = [
            "SystemCallFilter=~@resources",
            "RootDirectory=",
            "MemoryDenyWriteExecute=",
            "RestrictAddressFamilies=",
            "PrivateNetwork=",
            "DeviceAllow=",
            "IPAddressDeny=",
        ];
        assert!(known.iter().any(|name| line.contains(name)), "{line}");
    }
}

#[test]
fn the_unit_gives_a_stop_the_time_that_it_takes() {
    let unit = fs::read_to_string(checkout().join(UNIT)).unwrap();
    let value = |name: &str| {
        unit.lines().find_map(|line| line.strip_prefix(&format!("{name}="))).unwrap_or_default().to_owned()
    };
    assert_eq!(
        ["Type", "NotifyAccess", "Restart", "User"].map(value),
        ["notify", "main", "on-failure", "packhouse"]
    );
    assert!(value("WatchdogSec").parse::<u32>().unwrap() >= 10);
    let example = fs::read_to_string(checkout().join("packhouse.example.toml")).unwrap();
    let default = |name: &str| -> u64 {
        let line = example.lines().find_map(|line| line.strip_prefix(&format!("#{name} = ")));
        line.unwrap().parse().unwrap()
    };
    let needed = (default("drain_ms") + default("shutdown_ms")) / 1000;
    assert!(value("TimeoutStopSec").parse::<u64>().unwrap() > needed, "{needed} s");
}

#[test]
fn the_settings_of_the_debian_package_are_settings() {
    let file = checkout().join("packaging/debian/packhouse.toml");
    let show = |file: &Path| {
        let mut command = Command::new(packhouse_tests::server::program());
        run(command.args(["config", "show", "--config"]).arg(file).env_clear()).success().text
    };
    assert!(show(&file).contains("/var/lib/packhouse"));
    // Settings in comments of the file must be valid settings too.
    let home = TempDir::new().unwrap();
    let text = fs::read_to_string(&file)
        .unwrap()
        .replace("\n#", "\n")
        .replace("password = \"\"", "password = \"long enough\"");
    let text: String = text
        .lines()
        .filter(|line| line.contains(" = ") || line.starts_with('['))
        .map(|line| format!("{line}\n"))
        .collect();
    let all = home.path().join("all.toml");
    fs::write(&all, &text).unwrap();
    assert!(show(&all).contains("https://packages.example.com"), "{text}");
}

/// The guide with the commands for each package.
const INSTALL: &str = "docs/guides/install.md";

#[test]
fn every_place_that_names_the_version_names_the_same() {
    let read = |path: &str| {
        fs::read_to_string(checkout().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let manifest = read("Cargo.toml");
    let version = manifest
        .lines()
        .find_map(|line| line.strip_prefix("version = \""))
        .unwrap()
        .trim_end_matches('"')
        .to_owned();
    assert!(read("packaging/debian/changelog").starts_with(&format!("packhouse ({version}-1) ")));
    let chart = read("deploy/helm/packhouse/Chart.yaml");
    assert!(
        chart.contains(&format!("\nversion: {version}\n"))
            && chart.contains(&format!("\nappVersion: {version}\n"))
    );
    for page in ["README.md", INSTALL, "docs/guides/tls.md"] {
        let text = read(page);
        for begin in ["packhouse_", "packhouse:", "packhouse-chart-"] {
            for (at, _) in text.match_indices(begin) {
                let rest = &text[at + begin.len()..];
                if rest.starts_with(|first: char| first.is_ascii_digit()) {
                    assert!(rest.starts_with(&version), "{page}: {begin}{}", &rest[..20.min(rest.len())]);
                }
            }
        }
    }
}

/// Builds the documentation as packages ship it. Returns its folder.
fn documentation(home: &Path) -> PathBuf {
    let folder = home.join("shipped");
    run(Command::new("python3").arg("packaging/docs.py").arg(&folder).current_dir(checkout())).success();
    folder
}

/// Returns the paths of all files below a folder, relative to the folder.
fn files_below(folder: &Path) -> Vec<String> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path.strip_prefix(folder).unwrap().display().to_string());
            }
        }
    }
    files
}

#[test]
fn every_link_of_a_shipped_page_leads_to_a_shipped_file() {
    let home = TempDir::new().unwrap();
    let shipped = documentation(home.path());
    let mut links = 0;
    for page in files_below(&shipped).iter().filter(|file| file.ends_with(".md")) {
        let (file, text) = (shipped.join(page), fs::read_to_string(shipped.join(page)).unwrap());
        for link in text.split("](").skip(1).map(|rest| rest.split([')', '#']).next().unwrap()) {
            if link.is_empty() || link.contains([':', ' ']) {
                continue;
            }
            links += 1;
            assert!(file.parent().unwrap().join(link).exists(), "{page} links to {link}");
        }
    }
    assert!(links > 100, "{links} links between pages are too few");
    for file in ["docs/clients/python.md", "docs/monitoring/alerts.yml", "deploy/proxies/nginx.conf"] {
        assert!(shipped.join(file).is_file(), "{file}");
    }
}

/// Returns `true` if the source of an asset of cargo-deb matches this file.
fn names(source: &str, file: &str) -> bool {
    if let Some(folder) = source.strip_suffix("**/*") {
        return file.starts_with(folder);
    }
    match source.split_once('*') {
        None => source == file,
        Some((before, after)) => file
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after))
            .is_some_and(|name| !name.contains('/')),
    }
}

#[test]
fn the_debian_package_has_every_file_of_the_tarball() {
    let home = TempDir::new().unwrap();
    let stage = documentation(home.path());
    let built = [
        "packhouse",
        "THIRD-PARTY-LICENSES",
        "plugins/a.wasm",
        "plugins/policies/b.wasm",
        "compiled/a.cwasm",
        "sbom/packhouse.cdx.json",
    ];
    for file in built.map(|file| stage.join(file)) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }
    let manifest = fs::read_to_string(checkout().join("host/server/Cargo.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&manifest).unwrap();
    let assets = manifest["package"]["metadata"]["deb"]["assets"].as_array().unwrap();
    let sources: Vec<&str> = assets
        .iter()
        .filter_map(|asset| asset[0].as_str().unwrap().strip_prefix("../../target/packages/stage/"))
        .collect();
    let files = files_below(&stage);
    for file in &files {
        assert!(sources.iter().any(|source| names(source, file)), "{file} is not in the Debian package");
    }
    // cargo-deb fails if a source matches no file.
    for source in sources {
        assert!(files.iter().any(|file| names(source, file)), "{source} matches no file");
    }
    let unit = fs::read_to_string(checkout().join(UNIT)).unwrap();
    let (_, page) = unit.split_once("Documentation=file:///usr/share/doc/packhouse/").unwrap();
    assert!(stage.join(page.lines().next().unwrap()).is_file(), "{page}");
}

/// The first fenced block of `bash` below a heading of a page.
fn lines(page: &str, heading: &str) -> String {
    let text = fs::read_to_string(checkout().join(page)).unwrap();
    let (_, below) =
        text.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{page}: no {heading}"));
    below.split_once("```bash\n").unwrap().1.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_readmes_lines_are_those_that_are_tested() {
    assert_eq!(lines("README.md", "### With docker or podman"), lines(INSTALL, "## Container image"));
    assert!(lines(INSTALL, "## Debian package").starts_with(&lines("README.md", "### On Debian 12")));
    assert_eq!(lines("README.md", "### From the tarball"), lines(INSTALL, "## Tarball"));
    assert_eq!(lines("README.md", "## The first package"), lines(INSTALL, "## Create the first repository"));
}

#[test]
fn a_health_check_says_how_the_server_is() {
    let mut server = Server::start();
    let check = |server: &Server, more: &[&str]| {
        let mut command = Command::new(packhouse_tests::server::program());
        command.args(["healthcheck", "--api-listen", &server.api().to_string()]).args(more);
        run(&mut command)
    };
    assert!(check(&server, &[]).success().text.contains("ready"));
    check(&server, &["--live"]).success();
    // The command connects to loopback if the server listens on all addresses.
    let all = format!("0.0.0.0:{}", server.api().port());
    run(Command::new(packhouse_tests::server::program()).args(["healthcheck", "--api-listen", &all]))
        .success();
    server.kill9();
    check(&server, &[]).refused("did not answer");
    // Another program that does not speak HTTP listens at the address.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let stranger = std::thread::spawn(move || {
        use std::io::Write as _;
        for connection in listener.incoming().take(2) {
            let _ = connection.and_then(|mut connection| connection.write_all(b"220 mail ready\r\n"));
        }
    });
    run(Command::new(packhouse_tests::server::program()).args(["healthcheck", "--api-listen", &at]))
        .refused("did not answer");
    drop(std::net::TcpStream::connect(&at));
    drop(stranger);
}
