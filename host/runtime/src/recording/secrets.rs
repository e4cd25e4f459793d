//! Credentials are taken out of a recording before anybody sees it. The host takes a request's own out before a plugin is asked; what a
//! plugin is told of sign-ins, tokens, signatures and signed addresses is replaced here, wherever and in whatever form it stands
//! (`secret_forms`), by a word of the same length, so that a replay asks and answers the same.

use serde_json::Value;

use super::file::Recording;
use super::found_secrets::Found;
use super::secret_forms::{Replacements, decode_base64};

/// Secrets at most: each is looked for in all that there is, so more of them would take too long.
const MOST_SECRETS: usize = 1_000;
/// What is said where there are more.
const TOO_MANY: &str = "it holds too many credentials";

/// The secrets of a recording, each with the word in its place; none where there are too many.
pub(super) struct Secrets(Option<Replacements>);

impl Secrets {
    /// Those of this recording. `hidden` are beginnings of words that are credentials wherever they stand.
    pub(super) fn of(recording: &Recording, hidden: &[String]) -> Secrets {
        Secrets::worded(Found::of(recording, hidden))
    }

    /// With a word in the place of each.
    fn worded(found: Found) -> Secrets {
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

    /// Puts the words in their places. A recording that this cannot be done to keeps nothing of what was asked and told.
    pub(super) fn take_out(&self, recording: &mut Recording) {
        let Some(secrets) = &self.0 else {
            tracing::warn!("a recording keeps nothing: {TOO_MANY}");
            return keep_nothing(recording, TOO_MANY);
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
                tracing::error!("a recording keeps nothing: its credentials cannot be taken out: {error}");
                keep_nothing(recording, "its credentials could not be taken out");
            }
        }
    }
}

/// Leaves out what was asked and told, for this reason.
fn keep_nothing(recording: &mut Recording, why: &str) {
    recording.cut = Some(why.to_owned());
    recording.request = Default::default();
    recording.calls.clear();
}

/// Puts words in the places of credentials in any JSON: of words with one of these beginnings, and of members that hold one wherever they
/// stand. Says why it cannot be done.
pub(crate) fn hide_words(all: &mut Value, hidden: &[String]) -> Result<(), String> {
    let Secrets(secrets) = Secrets::worded(Found::of_json(all, hidden));
    let secrets = secrets.ok_or_else(|| TOO_MANY.to_owned())?;
    if !secrets.is_empty() {
        replace(all, &secrets);
    }
    Ok(())
}

/// Gives back the names by which a replay finds its way: a short secret may be the same word.
fn restore_names(replaced: &mut Recording, original: &Recording) {
    replaced.format.clone_from(&original.format);
    replaced.component.clone_from(&original.component);
    replaced.version.clone_from(&original.version);
    for (call, original) in replaced.calls.iter_mut().zip(&original.calls) {
        call.function.clone_from(&original.function);
        for (asked, original) in call.imports.iter_mut().zip(&original.imports) {
            asked.import.clone_from(&original.import);
        }
    }
}

/// A word as long as the secret.
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
                *value = super::spoken::bytes(&replaced);
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
    use super::super::spoken::as_bytes;
    use super::*;

    #[test]
    fn bytes_and_texts_are_replaced_wherever_they_stand() {
        const SECRET: &str = "a-secret-of-length-24-00";
        let Secrets(secrets) = Secrets::worded(Found::of_json(&json!({"password": SECRET}), &[]));
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

    /// One with these headers.
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
    fn a_recording_with_too_many_credentials_keeps_nothing() {
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
    fn a_short_password_does_not_change_what_a_replay_goes_by() {
        let mut recording = recording(vec![("authorization".to_owned(), "Bearer maven".to_owned())]);
        Secrets::of(&recording, &[]).take_out(&mut recording);
        assert_eq!(recording.request.headers[0].1, "Bearer hidde");
        assert_eq!(recording.format, "maven");
    }
}
