//! A proxy of container images: responses to clients, requests to the upstream, and the cache.

use packhouse_tests::image_proxy::{ImageProxy, offer, offer_blob, server};
use packhouse_tests::images::{INDEX, ImageRepository, MANIFEST, digest, manifest};
use packhouse_tests::server::OWNER;
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Request, Response, Server};
use serde_json::{Value, json};
use std::io::Write as _;

/// Maximum size of a manifest at a proxy, in bytes: 4 MiB.
const LIMIT: u64 = 4_194_304;

/// Returns an image manifest of this size.
fn padded(note: &str, size: u64) -> String {
    let manifest = manifest(&[note.as_bytes()]);
    let padding = usize::try_from(size).unwrap() - manifest.len();
    manifest + &" ".repeat(padding)
}

/// Changes the way in which an upstream sends a response.
type Way = fn(Answer) -> Answer;

#[track_caller]
fn assert_capped(answer: Response, observed: impl Fn(u64) -> bool) {
    let body = answer.expect(413).json();
    assert_eq!(body["code"], "scan_block_size_cap", "{body}");
    assert_eq!(body["limit_bytes"], LIMIT, "{body}");
    assert!(body["observed_bytes"].as_u64().is_some_and(observed), "{body}");
    assert_eq!(body["errors"][0]["code"], "MANIFEST_INVALID", "{body}");
    assert_eq!(body["errors"][0]["message"], "manifest exceeds maximum size", "{body}");
}

#[test]
fn an_upstream_manifest_over_4_mib_is_refused_and_not_cached() {
    let (server, upstream) = (server(), Upstream::start());
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &json!({}));
    let most = padded("most", LIMIT);
    offer(&upstream, "app", Some("most"), MANIFEST, &most);
    assert_eq!(proxy.get("app/manifests/most").expect(200).body.len() as u64, LIMIT);

    let size = LIMIT + 1_000_000;
    let ways: [(&str, Way, u64); 4] = [
        ("declared", |answer| answer, size),
        ("chunked", |answer| answer.chunked(50_000), LIMIT + 1),
        ("undeclared", |answer| answer.header("Content-Length", ""), LIMIT + 1),
        ("endless", Answer::endless, LIMIT + 1),
    ];
    for (tag, way, least) in ways {
        let large = padded(tag, size);
        let named = offer(&upstream, "app", Some(tag), MANIFEST, &large);
        let target = format!("/v2/app/manifests/{named}");
        let answer = Answer::ok(large).header("Content-Type", MANIFEST);
        upstream.on(&target, way(answer.header("Docker-Content-Digest", &named)));
        for (times, reference) in [tag, &named].into_iter().enumerate() {
            let answer = proxy.get(&format!("app/manifests/{reference}"));
            assert_capped(answer, |observed| (least..=size).contains(&observed));
            assert_eq!(upstream.count(&target), times + 1, "the manifest was cached");
        }
        proxy.head(&format!("app/manifests/{tag}")).expect(413);
        assert!(
            !proxy.cached_paths().iter().any(|cached| cached.contains(&named)),
            "{tag}: {:?}",
            proxy.cached_paths()
        );
    }
    // If the upstream sends no digests, the proxy requests the manifest by its tag.
    let untold = Answer::ok(padded("untold", size)).header("Content-Type", MANIFEST);
    upstream.on("/v2/app/manifests/untold", untold);
    assert_capped(proxy.get("app/manifests/untold"), |observed| observed == size);
    // A small compressed response decompresses to more than the limit.
    let large = padded("packed", size);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(large.as_bytes()).unwrap();
    let packed = Answer::ok(packer.finish().unwrap()).header("Content-Encoding", "gzip");
    let target = format!("app/manifests/{}", digest(large.as_bytes()));
    upstream.on(&format!("/v2/{target}"), packed.header("Content-Type", MANIFEST));
    assert_capped(proxy.get(&target), |observed| (LIMIT + 1..=size).contains(&observed));
}

