//! Compiled code runs only if no other account can have written it. The tests run every command on
//! a data folder of another account, and check the compiled code that packages ship.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use packhouse_tests::clients::ProgramOutput;
use packhouse_tests::server::program;
use packhouse_tests::{Server, skip};
use tempfile::TempDir;

/// An account that runs nothing on this machine.
const NOBODY: u32 = 65_534;
/// The warning of a command that does not cache compiled code.
const NOT_CACHED: &str = "cannot cache compiled plugins";

/// Every command of the program except `serve`, each with valid arguments, in an order in which the
/// commands succeed. Words in capitals stand for paths in the test's folder. `MISSING` is a path
/// without a file. No server answers at port 1.
const COMMANDS: [&str; 64] = [
    "healthcheck --api-listen 127.0.0.1:1",
    "doctor",
    "migrate --check",
    "config show",
    "plugins list",
    "plugins check PLUGIN",
    "plugins compile",
    "plugins install PLUGIN",
    "plugins publish PLUGIN oci://127.0.0.1:1/plugins/generic:1",
    "plugins lock",
    "plugins activate generic DIGEST",
    "plugins rollback generic",
    "plugins new acme --into FOLDER",
    "plugins build MISSING",
    "plugins test MISSING",
    "plugins dev MISSING --data DATA",
    "plugins replay RECORDING",
    "policies record --policy none",
    "policies recordings --policy none",
    "policies replay RECORDING",
    "repo create files --format generic",
    "repo create all --format generic --kind group --member files",
    "repo show files",
    "repo set files public=true",
    "repo members all",
    "repo list",
    "plugins pin files DIGEST",
    "plugins record --repository files",
    "plugins recordings --repository files",
    "member create new@example.com",
    "member set-password new@example.com",
    "member grant new@example.com --permission manage-members",
    "member list",
    "member remove-second-factor new@example.com",
    "token create --name t --member owner@example.com --repository files --expires-in 1",
    "token list",
    "token revoke 1",
    "token import --legacy MISSING",
    "token purge",
    "retention run",
    "advisories import FOLDER",
    "advisories list",
    "advisories show GHSA-0000-0000-0000",
    "advisories status",
    "scrub",
    "gc",
    "backup BACKUPS",
    "backup key",
    "backup list BACKUPS",
    "backup verify BACKUPS --unauthenticated",
    "backup prune BACKUPS --keep-last 1",
    "restore BACKUPS --unauthenticated",
    "import files --from export FOLDER --api-url http://127.0.0.1:1 --login-file LOGIN",
    "export files MISSING --api-url http://127.0.0.1:1 --login-file LOGIN",
    "repo delete all",
    "org move default --base-url http://packages.example.com",
    "org create other --base-url http://other.example.com",
    "org list",
    "org show --org other",
    "login http://127.0.0.1:1",
    "logout http://127.0.0.1:1",
    "apply --folder FOLDER --server http://127.0.0.1:1",
    "export-config --server http://127.0.0.1:1",
    "migrate",
];

/// A plugin folder with one plugin, and a data folder with its compiled code.
struct PluginFolders {
    home: TempDir,
    plugins: PathBuf,
    data: PathBuf,
}

impl PluginFolders {
    fn new() -> PluginFolders {
        let home = TempDir::new().unwrap();
        let (plugins, data) = (home.path().join("plugins"), home.path().join("data"));
        // The fixture has its own cache, because other tests share one.
        for new in [&plugins, &data.join("cache")] {
            fs::create_dir_all(new).unwrap();
        }
        let plugin = program().with_file_name("plugins").join("generic.wasm");
        fs::copy(plugin, plugins.join("generic.wasm")).unwrap();
        PluginFolders { home, plugins, data }
    }

