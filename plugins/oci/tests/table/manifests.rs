//! Manifests of every kind, their tags, their referrers, and their deletion.

use super::{
    CONFIG, DOCKER_IMAGE, DOCKER_LIST, LAYER, OCI_IMAGE, OCI_INDEX, OTHER, case, digest, get, image, index,
    push, put_manifest, referrer, refused_manifest,
};
use packhouse_testkit::Case;

/// The cases in the order of the requests.
pub(super) fn cases() -> Vec<Case> {
    [
        manifests(),
        reads(),
        refused_manifests(),
        missing_parts(),
        docker_images(),
        foreign_layers(),
        indexes(),
        referrers(),
        several_tags_at_once(),
        tags(),
        deletions(),
        deleted_and_pushed_again(),
    ]
    .concat()
}

fn manifests() -> Vec<Case> {
    let manifest = image(OCI_IMAGE, CONFIG, &[LAYER, OTHER]);
    let location = format!("/v2/repositories/releases/team/app/manifests/{}", digest(&manifest));
    vec![
        push("a config", "team/app", CONFIG),
        put_manifest("by tag", "/team/app/manifests/latest", OCI_IMAGE, &manifest)
            .header("location", &location)
            .no_header("oci-subject"),
        put_manifest("the same manifest again", "/team/app/manifests/latest", OCI_IMAGE, &manifest),
        put_manifest(
            "by digest",
            &format!("/team/app/manifests/{}", digest(&manifest)),
            OCI_IMAGE,
            &manifest,
        ),
        put_manifest(
            "with a parameter of the media type",
            "/team/app/manifests/1.0",
            &format!("{OCI_IMAGE}; charset=utf-8"),
            &manifest,
        ),
        case("with the digest of other bytes", "PUT", &format!("/team/app/manifests/{}", digest("x")), 400)
            .with("content-type", OCI_IMAGE)
            .body(&manifest)
            .code("MANIFEST_INVALID")
            .contains("computed digest does not match reference"),
    ]
}

fn reads() -> Vec<Case> {
    let manifest = image(OCI_IMAGE, CONFIG, &[LAYER, OTHER]);
    let by_digest = format!("/team/app/manifests/{}", digest(&manifest));
    let with_headers = |case: Case| {
        case.header("docker-content-digest", &digest(&manifest)).header("content-type", OCI_IMAGE)
    };
    vec![
        with_headers(get("by tag, byte for byte", "/team/app/manifests/latest", 200)).content(&manifest),
        with_headers(get("by digest", &by_digest, 200)).content(&manifest),
        with_headers(case("by HEAD", "HEAD", "/team/app/manifests/latest", 200)).content(""),
        with_headers(get("whatever types the client accepts", "/team/app/manifests/latest", 200))
            .with("accept", DOCKER_IMAGE),
        get("not below the name of another image", &by_digest.replace("team/app", "team/b"), 404)
            .code("MANIFEST_UNKNOWN"),
    ]
}

