//! Errors of moving one item, and retries after such errors.

use std::time::Duration;

/// Reason why an item was not moved.
#[derive(Debug)]
pub(crate) enum MoveError {
    /// The item does not exist.
    Missing(String),
    /// The item was refused. A retry would be refused too.
    Refused(String),
    /// A server or a disk failed. A retry may help, after the given time.
    Unavailable(String, Option<Duration>),
    /// The credential is missing or was refused. All other requests will fail too.
    Credential(String),
}

impl MoveError {
    /// The error's message.
    pub(crate) fn message(&self) -> &str {
        match self {
            MoveError::Missing(text)
            | MoveError::Refused(text)
            | MoveError::Unavailable(text, _)
            | MoveError::Credential(text) => text,
        }
    }

    /// The error for a failure on this machine.
    pub(crate) fn local(what: &str, error: &std::io::Error) -> MoveError {
        MoveError::Unavailable(format!("failed to {what}: {error}"), None)
    }
}

impl std::fmt::Display for MoveError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.message())
    }
}

impl std::error::Error for MoveError {}

/// Number of attempts, and the pauses between them.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Runs `work` until it succeeds, fails with an error that a retry cannot fix, or has failed four
/// times.
pub(crate) async fn again<T, F: Future<Output = Result<T, MoveError>>>(
    mut work: impl FnMut() -> F,
) -> Result<T, MoveError> {
    let mut pause = PAUSE;
    for _ in 1..TRIES {
        match work().await {
            Err(MoveError::Unavailable(_, requested)) => {
                tokio::time::sleep(requested.unwrap_or(pause).min(LONGEST_PAUSE)).await;
                pause *= 2;
            }
            done => return done,
        }
    }
    work().await
}
