//! The body of an error: a refusal that the format's template turns into text.

use http::StatusCode;
use packhouse_runtime::{CodeKind, ErrorTemplate, Problem, RefusalWords, fill, fill_members, fill_text};
use packhouse_wire::catalogue::{Code, Place};
use serde_json::{Map, Value};

/// The facts about a refusal that a template can use.
#[derive(Debug)]
pub(crate) struct RefusalFacts<'a> {
    /// Status that the host or the plugin chose.
    pub status: StatusCode,
    /// The problems. A refusal of the host contains exactly one.
    pub problems: &'a [Problem],
    /// Row of the error catalogue; `None` for a plugin's own code.
    pub row: Option<&'static Code>,
    /// Name of the refusal if it has one that is more specific than the row's name.
    pub reason: Option<&'a str>,
    /// Message of the first problem.
    pub sentence: &'a str,
    pub request_id: &'a str,
}

#[derive(Debug)]
pub(crate) struct WrittenError {
    /// Status of the response. The format's template may replace the refusal's status.
    pub status: StatusCode,
    pub text: String,
}

/// Fills the template with the facts of a refusal.
pub(crate) fn write(template: &ErrorTemplate, refusal: &RefusalFacts<'_>) -> WrittenError {
    let words = refusal.row.and_then(|row| words(template, row, refusal));
    let status = words.and_then(|words| words.status).and_then(|status| StatusCode::from_u16(status).ok());
    let body = BodyWriter { template, refusal, words, status: status.unwrap_or(refusal.status) };
    WrittenError { status: body.status, text: body.text() }
}

/// Returns the words that the format defines for one of the host's refusals.
fn words<'a>(
    template: &'a ErrorTemplate,
    row: &Code,
    refusal: &RefusalFacts<'_>,
) -> Option<&'a RefusalWords> {
    let name = row.name.to_ascii_lowercase();
    let names: Vec<&str> = refusal.reason.into_iter().chain([name.as_str(), row.code]).collect();
    template.words(&names, refusal.status.as_u16())
}

/// The body of an error while it is being written.
struct BodyWriter<'a> {
    template: &'a ErrorTemplate,
    refusal: &'a RefusalFacts<'a>,
    words: Option<&'a RefusalWords>,
    status: StatusCode,
}

impl BodyWriter<'_> {
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

    fn placed(&self) -> &Map<String, Value> {
        let kind = match self.refusal.row.map(|row| row.place) {
            None => self.own_kind(),
            Some(Place::Error) => CodeKind::Error,
            Some(Place::Code) => CodeKind::Code,
            Some(Place::Reason) => CodeKind::ReasonCode,
        };
        self.template.members.of(kind)
    }

    /// Returns the kind of a plugin's own code, from the plugin's description.
    fn own_kind(&self) -> CodeKind {
        let code = self.refusal.problems.first().map(|problem| problem.code.as_str());
        code.and_then(|code| self.template.own_codes.get(code)).copied().unwrap_or(CodeKind::Own)
    }

    fn single_detail(&self) -> Map<String, Value> {
        match self.refusal.problems {
            [Problem { detail: Some(Value::Object(object)), .. }] => object.clone(),
            _ => Map::new(),
        }
    }

    /// Returns the value of a placeholder in the body.
    fn found(&self, name: &str, code: &str, message: &str) -> Option<Value> {
        match name {
            "problems" => Some(self.problems(code, message)),
            "detail" => self.refusal.problems.first().and_then(|problem| problem.detail.clone()),
            "request_id" => Some(self.refusal.request_id.into()),
            _ => self.of_problem(name, code, message).or_else(|| self.host_words(name)),
        }
    }

    /// Formats each problem with the problem template. If the format defines words for the refusal,
    /// the result contains exactly one problem.
    fn problems(&self, code: &str, message: &str) -> Value {
        let one = |code: &str, message: &str, detail: Option<&Value>| {
            let found = |name: &str| match name {
                "detail" => detail.cloned(),
                _ => self.of_problem(name, code, message),
            };
            fill(&self.template.problem, &found)
        };
        let problems = self.refusal.problems.iter();
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

    /// Returns the value of a placeholder for the host's own code or message.
    fn host_words(&self, name: &str) -> Option<Value> {
        let code = self.refusal.row.map(|row| row.code);
        match name {
            "host_code" => code.map(Value::from),
            "host_code_lower" => code.map(|code| code.to_lowercase().into()),
            "host_code_upper" => code.map(|code| code.to_uppercase().into()),
            "sentence" => Some(self.refusal.sentence.into()),
            _ => None,
        }
    }

    fn code(&self) -> String {
        let own = || self.refusal.problems.first().map(|problem| problem.code.clone()).unwrap_or_default();
        match self.words.and_then(|words| words.code.as_deref()) {
            Some(words) => fill_text(words, &|name| self.host_words(name)),
            None => own(),
        }
    }

    fn message(&self) -> String {
        match self.words.and_then(|words| words.message.as_deref()) {
            Some(words) => fill_text(words, &|name| self.host_words(name)),
            None => self.refusal.sentence.to_owned(),
        }
    }
}
