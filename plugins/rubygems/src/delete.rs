//! Yanking and deleting. The repository keeps a yanked gem, but neither lists nor serves it.

use crate::records::{self, GemRecord};
use crate::{busy, files, name};
use packhouse_sdk::{
    Context, Expectation, Failure, Intent, Params, Repository, Request, Response, Step, VersionId,
};

/// Largest form that `gem yank` may send, in bytes.
const FORM: u64 = 64 << 10;

pub(crate) fn plan_yank(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::delete().body(FORM))
}

pub(crate) fn plan_file(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::delete().subject(params.segment("file")))
}

/// Handles `DELETE /api/v1/gems/yank`. Takes each field from the form in the body, or else from the
/// query.
pub(crate) fn yank(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let body = match request.take_body() {
        Some(body) => body.text(FORM).map_err(|_| Failure::invalid("The body is not a form"))?,
        None => String::new(),
    };
    let form = fields(&body);
    let field = |key: &str| {
        let sent = form.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
        sent.or_else(|| request.query(key)).unwrap_or_default().to_owned()
    };
    let (gem, version, platform) = (field("gem_name"), field("version"), field("platform"));
    if gem.is_empty() || version.is_empty() {
        return Err(Failure::invalid("Yanking a gem needs the fields gem_name and version"));
    }
    let number = name::number(&version, if platform.is_empty() { "ruby" } else { &platform });
    if mark(cx.target()?, &gem, &number, Some(String::new()))? {
        Ok(Response::text(format!("Successfully deleted gem: {gem} ({number})")))
    } else {
        Ok(Response::text(format!("The gem {gem} ({number}) was yanked already")))
    }
}

/// Parses the fields of a URL-encoded form.
fn fields(body: &str) -> Vec<(String, String)> {
    let pairs = body.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (byte, part.get(2..)) {
            (Some(byte), Some(rest)) => {
                bytes.push(byte);
                bytes.extend(rest.as_bytes());
            }
            _ => {
                bytes.push(b'%');
                bytes.extend(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Yanks a version with the reason `yanked`, or restores it if `yanked` is `None`. Returns false if
/// the version already has this state.
pub(crate) fn mark(
    repository: &Repository,
    gem: &str,
    number: &str,
    yanked: Option<String>,
) -> Result<bool, Failure> {
    let missing = || missing(gem, number);
    if !name::is_name(gem) || name::parts(number).is_none() {
        return Err(missing());
    }
    let key = records::version(gem, number);
    repository.update_if_needed(busy, |change| {
        let existing = repository.get_json::<GemRecord>(&key)?.ok_or_else(missing)?;
        if existing.value.yanked == yanked {
            return Ok(Step::Done(false));
        }
        let record = GemRecord { yanked: yanked.clone(), ..existing.value };
        change.put_json(
            &key,
            &record,
            Expectation::Revision(existing.revision),
            std::slice::from_ref(&record.sha256),
        )?;
        change.show(&record.listed_version());
        Ok(Step::Commit(true))
    })
}

pub(crate) fn missing(gem: &str, number: &str) -> Failure {
    Failure::not_found(format!("There is no version {number} of the gem {gem} in this repository"))
}

/// Handles `DELETE` of a gem by its file name.
pub(crate) fn file(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (repository, file) = (cx.target()?, params.segment("file"));
    let stem = file.strip_suffix(".gem").ok_or_else(|| files::missing(file))?;
    let record = records::by_stem(repository, stem)?.ok_or_else(|| files::missing(file))?;
    if remove(repository, &record.spec.name, &record.spec.number())? {
        Ok(Response::no_content())
    } else {
        Err(files::missing(file))
    }
}

/// Removes a version. Returns false if it does not exist.
pub(crate) fn remove(repository: &Repository, gem: &str, number: &str) -> Result<bool, Failure> {
    if !name::is_name(gem) || name::parts(number).is_none() {
        return Ok(false);
    }
    let key = records::version(gem, number);
    repository.update_if_needed(busy, |change| {
        let Some(record) = repository.get_json::<GemRecord>(&key)? else { return Ok(Step::Done(false)) };
        change.remove(&key, Expectation::Revision(record.revision));
        change.require(&records::file(&record.value.spec.stem()), Expectation::Anything);
        change.hide(&VersionId::new(gem, number));
        Ok(Step::Commit(true))
    })
}

#[cfg(test)]
mod tests {
    use super::fields;
    use proptest::prelude::*;

    #[test]
    fn a_form_is_read() {
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        assert_eq!(
            fields("gem_name=a%2Db&version=1.0+x&none"),
            [pair("gem_name", "a-b"), pair("version", "1.0 x")]
        );
        assert_eq!(fields("a=%zz%4"), [pair("a", "%zz%4")]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in ".{0,60}") {
            let _ = fields(&text);
        }
    }
}
