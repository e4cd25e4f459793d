//! Where something is read from.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use url::Url;

use crate::client::Client;
use crate::fault::Fault;
use crate::stream::{Opened, open_file};

/// Where something is read from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// A server.
    Url(Arc<Client>, Url),
    /// A place that is read in a way of its own.
    Other(Arc<dyn Opens>),
    /// A file.
    File(PathBuf),
}

/// Something that can be read more than once.
pub(crate) trait Opens: Debug + Send + Sync {
    /// Begins to read.
    fn open(&self) -> BoxFuture<'_, Result<Opened, Fault>>;
}

impl Origin {
    /// Begins to read.
    pub(crate) async fn open(&self) -> Result<Opened, Fault> {
        match self {
            Origin::Url(client, url) => client.open(url).await,
            Origin::Other(other) => other.open().await,
            Origin::File(path) => open_file(path).await,
        }
    }
}
