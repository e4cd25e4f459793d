//! Every kind of push of a layer, and uploads that are not finished.

use super::{LAYER, OTHER, begin, case, digest, get, push};
use packhouse_testkit::Case;

/// The cases in the order of the requests.
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

/// A push in the form that docker, podman and crane use.
fn patch_then_empty_put() -> Vec<Case> {
    let blob = format!("/v2/repositories/releases/app/blobs/{}", digest(LAYER));
    vec![
        begin("app"),
        case("all of it in one stream", "PATCH", "/app/blobs/uploads/{last}", 202)
            .with("transfer-encoding", "chunked")
            .body(LAYER)
            .header("range", &format!("0-{}", LAYER.len() - 1)),
        get("the received bytes", "/app/blobs/uploads/{last}", 204)
            .header("range", &format!("0-{}", LAYER.len() - 1)),
        case("the session does not exist for another image", "PATCH", "/other/blobs/uploads/{last}", 404)
            .body(LAYER),
    ]
    .into_iter()
    .chain([
        begin("app"),
        case("the stream", "PATCH", "/app/blobs/uploads/{last}", 202).body(LAYER),
        case("the end", "PUT", &format!("/app/blobs/uploads/{{last}}?digest={}", digest(LAYER)), 201)
            .header("location", &blob)
            .header("docker-content-digest", &digest(LAYER)),
        case("the layer is there", "HEAD", &format!("/app/blobs/{}", digest(LAYER)), 200)
            .header("docker-content-digest", &digest(LAYER))
            .header("content-type", "application/octet-stream"),
        get("it has the sent bytes", &format!("/app/blobs/{}", digest(LAYER)), 200).content(LAYER),
        get(
            "it is there for every image of the repository",
            &format!("/team/b/blobs/{}", digest(LAYER)),
            200,
        ),
    ])
    .collect()
}

/// A push in the form that containerd, oras and helm use.
fn body_in_put() -> Vec<Case> {
    let end = |bytes: &str| format!("/app/blobs/uploads/{{last}}?digest={}", digest(bytes));
    vec![
        begin("app"),
        case("an end without a digest", "PUT", "/app/blobs/uploads/{last}", 400)
            .body(OTHER)
            .code("DIGEST_INVALID"),
        begin("app"),
        case("all bytes with the end", "PUT", &end(OTHER), 201).body(OTHER),
        get("the layer is there", &format!("/app/blobs/{}", digest(OTHER)), 200).content(OTHER),
        begin("app"),
        case("other bytes than announced", "PUT", &end("x"), 400)
            .body("y")
            .code("DIGEST_INVALID")
            .contains("provided digest did not match uploaded content"),
        case("they are not stored", "HEAD", &format!("/app/blobs/{}", digest("y")), 404),
    ]
}

/// A push in the form that regclient uses.
fn chunks() -> Vec<Case> {
    let whole = "0123456789";
    let add = |name: &str, range: &str, body: &str, status: u16| {
        case(name, "PATCH", "/app/blobs/uploads/{last}", status).with("content-range", range).body(body)
    };
    let end = format!("/app/blobs/uploads/{{last}}?digest={}", digest(whole));
    vec![
        begin("app"),
        add("the first chunk", "0-3", "0123", 202).header("range", "0-3"),
        add("the first chunk again", "0-3", "0123", 416).code("RANGE_INVALID").header("range", "0-3"),
        add("a chunk too far ahead", "8-9", "89", 416).header("range", "0-3"),
        get("the received range", "/app/blobs/uploads/{last}", 204).header("range", "0-3"),
        add("a chunk of another length than stated", "4-5", "456", 400).code("SIZE_INVALID"),
        add("an invalid range", "four", "4", 400).code("BLOB_UPLOAD_INVALID"),
        add("a reversed range", "5-4", "4", 400).code("BLOB_UPLOAD_INVALID"),
        add("an empty chunk", "4-6", "", 400).code("BLOB_UPLOAD_INVALID"),
        add("a range in the form of HTTP", "bytes 4-6/10", "456", 202).header("range", "0-6"),
        case("the last chunk with the end, too far ahead", "PUT", &end, 416)
            .with("content-range", "8-9")
            .body("89"),
        case("the last chunk with the end", "PUT", &end, 201).with("content-range", "7-9").body("789"),
        get("the layer is complete", &format!("/app/blobs/{}", digest(whole)), 200).content(whole),
        case("the session is over", "PUT", &end, 404).body("x").code("BLOB_UPLOAD_UNKNOWN"),
    ]
}

fn whole_in_one_post() -> Vec<Case> {
    let target = |digest: &str| format!("/app/blobs/uploads/?digest={digest}");
    vec![
        push("a layer in one request", "app", "at once").header("docker-content-digest", &digest("at once")),
        get("the layer is there", &format!("/app/blobs/{}", digest("at once")), 200).content("at once"),
        case("bytes of another digest", "POST", &target(&digest("a")), 400).body("b").code("DIGEST_INVALID"),
        case("a digest of another algorithm", "POST", &target("sha512:00"), 400)
            .body("b")
            .code("DIGEST_INVALID"),
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
        case("an empty chunk", "PATCH", "/app/blobs/uploads/{last}", 400)
            .with("content-length", "0")
            .code("BLOB_UPLOAD_INVALID"),
        begin("app"),
        streamed("a stream that turns out empty").header("range", "0-0"),
        case("the end of the stream", "PUT", &end, 201),
        begin("app"),
        case("an end without a chunk", "PUT", &end, 201),
        push("an empty layer in one request", "app", ""),
        get("the layer is there", &format!("/app/blobs/{}", digest("")), 200).content(""),
    ]
}

fn cancelled() -> Vec<Case> {
    vec![
        begin("app"),
        case("a session is cancelled", "DELETE", "/app/blobs/uploads/{last}", 204),
        begin("app"),
        case("some bytes", "PATCH", "/app/blobs/uploads/{last}", 202).body("some"),
        case("a session with bytes is cancelled", "DELETE", "/app/blobs/uploads/{last}", 204),
    ]
}

fn mounts() -> Vec<Case> {
    let target = |digest: &str, from: &str| format!("/team/b/blobs/uploads/?mount={digest}&from={from}");
    vec![
        case(
            "a mount within the repository",
            "POST",
            &target(&digest(LAYER), "repositories/releases/app"),
            201,
        )
        .header("location", &format!("/v2/repositories/releases/team/b/blobs/{}", digest(LAYER)))
        .header("docker-content-digest", &digest(LAYER)),
        case(
            "a mount without a source",
            "POST",
            &format!("/team/b/blobs/uploads/?mount={}", digest(LAYER)),
            201,
        ),
        case(
            "an unknown blob begins a session",
            "POST",
            &target(&digest("no"), "repositories/releases/app"),
            202,
        ),
        case(
            "an unknown source begins a session",
            "POST",
            &target(&digest("no"), "repositories/nowhere/app"),
            202,
        ),
        case("an invalid source begins a session", "POST", &target(&digest("no"), "app"), 202),
        case("a mount of an invalid digest", "POST", &target("latest", "repositories/releases/app"), 400)
            .code("DIGEST_INVALID"),
    ]
}
