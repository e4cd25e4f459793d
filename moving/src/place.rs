//! Where a source's documents and files lie: on a server, or in a folder.

use std::path::Path;
use std::sync::Arc;

use url::Url;

use crate::client::Client;
use crate::fault::Fault;
use crate::folder::Folder;
use crate::origin::Origin;

/// A place that paths are read from.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A server.
    Server(Arc<Client>),
    /// A folder.
    Folder(Folder),
}

/// A document with what is told of it.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) text: String,
    pub(crate) media_type: String,
    /// What its links are relative to; none in a folder.
    pub(crate) url: Option<Url>,
}

impl Place {
    /// The folder of this path.
    pub(crate) fn folder(path: &Path) -> Place {
        Place::Folder(Folder::new(path))
    }

    /// Reads a document.
    pub(crate) async fn read(&self, path: &str, accept: &str) -> Result<Read, Fault> {
        match self {
            Place::Server(client) => {
                let document = client.document(&client.url(path)?, accept).await?;
                let media_type = document.media_type().to_owned();
                Ok(Read { text: document.text(), media_type, url: Some(document.url) })
            }
            Place::Folder(folder) => {
                let text = String::from_utf8_lossy(&folder.document(path).await?).into_owned();
                Ok(Read { text, media_type: String::new(), url: None })
            }
        }
    }

    /// Where a file is read from: below the place, or at an address that a document names.
    pub(crate) fn origin(&self, path: &str) -> Result<Origin, Fault> {
        match self {
            Place::Server(client) => Ok(Origin::Url(Arc::clone(client), client.url(path)?)),
            Place::Folder(folder) => Ok(Origin::File(folder.at(path)?)),
        }
    }
}