/// An index of two images, each with one layer, at an upstream.
struct Offered {
    index: String,
    images: [String; 2],
    layers: [String; 2],
}

fn offer_index(upstream: &Upstream, image: &str, tag: &str, notes: [&str; 2]) -> Offered {
    let images = notes.map(|note| manifest(&[note.as_bytes()]));
    let parts: Vec<Value> = images
        .iter()
        .map(|one| json!({"mediaType": MANIFEST, "digest": digest(one.as_bytes()), "size": one.len()}))
        .collect();
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": parts}).to_string();
    Offered {
        index: offer(upstream, image, Some(tag), INDEX, &index),
        images: images.map(|one| offer(upstream, image, None, MANIFEST, &one)),
        layers: notes.map(|note| offer_blob(upstream, image, note.as_bytes())),
    }
}

/// Returns a function that lists the requests to the upstream since its last call, in order.
fn new_requests<'a>(upstream: &'a Upstream, image: &'a str) -> impl FnMut() -> Vec<String> + 'a {
    let mut before = 0;
    move || {
        let requests = upstream.requests();
        let new = requests.get(before..).unwrap_or_default().iter();
        before = requests.len();
        let prefix = format!("/v2/{image}/");
        new.map(|one| format!("{} {}", one.method, one.target.replacen(&prefix, "", 1))).collect()
    }
}

#[test]
fn a_digest_is_requested_once_and_a_stale_tag_by_head() {
    let (server, upstream) = (server(), Upstream::start());
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &json!({"metadata_ttl_s": 0}));
    let Offered { index, images, layers } = offer_index(&upstream, "team/app", "1.0", ["one", "two"]);
    let mut new_requests = new_requests(&upstream, "team/app");

    let answer = proxy.get("team/app/manifests/1.0").expect(200);
    assert_eq!(answer.header("docker-content-digest"), Some(index.as_str()));
    assert_eq!(answer.header("content-type"), Some(INDEX));
    assert_eq!(digest(&answer.body), index);
    // The proxy does not request the parts of the index before a client needs them.
    assert_eq!(new_requests(), ["HEAD manifests/1.0", &format!("GET manifests/{index}")]);
    for _ in 0..2 {
        proxy.head("team/app/manifests/1.0").expect(200);
        assert_eq!(new_requests(), ["HEAD manifests/1.0"]);
        proxy.get(&format!("team/app/manifests/{index}")).expect(200);
    }
    assert!(new_requests().is_empty());
    for expected in [true, false] {
        let image = proxy.get(&format!("team/app/manifests/{}", images[0])).expect(200);
        assert_eq!(digest(&image.body), images[0]);
        assert_eq!(proxy.get(&format!("team/app/blobs/{}", layers[0])).expect(200).text(), "one");
        let head = proxy.head(&format!("team/app/blobs/{}", layers[0])).expect(200);
        assert_eq!(head.header("content-length"), Some("3"));
        let once = [format!("GET manifests/{}", images[0]), format!("GET blobs/{}", layers[0])];
        assert_eq!(new_requests(), if expected { once.to_vec() } else { Vec::new() });
    }

    proxy.set(&json!({"metadata_ttl_s": 3600}));
    proxy.get("team/app/manifests/1.0").expect(200);
    assert!(new_requests().is_empty());
    proxy.set(&json!({"metadata_ttl_s": 0}));
    let moved = offer(&upstream, "team/app", Some("1.0"), MANIFEST, &manifest(&[b"three"]));
    let answer = proxy.get("team/app/manifests/1.0").expect(200);
    assert_eq!(answer.header("docker-content-digest"), Some(moved.as_str()));
    assert_eq!(new_requests(), ["HEAD manifests/1.0", &format!("GET manifests/{moved}")]);

    upstream.down(true);
    assert_eq!(digest(&proxy.get("team/app/manifests/1.0").expect(200).body), moved);
    for cached in [&index, &images[0]] {
        assert_eq!(digest(&proxy.get(&format!("team/app/manifests/{cached}")).expect(200).body), *cached);
    }
    assert_eq!(proxy.get(&format!("team/app/blobs/{}", layers[0])).expect(200).text(), "one");
    for missing in [format!("manifests/{}", images[1]), format!("blobs/{}", layers[1]), "manifests/2".into()]
    {
        let body = proxy.get(&format!("team/app/{missing}")).expect(502).json();
        assert_eq!(body["errors"][0]["code"], "UNAVAILABLE", "{body}");
    }
    assert!(new_requests().is_empty());
    assert!(proxy.cache()["counts"]["stale"].as_u64().unwrap() >= 1);
}

