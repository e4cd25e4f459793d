//! What a plugin is tested with: a host in memory, and a table of requests that runs natively and through Wasm.
//!
//! ```
//! use packhouse_sdk::{Context, Description, Failure, Format, Params, Plan, Request, Response, Router};
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
//! The memory host keeps to the contract: expectations, revisions that never come twice, blobs that only their repository
//! holds, what each intent may do, pages and delimiters, uploads, decoding, remembered pieces. Of an answer it leaves out the content for HEAD
//! and checks what the host would refuse. The rest of what the host does to answers is left to the host, and to the tests
//! that run it: `ETag` and `Last-Modified`, conditional requests, `Range`, the shape of errors on the wire. So is identity:
//! no credential is asked for. Time stands still unless [`MemoryHost::set_now`] moves it.

mod answer;
mod blob;
mod call;
mod case;
mod catalog;
mod commit;
mod effects;
mod flow;
mod kept_table;
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
mod tar;
#[cfg(test)]
mod tests;
mod upload;
mod upstream;

pub use answer::Answer;
pub use case::Case;
pub use effects::Effects;
pub use kept_table::Table;
pub use memory::MemoryHost;
pub use mount::{Mount, Sending};
pub use request::{Form, TestRequest};
pub use state::{Fetched, LogLine};
pub use table::{Missed, World, examine, run};
pub use tar::tar_archive;

#[cfg(test)]
extern crate self as packhouse_testkit;

#[cfg(test)]
#[path = "../tests/mod.rs"]
mod outside_tests;
