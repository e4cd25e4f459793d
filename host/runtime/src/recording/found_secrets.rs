//! Search for credentials in a recording. The search recognizes a credential by the import, header,
//! parameter, setting or member that holds it, or by its prefix.

use serde_json::Value;

use super::file::{RecordedAnswer, RecordedImport, Recording};
use super::secret_forms::{Escapes, SHORTEST, decode_base64, decodings, find};
use super::trace_value::as_bytes;

/// Minimum number of characters after the prefix of a word that is a credential.
const SHORTEST_WORD: usize = 16;
/// Parts of parameter, setting or member names whose values people choose. Such values may be
/// short.
const PASSWORDS: [&str; 3] = ["password", "passwd", "secret"];
/// Parts of names whose values are credentials made by programs.
const NAMES: [&str; 5] = ["token", "signature", "credential", "apikey", "api_key"];
/// Names of parameters that hold a credential, as in signed URLs.
const PARAMETERS: [&str; 3] = ["sig", "key", "auth"];
/// Names of members whose value is base64 of a password, or of a name and a password.
const BASE64: [&str; 2] = ["_auth", "_password"];

/// JSON members and form fields that hold a credential wherever they appear, as in the body of a
/// sign-in.
const MEMBERS: [&str; 9] = [
    "password",
    "passwd",
    "_password",
    "_auth",
    "_authToken",
    "access_token",
    "id_token",
    "refresh_token",
    "client_secret",
];

/// Secrets that were found so far.
#[derive(Default)]
pub(super) struct FoundSecrets {
    secrets: Vec<Vec<u8>>,
}

impl FoundSecrets {
    /// Finds the secrets of this recording. Words that begin with one of `hidden` are always
    /// credentials.
    pub(super) fn of(recording: &Recording, hidden: &[String]) -> FoundSecrets {
        let mut found = FoundSecrets::default();
        for (name, value) in &recording.request.headers {
            found.header(name, value);
        }
        for (name, value) in &recording.request.query {
            found.parameter(name, value.as_bytes());
        }
        for call in &recording.calls {
            for repository in call.target.iter().chain(&call.others) {
                found.settings(&repository.settings);
            }
            for import in &call.imports {
                found.import(import);
            }
        }
        if let Ok(all) = serde_json::to_value(recording) {
            found.words(&all, hidden);
        }
        found
    }

    /// Finds the secrets of any JSON: words with one of these prefixes, and members that always
    /// hold a credential.
    pub(super) fn of_json(all: &Value, hidden: &[String]) -> FoundSecrets {
        let mut found = FoundSecrets::default();
        found.words(all, hidden);
        found.members(all);
        found
    }

    /// The secrets, each once, the longest first.
    pub(super) fn sorted(mut self) -> Vec<Vec<u8>> {
        self.secrets.sort_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        self.secrets.dedup();
        self.secrets
    }