    /// Runs a command. The environment names the data folder, because some commands have no flag
    /// for it.
    fn run(&self, words: &[&str]) -> ProgramOutput {
        let mut command = Command::new(program());
        command.args(words).env("PACKHOUSE_DATA", &self.data).env("PACKHOUSE_PLUGINS_DIR", &self.plugins);
        command.env("PACKHOUSE_LOG", "warn").env("PACKHOUSE_STAGING_KEEP_FREE_BYTES", "16 MiB");
        command.stdin(Stdio::null()).output().unwrap().into()
    }

    fn server(&self) -> Server {
        Server::with().data(&self.data).arg("--plugins").arg(self.plugins.to_str().unwrap()).start()
    }

    /// Returns the state that `plugins compile` prints for the plugin: `compiled` or `kept`.
    fn compiled(&self) -> String {
        let output = self.run(&["plugins", "compile"]).success().text;
        let line =
            output.lines().find(|line| line.starts_with("generic\t")).unwrap_or_else(|| panic!("{output}"));
        line.split('\t').nth(3).unwrap().to_owned()
    }

    /// The files with compiled code.
    fn code(&self) -> Vec<PathBuf> {
        code_in(&self.data.join("cache"))
    }
}

fn code_in(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|end| end == "cwasm")).collect()
}

/// Gives a folder and everything in it to this account.
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

/// An old modification time. Loading code from a file updates the file's time, so a test can tell
/// whether the code was loaded.
fn long_ago() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)
}

/// Returns the command and its subcommands, as in `plugins list`, from the program's help. The help
/// leaves out hidden commands. They have no data folder, because only the server and its packages
/// run them.
fn listed(command: &str) -> Vec<String> {
    let result = Command::new(program()).args(command.split_whitespace()).arg("--help").output().unwrap();
    let help = ProgramOutput::from(result).success().text;
    let usage = help.lines().find(|line| line.starts_with("Usage:")).unwrap_or_else(|| panic!("{help}"));
    let is_group = usage.ends_with("<COMMAND>");
    let section = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let rows = section.take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
    let names = rows.filter(|row| !row.starts_with(' ')).filter_map(|row| row.split(' ').next());
    let below = names.filter(|name| *name != "help");
    let own = (!is_group).then(|| command.to_owned());
    own.into_iter().chain(below.flat_map(|name| listed(format!("{command} {name}").trim_start()))).collect()
}

#[test]
fn the_table_of_commands_has_every_command_of_the_program() {
    let mut missing = listed("");
    let commands = missing.clone();
    for row in COMMANDS {
        // A command such as `backup` has subcommands, so the row runs the longest name that
        // matches.
        let of_row = commands.iter().filter(|command| format!("{row} ").starts_with(&format!("{command} ")));
        let command = of_row.max_by_key(|command| command.len());
        let command = command.unwrap_or_else(|| panic!("the program has no command {row:?}"));
        missing.retain(|other| other != command);
    }
    assert_eq!(missing, ["serve"], "these commands are not in COMMANDS");
}

