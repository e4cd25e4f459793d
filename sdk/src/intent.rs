//! What a request would do, told before any storage can be reached.

use crate::{Failure, Params, Request};

/// What a request would do to its repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// No credential needed.
    Open,
    /// Reads. Where there is no repository: a credential, and no more.
    Read,
    /// Writes.
    Publish,
    /// Removes.
    Delete,
}

impl Action {
    /// The contract's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Read => "read",
            Self::Publish => "publish",
            Self::Delete => "delete",
        }
    }
}

/// What becomes of a request's body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BodyPlan {
    /// It is not read.
    #[default]
    None,
    /// Wanted whole.
    Body {
        /// Bytes.
        limit: u64,
    },
    /// A form, wanted in parts.
    Parts {
        /// Bytes of all parts together.
        limit: u64,
    },
    /// It goes to the end of an upload.
    Append {
        /// The upload's name.
        upload: String,
        /// How long the upload must be already, where that is told.
        offset: Option<u64>,
        /// Bytes.
        limit: u64,
    },
}

/// What a request would do: the host authorises it, takes in the body that it asks for, and hands out storage to match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// What it does.
    pub action: Action,
    /// The package, image or file that it is about: for the audit log, for messages.
    pub subject: Option<String>,
    /// What becomes of the body.
    pub body: BodyPlan,
    /// The limit of the description's that the body is under.
    pub limit: Option<String>,
    /// Digests wanted of the body, or of each part, besides SHA-256.
    pub digests: Vec<String>,
    /// Other repositories of this format that the request reads from.
    pub also_read: Vec<String>,
    /// Whether the row's check is to be asked before the body is received.
    pub check: bool,
    /// A read that is part of a publish, and so within a write credential's rights.
    pub for_publish: bool,
    /// The packages that it is about, spelt as in [`Version::name`](crate::Version::name).
    pub packages: Vec<String>,
    /// Whether it is about none, or about packages that only the handler learns of.
    pub many_packages: bool,
}

impl Intent {
    /// An intent to do this, with no body.
    pub fn new(action: Action) -> Self {
        Self {
            action,
            subject: None,
            body: BodyPlan::None,
            limit: None,
            digests: Vec::new(),
            also_read: Vec::new(),
            check: false,
            for_publish: false,
            packages: Vec::new(),
            many_packages: false,
        }
    }

    /// No credential needed.
    pub fn open() -> Self {
        Self::new(Action::Open)
    }

    /// Reads.
    pub fn read() -> Self {
        Self::new(Action::Read)
    }

    /// Writes.
    pub fn publish() -> Self {
        Self::new(Action::Publish)
    }

    /// Removes.
    pub fn delete() -> Self {
        Self::new(Action::Delete)
    }

    /// What it is about: the package, image or file.
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// The body is wanted, of at most `limit` bytes: more are answered 413.
    pub fn body(mut self, limit: u64) -> Self {
        self.body = BodyPlan::Body { limit };
        self
    }

    /// The body is a form and is wanted in parts, of at most `limit` bytes together. Not a form: 400.
    pub fn parts(mut self, limit: u64) -> Self {
        self.body = BodyPlan::Parts { limit };
        self
    }

    /// The body goes to the end of the target's upload of this name, which must be `offset` long where one is given. Where it
    /// is not, nothing is read, and the handler sees it by [`Upload::received`](crate::Upload::received).
    pub fn append(mut self, upload: impl Into<String>, offset: Option<u64>, limit: u64) -> Self {
        self.body = BodyPlan::Append { upload: upload.into(), offset, limit };
        self
    }

    /// The body is under the limit of this name in the description ([`Description::limit`](crate::Description::limit)), in place of
    /// that of a file: the smaller of both counts, and what is over it is refused as the description says.
    pub fn under(mut self, limit: impl Into<String>) -> Self {
        self.limit = Some(limit.into());
        self
    }

    /// Digests wanted besides SHA-256, computed while the body comes in: `sha512`, `sha1`, `md5`, `blake2b-256`.
    pub fn digests(mut self, algorithms: &[&str]) -> Self {
        self.digests = algorithms.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// Another repository of this format that the request reads from: handed out where the caller may read it.
    pub fn also_read(mut self, repository: impl Into<String>) -> Self {
        self.also_read.push(repository.into());
        self
    }

    /// A read that is part of a publish. No effect on another action.
    pub fn for_publish(mut self) -> Self {
        self.for_publish = true;
        self
    }

    /// A package that it is about, spelt as in [`Version::name`](crate::Version::name); called for each where an address may be
    /// that of several. The host leaves out a group's proxies where the name is one of the organization's own. Without it they are
    /// only there for those who may read every hosted member.
    pub fn about_package(mut self, name: impl Into<String>) -> Self {
        self.packages.push(name.into());
        self
    }

    /// It is about no package, or about those that its body or an upstream's answer tells: a group's proxies are handed over, and
    /// the handler asks [`Repository::withheld`](crate::Repository::withheld) before it names a package to one or shows one of its.
    pub fn many_packages(mut self) -> Self {
        self.many_packages = true;
        self
    }
}

/// Plans for rows that need nothing of their own.
#[derive(Clone, Copy, Debug)]
pub struct Plan;

impl Plan {
    /// No credential needed.
    ///
    /// # Errors
    /// Never.
    pub fn open(_request: &Request<'_>, params: &Params<'_>) -> Result<Intent, Failure> {
        Ok(about(Intent::open(), params))
    }

    /// A read of what the path names.
    ///
    /// # Errors
    /// Never.
    pub fn read(_request: &Request<'_>, params: &Params<'_>) -> Result<Intent, Failure> {
        Ok(about(Intent::read(), params))
    }

    /// A read that is about no package, or about those that the handler asks [`Repository::withheld`](crate::Repository::withheld)
    /// of.
    ///
    /// # Errors
    /// Never.
    pub fn read_many(_request: &Request<'_>, params: &Params<'_>) -> Result<Intent, Failure> {
        Ok(about(Intent::read(), params).many_packages())
    }

    /// A read that is part of a publish.
    ///
    /// # Errors
    /// Never.
    pub fn read_for_publish(_request: &Request<'_>, params: &Params<'_>) -> Result<Intent, Failure> {
        Ok(about(Intent::read(), params).for_publish())
    }

    /// A write without a body.
    ///
    /// # Errors
    /// Never.
    pub fn publish(_request: &Request<'_>, params: &Params<'_>) -> Result<Intent, Failure> {
        Ok(about(Intent::publish(), params))
    }

    /// A removal of what the path names.
    ///
    /// # Errors
    /// Never.
    pub fn delete(_request: &Request<'_>, params: &Params<'_>) -> Result<Intent, Failure> {
        Ok(about(Intent::delete(), params))
    }
}

/// What a row is about is what its first parameter took.
fn about(intent: Intent, params: &Params<'_>) -> Intent {
    match params.first() {
        Some(subject) => intent.subject(subject),
        None => intent,
    }
}
