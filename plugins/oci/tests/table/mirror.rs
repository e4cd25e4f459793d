//! The protocol below the repository's own address, where dockerd requests the images of a mirror.
//! Responses are the same as below the shared path `/v2/`, but their links begin with the
//! repository's own address.

use super::{CONFIG, LAYER, OCI_IMAGE, OCI_INDEX, digest, get, image};
use packhouse_testkit::Case;

/// The cases for a hosted repository named `releases`.
pub(super) fn cases() -> Vec<Case> {
    [registry(), pushes(), reads(), refusals()].concat()
}

/// A case below the repository's own address.
fn own(name: &str, method: &str, target: &str, status: u16) -> Case {
    Case::new(name, method, &format!("/v2/{target}"), status)
}

/// A path of the image below the repository's own address.
fn location(rest: &str) -> String {
    format!("/repositories/releases/v2/library/hello/{rest}")
}

fn manifest() -> String {
    image(OCI_IMAGE, CONFIG, &[LAYER])
}

fn registry() -> Vec<Case> {
    let version = |case: Case| case.content("{}").header("docker-distribution-api-version", "registry/2.0");
    vec![
        version(own("the ping", "GET", "", 200)),
        version(Case::new("without the last slash", "GET", "/v2", 200)),
        own("the ping with another method", "POST", "", 405).code("UNSUPPORTED").header("allow", "GET, HEAD"),
        own("the catalogue is refused", "GET", "_catalog", 405)
            .code("UNSUPPORTED")
            .contains("catalog not yet implemented")
            .header("allow", ""),
        own("the catalogue with another method", "POST", "_catalog", 405)
            .code("UNSUPPORTED")
            .header("allow", ""),
    ]
}

fn pushes() -> Vec<Case> {
    let blob = location(&format!("blobs/{}", digest(LAYER)));
    let put = |name: &str, tag: &str| {
        own(name, "PUT", &format!("library/hello/manifests/{tag}"), 201)
            .with("content-type", OCI_IMAGE)
            .body(manifest())
            .header("location", &location(&format!("manifests/{}", digest(manifest()))))
    };
    let uploads = "library/hello/blobs/uploads/";
    let session = format!("{uploads}{{last}}");
    vec![
        own("a session begins", "POST", uploads, 202).header("range", "0-0"),
        own("the stream", "PATCH", &session, 202).body(LAYER),
        own("the received bytes", "GET", &session, 204).header("range", &format!("0-{}", LAYER.len() - 1)),
        own("the end", "PUT", &format!("{uploads}{{last}}?digest={}", digest(LAYER)), 201)
            .header("location", &blob),
        own("the config in one request", "POST", &format!("{uploads}?digest={}", digest(CONFIG)), 201)
            .body(CONFIG),
        put("by tag", "1"),
        put("by another tag", "2"),
    ]
}

fn reads() -> Vec<Case> {
    let manifest = manifest();
    let (named, layer) = (digest(&manifest), format!("library/hello/blobs/{}", digest(LAYER)));
    let whole = |case: Case| case.content(&manifest).header("docker-content-digest", &named);
    let referrers = format!("library/hello/referrers/{named}");
    let next = format!("<{}?n=1&last=1>; rel=\"next\"", location("tags/list"));
    vec![
        whole(own("by tag, as dockerd requests it", "GET", "library/hello/manifests/1?ns=docker.io", 200)),
        own("by tag with HEAD", "HEAD", "library/hello/manifests/1?ns=docker.io", 200)
            .header("docker-content-digest", &named),
        whole(own("by digest", "GET", &format!("library/hello/manifests/{named}"), 200)),
        whole(get("by tag below the claim", "/library/hello/manifests/1", 200)),
        own("a layer", "GET", &format!("{layer}?ns=docker.io"), 200).content(LAYER),
        own("tags", "GET", "library/hello/tags/list", 200)
            .contains(r#""repositories/releases/library/hello""#)
            .contains(r#""tags":["1","2"]"#),
        own("a page of them", "GET", "library/hello/tags/list?n=1", 200).header("link", &next),
        own("referrers", "GET", &referrers, 200).contains(OCI_INDEX),
        own("a tag is deleted", "DELETE", "library/hello/manifests/2", 202),
        own("it is gone", "GET", "library/hello/manifests/2", 404).code("MANIFEST_UNKNOWN"),
    ]
}

fn refusals() -> Vec<Case> {
    vec![
        own("a manifest without an image", "GET", "manifests/latest", 400).code("NAME_INVALID"),
        own("a name with a capital letter", "GET", "library/Hello/manifests/1", 400).code("NAME_INVALID"),
        own("a path outside the protocol", "GET", "library/hello", 400).contains("Invalid OCI path"),
        own("a path of another protocol version", "GET", "v1/search", 400).contains("Invalid OCI path"),
        own("an unsupported method", "PATCH", "library/hello/manifests/1", 405)
            .code("UNSUPPORTED")
            .header("allow", "GET, HEAD, PUT, DELETE"),
        Case::new("a path outside v2", "GET", "/v1/library/hello/manifests/1", 404),
    ]
}