#[test]
fn without_digest_headers_the_manifest_itself_is_requested() {
    let (server, upstream) = (server(), Upstream::start());
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &json!({}));
    let manifest = manifest(&[b"a"]);
    upstream.on("/v2/app/manifests/1", Answer::ok(manifest.as_str()).header("Content-Type", MANIFEST));
    let answer = proxy.get("app/manifests/1").expect(200);
    assert_eq!(answer.header("docker-content-digest"), Some(digest(manifest.as_bytes()).as_str()));
    assert_eq!(answer.text(), manifest);
}

#[test]
fn the_query_of_mirror_clients_is_not_sent_upstream() {
    let (server, upstream) = (server(), Upstream::start());
    let settings = json!({"public": true, "metadata_ttl_s": 3600});
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &settings);
    let named = offer(&upstream, "library/alpine", Some("latest"), MANIFEST, &manifest(&[b"layer"]));
    let layer = offer_blob(&upstream, "library/alpine", b"layer");
    let (anonymous, mut new_requests) = (server.anonymous(), new_requests(&upstream, "library/alpine"));
    let own = |rest: &str| format!("/repositories/hub/v2/{rest}");
    assert_eq!(anonymous.get(&own("")).expect(200).text(), "{}");
    let of_image = |rest: &str| own(&format!("library/alpine/{rest}?ns=docker.io"));
    let once = ["HEAD manifests/latest", "GET manifests/IMAGE", "GET blobs/LAYER"]
        .map(|one| one.replace("IMAGE", &named).replace("LAYER", &layer));
    for expected in [&once[..], &[]] {
        let tag = anonymous.send(Request::new("HEAD", &of_image("manifests/latest"))).expect(200);
        assert_eq!(tag.header("docker-content-digest"), Some(named.as_str()));
        let image = anonymous.get(&of_image(&format!("manifests/{named}"))).expect(200);
        assert_eq!(digest(&image.body), named);
        assert_eq!(anonymous.get(&of_image(&format!("blobs/{layer}"))).expect(200).text(), "layer");
        // The proxy serves the same copies at its other address.
        assert_eq!(digest(&proxy.get("library/alpine/manifests/latest").expect(200).body), named);
        assert_eq!(new_requests(), expected);
    }
    let token = proxy.api.create_token(&[&proxy.id], &["read", "write"], None);
    let put = Request::new("PUT", &own("library/alpine/manifests/latest")).body("{}");
    let refused = server.anonymous().basic(OWNER, &token.secret).send(put).expect(405);
    assert_eq!(refused.field("code"), "writes_not_permitted_on_proxy");
}

#[test]
fn an_image_name_of_one_part_is_looked_up_below_library() {
    let (server, upstream) = (server(), Upstream::start());
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &json!({}));
    offer(&upstream, "library/alpine", Some("3"), MANIFEST, &manifest(&[b"a"]));
    offer(&upstream, "team/app", Some("3"), MANIFEST, &manifest(&[b"b"]));
    proxy.get("alpine/manifests/3").expect(404);
    proxy.set(&json!({"library_prefix": "always"}));
    proxy.get("alpine/manifests/3").expect(200);
    proxy.get("library/alpine/manifests/3").expect(200);
    proxy.get("team/app/manifests/3").expect(200);
    proxy.set(&json!({"library_prefix": "never"}));
    proxy.get("alpine/manifests/3").expect(404);
}

