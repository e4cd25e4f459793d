//! Credentials are taken out of a recording before anybody sees it. The host takes a request's own out before a plugin is asked; what a
//! plugin is told of sign-ins, tokens, signatures and signed addresses is replaced here, wherever it stands, by a word of the same length,
//! so that a replay asks and answers the same. A word stands for a secret also in base64 and hexadecimal digits.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::Value;

use super::file::{RecordedAnswer, RecordedImport, Recording};
use super::spoken::as_bytes;

/// What is shorter is no secret, and would be found in other words.
const SHORTEST: usize = 6;
/// Characters behind the beginning of a word that is a credential.
const SHORTEST_WORD: usize = 16;
/// Headers that are credentials.
const HEADERS: [&str; 6] =
    ["authorization", "cookie", "proxy-authorization", "set-cookie", "x-api-key", "x-amz-security-token"];
/// What the name of a parameter or a setting holds whose value is a credential.
const NAMES: [&str; 8] =
    ["token", "password", "passwd", "secret", "signature", "credential", "apikey", "api_key"];
/// The same of parameters that are known by their whole name: those of signed addresses.
const PARAMETERS: [&str; 3] = ["sig", "key", "auth"];

/// Members of JSON that hold a credential wherever they stand, as in the body of a sign-in.
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

/// The secrets of a recording, each with the word in its place.
pub(super) struct Secrets(Vec<(Vec<u8>, Vec<u8>)>);

