//! What a handler is handed: repositories, and the rest of what it may know of the world.

use crate::host::Host;
use crate::{
    Blob, Error, Failure, Fetch, Login, LoginState, PublicKey, Repository, Signature, Token, Writer,
};

/// The status of a failure that an upstream is the cause of.
const UPSTREAM_FAILED: u16 = 502;

/// The world of one call.
pub struct Context {
    host: Box<dyn Host>,
    target: Option<Repository>,
    others: Vec<Repository>,
}

impl Context {
    /// Over a host and the repositories that it hands out for a call.
    pub fn new(host: Box<dyn Host>, target: Option<Repository>, others: Vec<Repository>) -> Self {
        Self { host, target, others }
    }

    /// The repository that the request is for.
    ///
    /// # Errors
    /// An internal failure under a claim that names no repository.
    pub fn target(&self) -> Result<&Repository, Failure> {
        self.target.as_ref().ok_or_else(|| Failure::internal("this request names no repository"))
    }

    /// A group's members that the caller may read and that may serve the [package](crate::Intent::about_package) of the request, in
    /// order; or those that [`Intent::also_read`](crate::Intent::also_read) named.
    pub fn others(&self) -> &[Repository] {
        &self.others
    }

    /// Where a read looks: in a group those of its members that may serve what is asked for, in order, perhaps none; else in the
    /// target itself.
    ///
    /// # Errors
    /// Those of [`target`](Self::target).
    pub fn sources(&self) -> Result<Vec<&Repository>, Failure> {
        let target = self.target()?;
        Ok(if target.is_group() { self.others.iter().collect() } else { vec![target] })
    }

    /// Those of [`sources`](Self::sources) that hold what was published to them.
    ///
    /// # Errors
    /// Those of [`target`](Self::target).
    pub fn hosted(&self) -> Result<Vec<&Repository>, Failure> {
        Ok(self.sources()?.into_iter().filter(|source| source.is_hosted()).collect())
    }

    /// Those of [`sources`](Self::sources) that have an upstream.
    ///
    /// # Errors
    /// Those of [`target`](Self::target).
    pub fn proxies(&self) -> Result<Vec<&Repository>, Failure> {
        Ok(self.sources()?.into_iter().filter(|source| source.is_proxy()).collect())
    }

    /// What the first of the [`sources`](Self::sources) answers that has it. A source whose
    /// upstream fails (502) is left out; its failure stands if no other source has it.
    ///
    /// # Errors
    /// Those of `ask`.
    pub fn first<T>(
        &self,
        mut ask: impl FnMut(&Repository) -> Result<Option<T>, Failure>,
    ) -> Result<Option<T>, Failure> {
        let mut left_out = self.left_out();
        for source in self.sources()? {
            if let Some(found) = left_out.unless_failed(source, ask(source))? {
                return Ok(Some(found));
            }
        }
        left_out.or_failure(None)
    }

    /// What all [`sources`](Self::sources) answer that have it. A source whose upstream fails (502)
    /// is left out; its failure stands if no other source has it.
    ///
    /// # Errors
    /// Those of `ask`.
    pub fn all<T>(
        &self,
        mut ask: impl FnMut(&Repository) -> Result<Option<T>, Failure>,
    ) -> Result<Vec<T>, Failure> {
        let (mut left_out, mut found) = (self.left_out(), Vec::new());
        for source in self.sources()? {
            found.extend(left_out.unless_failed(source, ask(source))?);
        }
        Ok(left_out.or_failure(Some(found).filter(|found| !found.is_empty()))?.unwrap_or_default())
    }

    /// For an answer that is put together of several sources, which does without those whose
    /// upstream fails.
    pub fn left_out(&self) -> LeftOut<'_> {
        LeftOut { cx: self, failure: None }
    }

    /// The log, under this request's id.
    pub fn log(&self) -> Log<'_> {
        Log(self)
    }

    /// Ms since 1970; the same all through a call. Of a publish that moves what was published elsewhere ([`Request::is_moved`](crate::Request::is_moved)) it is the time of that, if its sender knows it. An answer that depends on it is not kept: ask only when it is needed.
    pub fn now(&self) -> u64 {
        self.host.now()
    }

    /// For bytes that the plugin makes itself.
    pub fn writer(&self) -> Writer {
        Writer::new(self.host.writer())
    }

    /// A blob of bytes that the plugin makes itself.
    ///
    /// # Errors
    /// [`Error::TooLarge`] past the plugin's limit for what it may write in one call.
    pub fn write_blob(&self, bytes: &[u8]) -> Result<Blob, Error> {
        let mut writer = self.writer();
        writer.write(bytes)?;
        writer.finish()
    }

    /// A request to a proxy's upstream: `GET`, `HEAD` or `POST`. `target`, percent-encoded and with its query, is below the
    /// upstream's address, or an absolute address that the upstream's own metadata named.
    pub fn upstream(&self, method: &str, target: &str) -> Fetch {
        Fetch::new(self.host.fetch(method, target), target)
    }

    /// Sign-in and the caller's tokens.
    pub fn identity(&self) -> Identity<'_> {
        Identity(self)
    }

    /// Signatures of the target's contents.
    pub fn signing(&self) -> Signing<'_> {
        Signing(self)
    }
}

