//! `/-/package/NAME/…`: tags, visibility and collaborators of a package.

use crate::address;
use crate::document::{check_tag, invalid};
use crate::fetch::is_part_of_publish;
use crate::name::PackageName;
use crate::records::{self, PackageRecord, missing_version};
use crate::revision::answer;
use crate::{busy, merge, not_offered};
use packhouse_sdk::{Context, Expectation, Failure, Intent, Params, ReadAt, Repository, Request, Response};
use serde_json::json;

/// Maximum number of bytes of a request body, which is a version number in quotes.
const BODY: u64 = 1024;
/// Maximum number of tags of one package.
const TAGS: usize = 10_000;

/// The requested resource of a package.
enum PackageResource {
    Tags,
    Tag(String),
    Visibility,
    Collaborators,
}

fn parse(params: &Params<'_>) -> Result<(PackageName, PackageResource), Failure> {
    let (name, rest) = address::name(params.segments("rest"))?;
    let resource = match rest.as_slice() {
        ["dist-tags"] => PackageResource::Tags,
        ["dist-tags", tag] => PackageResource::Tag((*tag).to_owned()),
        ["visibility"] => PackageResource::Visibility,
        ["collaborators"] => PackageResource::Collaborators,
        _ => return Err(not_offered(params)),
    };
    Ok((name, resource))
}

/// Returns the 404 for a resource that other registries support and this server does not.
fn not_offered(params: &Params<'_>) -> Failure {
    let above = ["-", "package"].map(str::to_owned);
    not_offered::failure(&[above.as_slice(), params.segments("rest")].concat())
}

pub(crate) fn plan_get(request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let (name, _) = parse(params)?;
    let intent = Intent::read().subject(name.as_str()).about_package(name.as_str());
    Ok(if is_part_of_publish(request) { intent.for_publish() } else { intent })
}

pub(crate) fn get(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (name, resource) = parse(params)?;
    let response = match resource {
        PackageResource::Tags => Response::json(&merge::tags(cx, &name)?)?,
        PackageResource::Tag(tag) => {
            let number = merge::tags(cx, &name)?.remove(&tag);
            Response::json(&number.ok_or_else(|| no_tag(&name, &tag))?)?
        }
        PackageResource::Visibility => Response::json(&json!({"public": false}))?,
        PackageResource::Collaborators => {
            let package = PackageRecord::get(cx.target()?, &name)?.value;
            let names = package.maintainers.iter().filter_map(|person| person.get("name")?.as_str());
            let all: serde_json::Map<_, _> =
                names.map(|name| (name.to_owned(), json!("read-write"))).collect();
            Response::json(&all)?
        }
    };
    Ok(response.revalidate())
}

pub(crate) fn plan_put(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    match parse(params)? {
        (name, PackageResource::Tag(_)) => {
            Ok(Intent::publish().subject(name.as_str()).about_package(name.as_str()).body(BODY))
        }
        _ => Err(Failure::method_not_allowed("GET, HEAD")),
    }
}

pub(crate) fn put(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (name, PackageResource::Tag(tag)) = parse(params)? else {
        return Err(Failure::internal("a PUT that the plan refuses"));
    };
    check_tag(&tag)?;
    let body = request.planned_body()?;
    let number: String = serde_json::from_slice(&body.read_all(BODY)?)
        .map_err(|_| invalid("the body must be a version's number as a JSON string, such as \"1.0.0\""))?;
    change(cx.target()?, &name, cx.now(), Some(&number), |package| {
        if package.tags.len() >= TAGS && !package.tags.contains_key(&tag) {
            return Err(invalid(&format!("a package has at most {TAGS} tags")));
        }
        package.tags.insert(tag.clone(), number.clone());
        Ok(())
    })
}

pub(crate) fn plan_delete(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    match parse(params)? {
        // The right to publish includes moving and removing tags, because both leave all versions
        // in place.
        (name, PackageResource::Tag(_)) => {
            Ok(Intent::publish().subject(name.as_str()).about_package(name.as_str()))
        }
        _ => Err(Failure::method_not_allowed("GET, HEAD")),
    }
}

pub(crate) fn delete(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (name, PackageResource::Tag(tag)) = parse(params)? else {
        return Err(Failure::internal("a DELETE that the plan refuses"));
    };
    if tag == "latest" {
        return Err(invalid("`latest` cannot be removed; move it to another version"));
    }
    let answer = change(cx.target()?, &name, cx.now(), None, |package| {
        package.tags.remove(&tag).map(drop).ok_or_else(|| no_tag(&name, &tag))
    })?;
    Ok(Response { status: 200, ..answer })
}

/// Changes the package's tags, and retries after concurrent changes. If `number` is set, this
/// version must exist at the time of the commit.
fn change(
    repository: &Repository,
    name: &PackageName,
    now: u64,
    number: Option<&str>,
    edit: impl Fn(&mut PackageRecord) -> Result<(), Failure>,
) -> Result<Response, Failure> {
    let key = number.map(|number| records::version(name, number));
    let applied = repository.update(busy, |change| {
        let mut package = PackageRecord::get(repository, name)?;
        if let (Some(key), Some(number)) = (&key, number)
            && repository.get(key)?.is_none()
        {
            return Err(missing_version(name, number));
        }
        edit(&mut package.value)?;
        package.value.modified = now;
        let expect = Expectation::Revision(package.revision);
        change.put_json(&records::package(name), &package.value, expect, &[])?;
        if let Some(key) = &key {
            change.require(key, Expectation::Present);
        }
        Ok(())
    })?;
    answer(name, applied.revision)
}

fn no_tag(name: &PackageName, tag: &str) -> Failure {
    Failure::not_found(format!("{name} has no tag {tag}"))
}
