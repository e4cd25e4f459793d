//! Handling of a request by a mounted format, in the steps of the host: route, check, receive the
//! body, handle.

use crate::answer::Answer;
use crate::blob::MemoryBlob;
use crate::call::{CallHost, CallRequest, Rights};
use crate::mount::Mount;
use crate::repository::MemoryRepository;
use crate::request::{Address, Form, TestRequest};
use crate::shape;
use crate::state::{self, RepositoryState};
use packhouse_sdk::host::HostPart;
use packhouse_sdk::{Action, BodyPlan, Context, Failure, Format, Intent, Repository, Request, call};
use std::cell::RefCell;

/// Header that marks a publish of a file that another server served before.
const MOVED: &str = "packhouse-published-at";

impl<F: Format> Mount<F> {
    pub(crate) fn upkeep(
        &self,
        action: Action,
        work: impl FnOnce(&Context) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let rights = Rights::new(self.host.state.clone(), Some(action), Some(self.name.clone()));
        work(&self.context(&rights, &TestRequest::default(), Vec::new(), None))?;
        rights.settle();
        Ok(())
    }

    /// Runs work that must not write.
    pub(crate) fn present<T>(&self, work: impl FnOnce(&Context) -> Result<T, Failure>) -> Result<T, Failure> {
        let rights = Rights::new(self.host.state.clone(), None, Some(self.name.clone()));
        work(&self.context(&rights, &TestRequest::default(), Vec::new(), None))
    }

    /// Answers a request like the host, but without authentication.
    pub(crate) fn answer(&self, request: &TestRequest) -> Answer {
        let Some(address) = request.address() else {
            return Answer::refusal(400, "invalid_request", "The address makes no sense");
        };
        let answer = self.route(request, &address).and_then(|intent| self.take(request, &address, &intent));
        let mut answer = answer.unwrap_or_else(shape::refused);
        if request.method == "HEAD" {
            answer.body.clear();
        }
        answer
    }

    pub(crate) fn route(&self, request: &TestRequest, address: &Address) -> Result<Intent, Failure> {
        let host = self.host_request(request, address, None);
        call::route::<F>(&self.read(request, address, &host))
    }

    fn take(&self, request: &TestRequest, address: &Address, intent: &Intent) -> Result<Answer, Failure> {
        self.host.state.borrow().refuse(&self.name, intent)?;
        let others = self.others(intent);
        if intent.check {
            let host = self.host_request(request, address, Some(intent.action));
            let rights = Rights::new(self.host.state.clone(), None, Some(self.name.clone()));
            let cx = self.context(&rights, request, others.clone(), None);
            call::check::<F>(&cx, &self.read(request, address, &host))?;
        }
        let (host, received) = self.receive(request, address, intent)?;
        let rights = Rights::new(self.host.state.clone(), Some(intent.action), Some(self.name.clone()));
        let cx = self.context(&rights, request, others, received);
        let response = call::handle::<F>(&cx, &self.read(request, address, &host))?;
        let answer = shape::answered(response)?;
        rights.settle();
        Ok(answer)
    }

