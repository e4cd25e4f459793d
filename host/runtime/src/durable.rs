//! What a call leaves behind: the blobs that it kept become durable, and bytes that came again
//! replace those that were lost.

use packhouse_store::{Algorithm, Blob, RepositoryId};

use crate::answer::{Answer, Failure};
use crate::error::CallError;
use crate::plugin::Plugin;

/// What `handle` answered, with what has yet to be made durable, and what a publish brought that
/// stored nothing.
pub(crate) struct Handled {
    pub(crate) answered: Result<(Answer, Vec<(RepositoryId, Blob)>), Failure>,
    pub(crate) sent: Option<(RepositoryId, Vec<Blob>)>,
}

impl Plugin {
    /// Returns once what the call kept is durable.
    pub(crate) async fn kept_durable(&self, handled: Handled) -> Result<Result<Answer, Failure>, CallError> {
        let Handled { answered, sent } = handled;
        match answered {
            Ok((mut answer, kept)) => {
                answer.committed |= !kept.is_empty();
                let sent = sent.map(|(id, sent)| (id, not_among(sent, &kept)));
                self.make_durable(kept).await?;
                self.repair(sent).await?;
                Ok(Ok(answer))
            }
            Err(failure) => {
                if let Err(error) = self.repair(sent).await {
                    tracing::warn!(%error, "bytes that came again were not compared with those that are stored");
                }
                Ok(Err(failure))
            }
        }
    }

    /// A publish that stores nothing may have brought bytes that are here already: where those are
    /// missing or damaged, the new ones take their place.
    async fn repair(&self, sent: Option<(RepositoryId, Vec<Blob>)>) -> Result<(), CallError> {
        match sent {
            Some((repository, sent)) => Ok(self.storage.repair(repository, &sent).await?),
            None => Ok(()),
        }
    }

    /// What was kept and named by no commit of the call, held in its repository. The instance is
    /// gone by now, so that waiting for the disk holds no place.
    pub(crate) async fn make_durable(&self, mut kept: Vec<(RepositoryId, Blob)>) -> Result<(), CallError> {
        while let Some((repository, _)) = kept.first() {
            let repository = *repository;
            let blobs: Vec<Blob> = kept
                .extract_if(.., |(in_repository, _)| *in_repository == repository)
                .map(|(_, blob)| blob)
                .collect();
            self.storage.keep(repository, &blobs).await?;
        }
        Ok(())
    }
}

/// Those of these bytes that are not kept: what is kept is compared with what is stored when it
/// becomes durable.
fn not_among(sent: Vec<Blob>, kept: &[(RepositoryId, Blob)]) -> Vec<Blob> {
    let is_kept = |blob: &Blob| {
        kept.iter().any(|(_, kept)| kept.known(Algorithm::Sha256) == blob.known(Algorithm::Sha256))
    };
    sent.into_iter().filter(|blob| !is_kept(blob)).collect()
}
