//! The repositories of one format that a course of things plays in: two hosted ones, a proxy, and a group of the three.

use super::World;
use super::formats::{Format, Version, versions};
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::upstream::Upstream;
use packhouse_tests::{Api, Client, Response};
use serde_json::{Value, json};

/// All versions that courses speak of.
const NUMBERS: std::ops::RangeInclusive<u32> = 1..=4;

/// Repositories called `one`, `two`, `proxy` and `all`, each with the format's name in front.
pub(crate) struct Place<'a> {
    pub(crate) world: &'a World,
    pub(crate) format: Format,
    pub(crate) api: Api,
    pub(crate) upstream: Upstream,
    /// Ids of the four.
    ids: [String; 4],
    /// The secret of a token that reaches them all.
    secret: String,
}

const NAMES: [&str; 4] = ["one", "two", "proxy", "all"];

impl<'a> Place<'a> {
    pub(crate) fn new(world: &'a World, format: Format) -> Self {
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

    /// The id of the repository of that name.
    pub(crate) fn id(&self, name: &str) -> &str {
        let at = NAMES.iter().position(|own| *own == name).expect("one of the four");
        &self.ids[at]
    }

    /// The name of the repository on the wire.
    pub(crate) fn called(&self, name: &str) -> String {
        format!("{}-{name}", self.format.name())
    }

    /// Shows the token to the first server, through which everything is changed.
    pub(crate) fn writer(&self) -> Client {
        self.world.servers[0].anonymous().basic(OWNER, &self.secret)
    }

    /// Shows this secret to each server, or nothing.
    pub(crate) fn readers_with(&self, secret: Option<&str>) -> Vec<Client> {
        let servers = self.world.servers.iter();
        let client = |server: &packhouse_tests::Server| match secret {
            Some(secret) => server.anonymous().basic(OWNER, secret),
            None => server.anonymous(),
        };
        servers.map(client).collect()
    }

    /// Shows the token that reaches everything to each server.
    pub(crate) fn readers(&self) -> Vec<Client> {
        self.readers_with(Some(&self.secret))
    }

    /// A token that reads these repositories alone.
    pub(crate) fn secret_for(&self, names: &[&str]) -> packhouse_tests::api::Token {
        let ids: Vec<&str> = names.iter().map(|name| self.id(name)).collect();
        self.api.create_token(&ids, &["read"], None)
    }

    /// Publishes versions of a package, as in `1@one 2@two`: the bytes of each say where it comes from.
    #[track_caller]
    pub(crate) fn publish(&self, package: &str, what: &str) {
        for version in versions(what) {
            let repository = self.called(&version.origin);
            self.format.publish(&self.writer(), &repository, package, &version);
        }
    }

    /// Deletes versions of a package, as in `1@one`.
    #[track_caller]
    pub(crate) fn delete(&self, package: &str, what: &str) {
        for version in versions(what) {
            let repository = self.called(&version.origin);
            self.format.delete(self, &repository, package, &version);
        }
    }

    /// The upstream has these versions of a package, long ago published, and no others.
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

    /// Fails unless a repository has these versions of a package and no others, each with its bytes: in its list and one by one, twice
    /// through each server.
    #[track_caller]
    pub(crate) fn shows(&self, name: &str, package: &str, what: &str) {
        self.shows_to(&self.readers(), name, package, what);
    }

    /// The same for others.
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
    fn compare(&self, reader: &Client, name: &str, package: &str, expected: &[Version], what: &str) {
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
                assert!(right, "{what}: {package} {number} is another's than {}", held.origin);
            }
        }
    }

    /// What the list of a package is answered with by each server, whose addresses stand in it: the same when it is asked again.
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

    /// Waits until a repository lists these versions at each server; what is not allowed in the meantime, `judge` says.
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

/// Fails unless these are the same to a client.
#[track_caller]
pub(crate) fn same(one: &Response, other: &Response, what: &str) {
    assert_eq!(one.header("etag"), other.header("etag"), "{what}");
    assert!(one.body == other.body, "{what}: {} and {}", one.text(), other.text());
}
