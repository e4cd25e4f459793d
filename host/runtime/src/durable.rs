//! Durability after a call: makes the blobs that the call kept durable, and replaces lost stored
//! bytes with the same bytes from a repeated upload.

use packhouse_store::{Algorithm, Blob, RepositoryId};

use crate::answer::{Answer, Failure};
use crate::error::CallError;
use crate::plugin::Plugin;

/// Result of `handle`, with the blobs that are not durable yet, and the blobs of a publish that
/// stored nothing.
pub(crate) struct Handled {
    pub(crate) answered: Result<(Answer, Vec<(RepositoryId, Blob)>), Failure>,
    pub(crate) sent: Option<(RepositoryId, Vec<Blob>)>,
}

impl Plugin {
    /// Returns once the blobs that the call kept are durable.
    pub(crate) async fn make_result_durable(
        &self,
        handled: Handled,
    ) -> Result<Result<Answer, Failure>, CallError> {
        let Handled { answered, sent } = handled;
        match answered {
            Ok((mut answer, to_keep)) => {
                answer.committed |= !to_keep.is_empty();
                let sent = sent.map(|(id, sent)| (id, not_among(sent, &to_keep)));
                self.make_durable(to_keep).await?;
                self.repair(sent).await?;
                Ok(Ok(answer))
            }
            Err(failure) => {
                if let Err(error) = self.repair(sent).await {
                    tracing::warn!(%error, "could not compare a repeated upload with the stored bytes");
                }
                Ok(Err(failure))
            }
        }
    }

    /// Repairs stored bytes. A publish that stores nothing may have sent bytes that the store
    /// already lists. If the stored copy is missing or damaged, the sent bytes replace it.
    async fn repair(&self, sent: Option<(RepositoryId, Vec<Blob>)>) -> Result<(), CallError> {
        match sent {
            Some((repository, sent)) => Ok(self.storage.repair(repository, &sent).await?),
            None => Ok(()),
        }
    }

    /// Makes the blobs durable that the call kept and no commit named, and pins them in their
    /// repository. The instance is dropped by now, so waiting for the disk holds no slot.
    pub(crate) async fn make_durable(&self, mut to_keep: Vec<(RepositoryId, Blob)>) -> Result<(), CallError> {
        while let Some((repository, _)) = to_keep.first() {
            let repository = *repository;
            let blobs: Vec<Blob> = to_keep
                .extract_if(.., |(in_repository, _)| *in_repository == repository)
                .map(|(_, blob)| blob)
                .collect();
            self.storage.keep(repository, &blobs).await?;
        }
        Ok(())
    }
}

/// Returns the sent bytes that the call did not keep. Kept blobs are compared with the stored bytes
/// when they become durable.
fn not_among(sent: Vec<Blob>, to_keep: &[(RepositoryId, Blob)]) -> Vec<Blob> {
    let is_repeated = |blob: &Blob| {
        to_keep.iter().any(|(_, other)| other.known(Algorithm::Sha256) == blob.known(Algorithm::Sha256))
    };
    sent.into_iter().filter(|blob| !is_repeated(blob)).collect()
}