impl Secrets {
    /// Those of this recording. `hidden` are beginnings of words that are credentials wherever they stand.
    pub(super) fn of(recording: &Recording, hidden: &[String]) -> Secrets {
        let mut found = Found::default();
        for (name, value) in &recording.request.headers {
            found.header(name, value);
        }
        for (name, value) in &recording.request.query {
            found.parameter(name, value);
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
        found.worded()
    }

    /// Each form of a secret, with that of its word.
    fn forms(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.0.iter().flat_map(|(secret, word)| forms(secret).into_iter().zip(forms(word))).collect()
    }

    /// Puts the words in their places. A recording that this cannot be done to keeps nothing of what was asked and told.
    pub(super) fn take_out(&self, recording: &mut Recording) {
        if self.0.is_empty() {
            return;
        }
        let forms = self.forms();
        let replaced = serde_json::to_value(&*recording).and_then(|mut all| {
            replace(&mut all, &forms);
            serde_json::from_value(all)
        });
        match replaced {
            Ok(replaced) => *recording = replaced,
            Err(error) => {
                tracing::error!("a recording keeps nothing: its credentials cannot be taken out: {error}");
                recording.cut = Some("its credentials could not be taken out".to_owned());
                recording.request = Default::default();
                recording.calls.clear();
            }
        }
    }
}

/// Puts words in the places of credentials in any JSON: of words with one of these beginnings, and of members that hold one wherever they
/// stand.
pub(crate) fn hide_words(all: &mut Value, hidden: &[String]) {
    let mut found = Found::default();
    found.words(all, hidden);
    found.members(all);
    let secrets = found.worded();
    if !secrets.0.is_empty() {
        replace(all, &secrets.forms());
    }
}

/// The secret as it may stand somewhere, in an order that is the same for its word.
fn forms(secret: &[u8]) -> [Vec<u8>; 6] {
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    [
        secret.to_vec(),
        STANDARD.encode(secret).into_bytes(),
        STANDARD_NO_PAD.encode(secret).into_bytes(),
        URL_SAFE.encode(secret).into_bytes(),
        URL_SAFE_NO_PAD.encode(secret).into_bytes(),
        hex.into_bytes(),
    ]
}

/// A word as long as the secret.
fn word(number: usize, secret: &[u8]) -> Vec<u8> {
    let name = format!("hidden-{number}-").into_bytes();
    name.into_iter().chain(std::iter::repeat(b'x')).take(secret.len()).collect()
}

fn replace(value: &mut Value, forms: &[(Vec<u8>, Vec<u8>)]) {
    match value {
        Value::String(text) => {
            if let Some(replaced) = replaced(text.as_bytes(), forms) {
                *text = String::from_utf8_lossy(&replaced).into_owned();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, forms)),
        Value::Object(fields) => {
            let bytes = fields.get("base64").filter(|_| fields.len() == 1).and_then(Value::as_str);
            let bytes = bytes.and_then(|text| STANDARD.decode(text).ok());
            if let Some(replaced) = bytes.and_then(|bytes| replaced(&bytes, forms)) {
                *value = super::spoken::bytes(&replaced);
                return;
            }
            fields.values_mut().for_each(|field| replace(field, forms));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The bytes with all secrets replaced; none where there is none in them.
fn replaced(bytes: &[u8], forms: &[(Vec<u8>, Vec<u8>)]) -> Option<Vec<u8>> {
    let mut changed: Option<Vec<u8>> = None;
    for (secret, word) in forms {
        let mut from = 0;
        while let Some(at) = find(changed.as_deref().unwrap_or(bytes), secret, from) {
            let changed = changed.get_or_insert_with(|| bytes.to_vec());
            if let Some(place) = changed.get_mut(at..at + secret.len()) {
                place.copy_from_slice(word);
            }
            from = at + secret.len();
        }
    }
    changed
}

fn find(bytes: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    let within = bytes.get(from..)?;
    memchr::memmem::find(within, needle).map(|at| at + from)
}

#[derive(Default)]
struct Found {
    secrets: Vec<Vec<u8>>,
}

impl Found {
    /// With a word in the place of each, the longest first.
    fn worded(mut self) -> Secrets {
        self.secrets.sort_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        self.secrets.dedup();
        let words = self.secrets.into_iter().enumerate();
        Secrets(words.map(|(number, secret)| (word(number, &secret), secret)).map(|(w, s)| (s, w)).collect())
    }

    /// The texts of members that hold a credential wherever they stand.
    fn members(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.members(item)),
            Value::Object(fields) => {
                for (name, field) in fields {
                    if MEMBERS.contains(&name.as_str()) {
                        self.text(Some(field));
                    }
                    self.members(field);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn add(&mut self, secret: &[u8]) {
        if secret.len() >= SHORTEST {
            self.secrets.push(secret.to_vec());
        }
    }

    fn text(&mut self, value: Option<&Value>) {
        if let Some(text) = value.and_then(Value::as_str) {
            self.add(text.as_bytes());
        }
    }

    /// What an import was asked or told.
    fn import(&mut self, asked: &RecordedImport) {
        let told = match &asked.answer {
            Some(RecordedAnswer::Ok(told)) => told,
            _ => &Value::Null,
        };
        let argument = |at: usize| asked.arguments.get(at).and_then(Value::as_str);
        match asked.import.as_str() {
            "identity.begin-login" => {
                self.text(told.get("id"));
                if let Some(url) = told.get("url").and_then(Value::as_str) {
                    self.add(after_origin(url).as_bytes());
                }
            }
            "identity.finish-login" => {
                self.text(asked.arguments.first());
                self.text(told.get("granted"));
            }
            "identity.revoke" => self.text(asked.arguments.first()),
            "identity.tokens" => {
                for token in told.as_array().into_iter().flatten() {
                    self.text(token.get("id"));
                    self.text(token.get("hint"));
                }
            }
            "signing.sign" => {
                if let Some(value) = told.get("value").and_then(as_bytes) {
                    self.add(&value);
                }
            }
            "signing.keys" => {
                for key in told.as_array().into_iter().flatten() {
                    self.text(key.get("key"));
                }
            }
            "upstream.fetch.new" => self.address(argument(1).unwrap_or_default()),
            "upstream.fetch.header" => {
                self.header(argument(1).unwrap_or_default(), argument(2).unwrap_or_default());
            }
            "upstream.reply.address" => self.address(told.as_str().unwrap_or_default()),
            "upstream.reply.headers" => {
                for header in told.as_array().into_iter().flatten() {
                    let field = |name| header.get(name).and_then(Value::as_str).unwrap_or_default();
                    self.header(field("name"), field("value"));
                }
            }
            "records.repository.settings" => self.settings(told.as_str().unwrap_or_default()),
            _ => {}
        }
    }

    fn header(&mut self, name: &str, value: &str) {
        if HEADERS.iter().any(|secret| name.eq_ignore_ascii_case(secret)) {
            self.add(value.as_bytes());
            // Without the scheme, as it stands elsewhere.
            if let Some((_, credential)) = value.split_once(' ') {
                self.add(credential.as_bytes());
            }
        }
        if name.eq_ignore_ascii_case("location") {
            self.address(value);
        }
    }

    fn parameter(&mut self, name: &str, value: &str) {
        if is_secret(name) || PARAMETERS.iter().any(|secret| name.eq_ignore_ascii_case(secret)) {
            self.add(value.as_bytes());
        }
    }

    /// The credentials of an address: before its `@`, and in the parameters of one that is signed.
    fn address(&mut self, address: &str) {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let authority = path.split_once("://").and_then(|(_, rest)| rest.split('/').next());
        if let Some((user, _)) = authority.and_then(|authority| authority.rsplit_once('@')) {
            self.add(user.as_bytes());
        }
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            self.parameter(name, value);
        }
    }

    /// Of settings the values of what is called a password or the like, and the credentials of addresses.
    fn settings(&mut self, settings: &str) {
        if let Ok(settings) = serde_json::from_str::<Value>(settings) {
            self.setting("", &settings);
        }
    }

    fn setting(&mut self, name: &str, value: &Value) {
        match value {
            Value::String(text) if is_secret(name) => self.add(text.as_bytes()),
            Value::String(text) => self.address(text),
            Value::Array(items) => items.iter().for_each(|item| self.setting(name, item)),
            Value::Object(fields) => fields.iter().for_each(|(name, field)| self.setting(name, field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Words that are credentials by how they begin.
    fn words(&mut self, value: &Value, hidden: &[String]) {
        match value {
            Value::String(text) => {
                MEMBERS.iter().for_each(|name| self.member(text, name));
                hidden.iter().for_each(|beginning| self.word(text.as_bytes(), beginning.as_bytes()));
            }
            Value::Array(items) => items.iter().for_each(|item| self.words(item, hidden)),
            Value::Object(fields) => {
                if let Some(bytes) = fields.get("base64").and_then(|_| as_bytes(value)) {
                    hidden.iter().for_each(|beginning| self.word(&bytes, beginning.as_bytes()));
                    return;
                }
                fields.values().for_each(|field| self.words(field, hidden));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Of a text in JSON the values of members of this name.
    fn member(&mut self, text: &str, name: &str) {
        for after in text.split(&format!("\"{name}\"")).skip(1) {
            let value = after.trim_start().strip_prefix(':').map(str::trim_start);
            if let Some(value) = value.and_then(|value| value.strip_prefix('"')) {
                self.add(value.split('"').next().unwrap_or_default().as_bytes());
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

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|secret| name.contains(secret))
}

/// What of an address comes after the host, so that its word is an address as well.
fn after_origin(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split_once('/').map_or(rest, |(_, path)| path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SECRET: &str = "a-secret-of-length-24-00";

    fn taken_out(value: &mut Value) {
        let word = word(3, SECRET.as_bytes());
        let forms: Vec<_> = forms(SECRET.as_bytes()).into_iter().zip(forms(&word)).collect();
        replace(value, &forms);
    }

    #[test]
    fn a_secret_is_found_in_every_form() {
        let bytes = [&[0xff], SECRET.as_bytes()].concat();
        let mut value = json!({
            "plain": format!("a {SECRET} b {SECRET}"),
            "base64": {"base64": STANDARD.encode(&bytes)},
            "text": {"text": format!("{{\"sig\":\"{}\"}}", STANDARD.encode(SECRET))},
            "list": [URL_SAFE_NO_PAD.encode(SECRET), 7, null],
        });
        let before = value.to_string().len();
        taken_out(&mut value);
        let word = format!("hidden-3-{}", "x".repeat(SECRET.len() - 9));
        assert_eq!(value["plain"], format!("a {word} b {word}"));
        assert_eq!(as_bytes(&value["base64"]).unwrap()[1..], *word.as_bytes());
        assert!(!value.to_string().contains(&STANDARD.encode(SECRET)), "{value}");
        assert_eq!(value.to_string().len(), before, "every word is as long as its secret");
    }

    #[test]
    fn secrets_of_addresses_and_settings_are_known() {
        let mut found = Found::default();
        found.address("https://user:password@host/path?X-Amz-Signature=signature-1&size=700000&KEY=keykey");
        found.settings(r#"{"upstream": "https://who:what-else@host/", "a": [{"client_secret": "secret-2"}], "name": "visible"}"#);
        found.header("Authorization", "Bearer bearer-3");
        found.header("location", "/next?token=location-4");
        found.header("accept", "visible");
        let found: Vec<String> = found.secrets.into_iter().map(|it| String::from_utf8(it).unwrap()).collect();
        let wanted = [
            "user:password",
            "signature-1",
            "keykey",
            "secret-2",
            "who:what-else",
            "Bearer bearer-3",
            "bearer-3",
            "location-4",
        ];
        assert_eq!(found.len(), wanted.len(), "{found:?}");
        for wanted in wanted {
            assert!(found.iter().any(|found| found == wanted), "{wanted} is not among {found:?}");
        }
    }

    #[test]
    fn words_that_begin_as_tokens_do_are_secrets() {
        let mut found = Found::default();
        let bytes = [&[0xff], "pkx_0123456789abcdef".as_bytes()].concat();
        let value = json!(["x pkx_abcdefghijklmnop, pkx_short", {"base64": STANDARD.encode(bytes)}]);
        found.words(&value, &["pkx_".to_owned()]);
        found.words(&json!({"text": r#"{"name": "a", "password" : "correct horse", "_auth":"abc"}"#}), &[]);
        assert_eq!(found.secrets, [&b"pkx_abcdefghijklmnop"[..], b"pkx_0123456789abcdef", b"correct horse"]);
    }
}
