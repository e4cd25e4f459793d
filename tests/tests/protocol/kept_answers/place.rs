//! The repositories of one format in a scenario: two hosted ones, a proxy, and a group of these
//! three.

use super::SharedServers;
use super::formats::{PackageFormat, PackageVersion, versions};
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::upstream::Upstream;
use packhouse_tests::{Api, Client, Response};
use serde_json::{Value, json};

/// Numbers of all versions in the scenarios.
const NUMBERS: std::ops::RangeInclusive<u32> = 1..=4;

/// Repositories called `one`, `two`, `proxy` and `all`. The name of the format is the prefix of
/// each name.
pub(crate) struct Repositories<'a> {
    pub(crate) world: &'a SharedServers,
    pub(crate) format: PackageFormat,
    pub(crate) api: Api,
    pub(crate) upstream: Upstream,
    /// Ids of the four repositories, in the order of `NAMES`.
    ids: [String; 4],
    /// The secret of a token that may read and write all four repositories.
    secret: String,
}

const NAMES: [&str; 4] = ["one", "two", "proxy", "all"];

impl<'a> Repositories<'a> {
    pub(crate) fn new(world: &'a SharedServers, format: PackageFormat) -> Self {
        let (api, upstream) = (Api::sign_in(&world.servers[0]), Upstream::start());
        let make = |name: &str, more: &Value| {
            let mut body = more.clone();
            body["name"] = json!(format!("{}-{name}", format.name()));
            body["format"] = json!(format.name());
            api.post("/v1/repositories", &body).expect(201).field("id")
        };
        let hosted = json!({"kind": "hosted", "settings": {"republish_deleted": true}});
        let [one, two] = ["one", "two"].map(|name| make(name, &hosted));
        let fresh = json!({"metadata_ttl_s": 0, "negative_ttl_s": 0});
        let proxy =
            make("proxy", &json!({"kind": "proxy", "upstream": {"url": upstream.url()}, "settings": fresh}));
        let all = make("all", &json!({"kind": "group", "members": [one, two, proxy]}));
        let ids = [one, two, proxy, all];
        let reached = ids.each_ref().map(String::as_str);
        let secret = api.create_token(&reached, &["read", "write"], None).secret;
        Self { world, format, api, upstream, ids, secret }
    }

    /// The id of the repository with this name.
    pub(crate) fn id(&self, name: &str) -> &str {
        let at = NAMES.iter().position(|own| *own == name).expect("one of the four");
        &self.ids[at]
    }

    /// Returns the repository's name as it is in requests.
    pub(crate) fn called(&self, name: &str) -> String {
        format!("{}-{name}", self.format.name())
    }

    /// Returns a client of the first server with the token. All changes of a scenario go through
    /// this client.
    pub(crate) fn writer(&self) -> Client {
        self.world.servers[0].anonymous().basic(OWNER, &self.secret)
    }

    /// Returns a client of each server with this secret, or without a credential.
    pub(crate) fn readers_with(&self, secret: Option<&str>) -> Vec<Client> {
        let servers = self.world.servers.iter();
        let client = |server: &packhouse_tests::Server| match secret {
            Some(secret) => server.anonymous().basic(OWNER, secret),
            None => server.anonymous(),
        };
        servers.map(client).collect()
    }

    /// Returns a client of each server with the token for all repositories.
    pub(crate) fn readers(&self) -> Vec<Client> {
        self.readers_with(Some(&self.secret))
    }

    /// Creates a token that reads only these repositories.
    pub(crate) fn secret_for(&self, names: &[&str]) -> packhouse_tests::api::Token {
        let ids: Vec<&str> = names.iter().map(|name| self.id(name)).collect();
        self.api.create_token(&ids, &["read"], None)
    }

    /// Publishes versions of a package, written as `1@one 2@two`. The content of each version names
    /// its origin.
    #[track_caller]
    pub(crate) fn publish(&self, package: &str, what: &str) {
        for version in versions(what) {
            let repository = self.called(&version.origin);
            self.format.publish(&self.writer(), &repository, package, &version);
        }
    }

