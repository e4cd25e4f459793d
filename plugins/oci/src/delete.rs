//! `DELETE` of a manifest. A request with a tag deletes only the tag. A request with a digest
//! deletes the manifest with all its tags. Manifests that lose their last reference are then
//! removed, unless the repository keeps untagged manifests.

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
    let candidates = match name::reference(params)? {
        Reference::Tag(tag) => vec![untagged::delete_tag(repository, &image, &tag)?],
        Reference::Digest(digest) => untagged::delete(repository, &image, &digest)?,
    };
    if !Settings::of(repository)?.keep_untagged {
        untagged::remove_unreferenced(repository, &image, candidates)?;
    }
    Ok(Response::accepted())
}
