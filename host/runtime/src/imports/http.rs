//! `http`: the request that a plugin receives, the intent that it makes, and the options of its
//! answer.

use wasmtime::Result;
use wasmtime::component::Resource;

use crate::bindings::packhouse::format::http::{
    Header, Host, HostIntent, HostRequest, HostResponseOptions, Part,
};
use crate::error::CallError;
use crate::request::{BodyPlan, Looked};
use crate::state::blobs::BlobRep;
use crate::state::http::{IntentRep, RequestRep, ResponseOptionsRep};
use crate::state::{HostState, Phase};

/// Bounds of the items in an intent, far above any need.
const MAX_INTENT_TEXT: usize = 4 << 10;
const MAX_INTENT_ITEMS: usize = 64;

impl Host for HostState {}

impl HostRequest for HostState {
    fn method(&mut self, _request: Resource<RequestRep>) -> Result<String> {
        Ok(self.head.method.clone())
    }

    fn claim(&mut self, _request: Resource<RequestRep>) -> Result<Option<String>> {
        Ok(self.head.claim.clone())
    }

    fn path(&mut self, _request: Resource<RequestRep>) -> Result<Vec<String>> {
        Ok(self.head.path.to_vec())
    }

    fn query(&mut self, _request: Resource<RequestRep>) -> Result<Vec<(String, String)>> {
        self.looked = self.looked.max(Looked::AtQuery);
        Ok(self.head.query.clone())
    }

    fn headers(&mut self, _request: Resource<RequestRep>) -> Result<Vec<Header>> {
        self.looked = self.looked.max(Looked::AtHeaders);
        Ok(headers(&self.head.headers))
    }

    fn address(&mut self, _request: Resource<RequestRep>) -> Result<String> {
        Ok(self.head.address.clone())
    }

    fn caller(&mut self, _request: Resource<RequestRep>) -> Result<Option<String>> {
        self.uncacheable = true;
        Ok(self.head.caller.as_deref().map(str::to_owned))
    }

    fn moved(&mut self, _request: Resource<RequestRep>) -> Result<bool> {
        Ok(self.is_moved)
    }

    fn take_body(&mut self, _request: Resource<RequestRep>) -> Result<Option<Resource<BlobRep>>> {
        let body = self.body.take();
        Ok(body.map(|blob| self.push(BlobRep::whole(blob))).transpose()?)
    }

    fn take_parts(&mut self, _request: Resource<RequestRep>) -> Result<Vec<Part>> {
        let parts = std::mem::take(&mut self.parts);
        let mut handed = Vec::with_capacity(parts.len());
        for part in parts {
            let body = self.push(BlobRep::whole(part.body))?;
            let headers = headers(&part.headers);
            handed.push(Part { name: part.name, filename: part.filename, headers, body });
        }
        Ok(handed)
    }

    fn drop(&mut self, _request: Resource<RequestRep>) -> Result<()> {
        // The guest only borrows the handle.
        Ok(())
    }
}

fn headers(pairs: &[(String, String)]) -> Vec<Header> {
    pairs.iter().map(|(name, value)| Header { name: name.clone(), value: value.clone() }).collect()
}

impl HostIntent for HostState {
    fn new(&mut self, action: String, subject: Option<String>) -> Result<Resource<IntentRep>> {
        self.reach(Phase::Route, "http.[constructor]intent")?;
        bounded("subject", subject.as_deref().unwrap_or_default())?;
        bounded("action", &action)?;
        Ok(self.push(IntentRep { action, subject, ..IntentRep::default() })?)
    }

    fn body(&mut self, intent: Resource<IntentRep>, limit: u64) -> Result<()> {
        self.held_mut(&intent)?.body = BodyPlan::Body { limit };
        Ok(())
    }

    fn parts(&mut self, intent: Resource<IntentRep>, limit: u64) -> Result<()> {
        self.held_mut(&intent)?.body = BodyPlan::Parts { limit };
        Ok(())
    }

    fn append(
        &mut self,
        intent: Resource<IntentRep>,
        upload: String,
        offset: Option<u64>,
        limit: u64,
    ) -> Result<()> {
        bounded("upload", &upload)?;
        self.held_mut(&intent)?.body = BodyPlan::Append { upload, offset, limit };
        Ok(())
    }

    fn under(&mut self, intent: Resource<IntentRep>, limit: String) -> Result<()> {
        bounded("under", &limit)?;
        self.held_mut(&intent)?.limit = Some(limit);
        Ok(())
    }

    fn digests(&mut self, intent: Resource<IntentRep>, algorithms: Vec<String>) -> Result<()> {
        if algorithms.len() > MAX_INTENT_ITEMS {
            return Err(too_much("digests").into());
        }
        self.held_mut(&intent)?.digests = algorithms;
        Ok(())
    }

    fn also_read(&mut self, intent: Resource<IntentRep>, repository: String) -> Result<()> {
        bounded("also-read", &repository)?;
        let named = &mut self.held_mut(&intent)?.also_read;
        if named.len() >= MAX_INTENT_ITEMS {
            return Err(too_much("also-read").into());
        }
        named.push(repository);
        Ok(())
    }

    fn check(&mut self, intent: Resource<IntentRep>) -> Result<()> {
        self.held_mut(&intent)?.check = true;
        Ok(())
    }

    fn for_publish(&mut self, intent: Resource<IntentRep>) -> Result<()> {
        self.held_mut(&intent)?.for_publish = true;
        Ok(())
    }

    fn about_package(&mut self, intent: Resource<IntentRep>, name: String) -> Result<()> {
        bounded("about-package", &name)?;
        let named = &mut self.held_mut(&intent)?.packages;
        if named.len() >= MAX_INTENT_ITEMS {
            return Err(too_much("about-package").into());
        }
        named.push(name);
        Ok(())
    }

    fn many_packages(&mut self, intent: Resource<IntentRep>) -> Result<()> {
        self.held_mut(&intent)?.many_packages = true;
        Ok(())
    }

    fn drop(&mut self, intent: Resource<IntentRep>) -> Result<()> {
        self.take(intent)?;
        Ok(())
    }
}

fn bounded(what: &'static str, text: &str) -> Result<(), CallError> {
    if text.len() > MAX_INTENT_TEXT { Err(too_much(what)) } else { Ok(()) }
}

fn too_much(what: &'static str) -> CallError {
    CallError::BadAnswer(format!(
        "an intent's {what} has more than {MAX_INTENT_TEXT} bytes or {MAX_INTENT_ITEMS} items"
    ))
}

impl HostResponseOptions for HostState {
    fn new(&mut self) -> Result<Resource<ResponseOptionsRep>> {
        self.reach(Phase::Serve, "http.[constructor]response-options")?;
        Ok(self.push(ResponseOptionsRep::default())?)
    }

    fn modified(&mut self, options: Resource<ResponseOptionsRep>, at: u64) -> Result<()> {
        self.held_mut(&options)?.modified = Some(at);
        Ok(())
    }

    fn drop(&mut self, options: Resource<ResponseOptionsRep>) -> Result<()> {
        self.take(options)?;
        Ok(())
    }
}