#[test]
fn no_command_of_root_runs_code_that_another_account_compiled() {
    if !is_root("no_command_of_root_runs_code_that_another_account_compiled") {
        return;
    }
    let scene = PluginFolders::new();
    drop(scene.server());
    assert_eq!(scene.compiled(), "kept");
    let code = scene.code();
    assert!(!code.is_empty(), "the server cached nothing");
    give(&scene.data, NOBODY);
    let untouched = |what: &str| {
        for file in &code {
            let found = fs::metadata(file).unwrap();
            assert_eq!(found.modified().unwrap(), long_ago(), "{what} used {}", file.display());
            assert_eq!(found.uid(), NOBODY, "{what} wrote {}", file.display());
        }
        assert_eq!(scene.code().len(), code.len(), "{what} cached more");
    };
    for file in &code {
        File::options().write(true).open(file).unwrap().set_modified(long_ago()).unwrap();
    }
    let recording = scene.home.path().join("recording.json");
    fs::write(&recording, "{}").unwrap();
    let login = scene.home.path().join("login");
    fs::write(&login, "owner@example.com:a password").unwrap();
    let files = scene.home.path().join("files");
    fs::create_dir(&files).unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let filled = |word: &str| match word {
        "PLUGIN" => path(&scene.plugins.join("generic.wasm")),
        "RECORDING" => path(&recording),
        "DIGEST" => format!("sha256:{}", "0".repeat(64)),
        "BACKUPS" => path(&scene.home.path().join("backups")),
        "DATA" => path(&scene.data),
        "FOLDER" => path(&files),
        "MISSING" => path(&scene.home.path().join("missing")),
        "LOGIN" => path(&login),
        word => word.to_owned(),
    };
    for row in COMMANDS {
        let words: Vec<String> = row.split(' ').map(filled).collect();
        let output = scene.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        untouched(row);
        assert!(!output.text.contains("panicked"), "{row}: {}", output.text);
        assert!(!output.text.contains("try '--help'"), "{row} is not run: {}", output.text);
    }
    assert!(scene.run(&["retention", "run"]).success().text.contains(NOT_CACHED));
    assert_eq!(scene.compiled(), "compiled");
    let server = scene.server();
    untouched("serve");
    assert!(server.log().contains(NOT_CACHED), "{}", server.log());
    drop(server);
    give(&scene.data, 0);
    assert_eq!(scene.compiled(), "kept", "the folder belongs to this account again");
}

#[test]
fn code_that_other_accounts_can_write_is_compiled_again() {
    let scene = PluginFolders::new();
    assert_eq!(scene.compiled(), "compiled");
    assert_eq!(scene.compiled(), "kept");
    for bits in [0o620, 0o602] {
        scene.code().iter().for_each(|file| mode(file, bits));
        assert_eq!(scene.compiled(), "compiled");
        assert_eq!(scene.compiled(), "kept", "the new code belongs to this account alone");
    }
    let cache = scene.data.join("cache");
    mode(&cache, 0o770);
    assert_eq!(scene.compiled(), "compiled", "code that others could have written is discarded");
    assert_eq!(fs::metadata(&cache).unwrap().mode() & 0o777, 0o700);
    assert_eq!(scene.compiled(), "kept");
}

#[test]
fn a_package_ships_compiled_plugins() {
    let scene = PluginFolders::new();
    let into = scene.home.path().join("compiled");
    let precompile = || {
        let mut command = Command::new(program());
        command.args(["plugins", "precompile", "--into"]).arg(&into).arg("--plugins").arg(&scene.plugins);
        ProgramOutput::from(command.stdin(Stdio::null()).output().unwrap()).success().text
    };
    assert!(precompile().contains("\tcompiled"));
    let code = code_in(&into);
    assert_eq!(code.len(), 1);
    assert_eq!(fs::metadata(&into).unwrap().mode() & 0o777, 0o755);
    assert_eq!(fs::metadata(&code[0]).unwrap().mode() & 0o777, 0o644);
    fs::write(into.join("of-another-version.cwasm"), "x").unwrap();
    assert!(precompile().contains("\tkept"));
    assert_eq!(code_in(&into), code, "outdated code is removed");

    let server = scene.server();
    assert!(!server.log().contains("compiling"), "{}", server.log());
    drop(server);
    assert!(scene.code().is_empty(), "nothing had to be compiled");
    assert_eq!(scene.compiled(), "kept");
    // An account that can write to this folder could run its own code in the server.
    mode(&into, 0o777);
    assert_eq!(scene.compiled(), "compiled");
    mode(&into, 0o755);
    fs::remove_dir_all(scene.data.join("cache")).unwrap();
    assert_eq!(scene.compiled(), "kept");
    mode(&code[0], 0o664);
    assert_eq!(scene.compiled(), "compiled");
    mode(&code[0], 0o644);
    if is_root("a_package_ships_compiled_plugins") {
        fs::remove_dir_all(scene.data.join("cache")).unwrap();
        give(&into, NOBODY);
        assert_eq!(scene.compiled(), "compiled");
    }
}
