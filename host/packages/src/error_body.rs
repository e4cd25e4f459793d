//! The body of an error: a refusal written by its format's template.

use http::StatusCode;
use packhouse_runtime::{CodeKind, ErrorTemplate, Problem, RefusalWords, fill, fill_members, fill_text};
use packhouse_wire::catalogue::{Code, Place};
use serde_json::{Map, Value};

/// What is said, before it has its shape.
#[derive(Debug)]
pub(crate) struct Said<'a> {
    /// The status that the host or the plugin gave it.
    pub status: StatusCode,
    /// What is wrong; of the host's own refusals there is one problem.
    pub problems: &'a [Problem],
    /// The catalogue's row; none where the code is the plugin's own.
    pub row: Option<&'static Code>,
    /// The refusal's name where it is more exact than the row's.
    pub reason: Option<&'a str>,
    /// The first problem in a sentence.
    pub sentence: &'a str,
    /// The request's id.
    pub request_id: &'a str,
}

/// What goes out.
#[derive(Debug)]
pub(crate) struct Written {
    /// The status, which the format's words may have changed.
    pub status: StatusCode,
    /// The body.
    pub text: String,
}

/// Writes it.
pub(crate) fn write(template: &ErrorTemplate, said: &Said<'_>) -> Written {
    let words = said.row.and_then(|row| words(template, row, said));
    let status = words.and_then(|words| words.status).and_then(|status| StatusCode::from_u16(status).ok());
    let body = Body { template, said, words, status: status.unwrap_or(said.status) };
    Written { status: body.status, text: body.text() }
}

/// The format's words for a refusal of the host's.
fn words<'a>(template: &'a ErrorTemplate, row: &Code, said: &Said<'_>) -> Option<&'a RefusalWords> {
    let name = row.name.to_ascii_lowercase();
    let names: Vec<&str> = said.reason.into_iter().chain([name.as_str(), row.code]).collect();
    template.words(&names, said.status.as_u16())
}

/// A body on its way.
struct Body<'a> {
    template: &'a ErrorTemplate,
    said: &'a Said<'a>,
    words: Option<&'a RefusalWords>,
    status: StatusCode,
}

impl Body<'_> {
    fn text(&self) -> String {
        let (code, message) = (self.code(), self.message());
        let found = |name: &str| self.found(name, &code, &message);
        let Value::Object(body) = &self.template.body else {
            return fill_text(self.template.body.as_str().unwrap_or_default(), &found);
        };
        let mut object = if self.template.detail_at_top { self.single_detail() } else { Map::new() };
        object.extend(fill_members(body, &found));
        object.extend(fill_members(self.placed(), &found));
        if let Some(words) = self.words {
            object.extend(fill_members(&words.members, &found));
        }
        Value::Object(object).to_string()
    }

    /// The members for this kind of code.
    fn placed(&self) -> &Map<String, Value> {
        let kind = match self.said.row.map(|row| row.place) {
            None => self.own_kind(),
            Some(Place::Error) => CodeKind::Error,
            Some(Place::Code) => CodeKind::Code,
            Some(Place::Reason) => CodeKind::ReasonCode,
        };
        self.template.members.of(kind)
    }

    /// What the description says of the plugin's own code.
    fn own_kind(&self) -> CodeKind {
        let code = self.said.problems.first().map(|problem| problem.code.as_str());
        code.and_then(|code| self.template.own_codes.get(code)).copied().unwrap_or(CodeKind::Own)
    }

    /// Further facts of a single problem.
    fn single_detail(&self) -> Map<String, Value> {
        match self.said.problems {
            [Problem { detail: Some(Value::Object(object)), .. }] => object.clone(),
            _ => Map::new(),
        }
    }

    /// What stands for a placeholder of the body.
    fn found(&self, name: &str, code: &str, message: &str) -> Option<Value> {
        match name {
            "problems" => Some(self.problems(code, message)),
            "detail" => self.said.problems.first().and_then(|problem| problem.detail.clone()),
            "request_id" => Some(self.said.request_id.into()),
            _ => self.of_problem(name, code, message).or_else(|| self.host_words(name)),
        }
    }

    /// Each problem by its template. Where the format has words for it, there is one.
    fn problems(&self, code: &str, message: &str) -> Value {
        let one = |code: &str, message: &str, detail: Option<&Value>| {
            let found = |name: &str| match name {
                "detail" => detail.cloned(),
                _ => self.of_problem(name, code, message),
            };
            fill(&self.template.problem, &found)
        };
        let problems = self.said.problems.iter();
        match self.words {
            Some(_) => one(code, message, None).into_iter().collect(),
            None => problems
                .filter_map(|problem| one(&problem.code, &problem.message, problem.detail.as_ref()))
                .collect(),
        }
    }

    fn of_problem(&self, name: &str, code: &str, message: &str) -> Option<Value> {
        match name {
            "code" => Some(code.into()),
            "code_lower" => Some(code.to_lowercase().into()),
            "code_upper" => Some(code.to_uppercase().into()),
            "message" => Some(message.into()),
            "status" => Some(self.status.as_u16().into()),
            "title" => Some(self.status.canonical_reason().unwrap_or("Error").into()),
            _ => None,
        }
    }

    /// What the host itself calls it.
    fn host_words(&self, name: &str) -> Option<Value> {
        let code = self.said.row.map(|row| row.code);
        match name {
            "host_code" => code.map(Value::from),
            "host_code_lower" => code.map(|code| code.to_lowercase().into()),
            "host_code_upper" => code.map(|code| code.to_uppercase().into()),
            "sentence" => Some(self.said.sentence.into()),
            _ => None,
        }
    }

    fn code(&self) -> String {
        let own = || self.said.problems.first().map(|problem| problem.code.clone()).unwrap_or_default();
        match self.words.and_then(|words| words.code.as_deref()) {
            Some(words) => fill_text(words, &|name| self.host_words(name)),
            None => own(),
        }
    }

    fn message(&self) -> String {
        match self.words.and_then(|words| words.message.as_deref()) {
            Some(words) => fill_text(words, &|name| self.host_words(name)),
            None => self.said.sentence.to_owned(),
        }
    }
}