/// Returns the tags of all pages of a tag list, for a client that requests this page size.
fn tags(get: impl Fn(&str) -> Response, image: &str, n: usize) -> Vec<String> {
    let (mut all, mut next) = (Vec::new(), Some(format!("{image}/tags/list?n={n}")));
    while let Some(target) = next {
        let answer = get(&target).expect(200);
        let page = answer.json()["tags"].as_array().unwrap().clone();
        assert!(page.len() <= n && all.len() < 10_000, "{page:?}");
        all.extend(page.iter().map(|tag| tag.as_str().unwrap().to_owned()));
        next = answer.header("link").map(|link| {
            let query = link.split(['?', '>']).nth(1).unwrap().to_owned();
            format!("{image}/tags/list?{query}")
        });
    }
    all
}

/// Returns a signature of a manifest.
fn signature(subject: &str) -> String {
    json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": "application/x.signature", "layers": [],
        "config": {"mediaType": "application/x.config", "digest": digest(b"{}"), "size": 2},
        "subject": {"mediaType": MANIFEST, "digest": digest(subject.as_bytes()), "size": subject.len()},
    })
    .to_string()
}

#[test]
fn a_second_packhouse_is_an_upstream() {
    let (far, near) = (Server::start(), server());
    let hosted = ImageRepository::create(&far, "images", &json!({}));
    let image = hosted.push("team/app", "1", &[b"layer"]).unwrap();
    for tag in ["2", "3", "4", "5"] {
        hosted.push("team/app", tag, &[b"layer"]).unwrap();
    }
    let signed = signature(&image);
    hosted.push_manifest("team/app", &digest(signed.as_bytes()), MANIFEST, &signed).expect(201);

    let upstream = format!("{}/v2/repositories/images", far.base_url());
    let proxy =
        ImageProxy::create(&near, "hub", &upstream, &json!({"metadata_ttl_s": 0, "negative_ttl_s": 0}));
    // A private upstream repository looks like a missing one.
    let body = proxy.get("team/app/manifests/1").expect(404).json();
    assert_eq!(body["errors"][0]["code"], "MANIFEST_UNKNOWN");
    proxy.credentials(OWNER, &hosted.token.secret, None);
    let layer = format!("team/app/blobs/{}", digest(b"layer"));
    let subject = format!("team/app/referrers/{}", digest(image.as_bytes()));
    let all = || {
        assert_eq!(proxy.get("team/app/manifests/1").expect(200).text(), image);
        assert_eq!(proxy.get(&layer).expect(200).text(), "layer");
        assert_eq!(tags(|target| proxy.get(target), "team/app", 2), ["1", "2", "3", "4", "5"]);
        let referrers = proxy.get(&subject).expect(200).json();
        assert_eq!(referrers["manifests"][0]["digest"], digest(signed.as_bytes()));
        assert_eq!(referrers["manifests"][0]["artifactType"], "application/x.signature");
        assert_eq!(
            proxy.get(&format!("{subject}?artifactType=x")).expect(200).json()["manifests"],
            json!([])
        );
    };
    all();
    proxy.get("team/none/manifests/1").expect(404);
    assert_eq!(proxy.get("team/none/tags/list").expect(404).json()["errors"][0]["code"], "NAME_UNKNOWN");
    drop(far);
    all();
    proxy.get("team/none/tags/list").expect(502);
}

