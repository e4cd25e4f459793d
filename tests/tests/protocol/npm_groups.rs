//! Groups of npm repositories. A group offers hosted repositories and proxies at one address.

#[allow(dead_code, reason = "each test uses only some of it")]
use super::npm_upstream;

use npm_upstream::{Part, at, client, offer, packument, project, proxy, publish, server, show, tree};
use packhouse_tests::npm::{NpmRepository, Tool};
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::upstream::{Answer, Gate, Upstream};
use packhouse_tests::{Api, Client, Request, Response, Server};
use serde_json::{Value, json};

/// A group, and the upstreams of its members.
struct GroupFixture {
    server: Server,
    api: Api,
    hosted: NpmRepository,
    proxies: [NpmRepository; 2],
    upstreams: [Upstream; 2],
    /// The group, and a token for the group and its members.
    group: NpmRepository,
}

impl GroupFixture {
    /// Creates a group of a hosted repository and two proxies, in this order.
    fn new(settings: &Value) -> Self {
        let (server, upstreams) = (server(), [Upstream::start(), Upstream::start()]);
        let claims = json!({"kind": "hosted", "settings": {"claimed_names": ["reserved"]}});
        let hosted = NpmRepository::create_as(&server, "hosted", &claims);
        let fresh = json!({"metadata_ttl_s": 0, "negative_ttl_s": 0, "claimed_names": ["@us/*"]});
        let [first, second] = &upstreams;
        let proxies = [("first", first), ("second", second)]
            .map(|(name, upstream)| proxy(&server, name, &upstream.url(), &fresh));
        let members = [&hosted.id, &proxies[0].id, &proxies[1].id];
        let more = json!({"kind": "group", "members": members, "settings": settings});
        let mut group = NpmRepository::create_as(&server, "all", &more);
        let api = Api::sign_in(&server);
        let reached = [members.as_slice(), &[&group.id]].concat();
        let reached: Vec<&str> = reached.iter().map(|id| id.as_str()).collect();
        group.token = api.create_token(&reached, &["read", "write"], None);
        group.client = server.anonymous().basic(OWNER, &group.token.secret);
        Self { server, api, hosted, proxies, upstreams, group }
    }

    /// Returns a client with a token for the group and these members.
    fn reaching(&self, members: &[&NpmRepository]) -> Client {
        let mut reached = vec![self.group.id.as_str()];
        reached.extend(members.iter().map(|member| member.id.as_str()));
        self.server.anonymous().basic(OWNER, &self.api.create_token(&reached, &["read"], None).secret)
    }

    #[track_caller]
    fn get_as(&self, below: &str, headers: &[(&str, &str)]) -> Response {
        let request = Request::new("GET", &self.group.path(below));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        self.group.client.send(request)
    }
}

fn numbers(document: &Value) -> Vec<&String> {
    document["versions"].as_object().unwrap().keys().collect()
}

#[test]
fn npm_installs_hosted_and_upstream_packages_from_one_address() {
    let world = GroupFixture::new(&json!({}));
    let (ours, parts) = (Part::new("@acme/own", "1.0.0"), tree(8));
    let own = Part { dependencies: json!({"part-1": "^1.0.0", "@acme/part-6": "^1.0.0"}), ..ours };
    publish(&world.hosted, std::slice::from_ref(&own));
    for (number, part) in parts.iter().enumerate() {
        offer(&world.upstreams[number % 2], std::slice::from_ref(part));
    }
    // Another person published a package of the hosted name at both upstreams.
    let evil = Part::new("@acme/own", "99.0.0");
    world.upstreams.iter().for_each(|upstream| offer(upstream, std::slice::from_ref(&evil)));
    std::thread::scope(|scope| {
        for tool in [Tool::Npm10, Tool::Npm11] {
            let Some(js) = client(&world.server, tool, &world.group) else { continue };
            let (world, own) = (&world, &own);
            scope.spawn(move || {
                project(&js, std::slice::from_ref(own));
                js.install("project").success();
                assert_eq!(js.installed("project", "@acme/own").as_deref(), Some("1.0.0"), "{tool:?}");
                assert_eq!(js.installed("project", "part-4").as_deref(), Some("1.2.3"), "{tool:?}");
                let lock = std::fs::read_to_string(js.folder().join("project/package-lock.json")).unwrap();
                let lock: Value = serde_json::from_str(&lock).unwrap();
                let address = format!("{}/", world.group.url(&world.server));
                for (path, package) in
                    lock["packages"].as_object().unwrap().iter().filter(|(path, _)| !path.is_empty())
                {
                    assert!(package["resolved"].as_str().unwrap().starts_with(&address), "{path}: {package}");
                }
                js.forget("project");
                js.install_locked("project").success();
                let output = js.run("project", &["install", "@acme/own@99.0.0"]);
                assert!(!output.success && output.text.contains("ETARGET"), "{tool:?}:\n{}", output.text);
            });
        }
    });
    for upstream in &world.upstreams {
        assert_eq!(upstream.count(&at("@acme/own")), 0, "hosted names are not sent upstream");
    }
}

