//! Compiled code is run only where no other account can have written it: every command over a data folder of another account, and
//! the code that packages bring.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use packhouse_tests::clients::Said;
use packhouse_tests::server::program;
use packhouse_tests::{Server, skip};
use tempfile::TempDir;

/// The account of whoever runs nothing here.
const NOBODY: u32 = 65_534;
/// What a command says that keeps no compiled code.
const NOT_KEPT: &str = "compiled plugins are not kept";

/// A plugin folder with one plugin, and a data folder with its compiled code.
struct Scene {
    home: TempDir,
    plugins: PathBuf,
    data: PathBuf,
}

impl Scene {
    fn new() -> Scene {
        let home = TempDir::new().unwrap();
        let (plugins, data) = (home.path().join("plugins"), home.path().join("data"));
        // A cache of its own: other tests share theirs.
        for new in [&plugins, &data.join("cache")] {
            fs::create_dir_all(new).unwrap();
        }
        let plugin = program().with_file_name("plugins").join("generic.wasm");
        fs::copy(plugin, plugins.join("generic.wasm")).unwrap();
        Scene { home, plugins, data }
    }

    fn run(&self, words: &[&str]) -> Said {
        let mut command = Command::new(program());
        command.args(words).arg("--data").arg(&self.data).env("PACKHOUSE_PLUGINS_DIR", &self.plugins);
        command.env("PACKHOUSE_LOG", "warn").env("PACKHOUSE_STAGING_KEEP_FREE_BYTES", "16 MiB");
        command.stdin(Stdio::null()).output().unwrap().into()
    }

    fn server(&self) -> Server {
        Server::with().data(&self.data).arg("--plugins").arg(self.plugins.to_str().unwrap()).start()
    }

    /// `compiled` or `kept`, as `plugins compile` says it of the plugin.
    fn compiled(&self) -> String {
        let said = self.run(&["plugins", "compile"]).well().text;
        let line =
            said.lines().find(|line| line.starts_with("generic\t")).unwrap_or_else(|| panic!("{said}"));
        line.split('\t').nth(3).unwrap().to_owned()
    }

    /// The files of compiled code.
    fn code(&self) -> Vec<PathBuf> {
        code_in(&self.data.join("cache"))
    }
}

fn code_in(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|end| end == "cwasm")).collect()
}

/// Gives a folder with all that is in it to this account.
fn give(path: &Path, account: u32) {
    lchown(path, Some(account), Some(account)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path(), account);
        }
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn is_root(test: &str) -> bool {
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !root {
        skip(test, "only root can give files to another account");
    }
    root
}

/// Whoever loads code from a file marks it as used: that is seen here.
fn long_ago() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)
}

