//! Invalid and hostile responses of a registry.

use super::*;

/// A test registry with one artifact. The test decides on each response.
pub(crate) struct Hostile {
    pub(crate) upstream: Upstream,
    pub(crate) manifest: Value,
    pub(crate) component: Vec<u8>,
}

impl Hostile {
    pub(crate) fn new(component: &[u8]) -> Hostile {
        let upstream = Upstream::start();
        let layer = json!({"mediaType": WASM, "digest": digest(component), "size": component.len()});
        let config = json!({"mediaType": CONFIG, "digest": digest(b"{}"), "size": 2});
        let manifest =
            json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]});
        let hostile = Hostile { upstream, manifest, component: component.to_vec() };
        hostile.upstream.on(&hostile.blob(), Answer::ok(component));
        hostile
    }

    pub(crate) fn blob(&self) -> String {
        format!("/v2/a/raw/blobs/{}", digest(&self.component))
    }

    pub(crate) fn at(&self, version: &str) -> String {
        format!("oci://{}/a/raw{version}", self.upstream.address())
    }

    /// Serves a manifest under a tag and under its digest. Returns its reference.
    pub(crate) fn shows(&self, manifest: &Value) -> String {
        let bytes = manifest.to_string().into_bytes();
        let digest = digest(&bytes);
        let answer = Answer::ok(bytes).header("Content-Type", MANIFEST);
        self.upstream.on("/v2/a/raw/manifests/1", answer.clone());
        self.upstream.on(&format!("/v2/a/raw/manifests/{digest}"), answer);
        self.at(&format!("@{digest}"))
    }

    /// Adds a signature to a manifest, as cosign does.
    pub(crate) fn signs(&self, beside: &str, payload: &[u8], signature: &str) {
        let layer = json!({
            "mediaType": SIMPLE_SIGNING, "digest": digest(payload), "size": payload.len(),
            "annotations": {"dev.cosignproject.cosign/signature": signature},
        });
        let config = json!({"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(b"{}"), "size": 2});
        let manifest =
            json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]});
        let tag = format!("{}.sig", beside.replace(':', "-"));
        self.upstream.on(&format!("/v2/a/raw/manifests/{tag}"), Answer::ok(manifest.to_string()));
        self.upstream.on(&format!("/v2/a/raw/blobs/{}", digest(payload)), Answer::ok(payload));
    }
}

/// The payload that cosign signs.
pub(crate) fn payload(manifest: &str) -> Vec<u8> {
    json!({"critical": {"identity": {"docker-reference": ""}, "image": {"docker-manifest-digest": manifest},
        "type": "cosign container image signature"}, "optional": null})
    .to_string()
    .into_bytes()
}