    /// Deletes versions of a package, written as `1@one`.
    #[track_caller]
    pub(crate) fn delete(&self, package: &str, what: &str) {
        for version in versions(what) {
            let repository = self.called(&version.origin);
            self.format.delete(self, &repository, package, &version);
        }
    }

    /// Makes the upstream offer exactly these versions of a package, published long ago.
    pub(crate) fn offer(&self, package: &str, what: &str) {
        self.format.offer(&self.upstream, package, &versions(what));
    }

    /// Changes settings of a repository.
    #[track_caller]
    pub(crate) fn set(&self, name: &str, settings: &Value) {
        self.change(name, &json!({"settings": settings}));
    }

    /// Changes a repository.
    #[track_caller]
    pub(crate) fn change(&self, name: &str, body: &Value) {
        self.api.patch(&format!("/v1/repositories/{}", self.id(name)), body).expect(200);
    }

    /// Fails unless a repository has exactly these versions of a package, each with its content.
    /// Checks the list and each version, twice through each server.
    #[track_caller]
    pub(crate) fn shows(&self, name: &str, package: &str, what: &str) {
        self.shows_to(&self.readers(), name, package, what);
    }

    /// Performs the checks of `shows` with these clients.
    #[track_caller]
    pub(crate) fn shows_to(&self, readers: &[Client], name: &str, package: &str, what: &str) {
        for round in ["first", "again"] {
            for (server, reader) in readers.iter().enumerate() {
                let what_failed = format!("{}, {name} of server {server}, {round}", self.format.name());
                self.compare(reader, name, package, &versions(what), &what_failed);
            }
        }
    }

    #[track_caller]
    fn compare(&self, reader: &Client, name: &str, package: &str, expected: &[PackageVersion], what: &str) {
        let numbers: Vec<u32> = expected.iter().map(|version| version.number).collect();
        let repository = self.called(name);
        let listed = self.format.listed(reader, &repository, package);
        assert_eq!(listed.unwrap_or_default(), numbers, "{what}: the list of {package}");
        for number in NUMBERS {
            let answer = self.format.file(reader, &repository, package, number);
            let held = expected.iter().find(|version| version.number == number);
            let status = if held.is_some() { 200 } else { 404 };
            assert_eq!(answer.status, status, "{what}: {package} {number}: {}", answer.text());
            if let Some(held) = held {
                let right = answer.body == self.format.content(package, held);
                assert!(right, "{what}: {package} {number} is not from {}", held.origin);
            }
        }
    }

    /// Returns the list of a package from each server. The lists of two servers may differ in the
    /// server's address. Fails if a server's second response differs from its first one.
    #[track_caller]
    pub(crate) fn list(&self, name: &str, package: &str) -> Vec<Response> {
        let ask = |reader: &Client| self.format.ask(reader, &self.called(name), package).expect(200);
        let readers = self.readers();
        let answers: Vec<Response> = readers.iter().map(ask).collect();
        for (reader, answer) in readers.iter().zip(&answers) {
            same(&ask(reader), answer, &format!("{:?} {name}: {package}", self.format));
        }
        answers
    }

    /// Waits until a repository lists these versions on each server. Calls `judge` with each
    /// earlier list.
    #[track_caller]
    pub(crate) fn comes_to_show(&self, name: &str, package: &str, what: &str, judge: impl Fn(&[u32])) {
        let numbers: Vec<u32> = versions(what).iter().map(|version| version.number).collect();
        for reader in self.readers() {
            eventually(&format!("{} {name} shows {what}", self.format.name()), || {
                let listed = self.format.listed(&reader, &self.called(name), package).unwrap_or_default();
                judge(&listed);
                (listed == numbers).then_some(())
            });
        }
    }
}

/// Fails unless a client cannot tell these responses apart.
#[track_caller]
pub(crate) fn same(one: &Response, other: &Response, what: &str) {
    assert_eq!(one.header("etag"), other.header("etag"), "{what}");
    assert!(one.body == other.body, "{what}: {} and {}", one.text(), other.text());
}
