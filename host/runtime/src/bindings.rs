//! Code generated from wit/v0.1, in one place. `imports/` implements the imports' traits, and
//! `call.rs` calls the exports.
//!
//! Every import may trap: the host ends a call with a trap if its storage fails or the call exceeds
//! a limit. Imports that may wait for storage or for a service are asynchronous. The other imports
//! are synchronous, because a synchronous import costs only a third as much.

#![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated; wit/v0.1 documents it")]

wasmtime::component::bindgen!({
    path: "../../wit/v0.1",
    world: "plugin-with-all",
    imports: {
        "packhouse:format/blobs.[method]blob.size": async | trappable,
        "packhouse:format/blobs.[method]blob.digest": async | trappable,
        "packhouse:format/blobs.[method]blob.read": async | trappable,
        "packhouse:format/blobs.[method]blob.find": async | trappable,
        "packhouse:format/blobs.[method]blob.slice": async | trappable,
        "packhouse:format/blobs.[method]blob.decode": async | trappable,
        "packhouse:format/blobs.[method]writer.write": async | trappable,
        "packhouse:format/blobs.[method]writer.append": async | trappable,
        "packhouse:format/blobs.[method]writer.write-parts": async | trappable,
        "packhouse:format/blobs.[static]writer.finish": async | trappable,
        "packhouse:format/blobs.[static]upload.finish": async | trappable,
        "packhouse:format/blobs.[static]upload.abort": async | trappable,
        "packhouse:format/records.[static]transaction.commit": async | trappable,
        "packhouse:format/records.[method]repository.get": async | trappable,
        "packhouse:format/records.[method]repository.scan": async | trappable,
        "packhouse:format/records.[method]repository.keys": async | trappable,
        "packhouse:format/records.[method]repository.runs": async | trappable,
        "packhouse:format/records.[method]repository.search": async | trappable,
        "packhouse:format/records.[method]repository.withheld": async | trappable,
        "packhouse:format/records.[method]repository.blob": async | trappable,
        "packhouse:format/records.[method]repository.keep": async | trappable,
        "packhouse:format/records.[method]repository.begin-upload": async | trappable,
        "packhouse:format/records.[method]repository.upload": async | trappable,
        "packhouse:format/upstream.[method]reply.status": async | trappable,
        "packhouse:format/upstream.[method]reply.headers": async | trappable,
        "packhouse:format/upstream.[method]reply.address": async | trappable,
        "packhouse:format/upstream.[static]reply.body": async | trappable,
        "packhouse:format/releases": async | trappable,
        "packhouse:format/advisories": async | trappable,
        "packhouse:format/identity": async | trappable,
        "packhouse:format/signing": async | trappable,
        default: trappable,
    },
    exports: { default: async },
    trappable_error_type: { "packhouse:format/types.error" => crate::host_error::HostError },
    with: {
        "packhouse:format/http.request": crate::state::http::RequestRep,
        "packhouse:format/http.intent": crate::state::http::IntentRep,
        "packhouse:format/http.response-options": crate::state::http::ResponseOptionsRep,
        "packhouse:format/blobs.blob": crate::state::blobs::BlobRep,
        "packhouse:format/blobs.writer": crate::state::blobs::WriterRep,
        "packhouse:format/blobs.upload": crate::state::blobs::UploadRep,
        "packhouse:format/memo.making": crate::state::memo::MakingRep,
        "packhouse:format/records.repository": crate::state::records::RepositoryRep,
        "packhouse:format/records.transaction": crate::state::transaction::TransactionRep,
        "packhouse:format/upstream.fetch": crate::state::upstream::FetchRep,
        "packhouse:format/upstream.reply": crate::state::upstream::ReplyRep,
    },
});
