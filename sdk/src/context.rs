//! Context of a call: its repositories and the other functions of the host.

use crate::host::Host;
use crate::{
    Blob, Error, Failure, Fetch, Login, LoginState, PublicKey, Repository, Signature, Token, Writer,
};

/// HTTP status of a failure that an upstream caused.
const UPSTREAM_FAILED: u16 = 502;

/// Repositories and host functions that one call can use.
pub struct Context {
    host: Box<dyn Host>,
    target: Option<Repository>,
    others: Vec<Repository>,
}

impl Context {
    /// Creates a context from a host and the repositories of the call.
    pub fn new(host: Box<dyn Host>, target: Option<Repository>, others: Vec<Repository>) -> Self {
        Self { host, target, others }
    }

    /// Returns the repository that the request addresses.
    ///
    /// # Errors
    /// An internal failure if the request is below a claim that names no repository.
    pub fn target(&self) -> Result<&Repository, Failure> {
        self.target.as_ref().ok_or_else(|| Failure::internal("this request names no repository"))
    }

    /// Returns the other repositories of the call, in order. For a group, these are the members
    /// that the caller may read and that may serve the [package](crate::Intent::about_package) of
    /// the request. For any other target, these are the repositories that
    /// [`Intent::also_read`](crate::Intent::also_read) named.
    pub fn others(&self) -> &[Repository] {
        &self.others
    }

    /// Returns the repositories to read from, in order. For a group, these are the members that may
    /// serve the requested package, possibly none. For any other target, this is the target itself.
    ///
    /// # Errors
    /// Fails like [`target`](Self::target).
    pub fn sources(&self) -> Result<Vec<&Repository>, Failure> {
        let target = self.target()?;
        Ok(if target.is_group() { self.others.iter().collect() } else { vec![target] })
    }

    /// Returns the [`sources`](Self::sources) that are hosted repositories.
    ///
    /// # Errors
    /// Fails like [`target`](Self::target).
    pub fn hosted(&self) -> Result<Vec<&Repository>, Failure> {
        Ok(self.sources()?.into_iter().filter(|source| source.is_hosted()).collect())
    }

    /// Returns the [`sources`](Self::sources) that are proxies.
    ///
    /// # Errors
    /// Fails like [`target`](Self::target).
    pub fn proxies(&self) -> Result<Vec<&Repository>, Failure> {
        Ok(self.sources()?.into_iter().filter(|source| source.is_proxy()).collect())
    }

    /// Calls `ask` for the [`sources`](Self::sources) in order and returns the first result. In a
    /// group, a source whose upstream fails (502) is skipped.
    ///
    /// # Errors
    /// Returns the errors of `ask`. The failure of a skipped source is returned only if no other
    /// source has a result.
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

    /// Calls `ask` for all [`sources`](Self::sources) and returns their results. In a group, a
    /// source whose upstream fails (502) is skipped.
    ///
    /// # Errors
    /// Returns the errors of `ask`. The failure of a skipped source is returned only if no other
    /// source has a result.
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

    /// Returns a tracker of the sources whose upstream fails, for a response that combines several
    /// sources.
    pub fn left_out(&self) -> LeftOut<'_> {
        LeftOut { cx: self, failure: None }
    }

    /// Returns the log of this request.
    pub fn log(&self) -> Log<'_> {
        Log(self)
    }

    /// Returns the current Unix time in ms; it does not change during a call. If a publish moves a
    /// file from another server ([`Request::is_moved`](crate::Request::is_moved)), this is the
    /// original publication time, provided that the sender knows it. The host does not cache a
    /// response that depends on the time, so call this only if the plugin needs the time.
    pub fn now(&self) -> u64 {
        self.host.now()
    }

    /// Returns a writer for a new blob.
    pub fn writer(&self) -> Writer {
        Writer::new(self.host.writer())
    }

    /// Writes these bytes to a new blob.
    ///
    /// # Errors
    /// [`Error::TooLarge`] past the plugin's limit for bytes written in one call.
    pub fn write_blob(&self, bytes: &[u8]) -> Result<Blob, Error> {
        let mut writer = self.writer();
        writer.write(bytes)?;
        writer.finish()
    }

    /// Builds a `GET`, `HEAD` or `POST` request to a proxy's upstream. `target` is percent-encoded
    /// and includes the query. It is relative to the upstream's address, or an absolute address
    /// from the upstream's own metadata.
    pub fn upstream(&self, method: &str, target: &str) -> Fetch {
        Fetch::new(self.host.fetch(method, target), target)
    }

    /// Returns the functions for sign-in and the caller's tokens.
    pub fn identity(&self) -> Identity<'_> {
        Identity(self)
    }

    /// Returns the functions for signing the target's contents.
    pub fn signing(&self) -> Signing<'_> {
        Signing(self)
    }
}

