//! What stands behind the handles of `upstream`.

#![allow(unreachable_pub, reason = "named by the generated code, which is public")]

use crate::services::{Fetch, Reply};

/// A fetch that is being put together; what is wrong with it is told by `start`.
pub struct FetchRep {
    pub(crate) fetch: Fetch,
    pub(crate) problem: Option<String>,
}

/// An upstream's reply.
pub struct ReplyRep(pub(crate) Box<dyn Reply>);
