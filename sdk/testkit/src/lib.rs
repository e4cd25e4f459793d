//! Test kit for plugins: an in-memory host, and tables of requests. The tables run without Wasm, in
//! the test's own process, and also through the built component.
//!
//! ```
//! use packhouse_sdk::{
//!     Context, Description, Failure, Format, Params, Plan, Request, Response, Router,
//! };
//! use packhouse_testkit::MemoryHost;
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
//! let host = MemoryHost::new();
//! let greetings = host.mount::<Hello>("greetings", "hosted", serde_json::json!({}));
//! assert_eq!(greetings.get("/hello/Ann").send().expect(200).text(), "Hello, Ann!");
//! greetings.get("/elsewhere").send().expect(404);
//! ```
//!
//! The memory host follows the contract: expectations, unique revisions, blobs that only their
//! repository holds, the rights of each intent, pages and delimiters, uploads, decoding, cached
//! pieces. The memory host leaves out the content for HEAD, and refuses every response that the
//! host would refuse. Tests of the host cover its other response features, which the memory host
//! does not implement: `ETag` and `Last-Modified`, conditional requests, `Range`, and the form of
//! error responses. The memory host does not authenticate callers either. Its clock stands still
//! unless [`MemoryHost::set_now`] moves it.

#![warn(missing_docs)]

mod answer;
mod blob;
mod call;
mod case;
mod catalog;
mod commit;
mod effects;
mod flow;
mod memo;
mod memory;
mod mount;
mod names;
mod pieces;
mod repository;
mod request;
mod shape;
mod state;
mod table;
mod table_file;
mod tar;
#[cfg(test)]
mod tests;
mod upload;
mod upstream;

pub use answer::Answer;
pub use case::Case;
pub use effects::Effects;
pub use memory::MemoryHost;
pub use mount::{Mount, Sending};
pub use request::{Form, TestRequest};
pub use state::{Fetched, LogLine};
pub use table::{Missed, World, examine, run};
pub use table_file::Table;
pub use tar::tar_archive;

#[cfg(test)]
extern crate self as packhouse_testkit;

#[cfg(test)]
#[path = "../tests/mod.rs"]
mod outside_tests;
