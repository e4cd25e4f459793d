//! Every way in which layers come, and what becomes of uploads that do not end.

use super::{LAYER, OTHER, begin, case, digest, get, push};
use packhouse_testkit::Case;

/// In the order in which they are sent.
pub(super) fn cases() -> Vec<Case> {
    [
        patch_then_empty_put(),
        body_in_put(),
        chunks(),
        whole_in_one_post(),
        empty_layers(),
        cancelled(),
        mounts(),
    ]
    .concat()
}

/// As docker, podman and crane do it.
fn patch_then_empty_put() -> Vec<Case> {
    let blob = format!("/v2/repositories/releases/app/blobs/{}", digest(LAYER));
    vec![
        begin("app"),
        case("all of it in one stream", "PATCH", "/app/blobs/uploads/{last}", 202)
            .with("transfer-encoding", "chunked")
            .body(LAYER)
            .header("range", &format!("0-{}", LAYER.len() - 1)),
        get("how far it has come", "/app/blobs/uploads/{last}", 204)
            .header("range", &format!("0-{}", LAYER.len() - 1)),
        case("another image's session it is not", "PATCH", "/other/blobs/uploads/{last}", 404).body(LAYER),
    ]
    .into_iter()
    .chain([
        begin("app"),
        case("the stream", "PATCH", "/app/blobs/uploads/{last}", 202).body(LAYER),
        case("the end", "PUT", &format!("/app/blobs/uploads/{{last}}?digest={}", digest(LAYER)), 201)
            .header("location", &blob)
            .header("docker-content-digest", &digest(LAYER)),
        case("is there", "HEAD", &format!("/app/blobs/{}", digest(LAYER)), 200)
            .header("docker-content-digest", &digest(LAYER))
            .header("content-type", "application/octet-stream"),
        get("is what was sent", &format!("/app/blobs/{}", digest(LAYER)), 200).content(LAYER),
        get("for every image of the repository", &format!("/team/b/blobs/{}", digest(LAYER)), 200),
    ])
    .collect()
}

/// As containerd, oras and helm do it.
fn body_in_put() -> Vec<Case> {
    let end = |bytes: &str| format!("/app/blobs/uploads/{{last}}?digest={}", digest(bytes));
    vec![
        begin("app"),
        case("no digest", "PUT", "/app/blobs/uploads/{last}", 400).body(OTHER).code("DIGEST_INVALID"),
        begin("app"),
        case("all of it with the end", "PUT", &end(OTHER), 201).body(OTHER),
        get("is there", &format!("/app/blobs/{}", digest(OTHER)), 200).content(OTHER),
        begin("app"),
        case("other bytes than announced", "PUT", &end("x"), 400)
            .body("y")
            .code("DIGEST_INVALID")
            .contains("provided digest did not match uploaded content"),
        case("are not kept", "HEAD", &format!("/app/blobs/{}", digest("y")), 404),
    ]
}

/// As regclient does it.
fn chunks() -> Vec<Case> {
    let whole = "0123456789";
    let add = |name: &str, range: &str, body: &str, status: u16| {
        case(name, "PATCH", "/app/blobs/uploads/{last}", status).with("content-range", range).body(body)
    };
    let end = format!("/app/blobs/uploads/{{last}}?digest={}", digest(whole));
    vec![
        begin("app"),
        add("the first chunk", "0-3", "0123", 202).header("range", "0-3"),
        add("the first again", "0-3", "0123", 416).code("RANGE_INVALID").header("range", "0-3"),
        add("one too far", "8-9", "89", 416).header("range", "0-3"),
        get("where to go on", "/app/blobs/uploads/{last}", 204).header("range", "0-3"),
        add("with another length than it says", "4-5", "456", 400).code("SIZE_INVALID"),
        add("no range", "four", "4", 400).code("BLOB_UPLOAD_INVALID"),
        add("backwards", "5-4", "4", 400).code("BLOB_UPLOAD_INVALID"),
        add("without content", "4-6", "", 400).code("BLOB_UPLOAD_INVALID"),
        add("as HTTP writes it", "bytes 4-6/10", "456", 202).header("range", "0-6"),
        case("the last with the end, too far", "PUT", &end, 416).with("content-range", "8-9").body("89"),
        case("the last with the end", "PUT", &end, 201).with("content-range", "7-9").body("789"),
        get("is whole", &format!("/app/blobs/{}", digest(whole)), 200).content(whole),
        case("the session is over", "PUT", &end, 404).body("x").code("BLOB_UPLOAD_UNKNOWN"),
    ]
}

fn whole_in_one_post() -> Vec<Case> {
    let target = |digest: &str| format!("/app/blobs/uploads/?digest={digest}");
    vec![
        push("at once", "app", "at once").header("docker-content-digest", &digest("at once")),
        get("is there", &format!("/app/blobs/{}", digest("at once")), 200).content("at once"),
        case("other bytes", "POST", &target(&digest("a")), 400).body("b").code("DIGEST_INVALID"),
        case("another algorithm", "POST", &target("sha512:00"), 400).body("b").code("DIGEST_INVALID"),
        case("without the last slash", "POST", "/app/blobs/uploads", 202),
    ]
}

fn empty_layers() -> Vec<Case> {
    let end = format!("/app/blobs/uploads/{{last}}?digest={}", digest(""));
    let streamed = |name: &str| {
        case(name, "PATCH", "/app/blobs/uploads/{last}", 202).with("transfer-encoding", "chunked")
    };
    vec![
        begin("app"),
        case("a chunk without content", "PATCH", "/app/blobs/uploads/{last}", 400)
            .with("content-length", "0")
            .code("BLOB_UPLOAD_INVALID"),
        begin("app"),
        streamed("a stream that turns out empty").header("range", "0-0"),
        case("its end", "PUT", &end, 201),
        begin("app"),
        case("without a chunk", "PUT", &end, 201),
        push("at once", "app", ""),
        get("is there", &format!("/app/blobs/{}", digest("")), 200).content(""),
    ]
}

fn cancelled() -> Vec<Case> {
    vec![
        begin("app"),
        case("cancelled", "DELETE", "/app/blobs/uploads/{last}", 204),
        begin("app"),
        case("some bytes", "PATCH", "/app/blobs/uploads/{last}", 202).body("some"),
        case("cancelled after them", "DELETE", "/app/blobs/uploads/{last}", 204),
    ]
}

fn mounts() -> Vec<Case> {
    let target = |digest: &str, from: &str| format!("/team/b/blobs/uploads/?mount={digest}&from={from}");
    vec![
        case("within the repository", "POST", &target(&digest(LAYER), "repositories/releases/app"), 201)
            .header("location", &format!("/v2/repositories/releases/team/b/blobs/{}", digest(LAYER)))
            .header("docker-content-digest", &digest(LAYER)),
        case("from wherever it is", "POST", &format!("/team/b/blobs/uploads/?mount={}", digest(LAYER)), 201),
        case(
            "what is nowhere begins a session",
            "POST",
            &target(&digest("no"), "repositories/releases/app"),
            202,
        ),
        case("so does an unknown source", "POST", &target(&digest("no"), "repositories/nowhere/app"), 202),
        case("and one that makes no sense", "POST", &target(&digest("no"), "app"), 202),
        case("no digest", "POST", &target("latest", "repositories/releases/app"), 400).code("DIGEST_INVALID"),
    ]
}