    fn read<'a>(&self, request: &TestRequest, address: &Address, host: &'a CallRequest) -> Request<'a> {
        let state = self.host.state.borrow();
        let kind = state.repositories.get(&self.name).map(|state| state.kind.clone());
        let (method, claim) = (request.method.clone(), request.claim.clone());
        Request::new(kind.unwrap_or_default(), method, claim, address.0.clone(), host)
    }

    /// Returns the values that a plugin reads on demand, without a body. `action` is `None` in
    /// `route`.
    fn host_request(&self, request: &TestRequest, address: &Address, action: Option<Action>) -> CallRequest {
        let claims = F::describe().claims().to_vec();
        let claim = claims.iter().find(|claim| Some(&claim.name) == request.claim.as_ref());
        let path = claim.map_or("/repositories/{repository}", |claim| claim.path.trim_end_matches('/'));
        CallRequest {
            query: address.1.clone(),
            headers: request.sent_headers(),
            address: format!("https://packhouse.test{}", path.replace("{repository}", &self.name)),
            caller: request.caller.clone(),
            is_moved: action == Some(Action::Publish)
                && request.headers.iter().any(|(name, _)| name == MOVED),
            ..CallRequest::default()
        }
    }

    /// Returns the other repositories of a call. For a group, these are the members that may serve
    /// the request; a nested group is replaced by its own members. For any other repository, these
    /// are the repositories that the intent named.
    fn others(&self, intent: &Intent) -> Vec<String> {
        let state = self.host.state.borrow();
        let repositories = &state.repositories;
        let own = repositories.get(&self.name);
        if own.is_some_and(|state| state.kind == "group") {
            return state.serving(&self.name, intent);
        }
        let format = own.map(|state| state.format.as_str());
        let same = |state: &RepositoryState| Some(state.format.as_str()) == format;
        intent.also_read.iter().filter(|name| repositories.get(*name).is_some_and(same)).cloned().collect()
    }

    fn context(
        &self,
        rights: &Rights,
        request: &TestRequest,
        others: Vec<String>,
        received: Option<(String, u64)>,
    ) -> Context {
        let host =
            CallHost { rights: rights.clone(), caller: request.caller.clone(), lines: RefCell::new(0) };
        let handle = |name: String, received| {
            Repository::new(Box::new(MemoryRepository { rights: rights.clone(), name, received }))
        };
        let target = handle(self.name.clone(), received);
        let others = others.into_iter().map(|name| handle(name, None)).collect();
        Context::new(Box::new(host), Some(target), others)
    }

    /// Receives the body as the intent requests.
    fn receive(
        &self,
        request: &TestRequest,
        address: &Address,
        intent: &Intent,
    ) -> Result<(CallRequest, Option<(String, u64)>), Failure> {
        let unknown = intent.digests.iter().find(|algorithm| state::digest(algorithm, b"").is_err());
        if let Some(algorithm) = unknown {
            return Err(Failure::internal(format!("the intent asks for {algorithm:?}")));
        }
        let mut taken = self.host_request(request, address, Some(intent.action));
        let mut received = None;
        match &intent.body {
            BodyPlan::None => {}
            BodyPlan::Body { limit } => {
                within(request.body.len(), *limit)?;
                taken.body = RefCell::new(Some(MemoryBlob::new(request.body.as_slice())));
            }
            BodyPlan::Parts { limit } => {
                within(request.parts.iter().map(|part| part.value.len()).sum(), *limit)?;
                if request.parts.is_empty() {
                    return Err(Failure::invalid("The body is not a form"));
                }
                taken.parts = RefCell::new(request.parts.iter().map(part).collect());
            }
            BodyPlan::Append { upload, offset, limit } => {
                within(request.body.len(), *limit)?;
                received = self.append(upload, *offset, &request.body);
            }
        }
        Ok((taken, received))
    }

    /// Appends bytes to an upload if it exists and has the required size.
    fn append(&self, name: &str, offset: Option<u64>, bytes: &[u8]) -> Option<(String, u64)> {
        let mut state = self.host.state.borrow_mut();
        let upload = state.repositories.get_mut(&self.name)?.uploads.get_mut(name)?;
        if offset.is_some_and(|offset| offset != upload.bytes.len() as u64) {
            return None;
        }
        upload.bytes.extend_from_slice(bytes);
        Some((name.to_owned(), bytes.len() as u64))
    }
}

fn part(form: &Form) -> HostPart {
    HostPart {
        name: form.name.clone(),
        filename: form.filename.clone(),
        headers: Vec::new(),
        body: MemoryBlob::boxed(form.value.as_slice()),
    }
}

fn within(size: usize, limit: u64) -> Result<(), Failure> {
    if size as u64 > limit { Err(Failure::too_large(format!("At most {limit} bytes"))) } else { Ok(()) }
}
