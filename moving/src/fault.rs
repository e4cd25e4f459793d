//! What can go wrong with one thing that is moved, and whether trying again can help.

use std::time::Duration;

/// Why something was not done.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It is not there.
    Missing(String),
    /// It is refused, and would be again.
    Refused(String),
    /// A server or a disk did not do what it should; it may the next time, after so long.
    Away(String, Option<Duration>),
    /// No credential, or one that is not taken: nothing else will go better.
    Credential(String),
}

impl Fault {
    /// The sentence.
    pub(crate) fn sentence(&self) -> &str {
        match self {
            Fault::Missing(text) | Fault::Refused(text) | Fault::Away(text, _) | Fault::Credential(text) => {
                text
            }
        }
    }

    /// A failure of this machine's own.
    pub(crate) fn local(what: &str, error: &std::io::Error) -> Fault {
        Fault::Away(format!("failed to {what}: {error}"), None)
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.sentence())
    }
}

impl std::error::Error for Fault {}

/// How often something is tried, and how long is waited before the next time.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Does this again while trying again can help.
pub(crate) async fn again<T, F: Future<Output = Result<T, Fault>>>(
    mut work: impl FnMut() -> F,
) -> Result<T, Fault> {
    let mut pause = PAUSE;
    for _ in 1..TRIES {
        match work().await {
            Err(Fault::Away(_, wanted)) => {
                tokio::time::sleep(wanted.unwrap_or(pause).min(LONGEST_PAUSE)).await;
                pause *= 2;
            }
            done => return done,
        }
    }
    work().await
}
