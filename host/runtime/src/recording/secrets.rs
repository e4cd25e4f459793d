//! Removal of credentials from a recording before anybody can read it. The host removes a request's
//! own credentials before the plugin receives it. Credentials in sign-ins, tokens, signatures and
//! signed URLs are replaced here, in every form (`secret_forms`). Each becomes a word of the same
//! length, so that a replay makes the same host calls and gets the same answers.

use serde_json::Value;

use super::file::Recording;
use super::found_secrets::FoundSecrets;
use super::secret_forms::{Replacements, decode_base64};

/// Most secrets of a recording. Each one is searched for in the whole recording, so more would take
/// too long.
const MOST_SECRETS: usize = 1_000;
/// Reason for an empty recording with more than [`MOST_SECRETS`] secrets.
const TOO_MANY: &str = "it contains too many credentials";

/// The secrets of a recording with the words that replace them. None if there are too many.
pub(super) struct Secrets(Option<Replacements>);

impl Secrets {
    /// Finds the secrets of this recording. Words that begin with one of `hidden` are always
    /// credentials.
    pub(super) fn of(recording: &Recording, hidden: &[String]) -> Secrets {
        Secrets::with_words(FoundSecrets::of(recording, hidden))
    }

    /// Assigns a word to each secret.
    fn with_words(found: FoundSecrets) -> Secrets {
        let secrets = found.sorted();
        if secrets.len() > MOST_SECRETS {
            return Secrets(None);
        }
        let pairs = secrets.into_iter().enumerate().map(|(number, secret)| {
            let word = word(number, &secret);
            (secret, word)
        });
        Secrets(Some(Replacements::new(pairs.collect())))
    }

    /// Replaces the secrets by their words. If that is impossible, empties the recording.
    pub(super) fn take_out(&self, recording: &mut Recording) {
        let Some(secrets) = &self.0 else {
            tracing::warn!("recording emptied: {TOO_MANY}");
            return empty(recording, TOO_MANY);
        };
        if secrets.is_empty() {
            return;
        }
        let replaced = serde_json::to_value(&*recording).and_then(|mut all| {
            replace(&mut all, secrets);
            serde_json::from_value(all)
        });
        match replaced {
            Ok(mut replaced) => {
                restore_names(&mut replaced, recording);
                *recording = replaced;
            }
            Err(error) => {
                tracing::error!("recording emptied: its credentials cannot be removed: {error}");
                empty(recording, "its credentials could not be removed");
            }
        }
    }
}

/// Removes all calls and the request, and stores the reason in `cut`.
fn empty(recording: &mut Recording, why: &str) {
    recording.cut = Some(why.to_owned());
    recording.request = Default::default();
    recording.calls.clear();
}

/// Replaces credentials in any JSON: words with one of these prefixes, and values of members that
/// always hold a credential. The error says why that is impossible.
pub(crate) fn hide_words(all: &mut Value, hidden: &[String]) -> Result<(), String> {
    let Secrets(secrets) = Secrets::with_words(FoundSecrets::of_json(all, hidden));
    let secrets = secrets.ok_or_else(|| TOO_MANY.to_owned())?;
    if !secrets.is_empty() {
        replace(all, &secrets);
    }
    Ok(())
}

/// Restores the names that a replay needs, because a short secret may be equal to one of them.
fn restore_names(replaced: &mut Recording, original: &Recording) {
    replaced.format.clone_from(&original.format);
    replaced.component.clone_from(&original.component);
    replaced.version.clone_from(&original.version);
    for (call, original) in replaced.calls.iter_mut().zip(&original.calls) {
        call.function.clone_from(&original.function);
        for (host_call, original) in call.imports.iter_mut().zip(&original.imports) {
            host_call.import.clone_from(&original.import);
        }
    }
}

/// Returns a word as long as the secret.
fn word(number: usize, secret: &[u8]) -> Vec<u8> {
    let name = format!("hidden-{number}-").into_bytes();
    name.into_iter().chain(std::iter::repeat(b'x')).take(secret.len()).collect()
}

