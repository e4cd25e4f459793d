//! Table of a protocol's requests: method, path, plan, handler.

use crate::pattern;
use crate::{Context, Failure, Intent, Params, Request, Response};

/// Function that returns the intent of a request; it sees only the head of the request.
pub type Planner = fn(&Request<'_>, &Params<'_>) -> Result<Intent, Failure>;
/// Function that answers a request.
pub type Handler = fn(&Context, &Request<'_>, &Params<'_>) -> Result<Response, Failure>;
/// Function that checks before the body arrives whether a request can succeed.
pub type Check = fn(&Context, &Request<'_>, &Params<'_>) -> Result<(), Failure>;

/// Routing table. The first row whose method and pattern match a request handles it; `HEAD` uses
/// the rows of `GET`.
///
/// A pattern is `/` for the address itself, or consists of words and parameters:
/// `/simple/{project}/`, `/{path..}`, `/{name..}/manifests/{reference}`. `{name}` is exactly one
/// segment, `{name..}` one or more.
#[derive(Debug, Default)]
pub struct Router {
    rows: Vec<Row>,
    claim: Option<&'static str>,
    below: Option<&'static str>,
}

/// Row of the routing table.
#[derive(Debug)]
pub struct Row {
    claim: Option<&'static str>,
    below: Option<&'static str>,
    method: &'static str,
    pattern: &'static str,
    plan: Planner,
    handler: Handler,
    check: Option<Check>,
}

impl Row {
    /// Runs `check` before the body is received, and before `100 Continue`. The check can only
    /// read, and the handler makes the final decision.
    pub fn check(&mut self, check: Check) -> &mut Self {
        self.check = Some(check);
        self
    }

    /// Returns the part of a path that the pattern describes; `None` if the path is not below the
    /// row's segment.
    fn own_path<'p>(&self, path: &'p [String]) -> Option<&'p [String]> {
        let Some(segment) = self.below else { return Some(path) };
        let (first, rest) = path.split_first()?;
        if first != segment {
            return None;
        }
        match rest {
            // A slash at the end makes no difference, as for the address of a repository.
            [last] if last.is_empty() => Some(&[]),
            rest => Some(rest),
        }
    }
}

impl Router {
    /// Adds a row for `GET` and `HEAD`; the host leaves out the content for `HEAD`.
    pub fn get(&mut self, pattern: &'static str, plan: Planner, handler: Handler) -> &mut Row {
        self.row("GET", pattern, plan, handler)
    }

    /// Adds a row for `PUT`.
    pub fn put(&mut self, pattern: &'static str, plan: Planner, handler: Handler) -> &mut Row {
        self.row("PUT", pattern, plan, handler)
    }

    /// Adds a row for `POST`.
    pub fn post(&mut self, pattern: &'static str, plan: Planner, handler: Handler) -> &mut Row {
        self.row("POST", pattern, plan, handler)
    }

    /// Adds a row for `PATCH`.
    pub fn patch(&mut self, pattern: &'static str, plan: Planner, handler: Handler) -> &mut Row {
        self.row("PATCH", pattern, plan, handler)
    }

    /// Adds a row for `DELETE`.
    pub fn delete(&mut self, pattern: &'static str, plan: Planner, handler: Handler) -> &mut Row {
        self.row("DELETE", pattern, plan, handler)
    }

    /// Adds a row for another method, in upper case.
    pub fn row(
        &mut self,
        method: &'static str,
        pattern: &'static str,
        plan: Planner,
        handler: Handler,
    ) -> &mut Row {
        let Self { claim, below, .. } = *self;
        let row = Row { claim, below, method, pattern, plan, handler, check: None };
        self.rows.push_mut(row)
    }

    /// Adds rows below a claim of the description, by its name. Other rows are below
    /// `/repositories/`.
    pub fn claim(&mut self, name: &'static str, rows: impl FnOnce(&mut Self)) {
        let outer = self.claim.replace(name);
        rows(self);
        self.claim = outer;
    }

    /// Adds rows whose paths begin with this segment. Their patterns describe the rest of the path,
    /// and `/` is the segment itself.
    pub fn below(&mut self, segment: &'static str, rows: impl FnOnce(&mut Self)) {
        let outer = self.below.replace(segment);
        rows(self);
        self.below = outer;
    }

    /// Runs the plan of the matching row.
    pub(crate) fn plan(&self, request: &Request<'_>) -> Result<Intent, Failure> {
        let (row, params) = self.find(request)?;
        let mut intent = (row.plan)(request, &params)?;
        intent.check = row.check.is_some();
        Ok(intent)
    }

    /// Runs the check of the matching row.
    pub(crate) fn check(&self, cx: &Context, request: &Request<'_>) -> Result<(), Failure> {
        let (row, params) = self.find(request)?;
        row.check.map_or(Ok(()), |check| check(cx, request, &params))
    }

    /// Runs the handler of the matching row.
    pub(crate) fn handle(&self, cx: &Context, request: &Request<'_>) -> Result<Response, Failure> {
        let (row, params) = self.find(request)?;
        (row.handler)(cx, request, &params)
    }

    /// Returns the first row that matches, and the parameters. The failure for an unknown path is
    /// 404. The failure for a known path with another method is 405 with `Allow`.
    fn find<'r>(&self, request: &'r Request<'_>) -> Result<(&Row, Params<'r>), Failure> {
        let method = if request.method == "HEAD" { "GET" } else { request.method.as_str() };
        let mut allow: Vec<&str> = Vec::new();
        for row in self.rows.iter().filter(|row| row.claim == request.claim.as_deref()) {
            let path = row.own_path(&request.path);
            let Some(params) = path.and_then(|path| pattern::matches(row.pattern, path)) else { continue };
            if row.method == method {
                return Ok((row, params));
            }
            allow.push(row.method);
        }
        if allow.is_empty() {
            Err(Failure::not_found("Nothing is served at this address"))
        } else {
            Err(Failure::method_not_allowed(&list(allow)))
        }
    }
}

/// Returns the value of `Allow`: each method once, and `HEAD` in addition to `GET`.
fn list(mut methods: Vec<&str>) -> String {
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    methods.sort_unstable();
    methods.dedup();
    methods.join(", ")
}
