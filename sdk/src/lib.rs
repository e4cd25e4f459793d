//! SDK for format plugins.
//!
//! A format is a type that implements [`Format`]: it describes itself, and lists its requests as
//! rows of a [`Router`]. Each row has a plan and a handler. The plan declares what the request
//! would do, and sees only the head of the request. The handler then answers the request, with
//! storage handles that match the plan. [`export!`] makes a component of the format.
//!
//! ```
//! use packhouse_sdk::{
//!     Context, Description, Failure, Format, Params, Plan, Request, Response, Router,
//! };
//!
//! struct Hello;
//!
//! impl Format for Hello {
//!     fn describe() -> Description {
//!         Description::new("hello", "0.1.0")
//!     }
//!
//!     fn routes(router: &mut Router) {
//!         router.get("/hello/{name}", Plan::read, Self::greet);
//!     }
//! }
//!
//! impl Hello {
//!     fn greet(_cx: &Context, _request: &Request, params: &Params) -> Result<Response, Failure> {
//!         Ok(Response::text(format!("Hello, {}!", params.segment("name"))))
//!     }
//! }
//!
//! packhouse_sdk::export!(Hello);
//! ```
//!
//! # Proxies, groups and an index
//!
//! This format has all three kinds of repositories, and a list of all its files. A handler reads
//! from [`Context::sources`]: the repository itself, or the members of a group that may serve the
//! package. [`Context::first`] returns the first result of these repositories, [`Context::all`] the
//! results of all. The host caches what a proxy fetches, and decides which names may be requested
//! from an upstream.
//!
//! ```
//! use std::collections::BTreeSet;
//!
//! use packhouse_sdk::{
//!     Context, Description, Digest, Failure, Format, Intent, Params, Plan, ReadAt, Reply,
//!     Repository, Request, Response, Router, percent_encode,
//! };
//!
//! struct Files;
//!
//! impl Format for Files {
//!     fn describe() -> Description {
//!         Description::new("files", "0.1.0").kinds(&["hosted", "proxy", "group"])
//!     }
//!
//!     fn routes(router: &mut Router) {
//!         router.get("/index.json", Plan::read_many, index);
//!         router.get("/files/{name}", plan_file, file);
//!     }
//! }
//!
//! /// Names the package, so that the host leaves out members of a group that may not serve it.
//! fn plan_file(_: &Request, params: &Params) -> Result<Intent, Failure> {
//!     Ok(Intent::read().about_package(params.segment("name")))
//! }
//!
//! fn file(cx: &Context, _: &Request, params: &Params) -> Result<Response, Failure> {
//!     let name = params.segment("name");
//!     let found = cx.first(|source| {
//!         if source.is_proxy() { fetch(cx, source, name) } else { look_up(source, name) }
//!     })?;
//!     found.ok_or_else(|| Failure::not_found("There is no such file"))
//! }
//!
//! fn look_up(hosted: &Repository, name: &str) -> Result<Option<Response>, Failure> {
//!     let Some(record) = hosted.get_json::<Digest>(&format!("files/{name}"))? else {
//!         return Ok(None);
//!     };
//!     Ok(Some(Response::blob(hosted.recorded_blob(&record.value)?).revalidate()))
//! }
//!
//! /// `show_as` names the version to which the file belongs. The host and its policies judge that.
//! fn fetch(cx: &Context, proxy: &Repository, name: &str) -> Result<Option<Response>, Failure> {
//!     let path = format!("/files/{}", percent_encode(name));
//!     let reply = cx.upstream("GET", &path).show_as(name, "latest", name).start(proxy)?.found()?;
//!     let body = reply.map(Reply::body).transpose()?;
//!     Ok(body.map(|body| Response::blob(body).revalidate()))
//! }
//!
//! fn index(cx: &Context, _: &Request, _: &Params) -> Result<Response, Failure> {
//!     let lists = cx.all(|source| {
//!         if source.is_proxy() { fetch_names(cx, source) } else { own_names(source) }
//!     })?;
//!     let names: BTreeSet<String> = lists.into_iter().flatten().collect();
//!     Ok(Response::json(&names)?)
//! }
//!
//! fn own_names(hosted: &Repository) -> Result<Option<Vec<String>>, Failure> {
//!     let mut names = Vec::new();
//!     for key in hosted.keys("files/") {
//!         names.push(key?.trim_start_matches("files/").to_owned());
//!     }
//!     Ok(Some(names))
//! }
//!
//! /// Returns the names that the upstream lists, without those that only hosted repositories may
//! /// serve.
//! fn fetch_names(cx: &Context, proxy: &Repository) -> Result<Option<Vec<String>>, Failure> {
//!     let fetch = cx.upstream("GET", "/index.json").metadata();
//!     let Some(reply) = fetch.start(proxy)?.found()? else { return Ok(None) };
//!     let bytes = reply.body()?.read_all(1 << 20)?;
//!     let mut names: Vec<String> = serde_json::from_slice(&bytes)
//!         .map_err(|_| Failure::unusable_upstream("its index is not a list of names"))?;
//!     let withheld = proxy.withheld(&names)?;
//!     names.retain(|name| !withheld.contains(name));
//!     Ok(Some(names))
//! }
//!
//! packhouse_sdk::export!(Files);
//! ```
//!
//! The SDK calls the host through the traits of [`host`]. In Wasm, the SDK implements these traits
//! by calling the contract's imports. In tests, which run without Wasm, `packhouse-testkit`
//! implements them in memory. Code generated from the contract is not part of this API.