#[test]
fn hosted_names_are_never_requested_upstream() {
    let world = GroupFixture::new(&json!({"claimed_names": ["@acme/*", "internal-*"]}));
    publish(&world.hosted, &[Part::new("lib", "1.0.0")]);
    let claimed = ["@acme/secret", "internal-tool", "reserved", "@us/any"];
    for name in claimed.iter().chain(&["lib"]) {
        let evil = Part::new(name, "99.0.0");
        world.upstreams.iter().for_each(|upstream| offer(upstream, std::slice::from_ref(&evil)));
    }
    let paths = |name: &str| {
        let bare = name.rsplit('/').next().unwrap().to_owned();
        [
            name.to_owned(),
            format!("{name}/99.0.0"),
            format!("{name}/-/{bare}-99.0.0.tgz"),
            format!("-/package/{name}/dist-tags"),
            format!("-/npm/v1/attestations/{name}@99.0.0"),
        ]
    };
    for path in claimed.iter().flat_map(|name| paths(name)) {
        world.group.get(&path).expect(404);
    }
    for path in paths("@us/any") {
        world.proxies[0].get(&path).expect(404);
    }
    let [packument, rest @ ..] = paths("lib");
    assert_eq!(numbers(&world.group.get(&packument).expect(200).json()), ["1.0.0"]);
    assert_eq!(world.group.get(&rest[2]).expect(200).json(), json!({"latest": "1.0.0"}));
    for path in [&rest[0], &rest[1], &rest[3]] {
        world.group.get(path).expect(404);
    }
    assert!(world.upstreams.iter().all(|upstream| upstream.requests().is_empty()));
}

#[test]
fn members_are_merged_in_order_and_each_change_gives_another_document() {
    let world = GroupFixture::new(&json!({}));
    let [one, two, three] = ["1.0.0", "2.0.0", "3.0.0"].map(|number| Part::new("lib", number));
    let other = Part { dependencies: json!({"other": "1"}), ..two.clone() };
    let [first, second] = &world.upstreams;
    offer(first, &[one.clone(), two.clone()]);
    offer(second, &[other, three.clone()]);
    let forms = ["application/json", "application/vnd.npm.install-v1+json"];
    let get = |accept: &str| world.get_as("lib", &[("Accept", accept)]).expect(200);
    let mut tags = Vec::new();
    for accept in forms {
        let answer = get(accept);
        let document = answer.json();
        assert_eq!(numbers(&document), ["1.0.0", "2.0.0", "3.0.0"]);
        assert_eq!(document["dist-tags"]["latest"], "2.0.0", "the first member wins");
        let tag = answer.header("etag").expect("an ETag").to_owned();
        assert_eq!(get(accept).header("etag"), Some(tag.as_str()), "the tag stays while nothing changes");
        world.get_as("lib", &[("Accept", accept), ("If-None-Match", &tag)]).expect(304);
        tags.push(tag);
    }
    assert_ne!(tags[0], tags[1], "each form has its own tag");
    assert_eq!(world.group.get(&two.path()).expect(200).body, two.tarball(), "the first member wins");
    assert_eq!(world.group.get(&three.path()).expect(200).body, three.tarball());
    world.group.get("lib/-/lib-4.0.0.tgz").expect(404);

    offer(second, &[three, Part::new("lib", "4.0.0")]);
    for (accept, tag) in forms.iter().zip(&tags) {
        let answer = world.get_as("lib", &[("Accept", accept), ("If-None-Match", tag)]).expect(200);
        assert!(numbers(&answer.json()).iter().any(|number| *number == "4.0.0"));
    }
    // The client may read only one member, so it sees only the content of this member.
    let one_only = world.reaching(&[&world.proxies[0]]).get(&world.group.path("lib")).expect(200).json();
    assert_eq!(numbers(&one_only), ["1.0.0", "2.0.0"]);
    let refused = world.group.put("lib", &one.document()).expect(405);
    assert_eq!(refused.field("code"), "writes_not_permitted_on_group");
}

