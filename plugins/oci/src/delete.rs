//! `DELETE` of a manifest: by tag the tag alone, by digest the manifest with all its tags.

use crate::name::{self, Reference};
use crate::untagged;
use packhouse_sdk::{Context, Failure, Intent, Params, Request, Response, Settings};

pub(crate) fn plan(request: &Request, params: &Params) -> Result<Intent, Failure> {
    let image = name::image(request, params)?;
    name::reference(params)?;
    Ok(Intent::delete().subject(image.as_str()).about_package(image))
}

pub(crate) fn delete(cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    let (repository, image) = (cx.target()?, name::image(request, params)?);
    let left_behind = match name::reference(params)? {
        Reference::Tag(tag) => vec![untagged::delete_tag(repository, &image, &tag)?],
        Reference::Digest(digest) => untagged::delete(repository, &image, &digest)?,
    };
    if !Settings::of(repository)?.keep_untagged {
        untagged::drop_all(repository, &image, left_behind)?;
    }
    Ok(Response::accepted())
}
