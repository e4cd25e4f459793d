//! What packages are made with, as far as it is quick: the same files make the same bytes, the service may do little, versions agree.
//! `just test-dist` makes and installs the packages themselves.

use packhouse_tests::clients::{has, run};
use packhouse_tests::digests::sha256;
use packhouse_tests::{Server, checkout, skip};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const UNIT: &str = "packaging/debian/packhouse.service";

/// A folder as packaging/gather leaves it, of small files that were made in this order.
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
    // The tag is read from a program's symbols: any program will do.
    fs::copy("/bin/true", stage.join("packhouse")).unwrap();
    fs::set_permissions(stage.join("packhouse"), fs::Permissions::from_mode(0o755)).unwrap();
    stage
}

/// Runs a line of bash in the checkout with `$1` as the stage and `$2` as an empty folder; answers the digest of all that is in it.
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
    run(command.current_dir(checkout()).env("SOURCE_DATE_EPOCH", epoch).env("TZ", "Asia/Tokyo")).well();
    let mut files: Vec<PathBuf> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "nothing was made");
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
        assert_ne!(first, later, "its times are SOURCE_DATE_EPOCH: {line}");
    }
}

/// Links a program of four functions with packaging/layout/cc, where two of them are listed; prints the names in the order in which they lie.
const LAID_OUT: &str = r#"
cp packaging/layout/{cc,names.py} "$1"
cd "$1"
export PYTHONDONTWRITEBYTECODE=1
for name in first second third fourth; do printf 'int %s(int x) { return x + %d; }\n' $name ${#name}$RANDOM; done >parts.c
echo 'int first(int), second(int), third(int), fourth(int); int main(void) { return first(second(third(fourth(1)))) == 0; }' >main.c
for part in parts main; do cc -O1 -fno-inline -ffunction-sections -c $part.c; done
python3 -c 'from names import key; print(key("third")); print(key("second"))' >functions
./cc -B"$2" -fuse-ld=lld parts.o main.o -o packhouse-1
./cc parts.o main.o -o other
[ "$(cat packhouse-layout)" = '2 2' ]
nm --numeric-sort packhouse-1 | sed -n 's/.* T \(first\|second\|third\|fourth\)$/\1/p'
"#;
/// A name says the same whatever numbers the compiler gives to crates, and not the same of another type.
const KEYS: &str = r#"
from names import key
one = key("_RINvNtCs1aB_4core3ptr13drop_in_placeNtNtCs1Cd_5bytes5bytes5BytesEB4_")
assert one == key("_RINvNtCslongEr_4core3ptr13drop_in_placeNtNtCs9_5bytes5bytes5BytesEB7_.llvm.77")
assert one != key("_RINvNtCs1aB_4core3ptr13drop_in_placeNtNtCs1Cd_5bytes5bytes8BytesMutEB4_")
"#;

#[test]
fn functions_that_run_lie_together() {
    let list = fs::read_to_string(checkout().join("packaging/layout/functions")).unwrap();
    let mut keys: Vec<&str> = list.lines().collect();
    assert!(
        keys.len() > 1000 && keys.iter().all(|key| key.len() == 8 && u32::from_str_radix(key, 16).is_ok())
    );
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), list.lines().count(), "each once");
    let layout = checkout().join("packaging/layout");
    run(Command::new("python3").args(["-B", "-c", KEYS]).current_dir(layout)).well();
    let toolchain = run(Command::new("rustc").args(["--print", "target-libdir"])).well().text;
    let lld = Path::new(toolchain.trim()).with_file_name("bin/gcc-ld");
    if !cfg!(target_arch = "x86_64") || !lld.is_dir() || !has("nm") {
        return skip("the layout of functions", "no nm, or no lld in Rust's toolchain");
    }
    let home = TempDir::new().unwrap();
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", LAID_OUT, "layout"]).arg(home.path()).arg(lld);
    let said = run(command.current_dir(checkout())).well().text;
    assert_eq!(said.split_whitespace().collect::<Vec<_>>(), ["third", "second", "first", "fourth"]);
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
    // The program is not ours here, but it is started as ours would be, beside its plugins.
    let wheel = wheel.display().to_string();
    home.run("", "pip", &["install", "--no-index", "--target", "there", &wheel], &[]).well();
    let program = home.folder().join("there/packhouse/bin/packhouse");
    assert_eq!(fs::metadata(&program).unwrap().permissions().mode() & 0o111, 0o111, "it may be executed");
    assert!(home.folder().join("there/packhouse/bin/plugins/a.wasm").is_file());
    let said = run(home
        .command("", "python")
        .args(["-m", "packhouse", "--version"])
        .env("PYTHONPATH", home.folder().join("there")));
    let same = run(Command::new(&program).arg("--version"));
    assert_eq!((said.success, said.text), (same.success, same.text), "Python became the program");
    let record = fs::read_to_string(home.folder().join("there/packhouse-1.2.3.dist-info/METADATA")).unwrap();
    assert!(record.contains("License-Expression: Apache-2.0"), "{record}");
}

