//! Origins: the places that files are read from.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use url::Url;

use crate::client::Client;
use crate::error::MoveError;
use crate::stream::{ByteSource, open_file};

/// The place that a file is read from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// An address on a server.
    Url(Arc<Client>, Url),
    /// A place that reads its content in its own way.
    Other(Arc<dyn Opens>),
    /// A local file.
    File(PathBuf),
}

/// A place whose content can be opened more than once.
pub(crate) trait Opens: Debug + Send + Sync {
    /// Opens the content for reading.
    fn open(&self) -> BoxFuture<'_, Result<ByteSource, MoveError>>;
}

impl Origin {
    /// Opens the content for reading.
    pub(crate) async fn open(&self) -> Result<ByteSource, MoveError> {
        match self {
            Origin::Url(client, url) => client.open(url).await,
            Origin::Other(other) => other.open().await,
            Origin::File(path) => open_file(path).await,
        }
    }
}