#[test]
fn search_and_audit_are_forwarded() {
    let world = GroupFixture::new(&json!({}));
    publish(&world.hosted, &[Part::new("left-ours", "1.0.0")]);
    let found =
        |name: &str| json!({"objects": [{"package": {"name": name, "version": "1.0.0"}}], "total": 1});
    for (upstream, name) in world.upstreams.iter().zip(["left-first", "left-second"]) {
        upstream.on("/-/v1/search?text=left&size=20", Answer::ok(found(name).to_string()));
        upstream.on("/-/npm/v1/keys", Answer::ok(json!({"keys": [{"keyid": name}]}).to_string()));
    }
    let answer = world.group.get("-/v1/search?text=left&size=20").expect(200).json();
    let names: Vec<&Value> =
        answer["objects"].as_array().unwrap().iter().map(|one| &one["package"]["name"]).collect();
    assert_eq!(
        (names, &answer["total"]),
        (vec![&json!("left-ours"), &json!("left-first"), &json!("left-second")], &json!(3))
    );
    let keys = world.group.get("-/npm/v1/keys").expect(200).json();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 3, "keys of the server and of both upstreams: {keys}");

    let advisory = json!({"lib": [{"id": 7, "url": "https://example.com/7", "title": "it leaks", "severity": "high",
        "vulnerable_versions": "<2", "cwe": ["CWE-1"], "cvss": {"score": 7, "vectorString": null}}]});
    let bulk = "/-/npm/v1/security/advisories/bulk";
    offer(&world.upstreams[0], &[Part::new("lib", "1.0.0")]);
    world.upstreams[0].on(bulk, Answer::ok(advisory.to_string()));
    let Some(js) = client(&world.server, Tool::Npm11, &world.group) else { return };
    project(&js, &[Part::new("lib", "1.0.0")]);
    js.install("project").success();
    js.run("project", &["audit"]).refused("it leaks");
    let request = world.upstreams[0].requests().into_iter().rfind(|request| request.target == bulk).unwrap();
    let mut body = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(request.body.as_slice()), &mut body)
        .unwrap();
    assert_eq!(body, json!({"lib": ["1.0.0"]}).to_string(), "as npm packed it");
}

/// Path of npm's bulk request for advisories.
const BULK: &str = "-/npm/v1/security/advisories/bulk";

fn advisory(id: u64, url: &str) -> Value {
    json!({"id": id, "url": url, "title": "It leaks", "severity": "high", "vulnerable_versions": "<2"})
}

/// Returns the ids of the advisories about a package in the group's audit.
#[track_caller]
fn audited(world: &GroupFixture, package: &str) -> Vec<u64> {
    let audit = ask_audit(world).expect(200).json();
    let all = audit[package].as_array().cloned().unwrap_or_default();
    all.iter().map(|advisory| advisory["id"].as_u64().unwrap()).collect()
}

fn ask_audit(world: &GroupFixture) -> Response {
    let question = json!({"lib": ["1.0.0"], "other": ["1.0.0"]}).to_string();
    let request = Request::new("POST", &world.group.path(BULK)).header("Content-Type", "application/json");
    world.group.client.send(request.body(question))
}

