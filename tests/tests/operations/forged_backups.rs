//! Forged backups. Both `verify` and `restore` refuse a key of another kind, a changed manifest, a
//! missing proof, and the signature of another server.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use packhouse_tests::cli::{packhouse, packhouse_with};
use packhouse_tests::clients::ProgramOutput;
use packhouse_tests::digests::sha256;
use packhouse_tests::server::{OWNER, PASSWORD, program};
use packhouse_tests::{Api, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

/// An age identity and its recipient, made for this test only.
const IDENTITY: &str = "AGE-SECRET-KEY-1RFMGGUF0EWSW460TP483D2564T0MQMR463PK9QZNK22D4VP9T6GSZDNQZ5";
const RECIPIENT: &str = "age1y4506l9l3sdaruew28s4wrcxf82ck0mq2jlg3t2cwe3amf434q5q2y2jr5";

/// A stopped server, and key files.
struct BackupFixture {
    home: TempDir,
    data: PathBuf,
}

impl BackupFixture {
    fn new() -> BackupFixture {
        let home = TempDir::new().unwrap();
        let data = home.path().join("data");
        drop(Server::with().data(&data).start());
        BackupFixture { home, data }
    }

    fn at(&self, name: &str) -> String {
        self.home.path().join(name).to_str().unwrap().to_owned()
    }

    fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.at(name), text).unwrap();
        self.at(name)
    }

    fn run(&self, words: &[&str]) -> ProgramOutput {
        packhouse(&self.data, words, "")
    }

    /// The public key of this server.
    fn key(&self) -> String {
        self.run(&["backup", "key"]).success().text.trim().to_owned()
    }

    /// Fails unless both `verify` and `restore` refuse the backup.
    #[track_caller]
    fn is_refused(&self, words: &[&str], why: &str) {
        verify(words).refused(why);
        let (output, data) = self.restore(words);
        output.refused(why);
        assert!(!data.join("packhouse.db").exists(), "a database was written");
    }

    /// Fails unless both `verify` and `restore` accept the backup.
    #[track_caller]
    fn is_taken(&self, words: &[&str]) {
        verify(words).success();
        let (output, data) = self.restore(words);
        output.success();
        let server = Server::with().data(&data).start();
        Api::sign_in_as(&server, OWNER, PASSWORD);
    }

    fn restore(&self, words: &[&str]) -> (ProgramOutput, PathBuf) {
        let data = TempDir::new_in(self.home.path()).unwrap().keep();
        (packhouse(&data, &[&["restore"], words].concat(), ""), data)
    }
}

fn verify(words: &[&str]) -> ProgramOutput {
    let mut command = Command::new(program());
    command.args(["backup", "verify"]).args(words).env("PACKHOUSE_LOG", "error");
    command.stdin(Stdio::null()).output().unwrap().into()
}

/// The folder of the only backup at a location.
fn backup(place: &str) -> PathBuf {
    let backups = std::fs::read_dir(Path::new(place).join("backups")).unwrap();
    let [only] = backups.map(|entry| entry.unwrap().path()).collect::<Vec<_>>().try_into().unwrap();
    only
}