#[test]
fn upstream_lists_are_followed_at_the_same_host_and_up_to_a_limit() {
    let (server, upstream) = (server(), Upstream::start());
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &json!({}));
    let page = |tags: &[&str], link: &str| {
        let answer = Answer::ok(json!({"name": "x", "tags": tags}).to_string());
        if link.is_empty() { answer } else { answer.header("Link", &format!("<{link}>; rel=\"next\"")) }
    };
    let elsewhere = Upstream::start();
    // The upstream's pages have another size and order than the client's, contain an invalid name,
    // and link to another host. The proxy stays at the upstream's own host.
    upstream.on("/v2/a/tags/list?n=1000", page(&["b", "a", ".hidden"], "/v2/a/tags/list?token=1"));
    upstream
        .on("/v2/a/tags/list?token=1", page(&["c"], &format!("{}/v2/a/tags/list?token=2", elsewhere.url())));
    upstream.on("/v2/a/tags/list?token=2", page(&["d"], ""));
    assert_eq!(proxy.get("a/tags/list").expect(200).json()["tags"], json!(["a", "b", "c", "d"]));
    assert!(elsewhere.requests().is_empty());
    upstream.on("/v2/a/tags/list?n=2", page(&["a", "b"], "?token=1"));
    assert_eq!(proxy.get("a/tags/list?n=1").expect(200).json()["tags"], json!(["a"]));

    // The upstream's list is endless. The proxy ends its page and links to a next one.
    upstream.on("/v2/b/tags/list?n=1000", page(&["a"], "?turn=0"));
    upstream.on("/v2/b/tags/list?turn=0", page(&["a", "b"], "?turn=0"));
    let answer = proxy.get("b/tags/list").expect(200);
    assert_eq!(answer.json()["tags"], json!(["a", "b"]));
    assert!(answer.header("link").is_some_and(|link| link.contains("last=b")));
    let before = upstream.requests().len();
    upstream.on("/v2/c/tags/list?n=1000", page(&[], "?turn=0"));
    upstream.on("/v2/c/tags/list?turn=0", page(&[], "?turn=0"));
    proxy.get("c/tags/list").expect(502);
    assert!(upstream.requests().len() - before <= 20);

    // A registry without the referrers API may have a list of referrers under a tag.
    let subject = digest(b"subject");
    let entry = json!({"mediaType": MANIFEST, "digest": digest(b"r"), "size": 1, "artifactType": "x"});
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}).to_string();
    let tag = subject.replace(':', "-");
    let referrers = |image: &str| proxy.get(&format!("{image}/referrers/{subject}")).expect(200).json();
    assert_eq!(referrers("a")["manifests"], json!([]));
    upstream.on(&format!("/v2/b/manifests/{tag}"), Answer::ok(index.as_str()).header("Content-Type", INDEX));
    assert_eq!(referrers("b")["manifests"][0]["digest"], digest(b"r"));
    let endless = Answer::ok(index).header("Link", "<?turn=0>; rel=\"next\"");
    for target in [format!("/v2/c/referrers/{subject}"), format!("/v2/c/referrers/{subject}?turn=0")] {
        upstream.on(&target, endless.clone());
    }
    proxy.get(&format!("c/referrers/{subject}")).expect(502);
}

#[test]
fn every_write_to_a_proxy_is_refused() {
    let (server, upstream) = (server(), Upstream::start());
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &json!({}));
    let token = proxy.api.create_token(&[&proxy.id], &["read", "write"], None);
    let writer = server.anonymous().basic(OWNER, &token.secret);
    let named = digest(b"x");
    for (method, rest) in [
        ("POST", "app/blobs/uploads/".to_owned()),
        ("POST", format!("app/blobs/uploads/?digest={named}")),
        ("POST", format!("app/blobs/uploads/?mount={named}&from=repositories/hub/b")),
        ("PATCH", "app/blobs/uploads/1".to_owned()),
        ("PUT", format!("app/blobs/uploads/1?digest={named}")),
        ("DELETE", "app/blobs/uploads/1".to_owned()),
        ("PUT", "app/manifests/1".to_owned()),
        ("PUT", format!("app/manifests/{named}")),
        ("DELETE", "app/manifests/1".to_owned()),
        ("DELETE", format!("app/manifests/{named}")),
        ("DELETE", format!("app/blobs/{named}")),
    ] {
        let request = Request::new(method, &proxy.path(&rest)).header("Content-Type", MANIFEST).body("x");
        let body = writer.send(request).expect(405).json();
        assert_eq!(body["code"], "writes_not_permitted_on_proxy", "{method} {rest}: {body}");
        assert_eq!(body["errors"][0]["code"], "UNSUPPORTED", "{method} {rest}: {body}");
    }
    assert!(upstream.requests().is_empty(), "{:?}", upstream.requests());
}