#[test]
fn the_service_may_do_little() {
    if !has("systemd-analyze") {
        return skip("the systemd unit", "no systemd-analyze on the path");
    }
    // It is judged as a file: the program need not be installed.
    let mut command = Command::new("systemd-analyze");
    command.args(["security", "--offline=true", "--no-pager", "--threshold=20"]).arg(checkout().join(UNIT));
    let said = run(&mut command).well().text;
    let line =
        said.lines().find(|line| line.contains("Overall exposure level")).unwrap_or_else(|| panic!("{said}"));
    let level: f64 = line.split_once(": ").unwrap().1.split_whitespace().next().unwrap().parse().unwrap();
    assert!(level <= 2.0, "{line}");
    let open: Vec<&str> = said.lines().filter(|line| line.starts_with('✗')).collect();
    // What stays open is what the server is for, and what its compiled plugins need.
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
        run(command.args(["config", "show", "--config"]).arg(file).env_clear()).well().text
    };
    assert!(show(&file).contains("/var/lib/packhouse"));
    // What stands there as a comment is a setting too.
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
    for page in ["README.md", "docs/OPERATING.md"] {
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

/// The documentation as packages ship it.
fn documentation(home: &Path) -> PathBuf {
    let folder = home.join("shipped");
    run(Command::new("python3").arg("packaging/docs.py").arg(&folder).current_dir(checkout())).well();
    folder
}

/// The paths of all files below a folder, as they are written in it.
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
    assert!(links > 100, "{links} links: those between pages stay");
    for file in ["docs/formats/python.md", "docs/monitoring/alerts.yml", "deploy/proxies/nginx.conf"] {
        assert!(shipped.join(file).is_file(), "{file}");
    }
}

/// Whether a source of an asset of cargo-deb names this file.
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
    // cargo-deb fails for a source that names nothing.
    for source in sources {
        assert!(files.iter().any(|file| names(source, file)), "{source} names no file");
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
    let operating = "docs/OPERATING.md";
    assert_eq!(lines("README.md", "### With docker or podman"), lines(operating, "### A container"));
    assert!(lines(operating, "### Debian").starts_with(&lines("README.md", "### On Debian 12")));
    assert_eq!(lines("README.md", "### From the tarball"), lines(operating, "### A tarball"));
}

#[test]
fn a_health_check_says_how_the_server_is() {
    let mut server = Server::start();
    let check = |server: &Server, more: &[&str]| {
        let mut command = Command::new(packhouse_tests::server::program());
        command.args(["healthcheck", "--api-listen", &server.api().to_string()]).args(more);
        run(&mut command)
    };
    assert!(check(&server, &[]).well().text.contains("ready"));
    check(&server, &["--live"]).well();
    // A listener on all addresses is asked on loopback.
    let all = format!("0.0.0.0:{}", server.api().port());
    run(Command::new(packhouse_tests::server::program()).args(["healthcheck", "--api-listen", &all])).well();
    server.kill9();
    check(&server, &[]).refused("does not answer");
    // Something else that listens there, and says nothing of HTTP.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let stranger = std::thread::spawn(move || {
        use std::io::Write as _;
        for connection in listener.incoming().take(2) {
            let _ = connection.and_then(|mut connection| connection.write_all(b"220 mail ready\r\n"));
        }
    });
    run(Command::new(packhouse_tests::server::program()).args(["healthcheck", "--api-listen", &at]))
        .refused("does not answer");
    drop(std::net::TcpStream::connect(&at));
    drop(stranger);
}