    /// Adds the values of members that always hold a credential.
    fn members(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.members(item)),
            Value::Object(fields) => {
                for (name, field) in fields {
                    if let (true, Some(text)) = (MEMBERS.contains(&name.as_str()), field.as_str()) {
                        self.named(name, text.as_bytes());
                    }
                    self.members(field);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Adds a secret that a program made. Ignores shorter texts, because they are most likely not
    /// secrets.
    fn add(&mut self, secret: &[u8]) {
        if secret.len() >= SHORTEST {
            self.secrets.push(secret.to_vec());
        }
    }

    /// Adds a credential of any length.
    fn password(&mut self, secret: &[u8]) {
        if !secret.is_empty() {
            self.secrets.push(secret.to_vec());
        }
    }

    /// Adds a name that may be a token, and a password.
    fn pair(&mut self, name: &[u8], password: &[u8]) {
        self.add(name);
        self.password(password);
    }

    /// Adds base64 of a password, or of a name and a password. A value that is not base64 is itself
    /// a password.
    fn basic(&mut self, value: &str) {
        let decoded = decode_base64(value).and_then(|bytes| String::from_utf8(bytes).ok());
        let text = decoded.as_deref().unwrap_or(value);
        match text.split_once(':') {
            Some((name, password)) => self.pair(name.as_bytes(), password.as_bytes()),
            None => self.password(text.as_bytes()),
        }
    }

    /// Adds the value of a parameter, setting or member if its name says that it is a credential.
    fn named(&mut self, name: &str, value: &[u8]) {
        let (is_base64, text) = (BASE64.contains(&name), std::str::from_utf8(value));
        match text {
            Ok(text) if is_base64 => self.basic(text),
            _ if holds(name, &PASSWORDS) => self.password(value),
            _ if holds(name, &NAMES) => self.add(value),
            _ => {}
        }
    }

    fn text(&mut self, value: Option<&Value>) {
        if let Some(text) = value.and_then(Value::as_str) {
            self.add(text.as_bytes());
        }
    }

    /// Adds the secrets in a host call's arguments and answer.
    fn import(&mut self, call: &RecordedImport) {
        let answer = match &call.answer {
            Some(RecordedAnswer::Ok(answer)) => answer,
            _ => &Value::Null,
        };
        let argument = |at: usize| call.arguments.get(at).and_then(Value::as_str);
        match call.import.as_str() {
            "identity.begin-login" => {
                self.text(answer.get("id"));
                if let Some(url) = answer.get("url").and_then(Value::as_str) {
                    self.add(after_origin(url).as_bytes());
                }
            }
            "identity.finish-login" => {
                self.text(call.arguments.first());
                self.text(answer.get("granted"));
            }
            "identity.revoke" => self.text(call.arguments.first()),
            "identity.tokens" => {
                for token in answer.as_array().into_iter().flatten() {
                    self.text(token.get("id"));
                    self.text(token.get("hint"));
                }
            }
            "signing.sign" => {
                if let Some(value) = answer.get("value").and_then(as_bytes) {
                    self.add(&value);
                }
            }
            "signing.keys" => {
                for key in answer.as_array().into_iter().flatten() {
                    self.text(key.get("key"));
                }
            }
            "upstream.fetch.new" => self.address(argument(1).unwrap_or_default()),
            "upstream.fetch.header" => {
                self.header(argument(1).unwrap_or_default(), argument(2).unwrap_or_default());
            }
            "upstream.reply.address" => self.address(answer.as_str().unwrap_or_default()),
            "upstream.reply.headers" => {
                for header in answer.as_array().into_iter().flatten() {
                    let field = |name| header.get(name).and_then(Value::as_str).unwrap_or_default();
                    self.header(field("name"), field("value"));
                }
            }
            "records.repository.settings" => self.settings(answer.as_str().unwrap_or_default()),
            _ => {}
        }
    }

    fn header(&mut self, name: &str, value: &str) {
        match name.to_ascii_lowercase().as_str() {
            "authorization" | "proxy-authorization" => match value.trim().split_once(' ') {
                Some((scheme, pair)) if scheme.eq_ignore_ascii_case("basic") => self.basic(pair),
                // The credential may occur elsewhere without the scheme.
                Some((_, credential)) => self.password(credential.trim().as_bytes()),
                None => self.password(value.trim().as_bytes()),
            },
            "x-api-key" | "x-amz-security-token" => self.password(value.as_bytes()),
            "cookie" => value.split(';').for_each(|cookie| self.cookie(cookie)),
            // The attributes after the first `;` only state where and until when the cookie is
            // valid.
            "set-cookie" => self.cookie(value.split(';').next().unwrap_or_default()),
            "location" => self.address(value),
            _ => {}
        }
    }

    fn cookie(&mut self, cookie: &str) {
        let value = cookie.split_once('=').map_or(cookie, |(_, value)| value);
        self.add(value.trim().as_bytes());
    }

    fn parameter(&mut self, name: &str, value: &[u8]) {
        if PARAMETERS.iter().any(|secret| name.eq_ignore_ascii_case(secret)) {
            self.add(value);
        } else {
            self.named(name, value);
        }
    }

    /// Adds the credentials of a URL: before its `@`, and in the parameters of a signed URL.
    fn address(&mut self, address: &str) {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let authority = path.split_once("://").and_then(|(_, rest)| rest.split('/').next());
        if let Some((user, _)) = authority.and_then(|authority| authority.rsplit_once('@')) {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            let decoded = |text: &str| Escapes::Percent.decoded(text.as_bytes());
            self.pair(&decoded(name), &decoded(password));
        }
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            meanings(value).iter().for_each(|value| self.parameter(name, value));
        }
    }

    /// Adds settings that are passwords or the like, and the credentials in URLs.
    fn settings(&mut self, settings: &str) {
        if let Ok(settings) = serde_json::from_str::<Value>(settings) {
            self.setting("", &settings);
        }
    }

    fn setting(&mut self, name: &str, value: &Value) {
        match value {
            Value::String(text) if holds(name, &PASSWORDS) || holds(name, &NAMES) => {
                self.named(name, text.as_bytes());
            }
            Value::String(text) => self.address(text),
            Value::Array(items) => items.iter().for_each(|item| self.setting(name, item)),
            Value::Object(fields) => fields.iter().for_each(|(name, field)| self.setting(name, field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Adds words with a credential's prefix, and secret members and fields in texts.
    fn words(&mut self, value: &Value, hidden: &[String]) {
        match value {
            Value::String(text) => {
                MEMBERS.iter().for_each(|name| self.member(text, name));
                self.fields(text);
                self.hidden(text.as_bytes(), hidden);
            }
            Value::Array(items) => items.iter().for_each(|item| self.words(item, hidden)),
            Value::Object(fields) => {
                if let Some(bytes) = fields.get("base64").and_then(|_| as_bytes(value)) {
                    self.hidden(&bytes, hidden);
                    return;
                }
                fields.values().for_each(|field| self.words(field, hidden));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn hidden(&mut self, bytes: &[u8], hidden: &[String]) {
        let mut find_in = |text: &[u8]| {
            hidden.iter().for_each(|beginning| self.word(text, beginning.as_bytes()));
        };
        find_in(bytes);
        decodings(bytes).for_each(|decoded| find_in(&decoded));
    }

    /// Adds the values of members of this name in a text that contains JSON.
    fn member(&mut self, text: &str, name: &str) {
        for after in text.split(&format!("\"{name}\"")).skip(1) {
            let value = after.trim_start().strip_prefix(':').map(str::trim_start);
            if let Some(value) = value.and_then(|value| value.strip_prefix('"')) {
                let pieces = Escapes::Json.pieces(value.as_bytes());
                let within = pieces.take_while(|(piece, _)| *piece != b"\"");
                let value: Vec<u8> = within.flat_map(|(_, meaning)| meaning.into_owned()).collect();
                self.named(name, &value);
            }
        }
    }

    /// Adds the values of fields in a text that is a form.
    fn fields(&mut self, text: &str) {
        for (name, value) in text.split(['?', '&']).filter_map(|pair| pair.split_once('=')) {
            if MEMBERS.contains(&name) {
                let value = value.split(|end: char| end.is_whitespace() || end == '"').next();
                meanings(value.unwrap_or_default()).iter().for_each(|value| self.named(name, value));
            }
        }
    }

    fn word(&mut self, bytes: &[u8], beginning: &[u8]) {
        let mut from = 0;
        while let Some(at) = find(bytes, beginning, from) {
            from = at + beginning.len();
            let rest = bytes.get(from..).unwrap_or_default();
            let length =
                rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte)).count();
            if length >= SHORTEST_WORD {
                self.add(bytes.get(at..from + length).unwrap_or_default());
            }
            from += length;
        }
    }
}

fn holds(name: &str, words: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    words.iter().any(|word| name.contains(word))
}

/// Possible meanings of a parameter's value: in some queries `+` is a space, in others it is
/// literal.
fn meanings(value: &str) -> [Vec<u8>; 2] {
    [Escapes::Percent, Escapes::Form].map(|escapes| escapes.decoded(value.as_bytes()))
}

/// Returns the part of a URL after the host. Secrets are replaced only there, so that the URL stays
/// valid.
fn after_origin(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split_once('/').map_or(rest, |(_, path)| path)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;

    /// Returns the secrets that are found, as texts.
    fn found(find: impl FnOnce(&mut FoundSecrets)) -> Vec<String> {
        let mut found = FoundSecrets::default();
        find(&mut found);
        let secrets = found.secrets.into_iter().map(|secret| String::from_utf8(secret).unwrap());
        let mut secrets: Vec<String> = secrets.collect();
        secrets.dedup();
        secrets
    }

    #[test]
    fn secrets_of_headers_addresses_and_settings_are_known() {
        let basic = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
        let header = |name: &str, value: &str| found(|it| it.header(name, value));
        let address = |address: &str| found(|it| it.address(address));
        let settings = |settings: &str| found(|it| it.settings(settings));
        for (found, expected) in [
            (header("Authorization", "Bearer bearer-3"), &["bearer-3"][..]),
            (header("authorization", &basic("me:abc")), &["abc"]),
            (header("proxy-authorization", &basic("a-long-token:")), &["a-long-token"]),
            (header("authorization", "no-scheme"), &["no-scheme"]),
            (header("cookie", "a=session-1; b=session-2"), &["session-1", "session-2"]),
            (header("set-cookie", "a=session-3; Path=/repositories"), &["session-3"]),
            (header("location", "/next?token=location-4"), &["location-4"]),
            (header("accept", "visible"), &[]),
            (address("https://user:abc@host/path"), &["abc"]),
            (address("https://someone:p%40ss%2fword@host/"), &["someone", "p@ss/word"]),
            (
                address("https://h/?X-Amz-Signature=signature-1&size=700000&KEY=keykey"),
                &["signature-1", "keykey"],
            ),
            (address("https://h/?token=a%2Bb+c-d-e"), &["a+b+c-d-e", "a+b c-d-e"]),
            (address("https://h/?page_token=7"), &[]),
            (settings(r#"{"a": [{"client_secret": "abc"}], "name": "visible"}"#), &["abc"]),
            (settings(r#"{"upstream": "https://who:what-else@host/", "token": "x"}"#), &["what-else"]),
        ] {
            assert_eq!(found, expected, "{expected:?}");
        }
    }

    #[test]
    fn words_members_and_fields_of_texts_are_secrets() {
        let hidden = ["pkx_".to_owned()];
        let token = "pkx_0123456789abcdef";
        let bytes = [&[0xff], token.as_bytes()].concat();
        let pair = STANDARD.encode(format!("me:{token}"));
        for (value, expected) in [
            (json!("x pkx_abcdefghijklmnop, pkx_short"), &["pkx_abcdefghijklmnop"][..]),
            (json!({"base64": STANDARD.encode(bytes)}), &[token]),
            (json!({"text": format!("{{\"auth\":\"{pair}\"}}")}), &[token]),
            (json!({"text": r#"{"name": "a", "password" : "correct horse"}"#}), &["correct horse"]),
            (json!({"text": r#"{"password": "pa\"ss\u00fc", "access_token": "abc"}"#}), &["pa\"ssü"]),
            (json!({"text": format!("{{\"_auth\":\"{}\"}}", STANDARD.encode("me:abc"))}), &["abc"]),
            (json!({"text": "grant_type=password&username=me&password=a%26b"}), &["a&b"]),
            (json!("/token?access_token=0123456789 was requested"), &["0123456789"]),
        ] {
            assert_eq!(found(|it| it.words(&value, &hidden)), expected, "{value}");
        }
    }
}