fn refused_manifests() -> Vec<Case> {
    let manifest = image(OCI_IMAGE, CONFIG, &[LAYER]);
    let bad = refused_manifest;
    vec![
        bad("another media type", "application/json", &manifest, "unsupported manifest media type"),
        bad("schema 1", "application/vnd.docker.distribution.manifest.v1+json", "{}", "unsupported"),
        bad("a Content-Type that is not its own", DOCKER_IMAGE, &manifest, "does not match its Content-Type"),
        bad("not JSON", OCI_IMAGE, "{", "manifest body is not valid JSON"),
        bad("an empty body", OCI_IMAGE, "", "manifest body is not valid JSON"),
        bad(
            "an image with manifests",
            OCI_IMAGE,
            &manifest.replacen("{", r#"{"manifests":[],"#, 1),
            "must not have `manifests`",
        ),
        bad(
            "an index with layers",
            OCI_INDEX,
            &index(OCI_INDEX, OCI_IMAGE, &[]).replacen("{", r#"{"layers":[],"#, 1),
            "must not have `layers`",
        ),
        bad("over 4 MiB", OCI_IMAGE, &" ".repeat((4 << 20) + 1), "manifest exceeds maximum size"),
        bad("deeply nested JSON", OCI_IMAGE, &"[".repeat(100_000), "manifest body is not valid JSON"),
        get("none of them is stored", "/app/manifests/bad", 404),
    ]
}

fn missing_parts() -> Vec<Case> {
    let manifest = image(OCI_IMAGE, CONFIG, &[LAYER, "missing one", "missing two"]);
    let list = index(OCI_INDEX, OCI_IMAGE, &["no manifest", LAYER]);
    let put = |name: &str, kind: &str, manifest: &str| {
        case(name, "PUT", "/app/manifests/bad", 400)
            .with("content-type", kind)
            .body(manifest)
            .code("MANIFEST_BLOB_UNKNOWN")
            .contains("manifest names a blob that was never uploaded")
    };
    let each = "manifest names a blob that was never uploaded\nmanifest names a blob that was never uploaded";
    vec![
        put("each missing layer is reported", OCI_IMAGE, &manifest).contains(each),
        put("each missing manifest too", OCI_INDEX, &list).contains(each),
        get("nothing of it is stored", "/app/manifests/bad", 404),
    ]
}

fn docker_images() -> Vec<Case> {
    let manifest = image(DOCKER_IMAGE, CONFIG, &[LAYER]);
    let list = index(DOCKER_LIST, DOCKER_IMAGE, &[&manifest]);
    vec![
        put_manifest("an image", "/app/manifests/docker", DOCKER_IMAGE, &manifest),
        get("it keeps its type", "/app/manifests/docker", 200).header("content-type", DOCKER_IMAGE),
        put_manifest("a list", "/app/manifests/list", DOCKER_LIST, &list),
        get("the list keeps its type", "/app/manifests/list", 200)
            .header("content-type", DOCKER_LIST)
            .content(&list),
    ]
}

fn foreign_layers() -> Vec<Case> {
    let manifest = image(OCI_IMAGE, CONFIG, &["elsewhere"])
        .replace("application/x.layer", "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip");
    vec![put_manifest("a foreign layer is not stored here", "/app/manifests/foreign", OCI_IMAGE, &manifest)]
}

fn indexes() -> Vec<Case> {
    let (one, two) = (image(OCI_IMAGE, CONFIG, &[LAYER]), image(OCI_IMAGE, CONFIG, &[OTHER]));
    let both = index(OCI_INDEX, OCI_IMAGE, &[&one, &two]);
    let nested = index(OCI_INDEX, OCI_INDEX, &[&both]);
    let cache = index(OCI_INDEX, "application/x.layer", &[LAYER, OTHER]);
    let by_digest = |manifest: &str| format!("/multi/manifests/{}", digest(manifest));
    vec![
        put_manifest("one platform", &by_digest(&one), OCI_IMAGE, &one),
        put_manifest("another", &by_digest(&two), OCI_IMAGE, &two),
        put_manifest("an index of both", "/multi/manifests/latest", OCI_INDEX, &both),
        put_manifest("an index of indexes", "/multi/manifests/nested", OCI_INDEX, &nested),
        put_manifest("an index of layers, like a build cache", "/multi/manifests/cache", OCI_INDEX, &cache),
        get("the index is served", "/multi/manifests/latest", 200)
            .content(&both)
            .header("content-type", OCI_INDEX),
        get("its parts are served", &by_digest(&two), 200).content(&two),
        get("each index has a tag", "/multi/tags/list", 200)
            .content(r#"{"name":"repositories/releases/multi","tags":["cache","latest","nested"]}"#),
    ]
}

fn referrers() -> Vec<Case> {
    let subject = image(OCI_IMAGE, CONFIG, &[LAYER, OTHER]);
    let signature = referrer("application/x.signature", &subject, "signed");
    let sbom = referrer("application/x.sbom", &subject, "listed");
    let early = referrer("application/x.signature", "not here yet", "early");
    let by_digest = |manifest: &str| format!("/team/app/manifests/{}", digest(manifest));
    let list = format!("/team/app/referrers/{}", digest(&subject));
    let first = std::cmp::min(digest(&signature), digest(&sbom));
    vec![
        put_manifest("a signature", &by_digest(&signature), OCI_IMAGE, &signature)
            .header("oci-subject", &digest(&subject)),
        put_manifest("a bill of materials", "/team/app/manifests/sbom", OCI_IMAGE, &sbom),
        put_manifest("a referrer before its subject", &by_digest(&early), OCI_IMAGE, &early)
            .header("oci-subject", &digest("not here yet")),
        get("both are listed", &list, 200)
            .header("content-type", OCI_INDEX)
            .no_header("oci-filters-applied")
            .contains(&digest(&signature))
            .contains(&digest(&sbom))
            .contains(r#""annotations":{"note":"signed"}"#)
            .lacks(&digest(&early)),
        get("referrers of one type", &format!("{list}?artifactType=application%2Fx.sbom"), 200)
            .header("oci-filters-applied", "artifactType")
            .contains(&digest(&sbom))
            .lacks(&digest(&signature)),
        get("the page after the first", &format!("{list}?last={first}"), 200).lacks(&first),
        get("referrers of an unknown type", &format!("{list}?artifactType=x"), 200)
            .contains(r#""manifests":[]"#),
        get(
            "the referrer before its subject",
            &format!("/team/app/referrers/{}", digest("not here yet")),
            200,
        )
        .contains(&digest(&early)),
        get("referrers of an invalid digest", "/team/app/referrers/latest", 400).code("DIGEST_INVALID"),
        case("a referrer is deleted", "DELETE", &by_digest(&signature), 202),
        get("it is no longer listed", &list, 200).contains(&digest(&sbom)).lacks(&digest(&signature)),
    ]
}

fn several_tags_at_once() -> Vec<Case> {
    let manifest = image(OCI_IMAGE, CONFIG, &[LAYER]);
    let many: Vec<String> = (0..101).map(|number| format!("tag=t{number}")).collect();
    let target = |tags: &str| format!("/several/manifests/{}?{tags}", digest(&manifest));
    vec![
        put_manifest("by digest with tags", &target("tag=b&tag=a&tag=b"), OCI_IMAGE, &manifest)
            .header("oci-tag", "a, b"),
        get("the image has each tag", "/several/manifests/a", 200).content(&manifest),
        case("too many tags", "PUT", &target(&many.join("&")), 414).body(&manifest),
        case("an invalid tag", "PUT", &target("tag=."), 400).body(&manifest).code("NAME_INVALID"),
    ]
}

fn tags() -> Vec<Case> {
    let manifest = image(OCI_IMAGE, CONFIG, &[LAYER]);
    let list = |name: &str, query: &str, tags: &str| {
        get(name, &format!("/many/tags/list{query}"), 200)
            .content(format!(r#"{{"name":"repositories/releases/many","tags":[{tags}]}}"#))
    };
    let put = |tag: &str| put_manifest("a tag", &format!("/many/manifests/{tag}"), OCI_IMAGE, &manifest);
    let next = |n: u32, last: &str| {
        format!("</v2/repositories/releases/many/tags/list?n={n}&last={last}>; rel=\"next\"")
    };
    vec![
        put("b"),
        put("A"),
        put("_c"),
        put("a"),
        list("in the order of their bytes", "", r#""A","_c","a","b""#).no_header("link"),
        list("a page", "?n=2", r#""A","_c""#).header("link", &next(2, "_c")),
        list("the next, which is the last", "?n=2&last=_c", r#""a","b""#).no_header("link"),
        list("after the last tag", "?n=2&last=b", "").no_header("link"),
        list("no tags", "?n=0", "").no_header("link"),
        list("after a tag that does not exist", "?last=B", r#""_c","a","b""#),
        list("more tags than there can be", "?n=99999999999999999999999", r#""A","_c","a","b""#),
        get("a negative number", "/many/tags/list?n=-1", 400).code("PAGINATION_NUMBER_INVALID"),
        get("not a number", "/many/tags/list?n=abc", 400).code("PAGINATION_NUMBER_INVALID"),
        get("a control character", "/many/tags/list?last=%00", 400).code("PAGINATION_NUMBER_INVALID"),
    ]
}

fn deletions() -> Vec<Case> {
    let (one, two) = (image(OCI_IMAGE, CONFIG, &[LAYER]), image(OCI_IMAGE, CONFIG, &[OTHER]));
    let by_digest = |manifest: &str| format!("/gone/manifests/{}", digest(manifest));
    let delete = |name: &str, target: &str, status: u16| case(name, "DELETE", target, status);
    vec![
        put_manifest("a tag", "/gone/manifests/a", OCI_IMAGE, &one),
        put_manifest("another tag of the same manifest", "/gone/manifests/b", OCI_IMAGE, &one),
        put_manifest("a tag of another manifest", "/gone/manifests/c", OCI_IMAGE, &two),
        delete("a deletion by tag", "/gone/manifests/a", 202),
        get("the tag is gone", "/gone/manifests/a", 404),
        get("the manifest stays", &by_digest(&one), 200),
        get("its other tag stays", "/gone/manifests/b", 200),
        delete("the same deletion again", "/gone/manifests/a", 404).code("MANIFEST_UNKNOWN"),
        put_manifest("a tag moves", "/gone/manifests/c", OCI_IMAGE, &one),
        get("its previous manifest stays", &by_digest(&two), 200),
        delete("a deletion by digest", &by_digest(&one), 202),
        get("the manifest is gone", &by_digest(&one), 404),
        get("its tags are gone", "/gone/tags/list", 200).contains(r#""tags":[]"#),
        delete("the same deletion by digest again", &by_digest(&one), 404),
        delete("the last manifest is deleted", &by_digest(&two), 202),
        get("the image no longer exists", "/gone/tags/list", 404).code("NAME_UNKNOWN"),
    ]
}

fn deleted_and_pushed_again() -> Vec<Case> {
    let manifest = image(OCI_IMAGE, CONFIG, &[LAYER]);
    vec![
        put_manifest("the manifest is pushed again", "/gone/manifests/a", OCI_IMAGE, &manifest),
        get("it is served", "/gone/manifests/a", 200).content(&manifest),
        get("it has only the new tag", "/gone/tags/list", 200).contains(r#""tags":["a"]"#),
    ]
}