#![warn(missing_docs)]

// The exporting macro refers to this crate by its name. Without this line, the name would be
// unknown where the macro expands inside this crate.
extern crate self as packhouse_sdk;

pub mod address;
pub mod call;
pub mod host;
pub mod json_scan;

mod accept;
mod advisory;
mod blob;
mod challenge;
mod client;
mod context;
mod description;
mod description_parts;
mod digest;
mod entry;
mod error;
mod error_template;
mod exchange;
mod export;
mod failure;
mod find_at;
mod format;
mod identity;
mod intent;
mod output;
mod params;
mod pattern;
mod percent;
mod piece;
mod presentation;
mod read_at;
mod release;
mod repository;
mod request;
mod response;
mod retention;
mod router;
mod runs;
mod settings;
mod statement;
mod tar;
mod timestamp;
mod transaction;
mod update;
mod upstream;
mod version;
mod version_document;
#[cfg(target_arch = "wasm32")]
mod wasm;
mod window;

pub use accept::Accept;
pub use advisory::{Advisory, Cvss};
pub use blob::{Blob, Upload, Writer};
pub use challenge::{Challenge, ChallengeScheme};
pub use client::{Client, Install};
pub use context::{Context, Identity, LeftOut, Log, Signing};
pub use description::{Authorization, Claim, Description, ErrorStyle};
pub use description_parts::{SentencePlace, Setting, TokenService};
pub use digest::Digest;
pub use entry::Entry;
pub use error::Error;
pub use error_template::{CodeKind, ErrorTemplate, RefusalWords};
pub use exchange::Exchange;
pub use failure::{Failure, Problem};
pub use find_at::FindAt;
pub use format::{Format, Present, Retention, Upkeep, Versions};
pub use identity::{Login, LoginState, PublicKey, Signature, Token};
pub use intent::{Action, BodyPlan, Intent, Plan};
pub use output::Output;
pub use packhouse_names::{
    AffectedRange, AffectedVersions, Folding, Place, RangeEvent, Release, ReleaseVerdict, places, runs,
};
pub use params::Params;
pub use percent::percent_encode;
pub use piece::{PIECE_BYTES, Piece, PieceParts, Section};
pub use presentation::{
    Attestation, Dependency, History, Image, Layer, Platform, Presentation, README_BYTES, Readme, Referrer,
};
pub use read_at::ReadAt;
pub use release::{Denied, ReasonedVerdict, SortedOut};
pub use repository::{Keys, Repository, Scan};
pub use request::{Part, Request};
pub use response::{Content, Response};
pub use retention::{Needed, Unshown, UnshownPage, VersionFacts};
pub use router::{Check, Handler, Planner, Router, Row};
pub use runs::{KeyRun, Neighbours, RunRecords};
pub use settings::{Redeploy, Settings};
pub use statement::{DetachedSignature, Statement};
pub use tar::{TarEntry, TarError, TarKind, TarReader, TarRules};
pub use timestamp::Timestamp;
pub use transaction::{Expectation, Outcome, Transaction};
pub use update::{Applied, Step, retry};
pub use upstream::{Fetch, Found, Freshness, Reply};
pub use version::{File, Matches, Version, VersionId};
pub use version_document::VersionDocument;
pub use window::Window;

/// Version of the contract that this SDK implements. Built plugins contain the version in their
/// custom section `packhouse:sdk`.
pub const API_VERSION: &str = match core::str::from_utf8(__private::API_VERSION) {
    Ok(version) => version,
    Err(_) => "",
};

/// Items for the expansion of [`export!`]; not part of the API.
#[doc(hidden)]
pub mod __private {
    /// Version of the contract, as stored in a custom section.
    pub const API_VERSION: &[u8; 5] = b"0.1.0";

    #[cfg(target_arch = "wasm32")]
    pub use crate::wasm::{
        Component, export_plugin, export_present, export_retention, export_upkeep, export_versions, plugin,
        present, retention, upkeep, versions, wit_bindgen,
    };
}

#[cfg(test)]
#[path = "../tests/mod.rs"]
mod outside_tests;
