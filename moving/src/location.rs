//! The location of a source's documents and files: a server or a folder.

use std::path::Path;
use std::sync::Arc;

use url::Url;

use crate::client::Client;
use crate::error::MoveError;
use crate::folder::Folder;
use crate::origin::Origin;

/// A server or a folder that paths are read from.
#[derive(Clone, Debug)]
pub(crate) enum SourceLocation {
    Server(Arc<Client>),
    Folder(Folder),
}

/// A document with its media type and address.
#[derive(Debug)]
pub(crate) struct ReadDocument {
    pub(crate) text: String,
    pub(crate) media_type: String,
    /// Base of the document's relative links. `None` in a folder.
    pub(crate) url: Option<Url>,
}

impl SourceLocation {
    pub(crate) fn folder(path: &Path) -> SourceLocation {
        SourceLocation::Folder(Folder::new(path))
    }

    /// Reads a document.
    pub(crate) async fn read(&self, path: &str, accept: &str) -> Result<ReadDocument, MoveError> {
        match self {
            SourceLocation::Server(client) => {
                let document = client.document(&client.url(path)?, accept).await?;
                let media_type = document.media_type().to_owned();
                Ok(ReadDocument { text: document.text(), media_type, url: Some(document.url) })
            }
            SourceLocation::Folder(folder) => {
                let text = String::from_utf8_lossy(&folder.document(path).await?).into_owned();
                Ok(ReadDocument { text, media_type: String::new(), url: None })
            }
        }
    }

    /// The origin of a file. `path` is relative to the location, or is a complete address from a
    /// document.
    pub(crate) fn origin(&self, path: &str) -> Result<Origin, MoveError> {
        match self {
            SourceLocation::Server(client) => Ok(Origin::Url(Arc::clone(client), client.url(path)?)),
            SourceLocation::Folder(folder) => Ok(Origin::File(folder.at(path)?)),
        }
    }
}