/// Changes the manifest and its digest, as an attacker with write access can.
fn forge_manifest(place: &str) {
    let file = backup(place).join("manifest.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut manifest: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    manifest["took_ms"] = json!(1_234_567);
    let json = manifest.to_string();
    std::fs::write(&file, format!("{json}\n{}\n", sha256(json.as_bytes()))).unwrap();
}

/// Removes the proof. Earlier versions of the program wrote backups without one.
fn remove_proof(place: &str) {
    std::fs::remove_file(backup(place).join("proof.json")).unwrap();
}

#[test]
fn a_location_with_another_kind_of_key_is_refused() {
    let scene = BackupFixture::new();
    let phrase = scene.file("phrase", "correct horse battery");
    let identity = scene.file("identity", IDENTITY);
    let recipients = scene.file("recipients", RECIPIENT);
    let (plain, sealed, shared) = (scene.at("plain"), scene.at("sealed"), scene.at("shared"));
    scene.run(&["backup", &plain]).success();
    scene.run(&["backup", &sealed, "--passphrase-file", &phrase]).success();
    scene.run(&["backup", &shared, "--recipients-file", &recipients]).success();
    for more in [&[][..], &["--unauthenticated"]] {
        let with = |words: &[&str]| scene.is_refused(&[words, more].concat(), "a key of another kind");
        with(&[&plain, "--passphrase-file", &phrase]);
        with(&[&plain, "--identity-file", &identity]);
        with(&[&shared, "--passphrase-file", &phrase]);
        with(&[&sealed, "--identity-file", &identity]);
    }
    scene.is_taken(&[&plain]);
    scene.is_taken(&[&sealed, "--passphrase-file", &phrase]);
}

#[test]
fn a_backup_that_the_passphrase_did_not_make_is_refused() {
    let scene = BackupFixture::new();
    let phrase = scene.file("phrase", "correct horse battery");
    let place = scene.at("place");
    scene.run(&["backup", &place, "--passphrase-file", &phrase]).success();
    let words = [place.as_str(), "--passphrase-file", &phrase];
    scene.is_taken(&words);
    forge_manifest(&place);
    scene.is_refused(&words, "was not made with this passphrase, or was changed afterwards");
    remove_proof(&place);
    scene.is_refused(&words, "nothing shows that the backup was made with this passphrase");
    scene.is_taken(&[&words[..], &["--unauthenticated"]].concat());
}

#[test]
fn a_backup_for_recipients_needs_the_signature_of_the_server() {
    let (scene, other) = (BackupFixture::new(), BackupFixture::new());
    let identity = scene.file("identity", IDENTITY);
    let recipients = scene.file("recipients", RECIPIENT);
    let place = scene.at("place");
    let output = scene.run(&["backup", &place, "--recipients-file", &recipients]).success().text;
    let key = scene.key();
    assert!(output.contains(&format!("signed by {key}")), "{output}");
    let words = [place.as_str(), "--identity-file", &identity];
    let signed_by = |key: &str| [&words[..], &["--signed-by", key]].concat().join("\n");
    let with = |key: &str| signed_by(key).split('\n').map(str::to_owned).collect::<Vec<_>>();
    let refused = |key: &str, why: &str| {
        let words = with(key);
        scene.is_refused(&words.iter().map(String::as_str).collect::<Vec<_>>(), why);
    };
    scene.is_refused(&words, "--signed-by");
    refused(&other.key(), "signed by another server");
    refused("nonsense", "is not a public key of backups");
    let own = with(&key);
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    scene.is_taken(&own);
    scene.is_taken(&[&words[..], &["--unauthenticated"]].concat());
    scene.is_refused(&[&own[..], &["--unauthenticated"]].concat(), "--unauthenticated");
    forge_manifest(&place);
    refused(&key, "was changed after");
    remove_proof(&place);
    refused(&key, "is not signed");
}

#[test]
fn the_signature_covers_the_key_of_sealed_secrets() {
    let scene = BackupFixture::new();
    let place = scene.at("place");
    scene.run(&["backup", &place]).success();
    let key = scene.key();
    let words = [place.as_str(), "--signed-by", &key];
    scene.is_taken(&words);
    std::fs::write(backup(&place).join("sealing.key"), "another server's key").unwrap();
    scene.is_refused(&words, "sealing.key is not what was written");
}

#[test]
fn the_public_key_is_derived_from_the_setting_too() {
    let scene = BackupFixture::new();
    let setting = |text: &str| [("PACKHOUSE_SEALING_KEY", text.to_owned())];
    let key = |text: &str| packhouse_with(&scene.data, &["backup", "key"], &setting(text)).success().text;
    assert_eq!(key("a long sealing key of ours"), key("a long sealing key of ours"));
    assert_ne!(key("a long sealing key of ours"), key("a long sealing key of others"));
    let empty = TempDir::new().unwrap();
    packhouse(empty.path(), &["backup", "key"], "").refused("the server has no key yet");
    assert!(!empty.path().join("sealing.key").exists());
}

#[test]
fn a_backup_folder_with_other_files_is_not_changed() {
    let scene = BackupFixture::new();
    let place = scene.at("place");
    scene.run(&["backup", &place]).success();
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("letters.txt"), "mine").unwrap();
    let mode = || std::fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    packhouse(folder.path(), &["restore", &place], "").refused("--beside-other-files");
    assert_eq!(mode(), 0o755);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "something was written");
    packhouse(folder.path(), &["restore", &place, "--beside-other-files"], "").success();
    assert!(folder.path().join("packhouse.db").exists());
}
