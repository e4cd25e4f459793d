//! Conversion of a request's head to and from its recorded form.

use super::file::RecordedRequest;
use crate::request::RequestHead;

impl From<&RequestHead> for RecordedRequest {
    fn from(head: &RequestHead) -> RecordedRequest {
        RecordedRequest {
            method: head.method.clone(),
            claim: head.claim.clone(),
            path: head.path.to_vec(),
            query: head.query.clone(),
            headers: head.headers.clone(),
            address: head.address.clone(),
            caller: head.caller.as_deref().map(str::to_owned),
            request_id: head.request_id.as_ref().to_owned(),
        }
    }
}

impl From<RecordedRequest> for RequestHead {
    fn from(request: RecordedRequest) -> RequestHead {
        let RecordedRequest { method, claim, path, query, headers, address, caller, request_id } = request;
        RequestHead {
            method,
            claim,
            path: path.into(),
            query,
            headers,
            address,
            caller: caller.map(Into::into),
            request_id: request_id.into(),
            ..RequestHead::default()
        }
    }
}
