//! Advisories without the internet, from outside: OSV records that the operator has are brought in beside a running server; they are shown,
//! found by audits of real clients and answered to programs that know OSV, and malware is neither offered nor taken in.

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

/// A server with what was brought in, the way an operator does it.
struct World {
    server: Server,
    api: Api,
    folder: TempDir,
}

impl World {
    fn start() -> World {
        World::of(npm_upstream::server())
    }

    fn of(server: Server) -> World {
        let api = Api::sign_in(&server);
        World { server, api, folder: TempDir::new().unwrap() }
    }

    /// Brings these in; what the command said.
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
        packhouse(self.server.data(), &words, "").well().text
    }

    /// What the server knows of a version of npm's, once it knows something.
    fn known(&self, package: &str, version: &str) -> Vec<String> {
        self.known_of("npm", package, version)
    }

    /// The same of a version of this ecosystem's.
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

/// The ids of what was found.
fn ids(found: &Value) -> Vec<String> {
    let vulns = found["vulns"].as_array().into_iter().flatten();
    vulns.map(|vuln| vuln["id"].as_str().unwrap().to_owned()).collect()
}

/// POST of a JSON document.
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
fn npm_audit_tells_what_the_operator_brought_in() {
    let world = World::start();
    let hosted = NpmRepository::create(&world.server, "hosted");
    publish(&hosted, &[Part::new("leaky", "1.0.0"), Part::new("sound", "1.0.0")]);
    assert_eq!(bulk(&hosted, &json!({"leaky": ["1.0.0"]})), json!({}), "nothing is known before");
    let leak = Record::new("GHSA-leak-leak-leak", "npm", "leaky").below("1.5.0").high("It leaks everything");
    world.import(&[leak], &[]);
    world.known("leaky", "1.0.0");
    let told = bulk(&hosted, &json!({"leaky": ["1.0.0"], "sound": ["1.0.0"]}));
    let advisory = &told["leaky"][0];
    assert_eq!(advisory["severity"], "high", "{told}");
    assert_eq!(advisory["vulnerable_versions"], "<1.5.0");
    assert!(advisory["id"].is_u64() && told.get("sound").is_none(), "{told}");
    assert_eq!(bulk(&hosted, &json!({"leaky": ["1.5.0", "2.0.0"]})), json!({}), "fixed ones are not told");
    let Some(js) = client(&world.server, Tool::Npm11, &hosted) else { return };
    project(&js, &[Part::new("leaky", "1.0.0"), Part::new("sound", "1.0.0")]);
    js.install("project").well();
    let said = js.run("project", &["audit"]);
    assert!(!said.success && said.text.contains("It leaks everything"), "{}", said.text);
    assert!(said.text.contains("1 high severity"), "{}", said.text);
}

#[test]
fn an_audit_has_an_upstreams_and_ours_each_once() {
    let world = World::start();
    let upstream = Upstream::start();
    let far = proxy(&world.server, "far", &upstream.url(), &json!({}));
    let away = proxy(&world.server, "away", &upstream.url(), &json!({"offline": true}));
    let both = |id: &str, package: &str| Record::new(id, "npm", package).below("2.0.0").high("Bad");
    world.import(&[both("GHSA-same-same-same", "lib"), both("GHSA-ours-ours-ours", "lib")], &[]);
    world.known("lib", "1.0.0");
    let theirs = json!({"lib": [{"id": 7, "url": "https://advisories.example/GHSA-same-same-same", "title": "theirs",
        "severity": "low", "vulnerable_versions": "<2"}]});
    upstream.on(&format!("/{BULK}"), Answer::ok(theirs.to_string()));
    let told = bulk(&far, &json!({"lib": ["1.0.0"]}));
    let titles: Vec<&str> =
        told["lib"].as_array().unwrap().iter().map(|one| one["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["theirs", "Bad (GHSA-ours-ours-ours)"]);
    let asked = upstream.seen().len();
    let told = bulk(&away, &json!({"lib": ["1.0.0"]}));
    assert_eq!(told["lib"].as_array().unwrap().len(), 2, "{told}");
    assert_eq!(upstream.seen().len(), asked, "who may not ask does not");
    offer(&upstream, &[Part::new("lib", "1.0.0")]);
}