#[test]
fn invalid_responses_of_a_registry_are_refused_with_a_reason() {
    let folder = TempDir::new().unwrap();
    let server = bare(&folder, &[]);
    let api = Api::sign_in(&server);
    let hostile = Hostile::new(&guest("raw").1);
    let good = hostile.manifest.clone();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut manifest = good.clone();
        change(&mut manifest);
        hostile.shows(&manifest)
    };
    let layer = &good["layers"][0];
    refused(&post(&api, &with(&|it| it["layers"] = json!([layer, layer]))), "has 2 layers");
    refused(&post(&api, &with(&|it| it["layers"] = json!([]))), "has 0 layers");
    refused(
        &post(&api, &with(&|it| it["layers"][0]["mediaType"] = json!("application/x-tar"))),
        "layer is \\\"application/x-tar\\\", not application/wasm",
    );
    refused(
        &post(
            &api,
            &with(&|it| it["config"]["mediaType"] = json!("application/vnd.oci.image.config.v1+json")),
        ),
        "is not a component",
    );
    refused(
        &post(&api, &with(&|it| it["layers"][0]["size"] = json!(200 << 20))),
        "has 209715200 bytes; the limit is 67108864",
    );
    refused(&post(&api, &with(&|it| it["layers"][0]["size"] = json!(7))), "more than the 7 bytes");
    refused(&post(&api, &with(&|it| it["layers"][0]["digest"] = json!("sha256:zz"))), "not SHA-256");
    refused(
        &post(
            &api,
            &with(&|it| it["mediaType"] = json!("application/vnd.docker.distribution.manifest.v2+json")),
        ),
        "is not a manifest; its type is",
    );
    refused(&post(&api, &with(&|it| it["schemaVersion"] = json!(1))), "schema version 1");
    let one = json!({"mediaType": MANIFEST, "digest": digest(good.to_string().as_bytes()), "size": 1});
    let list = |items: &Value| json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": items});
    refused(&post(&api, &hostile.shows(&list(&json!([one, one])))), "exactly one of them must be");
    assert_eq!(
        hostile.upstream.count(&hostile.blob()),
        1,
        "a manifest that names too much or another type is not fetched"
    );

    // The registry serves manifests and blobs that are wrong, truncated or too large, or redirects
    // to disallowed addresses.
    let pinned = hostile.shows(&good);
    let reference = hostile.at(&format!("@sha256:{}", "0".repeat(64)));
    refused(&post(&api, &reference), "There is no");
    hostile
        .upstream
        .on(&format!("/v2/a/raw/manifests/sha256:{}", "0".repeat(64)), Answer::ok(good.to_string()));
    refused(&post(&api, &reference), "has the digest");
    let blob = |answer: Answer| hostile.upstream.on(&hostile.blob(), answer);
    let mut other = hostile.component.clone();
    other[40] ^= 1;
    blob(Answer::ok(other));
    refused(&post(&api, &pinned), "The component has the digest");
    blob(Answer::ok(hostile.component.clone()).cut(1000));
    refused(&post(&api, &pinned), "cannot be fetched");
    blob(Answer::ok(hostile.component[..1000].to_vec()));
    refused(&post(&api, &pinned), "has 1000 bytes; the manifest states");
    blob(Answer::ok("x").header("Content-Length", &(200_u64 << 20).to_string()));
    refused(&post(&api, &pinned), "more than the");
    blob(Answer::ok(hostile.component.clone()).endless());
    refused(&post(&api, &pinned), "more than the");
    blob(Answer::redirect("http://10.0.0.1/blob"));
    refused(&post(&api, &pinned), "is not an address that this upstream may lead to");
    blob(Answer::redirect("http://169.254.169.254/latest"));
    refused(&post(&api, &pinned), "is not an address that this upstream may lead to");
    blob(Answer::new(500, r#"{"errors": [{"code": "UNKNOWN", "message": "the disk is gone"}]}"#));
    refused(&post(&api, &pinned), "status 500: the disk is gone");
    hostile.upstream.on("/v2/a/raw/manifests/2", Answer::ok("x".repeat(2 << 20)));
    refused(&post(&api, &hostile.at(":2")), "exceeds 1048576 bytes");

    // Disallowed addresses and invalid references.
    refused(&post(&api, "oci://10.0.0.1/a/raw:1"), "is not an address that an upstream may have");
    refused(&post(&api, "http://127.0.0.1/a/raw:1"), "does not begin with oci://");
    let secret = post(&api, "oci://me:hunter2@127.0.0.1/a:1");
    refused(&secret, "host");
    assert!(!secret.text().contains("hunter2"));

    // The server refuses an artifact that is not a plugin, as it refuses an upload of the same
    // bytes. It installs a valid artifact.
    let text = Hostile::new(b"hello");
    refused(&post(&api, &text.shows(&text.manifest)), "is not a WebAssembly component");
    assert_eq!(api.call("GET", "/v1/plugins").expect(200).json()["items"], json!([]), "nothing was stored");
    blob(Answer::ok(hostile.component.clone()));
    assert_eq!(post(&api, &hostile.at(":1")).expect(201).json()["source"], json!(pinned));
    // The server installs the manifest for Wasm from an index of several manifests.
    let mut wasm = one.clone();
    wasm["platform"] = json!({"architecture": "wasm", "os": "wasip2"});
    let index =
        hostile.shows(&list(&json!([{"mediaType": MANIFEST, "digest": digest(b"x"), "size": 1}, wasm])));
    assert_eq!(post(&api, &index).expect(201).json()["source"], json!(index));
}