fn replace(value: &mut Value, secrets: &Replacements) {
    match value {
        Value::String(text) => {
            if let Some(replaced) = secrets.apply(text.as_bytes()) {
                *text = String::from_utf8_lossy(&replaced).into_owned();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, secrets)),
        Value::Object(fields) => {
            let bytes = fields.get("base64").filter(|_| fields.len() == 1).and_then(Value::as_str);
            let bytes = bytes.and_then(decode_base64);
            if let Some(replaced) = bytes.and_then(|bytes| secrets.apply(&bytes)) {
                *value = super::trace_value::bytes(&replaced);
                return;
            }
            fields.values_mut().for_each(|field| replace(field, secrets));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::super::file::{RecordedLimits, RecordedRequest};
    use super::super::trace_value::as_bytes;
    use super::*;

    #[test]
    fn secrets_in_bytes_and_texts_are_replaced() {
        const SECRET: &str = "a-secret-of-length-24-00";
        let Secrets(secrets) = Secrets::with_words(FoundSecrets::of_json(&json!({"password": SECRET}), &[]));
        let secrets = secrets.unwrap();
        let bytes = [&[0xff], SECRET.as_bytes()].concat();
        let mut value = json!({
            "plain": format!("a {SECRET} b {SECRET}"),
            "base64": {"base64": STANDARD.encode(&bytes)},
            "text": {"text": format!("{{\"sig\":\"{}\"}}", STANDARD.encode(SECRET))},
            "list": [STANDARD.encode(SECRET), 7, null],
        });
        let before = value.to_string().len();
        replace(&mut value, &secrets);
        let word = format!("hidden-0-{}", "x".repeat(SECRET.len() - 9));
        assert_eq!(value["plain"], format!("a {word} b {word}"));
        assert_eq!(as_bytes(&value["base64"]).unwrap()[1..], *word.as_bytes());
        assert_eq!(value["list"][0], STANDARD.encode(&word));
        assert!(!value.to_string().contains(&STANDARD.encode(SECRET)), "{value}");
        assert_eq!(value.to_string().len(), before, "every word is as long as its secret");
    }

    /// Creates a recording with these headers.
    fn recording(headers: Vec<(String, String)>) -> Recording {
        Recording {
            packhouse_recording: Recording::VERSION,
            format: "maven".to_owned(),
            component: "sha256:0".to_owned(),
            version: "1".to_owned(),
            recorded_at: 1,
            request: RecordedRequest { headers, ..Default::default() },
            limits: RecordedLimits { memory_bytes: 1, call_timeout_ms: 1, hostcall_bytes: 1, handles: 1 },
            wasi: Default::default(),
            calls: Vec::new(),
            cut: None,
        }
    }

    #[test]
    fn a_recording_with_too_many_credentials_is_emptied() {
        let header = |number: usize| ("x-api-key".to_owned(), format!("secret-{number}"));
        let mut many = recording((0..=MOST_SECRETS).map(header).collect());
        many.calls = vec![Default::default()];
        Secrets::of(&many, &[]).take_out(&mut many);
        assert_eq!((many.cut.as_deref(), many.calls.len()), (Some(TOO_MANY), 0));
        assert_eq!(many.request, RecordedRequest::default());
        let password = |number: usize| json!({"password": format!("secret-{number}")});
        let mut all: Value = (0..=MOST_SECRETS).map(password).collect();
        assert_eq!(hide_words(&mut all, &[]), Err(TOO_MANY.to_owned()));
    }

    #[test]
    fn a_short_password_does_not_change_the_names_that_a_replay_needs() {
        let mut recording = recording(vec![("authorization".to_owned(), "Bearer maven".to_owned())]);
        Secrets::of(&recording, &[]).take_out(&mut recording);
        assert_eq!(recording.request.headers[0].1, "Bearer hidde");
        assert_eq!(recording.format, "maven");
    }
}
