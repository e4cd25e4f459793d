//! The same below the repository's own address, where dockerd asks for the images of a mirror: what is answered is the same, and
//! where it sends clients lies below that address too.

use super::{CONFIG, LAYER, OCI_IMAGE, OCI_INDEX, digest, get, image};
use packhouse_testkit::Case;

/// Rows for a hosted repository called `releases`.
pub(super) fn cases() -> Vec<Case> {
    [registry(), pushes(), reads(), refusals()].concat()
}

/// A row below the repository's own address.
fn own(name: &str, method: &str, target: &str, status: u16) -> Case {
    Case::new(name, method, &format!("/v2/{target}"), status)
}

/// Where something of the image is.
fn at(rest: &str) -> String {
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
        own("by another method", "POST", "", 405).code("UNSUPPORTED").header("allow", "GET, HEAD"),
        own("no catalogue", "GET", "_catalog", 405)
            .code("UNSUPPORTED")
            .contains("catalog not yet implemented")
            .header("allow", ""),
        own("nor by another method", "POST", "_catalog", 405).code("UNSUPPORTED").header("allow", ""),
    ]
}

fn pushes() -> Vec<Case> {
    let blob = at(&format!("blobs/{}", digest(LAYER)));
    let put = |name: &str, tag: &str| {
        own(name, "PUT", &format!("library/hello/manifests/{tag}"), 201)
            .with("content-type", OCI_IMAGE)
            .body(manifest())
            .header("location", &at(&format!("manifests/{}", digest(manifest()))))
    };
    let uploads = "library/hello/blobs/uploads/";
    let session = format!("{uploads}{{last}}");
    vec![
        own("a session begins", "POST", uploads, 202).header("range", "0-0"),
        own("the stream", "PATCH", &session, 202).body(LAYER),
        own("how far it has come", "GET", &session, 204).header("range", &format!("0-{}", LAYER.len() - 1)),
        own("the end", "PUT", &format!("{uploads}{{last}}?digest={}", digest(LAYER)), 201)
            .header("location", &blob),
        own("the config at once", "POST", &format!("{uploads}?digest={}", digest(CONFIG)), 201).body(CONFIG),
        put("by tag", "1"),
        put("by another tag", "2"),
    ]
}

fn reads() -> Vec<Case> {
    let manifest = manifest();
    let (named, layer) = (digest(&manifest), format!("library/hello/blobs/{}", digest(LAYER)));
    let whole = |case: Case| case.content(&manifest).header("docker-content-digest", &named);
    let referrers = format!("library/hello/referrers/{named}");
    let next = format!("<{}?n=1&last=1>; rel=\"next\"", at("tags/list"));
    vec![
        whole(own("by tag, as a mirror is asked", "GET", "library/hello/manifests/1?ns=docker.io", 200)),
        own("by HEAD", "HEAD", "library/hello/manifests/1?ns=docker.io", 200)
            .header("docker-content-digest", &named),
        whole(own("by digest", "GET", &format!("library/hello/manifests/{named}"), 200)),
        whole(get("and as the claim has it", "/library/hello/manifests/1", 200)),
        own("a layer", "GET", &format!("{layer}?ns=docker.io"), 200).content(LAYER),
        own("tags", "GET", "library/hello/tags/list", 200)
            .contains(r#""repositories/releases/library/hello""#)
            .contains(r#""tags":["1","2"]"#),
        own("a page of them", "GET", "library/hello/tags/list?n=1", 200).header("link", &next),
        own("referrers", "GET", &referrers, 200).contains(OCI_INDEX),
        own("a tag goes", "DELETE", "library/hello/manifests/2", 202),
        own("is gone", "GET", "library/hello/manifests/2", 404).code("MANIFEST_UNKNOWN"),
    ]
}

fn refusals() -> Vec<Case> {
    vec![
        own("no image", "GET", "manifests/latest", 400).code("NAME_INVALID"),
        own("a capital letter", "GET", "library/Hello/manifests/1", 400).code("NAME_INVALID"),
        own("none of the protocol's", "GET", "library/hello", 400).contains("Invalid OCI path"),
        own("nor another version's", "GET", "v1/search", 400).contains("Invalid OCI path"),
        own("an odd method", "PATCH", "library/hello/manifests/1", 405)
            .code("UNSUPPORTED")
            .header("allow", "GET, HEAD, PUT, DELETE"),
        Case::new("not below it", "GET", "/v1/library/hello/manifests/1", 404),
    ]
}