/// Sources that a response leaves out because their upstream fails, from [`Context::left_out`].
pub struct LeftOut<'a> {
    cx: &'a Context,
    failure: Option<Failure>,
}

impl LeftOut<'_> {
    /// Passes on the result of a source. In a group, returns `None` if the upstream of the source
    /// fails (502), and reports the failure to the host. If the target is not a group, returns
    /// every failure.
    ///
    /// # Errors
    /// Returns every other failure.
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

    /// Returns `found`, unless it is `None` and a source was left out. That source may have had a
    /// result, so its failure is returned instead.
    ///
    /// # Errors
    /// Returns the failure of the first source that was left out.
    pub fn or_failure<T>(self, found: Option<T>) -> Result<Option<T>, Failure> {
        match (found, self.failure) {
            (None, Some(failure)) => Err(failure),
            (found, _) => Ok(found),
        }
    }
}

/// Log of a request: at most 100 lines of 8 KiB in a call.
pub struct Log<'a>(&'a Context);

impl Log<'_> {
    /// Logs an error: something is broken.
    pub fn error(&self, message: &str, fields: &[(&str, &str)]) {
        self.0.host.log("error", message, fields);
    }

    /// Logs a warning: something is unusual.
    pub fn warn(&self, message: &str, fields: &[(&str, &str)]) {
        self.0.host.log("warn", message, fields);
    }

    /// Logs information for operators.
    pub fn info(&self, message: &str, fields: &[(&str, &str)]) {
        self.0.host.log("info", message, fields);
    }

    /// Logs that `count` items (`versions` or `files`) of a package were left out of a response
    /// because the upstream's metadata about them is unreadable. Logs nothing if `count` is 0.
    pub fn left_out(&self, package: &str, items: &str, count: usize) {
        if count > 0 {
            let (message, count) = (format!("unreadable {items} left out"), count.to_string());
            self.info(&message, &[("package", package), (items, count.as_str())]);
        }
    }

    /// Logs a debug-level message.
    pub fn debug(&self, message: &str, fields: &[(&str, &str)]) {
        self.0.host.log("debug", message, fields);
    }
}

/// Functions for a client's own sign-in and token commands. Secrets never pass through a plugin.
pub struct Identity<'a>(&'a Context);

impl Identity<'_> {
    /// Begins a sign-in at the host's web page. A completed sign-in creates a token for the target.
    ///
    /// # Errors
    /// Returns the host's error. If too many sign-ins are open, the host normally answers 429
    /// itself and ends the call. If the host returns an error instead, this function returns a
    /// failure of 429.
    pub fn begin_login(&self) -> Result<Login, Failure> {
        self.0.target()?.begin_login().map_err(|error| match error {
            Error::TooLarge(_) => {
                let text = "Too many sign-ins are open; finish one, or wait until they expire";
                Failure::new(429, "too_many_attempts", text).header("retry-after", "60")
            }
            other => other.into(),
        })
    }

    /// Returns the state of a sign-in. An unknown id is [`LoginState::Gone`].
    ///
    /// # Errors
    /// Returns the host's error.
    pub fn finish_login(&self, id: &str) -> Result<LoginState, Error> {
        self.0.host.finish_login(id)
    }

    /// Returns the caller's own tokens, newest first; an empty list for an anonymous caller.
    ///
    /// # Errors
    /// Returns the host's error.
    pub fn tokens(&self) -> Result<Vec<Token>, Error> {
        self.0.host.tokens()
    }

    /// Revokes one of the caller's tokens. Returns false if the caller has no token with that id.
    ///
    /// # Errors
    /// Returns the host's error.
    pub fn revoke(&self, id: &str) -> Result<bool, Error> {
        self.0.host.revoke(id)
    }
}

/// Functions for signing the target's contents. The host owns the key; each format has one key in
/// each organization.
pub struct Signing<'a>(&'a Context);

impl Signing<'_> {
    /// Returns the keys that verify signatures, the current one first.
    ///
    /// # Errors
    /// Returns the host's error.
    pub fn keys(&self) -> Result<Vec<PublicKey>, Failure> {
        Ok(self.0.target()?.signing_keys()?)
    }

    /// Signs the SHA-256 of `message` with ECDSA; the signature is in ASN.1 DER.
    ///
    /// # Errors
    /// Returns the host's error, which is `denied` unless the action of the intent is to publish.
    pub fn sign(&self, message: &[u8]) -> Result<Signature, Failure> {
        Ok(self.0.target()?.sign(message)?)
    }
}
