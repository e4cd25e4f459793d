//! A registry of another vendor, with which the program must work.

use super::*;

/// A process that is killed at the end of the test.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The registry of the CNCF distribution project.
struct Registry {
    _child: Process,
    address: String,
    _home: TempDir,
}

impl Registry {
    fn start(program: &Path) -> Registry {
        let home = TempDir::new().unwrap();
        let address = format!("127.0.0.1:{}", free_port());
        let config = home.path().join("config.yml");
        let storage = home.path().join("storage");
        let text = format!(
            "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: {address}\nlog: {{level: error}}\n",
            storage.display()
        );
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(program);
        command.arg("serve").arg(config).env("OTEL_TRACES_EXPORTER", "none");
        let child = Process(command.spawn().unwrap());
        let client = Client::new(address.parse().unwrap());
        eventually("the registry answers", || client.try_send(Request::new("GET", "/v2/")).ok().map(drop));
        Registry { _child: child, address, _home: home }
    }
}

#[test]
fn another_registry_works_as_well() {
    let program = checkout().join(".tools/go/bin/registry");
    if !program.is_file() {
        return skip(
            "registry",
            "no registry in .tools/go/bin: `./bootstrap test-all` builds it where there is Go",
        );
    }
    let registry = Registry::start(&program);
    let folder = TempDir::new().unwrap();
    let key = SigningKeys::new(folder.path(), "key");
    let server = bare(&folder, &[("PACKHOUSE_PLUGINS_TRUSTED_KEYS", path(&key.public))]);
    let (file, bytes) = guest("raw");
    let tagged = format!("oci://{}/formats/raw:1.2", registry.address);
    let pinned = last(&publish(&[path(&file), &tagged, "--key", path(&key.private)], &[]).success().text);
    let installed = post(&Api::sign_in(&server), &tagged).expect(201).json();
    assert_eq!((&installed["source"], &installed["signed_by"]), (&json!(pinned), &json!(key.fingerprint)));
    let crane = match Go::client("crane") {
        Ok(crane) => crane,
        Err(reason) => return skip("crane", &reason),
    };
    let image = tagged.trim_start_matches("oci://");
    let manifest: Value = serde_json::from_str(&crane.run(&["manifest", image]).success().text).unwrap();
    assert_eq!(manifest["layers"][0]["digest"], json!(digest(&bytes)));
    crane.run(&["validate", "--remote", image]);
    assert!(crane.run(&["digest", image]).success().text.contains(pinned.split_once('@').unwrap().1));
}