/// The sources that an answer does without, since their upstream fails; from [`Context::left_out`].
pub struct LeftOut<'a> {
    cx: &'a Context,
    failure: Option<Failure>,
}

impl LeftOut<'_> {
    /// What a source answers; none where its upstream fails (502), which is told to the host. In a
    /// target that is no group every failure stands at once.
    ///
    /// # Errors
    /// Every other failure.
    pub fn unless_failed<T>(
        &mut self,
        source: &Repository,
        answer: Result<Option<T>, Failure>,
    ) -> Result<Option<T>, Failure> {
        match answer {
            Err(failure) if failure.status == UPSTREAM_FAILED && self.cx.target()?.is_group() => {
                let reason = failure.problems.first().map_or("", |problem| problem.message.as_str());
                self.cx.host.leave_out(source.host(), reason);
                self.failure.get_or_insert(failure);
                Ok(None)
            }
            answer => answer,
        }
    }

    /// What was found; where that is nothing, the first failure of a source that may have had it.
    ///
    /// # Errors
    /// That failure.
    pub fn or_failure<T>(self, found: Option<T>) -> Result<Option<T>, Failure> {
        match (found, self.failure) {
            (None, Some(failure)) => Err(failure),
            (found, _) => Ok(found),
        }
    }
}

/// Lines for the log: at most 100 of 8 KiB a call.
pub struct Log<'a>(&'a Context);

impl Log<'_> {
    /// Something is broken.
    pub fn error(&self, message: &str, fields: &[(&str, &str)]) {
        self.0.host.log("error", message, fields);
    }

    /// Something is odd.
    pub fn warn(&self, message: &str, fields: &[(&str, &str)]) {
        self.0.host.log("warn", message, fields);
    }

    /// Something an operator may want to know.
    pub fn info(&self, message: &str, fields: &[(&str, &str)]) {
        self.0.host.log("info", message, fields);
    }

    /// So many `items` (`versions` or `files`) of a package are left out of an answer, since what an upstream says of them cannot be
    /// read; nothing where that is none.
    pub fn left_out(&self, package: &str, items: &str, count: usize) {
        if count > 0 {
            let (message, count) = (format!("{items} left out that cannot be read"), count.to_string());
            self.info(&message, &[("package", package), (items, count.as_str())]);
        }
    }

    /// Something for who looks for a fault.
    pub fn debug(&self, message: &str, fields: &[(&str, &str)]) {
        self.0.host.log("debug", message, fields);
    }
}

/// What a client's own sign-in and token commands need. No secret passes through a plugin.
pub struct Identity<'a>(&'a Context);

impl Identity<'_> {
    /// Begins a sign-in at the host's page; it makes a token for the target.
    ///
    /// # Errors
    /// The host's. Where too many are open it mostly ends the call itself; one that tells so makes a failure of 429.
    pub fn begin_login(&self) -> Result<Login, Failure> {
        self.0.target()?.begin_login().map_err(|error| match error {
            Error::TooLarge(_) => {
                let text = "Too many sign-ins are open; finish one, or wait until they expire";
                Failure::new(429, "too_many_attempts", text).header("retry-after", "60")
            }
            other => other.into(),
        })
    }

    /// Where the sign-in stands. An id that is not known is [`LoginState::Gone`].
    ///
    /// # Errors
    /// The host's.
    pub fn finish_login(&self, id: &str) -> Result<LoginState, Error> {
        self.0.host.finish_login(id)
    }

    /// The caller's own, newest first; an empty list for anonymous.
    ///
    /// # Errors
    /// The host's.
    pub fn tokens(&self) -> Result<Vec<Token>, Error> {
        self.0.host.tokens()
    }

    /// Ends one of the caller's tokens. False where the caller has none of that id.
    ///
    /// # Errors
    /// The host's.
    pub fn revoke(&self, id: &str) -> Result<bool, Error> {
        self.0.host.revoke(id)
    }
}

/// Signatures of the target's contents. The key is the host's, one for each format and organization.
pub struct Signing<'a>(&'a Context);

impl Signing<'_> {
    /// The keys by which signatures may be checked, the one in use first.
    ///
    /// # Errors
    /// The host's.
    pub fn keys(&self) -> Result<Vec<PublicKey>, Failure> {
        Ok(self.0.target()?.signing_keys()?)
    }

    /// An ECDSA signature over SHA-256 of `message`, in ASN.1 DER.
    ///
    /// # Errors
    /// The host's `denied` unless the intent was to publish.
    pub fn sign(&self, message: &[u8]) -> Result<Signature, Failure> {
        Ok(self.0.target()?.sign(message)?)
    }
}