/// Creates a group of these members. Returns a function that requests a path of the group, as a
/// client that may also read the repositories in `read`.
fn group(server: &Server, members: &[&str], read: &[&str]) -> impl Fn(&str) -> Response + use<> {
    let api = Api::sign_in(server);
    let name = format!("all{}{}", members.len(), read.len());
    let body = json!({"name": name, "format": "docker", "kind": "group", "members": members});
    let id = api.post("/v1/repositories", &body).expect(201).field("id");
    let token = api.create_token(&[&[id.as_str()], read].concat(), &["read"], None);
    let client = server.anonymous().basic(OWNER, &token.secret);
    move |rest: &str| client.get(&format!("/v2/repositories/{name}/{rest}"))
}

#[test]
fn a_group_uses_its_proxies_for_images_that_no_hosted_member_has() {
    let (server, first, second) = (server(), Upstream::start(), Upstream::start());
    let hosted = ImageRepository::create(&server, "own", &json!({"claimed_names": ["ours/*"]}));
    let ours = hosted.push("app", "1", &[b"ours"]).unwrap();
    let settings = json!({"metadata_ttl_s": 0, "negative_ttl_s": 0});
    let one = ImageProxy::create(&server, "one", &first.url(), &settings);
    let two = ImageProxy::create(&server, "two", &second.url(), &settings);
    let members = [one.id.as_str(), hosted.id.as_str(), two.id.as_str()];
    let get = group(&server, &members, &members);

    // The group never requests hosted and claimed names from an upstream.
    for name in ["app", "ours/new"] {
        offer(&first, name, Some("1"), MANIFEST, &manifest(&[b"theirs"]));
        offer(&first, name, Some("2"), MANIFEST, &manifest(&[b"theirs"]));
    }
    assert_eq!(get("app/manifests/1").expect(200).text(), ours);
    get("app/manifests/2").expect(404);
    get("ours/new/manifests/1").expect(404);
    assert_eq!(tags(&get, "app", 10), ["1"]);
    assert!(first.requests().is_empty());

    // For any other name, the group serves the image of the first member that has it, and merges
    // the lists of all members.
    let (a, b) = (manifest(&[b"a"]), manifest(&[b"b"]));
    offer(&first, "lib", Some("1"), MANIFEST, &a);
    offer(&second, "lib", Some("1"), MANIFEST, &b);
    offer(&second, "lib", Some("2"), MANIFEST, &b);
    let layer = offer_blob(&second, "lib", b"b");
    assert_eq!(get("lib/manifests/1").expect(200).text(), a);
    assert_eq!(get("lib/manifests/2").expect(200).text(), b);
    assert_eq!(get(&format!("lib/blobs/{layer}")).expect(200).text(), "b");
    for n in [1, 2, 10] {
        let query = format!("/v2/lib/tags/list?n={}", n + 1);
        first.on(&query, Answer::ok(r#"{"name": "lib", "tags": ["1", "3"]}"#));
        second.on(&query, Answer::ok(r#"{"name": "lib", "tags": ["1", "2"]}"#));
    }
    assert_eq!(get("lib/tags/list?n=10").expect(200).json()["tags"], json!(["1", "2", "3"]));
    assert_eq!(get("lib/tags/list?n=2").expect(200).json()["tags"], json!(["1", "2"]));
    let subject = digest(b"subject");
    for (upstream, entry) in [(&first, "x"), (&second, "y")] {
        let entry = json!({"mediaType": MANIFEST, "digest": digest(entry.as_bytes()), "size": 1});
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}).to_string();
        upstream.on(&format!("/v2/lib/referrers/{subject}"), Answer::ok(index).header("Content-Type", INDEX));
    }
    let merged = get(&format!("lib/referrers/{subject}")).expect(200).json();
    assert_eq!(merged["manifests"].as_array().unwrap().len(), 2, "{merged}");

    // A client that may not read a member sees the group without this member.
    let without = group(&server, &members, &members[1..]);
    assert_eq!(without("lib/manifests/1").expect(200).text(), b);

    // If one upstream is down, the group still serves hosted images and images of other members.
    first.down(true);
    assert_eq!(get("app/manifests/1").expect(200).text(), ours);
    let new = offer(&second, "new", Some("1"), MANIFEST, &manifest(&[b"new"]));
    assert_eq!(digest(&get("new/manifests/1").expect(200).body), new, "another member has it");
    assert_eq!(digest(&get(&format!("new/manifests/{new}")).expect(200).body), new);
    get(&format!("new/manifests/{}", digest(b"none"))).expect(502);
    assert_eq!(get("lib/manifests/1").expect(200).text(), a);
}

#[test]
fn a_shared_layer_is_served_if_a_policy_lets_one_of_its_images_pass() {
    let (server, upstream) = (server(), Upstream::start());
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &json!({}));
    let layers = [&b"base"[..], b"good", b"bad", b"{}"].map(|bytes| offer_blob(&upstream, "app", bytes));
    offer(&upstream, "app", Some("good"), MANIFEST, &manifest(&[b"base", b"good"]));
    offer(&upstream, "app", Some("bad"), MANIFEST, &manifest(&[b"base", b"bad"]));
    let policy = json!({
        "name": "ours", "component": "licences", "settings": {"allow": ["MIT"], "unknown": "deny"}, "repositories": "*",
    });
    let policy = format!("/v1/policies/{}", proxy.api.post("/v1/policies", &policy).expect(201).field("id"));
    proxy.api.call("POST", &format!("{policy}/preview")).expect(200);
    proxy.api.patch(&policy, &json!({"mode": "enforced"})).expect(200);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let until = u64::try_from(now).unwrap() + 3_600_000;
    let [of_good, of_bad] = ["good", "bad"].map(|tag| {
        let body = json!({"package": "app", "version": tag, "reason": "accepted", "until": until});
        let id = proxy.api.post(&format!("{policy}/exceptions"), &body).expect(201).field("id");
        format!("{policy}/exceptions/{id}")
    });
    let statuses = |method: &str| {
        let path = |digest: &str| proxy.path(&format!("app/blobs/{digest}"));
        layers.each_ref().map(|digest| proxy.client.send(Request::new(method, &path(digest))).status)
    };

    // The policy lets both tags pass while the client pulls them. Then the test removes the
    // exception for `bad`.
    for tag in ["good", "bad"] {
        proxy.get(&format!("app/manifests/{tag}")).expect(200);
    }
    proxy.api.call("DELETE", &of_bad).expect(204);
    proxy.get(&format!("app/blobs/{}", layers[0])).expect(200);
    assert!(!server.log().contains("policy refusal"), "no request was refused");
    for method in ["GET", "HEAD"] {
        assert_eq!(statuses(method), [200, 200, 403, 200], "{method}");
    }
    proxy.get("app/manifests/bad").expect(403);
    assert_eq!(statuses("GET"), [200, 200, 403, 200], "a refused attempt changes nothing");
    proxy.api.call("DELETE", &of_good).expect(204);
    assert_eq!(statuses("GET"), [403; 4]);
}