#[test]
fn no_command_of_root_runs_what_another_account_compiled() {
    if !is_root("no_command_of_root_runs_what_another_account_compiled") {
        return;
    }
    let scene = Scene::new();
    drop(scene.server());
    assert_eq!(scene.compiled(), "kept");
    let code = scene.code();
    assert!(!code.is_empty(), "the server kept nothing");
    give(&scene.data, NOBODY);
    let untouched = |what: &str| {
        for file in &code {
            let found = fs::metadata(file).unwrap();
            assert_eq!(found.modified().unwrap(), long_ago(), "{what} used {}", file.display());
            assert_eq!(found.uid(), NOBODY, "{what} wrote {}", file.display());
        }
        assert_eq!(scene.code().len(), code.len(), "{what} kept more");
    };
    for file in &code {
        File::options().write(true).open(file).unwrap().set_modified(long_ago()).unwrap();
    }
    let plugin = scene.plugins.join("generic.wasm");
    let (plugin, place) = (plugin.to_str().unwrap(), scene.home.path().join("backups"));
    let recording = scene.home.path().join("recording.json");
    fs::write(&recording, "{}").unwrap();
    let recording = recording.to_str().unwrap();
    let none = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
    for words in [
        &["plugins", "list"][..],
        &["plugins", "compile"],
        &["plugins", "install", plugin],
        &["plugins", "lock"],
        &["plugins", "activate", "generic", none],
        &["plugins", "rollback", "generic"],
        &["plugins", "shadow", "generic", none],
        &["plugins", "canary", "generic", none],
        &["plugins", "trial", "generic"],
        &["plugins", "replay", recording],
        &["policies", "replay", recording],
        &["repo", "create", "files", "--format", "generic"],
        &["repo", "show", "files"],
        &["repo", "set", "files", "public=true"],
        &["repo", "list"],
        &["plugins", "pin", "files", none],
        &["member", "list"],
        &["org", "list"],
        &[
            "token",
            "create",
            "--name",
            "t",
            "--member",
            "owner@example.com",
            "--repository",
            "files",
            "--scope",
            "read",
            "--format",
            "generic",
            "--expires-in",
            "1",
        ],
        &["retention", "run"],
        &["advisories", "status"],
        &["doctor"],
        &["migrate", "--check"],
        &["config", "show"],
        &["scrub"],
        &["gc"],
        &["backup", place.to_str().unwrap()],
    ] {
        let said = scene.run(words);
        untouched(&words.join(" "));
        assert!(!said.text.contains("panicked"), "{words:?}: {}", said.text);
    }
    assert!(scene.run(&["retention", "run"]).well().text.contains(NOT_KEPT));
    assert_eq!(scene.compiled(), "compiled");
    let server = scene.server();
    untouched("serve");
    assert!(server.log().contains(NOT_KEPT), "{}", server.log());
    drop(server);
    give(&scene.data, 0);
    assert_eq!(scene.compiled(), "kept", "it is this account's own again");
}

#[test]
fn code_that_other_accounts_can_write_is_compiled_again() {
    let scene = Scene::new();
    assert_eq!(scene.compiled(), "compiled");
    assert_eq!(scene.compiled(), "kept");
    for bits in [0o620, 0o602] {
        scene.code().iter().for_each(|file| mode(file, bits));
        assert_eq!(scene.compiled(), "compiled");
        assert_eq!(scene.compiled(), "kept", "what was written in its place is this account's alone");
    }
    let cache = scene.data.join("cache");
    mode(&cache, 0o770);
    assert_eq!(scene.compiled(), "compiled", "what others could put there is thrown away");
    assert_eq!(fs::metadata(&cache).unwrap().mode() & 0o777, 0o700);
    assert_eq!(scene.compiled(), "kept");
}

#[test]
fn a_package_brings_its_plugins_compiled() {
    let scene = Scene::new();
    let into = scene.home.path().join("compiled");
    let precompile = || {
        let mut command = Command::new(program());
        command.args(["plugins", "precompile", "--into"]).arg(&into).arg("--plugins").arg(&scene.plugins);
        Said::from(command.stdin(Stdio::null()).output().unwrap()).well().text
    };
    assert!(precompile().contains("\tcompiled"));
    let code = code_in(&into);
    assert_eq!(code.len(), 1);
    assert_eq!(fs::metadata(&into).unwrap().mode() & 0o777, 0o755);
    assert_eq!(fs::metadata(&code[0]).unwrap().mode() & 0o777, 0o644);
    fs::write(into.join("of-another-version.cwasm"), "x").unwrap();
    assert!(precompile().contains("\tkept"));
    assert_eq!(code_in(&into), code, "what is of no use any more is gone");

    let server = scene.server();
    assert!(!server.log().contains("compiling"), "{}", server.log());
    drop(server);
    assert!(scene.code().is_empty(), "nothing had to be compiled");
    assert_eq!(scene.compiled(), "kept");
    // Whoever can write there could run code in the server.
    mode(&into, 0o777);
    assert_eq!(scene.compiled(), "compiled");
    mode(&into, 0o755);
    fs::remove_dir_all(scene.data.join("cache")).unwrap();
    assert_eq!(scene.compiled(), "kept");
    mode(&code[0], 0o664);
    assert_eq!(scene.compiled(), "compiled");
    mode(&code[0], 0o644);
    if is_root("a_package_brings_its_plugins_compiled") {
        fs::remove_dir_all(scene.data.join("cache")).unwrap();
        give(&into, NOBODY);
        assert_eq!(scene.compiled(), "compiled");
    }
}
