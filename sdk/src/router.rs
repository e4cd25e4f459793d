//! A protocol's requests as a table: method, path, plan, handler.

use crate::pattern;
use crate::{Context, Failure, Intent, Params, Request, Response};

/// What a request would do, told from its head alone.
pub type Planner = fn(&Request<'_>, &Params<'_>) -> Result<Intent, Failure>;
/// Does it.
pub type Handler = fn(&Context, &Request<'_>, &Params<'_>) -> Result<Response, Failure>;
/// Whether it can succeed, as far as can be told before its body.
pub type Check = fn(&Context, &Request<'_>, &Params<'_>) -> Result<(), Failure>;

/// The table. The first row whose method and pattern fit a request has it; `HEAD` goes to the rows of `GET`.
///
/// A pattern is `/` for the address itself, or words and parameters: `/simple/{project}/`, `/{path..}`,
/// `/{name..}/manifests/{reference}`. `{name}` is exactly one segment, `{name..}` one or more.
#[derive(Debug, Default)]
pub struct Router {
    rows: Vec<Row>,
    claim: Option<&'static str>,
    below: Option<&'static str>,
}

/// One row of the table.
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
    /// Asks `check` before the body is received, and before `100 Continue`: it can only read, and the handler decides.
    pub fn check(&mut self, check: Check) -> &mut Self {
        self.check = Some(check);
        self
    }

    /// The part of a path that the pattern describes. None for a path that is not below the row's segment.
    fn own_path<'p>(&self, path: &'p [String]) -> Option<&'p [String]> {
        let Some(segment) = self.below else { return Some(path) };
        let (first, rest) = path.split_first()?;
        if first != segment {
            return None;
        }
        match rest {
            // As at an address, a slash at the end makes no difference.
            [last] if last.is_empty() => Some(&[]),
            rest => Some(rest),
        }
    }
}

impl Router {
    /// `GET`, and `HEAD`, whose content the host leaves out.
    pub fn get(&mut self, pattern: &'static str, plan: Planner, handler: Handler) -> &mut Row {
        self.row("GET", pattern, plan, handler)
    }

    /// `PUT`.
    pub fn put(&mut self, pattern: &'static str, plan: Planner, handler: Handler) -> &mut Row {
        self.row("PUT", pattern, plan, handler)
    }

    /// `POST`.
    pub fn post(&mut self, pattern: &'static str, plan: Planner, handler: Handler) -> &mut Row {
        self.row("POST", pattern, plan, handler)
    }

    /// `PATCH`.
    pub fn patch(&mut self, pattern: &'static str, plan: Planner, handler: Handler) -> &mut Row {
        self.row("PATCH", pattern, plan, handler)
    }

    /// `DELETE`.
    pub fn delete(&mut self, pattern: &'static str, plan: Planner, handler: Handler) -> &mut Row {
        self.row("DELETE", pattern, plan, handler)
    }

    /// Another method, in upper case.
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

    /// The rows of a claim of the description, by its name. Rows outside of any are those below `/repositories/`.
    pub fn claim(&mut self, name: &'static str, rows: impl FnOnce(&mut Self)) {
        let outer = self.claim.replace(name);
        rows(self);
        self.claim = outer;
    }

    /// The rows whose paths begin with this segment. Their patterns describe what follows it, and `/` is the segment itself.
    pub fn below(&mut self, segment: &'static str, rows: impl FnOnce(&mut Self)) {
        let outer = self.below.replace(segment);
        rows(self);
        self.below = outer;
    }

    /// The plan of the row that fits.
    pub(crate) fn plan(&self, request: &Request<'_>) -> Result<Intent, Failure> {
        let (row, params) = self.find(request)?;
        let mut intent = (row.plan)(request, &params)?;
        intent.check = row.check.is_some();
        Ok(intent)
    }

    /// The check of the row that fits.
    pub(crate) fn check(&self, cx: &Context, request: &Request<'_>) -> Result<(), Failure> {
        let (row, params) = self.find(request)?;
        row.check.map_or(Ok(()), |check| check(cx, request, &params))
    }

    /// The handler of the row that fits.
    pub(crate) fn handle(&self, cx: &Context, request: &Request<'_>) -> Result<Response, Failure> {
        let (row, params) = self.find(request)?;
        (row.handler)(cx, request, &params)
    }

    /// The first row that fits. An unknown path is 404; a known one with another method 405 with `Allow`.
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

/// Methods as `Allow` has them: each once, `HEAD` wherever there is `GET`.
fn list(mut methods: Vec<&str>) -> String {
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    methods.sort_unstable();
    methods.dedup();
    methods.join(", ")
}