#[test]
fn an_audit_merges_all_members() {
    let world = GroupFixture::new(&json!({}));
    let [first, second] = &world.upstreams;
    let target = format!("/{BULK}");
    let one = json!({"lib": [advisory(1, "https://a.example/1"), advisory(2, "https://a.example/1")]});
    let other = json!({
        "lib": [advisory(1, "https://b.example/1"), advisory(8, "https://a.example/1"), advisory(3, "https://a.example/3")],
        "other": [advisory(4, "https://a.example/4")],
    });
    first.on(&target, Answer::ok(one.to_string()));
    second.on(&target, Answer::ok(other.to_string()));
    assert_eq!((audited(&world, "lib"), audited(&world, "other")), (vec![1, 2, 1, 3], vec![4]));
    for status in [404, 405, 410] {
        first.on(&target, Answer::new(status, "no"));
        assert_eq!(audited(&world, "lib"), [1, 8, 3], "an upstream with status {status} has no advisories");
    }
    first.on(&target, Answer::new(500, "no"));
    assert_eq!(audited(&world, "lib"), [1, 8, 3], "an upstream that fails is left out");
    second.on(&target, Answer::new(500, "no"));
    ask_audit(&world).expect(502);
}

#[test]
fn all_members_are_audited_concurrently() {
    let world = GroupFixture::new(&json!({}));
    let ([first, second], target, gate) = (&world.upstreams, format!("/{BULK}"), Gate::new());
    first.on(&target, Answer::ok("{}").silent(&gate));
    second.on(&target, Answer::ok(json!({"lib": [advisory(1, "https://a.example/1")]}).to_string()));
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| audited(&world, "lib"));
        eventually("the second member has a request", || (second.count(&target) == 1).then_some(()));
        gate.open();
        assert_eq!(asking.join().unwrap(), [1]);
    });
}

#[test]
fn tags_of_a_truncated_member_refer_to_existing_versions() {
    let world = GroupFixture::new(&json!({}));
    let [first, second] = &world.upstreams;
    let parts = ["1.0.0", "3.0.0"].map(|number| Part::new("lib", number));
    let mut broken = packument(&parts, |part| format!("{}/{}", first.url(), part.path()));
    // The manifest of version 3.0.0 is larger than the limit.
    broken["versions"]["3.0.0"]["x"] = json!("x".repeat(2 << 20));
    broken["dist-tags"]["next"] = json!("3.0.0");
    broken["dist-tags"]["old"] = json!("1.0.0");
    show(first, &broken);
    offer(second, &[Part::new("lib", "2.0.0")]);
    for accept in ["application/json", "application/vnd.npm.install-v1+json"] {
        let document = world.get_as("lib", &[("Accept", accept)]).expect(200).json();
        assert_eq!(numbers(&document), ["1.0.0", "2.0.0"]);
        assert_eq!(document["dist-tags"], json!({"latest": "2.0.0", "old": "1.0.0"}));
    }
}

#[test]
fn a_failing_member_is_left_out_and_reported_for_names_that_no_other_member_has() {
    let world = GroupFixture::new(&json!({}));
    let [known, ours, theirs] = ["known", "ours", "theirs"].map(|name| Part::new(name, "1.0.0"));
    publish(&world.hosted, std::slice::from_ref(&ours));
    offer(&world.upstreams[0], std::slice::from_ref(&known));
    offer(&world.upstreams[1], std::slice::from_ref(&theirs));
    world.group.get("known").expect(200);
    world.group.get(&known.path()).expect(200);
    world.upstreams[0].down(true);
    // The group does not request a hosted name from an upstream.
    assert_eq!(numbers(&world.group.get("ours").expect(200).json()), ["1.0.0"]);
    assert_eq!(world.group.get(&ours.path()).expect(200).body, ours.tarball());
    // The group serves a cached document even if it is stale.
    assert_eq!(numbers(&world.group.get("known").expect(200).json()), ["1.0.0"]);
    assert_eq!(world.group.get(&known.path()).expect(200).body, known.tarball());
    assert_eq!(numbers(&world.group.get("theirs").expect(200).json()), ["1.0.0"]);
    assert_eq!(world.group.get(&theirs.path()).expect(200).body, theirs.tarball());
    world.group.get("-/v1/search?text=x").expect(200);
    // Only the failing member could have this package, so the group reports the failure.
    for path in ["nobodys", "nobodys/-/nobodys-1.0.0.tgz"] {
        assert_eq!(world.group.get(path).expect(502).field("error"), "upstream_unavailable");
    }
}
