//! Advisories without the internet. The operator imports OSV records while a server runs. The
//! server displays the advisories, returns them to OSV clients and to audits of real clients, and
//! refuses malware.

use crate::npm_upstream;

use crate::wheel;

mod clients;
mod malware;
mod osv;
mod records;
mod shown;

use npm_upstream::{Part, client, offer, project, proxy, publish};
use packhouse_tests::cli::packhouse;
use packhouse_tests::npm::{NpmRepository, Tool};
use packhouse_tests::server::eventually;
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Client, Request, Response, Server};
use records::Record;
use serde_json::{Value, json};
use tempfile::TempDir;

const BULK: &str = "-/npm/v1/security/advisories/bulk";

/// A server, and a folder for the records that the tests import with the operator's command.
struct AdvisoryServer {
    server: Server,
    api: Api,
    folder: TempDir,
}

impl AdvisoryServer {
    fn start() -> AdvisoryServer {
        AdvisoryServer::of(npm_upstream::server())
    }

    fn of(server: Server) -> AdvisoryServer {
        let api = Api::sign_in(&server);
        AdvisoryServer { server, api, folder: TempDir::new().unwrap() }
    }

    /// Imports these records and returns the command's output.
    #[track_caller]
    fn import(&self, records: &[Record], more: &[&str]) -> String {
        let folder = self.folder.path().join("records");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        for record in records {
            let file = folder.join(format!("{}.json", record.0["id"].as_str().unwrap()));
            std::fs::write(file, record.0.to_string()).unwrap();
        }
        let words = [&["advisories", "import", folder.to_str().unwrap()], more].concat();
        packhouse(self.server.data(), &words, "").success().text
    }

    /// Returns the advisories about an npm version. Waits until the server has at least one.
    fn known(&self, package: &str, version: &str) -> Vec<String> {
        self.known_of("npm", package, version)
    }

    /// Returns the advisories about a version in this ecosystem. Waits until the server has at
    /// least one.
    fn known_of(&self, ecosystem: &str, package: &str, version: &str) -> Vec<String> {
        let question = json!({"package": {"ecosystem": ecosystem, "name": package}, "version": version});
        eventually("the server follows", || {
            let found = self.query(&question);
            Some(ids(&found)).filter(|ids| !ids.is_empty())
        })
    }

    #[track_caller]
    fn query(&self, question: &Value) -> Value {
        self.api.post("/v1/query", question).expect(200).json()
    }
}

/// Returns the ids of the advisories in a response.
fn ids(found: &Value) -> Vec<String> {
    let vulns = found["vulns"].as_array().into_iter().flatten();
    vulns.map(|vuln| vuln["id"].as_str().unwrap().to_owned()).collect()
}

/// Sends a JSON document by POST.
#[track_caller]
fn post(client: &Client, path: &str, body: &Value) -> Response {
    let request = Request::new("POST", path).header("Content-Type", "application/json");
    client.send(request.body(body.to_string()))
}

#[track_caller]
fn bulk(repository: &NpmRepository, question: &Value) -> Value {
    post(&repository.client, &repository.path(BULK), question).expect(200).json()
}

#[test]
fn npm_audit_reports_imported_advisories() {
    let world = AdvisoryServer::start();
    let hosted = NpmRepository::create(&world.server, "hosted");
    publish(&hosted, &[Part::new("leaky", "1.0.0"), Part::new("sound", "1.0.0")]);
    assert_eq!(
        bulk(&hosted, &json!({"leaky": ["1.0.0"]})),
        json!({}),
        "no advisory exists before the import"
    );
    let leak = Record::new("GHSA-leak-leak-leak", "npm", "leaky").below("1.5.0").high("It leaks everything");
    world.import(&[leak], &[]);
    world.known("leaky", "1.0.0");
    let audit = bulk(&hosted, &json!({"leaky": ["1.0.0"], "sound": ["1.0.0"]}));
    let advisory = &audit["leaky"][0];
    assert_eq!(advisory["severity"], "high", "{audit}");
    assert_eq!(advisory["vulnerable_versions"], "<1.5.0");
    assert!(advisory["id"].is_u64() && audit.get("sound").is_none(), "{audit}");
    assert_eq!(
        bulk(&hosted, &json!({"leaky": ["1.5.0", "2.0.0"]})),
        json!({}),
        "fixed versions are not reported"
    );
    let Some(js) = client(&world.server, Tool::Npm11, &hosted) else { return };
    project(&js, &[Part::new("leaky", "1.0.0"), Part::new("sound", "1.0.0")]);
    js.install("project").success();
    let output = js.run("project", &["audit"]);
    assert!(!output.success && output.text.contains("It leaks everything"), "{}", output.text);
    assert!(output.text.contains("1 high severity"), "{}", output.text);
}

#[test]
fn an_audit_merges_upstream_and_imported_advisories_without_duplicates() {
    let world = AdvisoryServer::start();
    let upstream = Upstream::start();
    let far = proxy(&world.server, "far", &upstream.url(), &json!({}));
    let away = proxy(&world.server, "away", &upstream.url(), &json!({"offline": true}));
    let both = |id: &str, package: &str| Record::new(id, "npm", package).below("2.0.0").high("Bad");
    world.import(&[both("GHSA-same-same-same", "lib"), both("GHSA-ours-ours-ours", "lib")], &[]);
    world.known("lib", "1.0.0");
    let theirs = json!({"lib": [{"id": 7, "url": "https://advisories.example/GHSA-same-same-same", "title": "theirs",
        "severity": "low", "vulnerable_versions": "<2"}]});
    upstream.on(&format!("/{BULK}"), Answer::ok(theirs.to_string()));
    let audit = bulk(&far, &json!({"lib": ["1.0.0"]}));
    let titles: Vec<&str> =
        audit["lib"].as_array().unwrap().iter().map(|one| one["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["theirs", "Bad (GHSA-ours-ours-ours)"]);
    let requests = upstream.requests().len();
    let audit = bulk(&away, &json!({"lib": ["1.0.0"]}));
    assert_eq!(audit["lib"].as_array().unwrap().len(), 2, "{audit}");
    assert_eq!(upstream.requests().len(), requests, "a client without access causes no request");
    offer(&upstream, &[Part::new("lib", "1.0.0")]);
}
