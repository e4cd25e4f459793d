//! Intent of a request, declared before the request can access any storage.

use crate::{Failure, Params, Request};

/// Action of a request on its repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Needs no credential.
    Open,
    /// Reads. Under a claim without a repository, the request only needs a valid credential.
    Read,
    /// Writes.
    Publish,
    /// Deletes.
    Delete,
}

impl Action {
    /// Returns the name of the action in the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Read => "read",
            Self::Publish => "publish",
            Self::Delete => "delete",
        }
    }
}

/// Handling of a request's body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BodyPlan {
    /// The body is not read.
    #[default]
    None,
    /// The whole body is passed to the handler.
    Body {
        /// Limit in bytes.
        limit: u64,
    },
    /// The body is a form, passed to the handler in parts.
    Parts {
        /// Limit of all parts together, in bytes.
        limit: u64,
    },
    /// The body is appended to an upload.
    Append {
        /// Name of the upload.
        upload: String,
        /// Required size of the upload before the append, if any.
        offset: Option<u64>,
        /// Limit in bytes.
        limit: u64,
    },
}

/// Intent of a request. The host authorises it, receives the body as stated, and passes matching
/// storage handles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Action of the request.
    pub action: Action,
    /// Package, image or file that the request is about, for the audit log and messages.
    pub subject: Option<String>,
    /// Handling of the body.
    pub body: BodyPlan,
    /// Name of the description's limit that applies to the body.
    pub limit: Option<String>,
    /// Digest algorithms for the body, or for each part, besides SHA-256.
    pub digests: Vec<String>,
    /// Other repositories of this format that the request reads from.
    pub also_read: Vec<String>,
    /// True if the row's check must run before the body is received.
    pub check: bool,
    /// True for a read that is part of a publish, so that a write credential permits it.
    pub for_publish: bool,
    /// Packages that the request is about, spelled as in [`Version::name`](crate::Version::name).
    pub packages: Vec<String>,
    /// True if the request is about no package, or about packages that only the handler learns.
    pub many_packages: bool,
}

impl Intent {
    /// Creates an intent with this action and no body.
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

    /// Creates an intent that needs no credential.
    pub fn open() -> Self {
        Self::new(Action::Open)
    }

    /// Creates an intent to read.
    pub fn read() -> Self {
        Self::new(Action::Read)
    }

    /// Creates an intent to publish.
    pub fn publish() -> Self {
        Self::new(Action::Publish)
    }

    /// Creates an intent to delete.
    pub fn delete() -> Self {
        Self::new(Action::Delete)
    }

    /// Sets the package, image or file that the request is about.
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Requests the whole body, of at most `limit` bytes. A larger body is refused with 413.
    pub fn body(mut self, limit: u64) -> Self {
        self.body = BodyPlan::Body { limit };
        self
    }

    /// Requests the parts of a form, of at most `limit` bytes together. A body that is not a form
    /// is refused with 400.
    pub fn parts(mut self, limit: u64) -> Self {
        self.body = BodyPlan::Parts { limit };
        self
    }

    /// Appends the body to the target's upload of this name. If `offset` is given, the upload must
    /// have that size. If its size differs, the host does not read the body, and
    /// [`Upload::received`](crate::Upload::received) returns 0.
    pub fn append(mut self, upload: impl Into<String>, offset: Option<u64>, limit: u64) -> Self {
        self.body = BodyPlan::Append { upload: upload.into(), offset, limit };
        self
    }

    /// Applies the description's limit of this name
    /// ([`Description::limit`](crate::Description::limit)) instead of the limit of a file. If the
    /// limit of the body is smaller, that one applies. The host refuses a larger body in the words
    /// of the description.
    pub fn under(mut self, limit: impl Into<String>) -> Self {
        self.limit = Some(limit.into());
        self
    }

    /// Requests digests besides SHA-256, computed while the body arrives: `sha512`, `sha1`, `md5`,
    /// `blake2b-256`.
    pub fn digests(mut self, algorithms: &[&str]) -> Self {
        self.digests = algorithms.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// Names another repository of this format that the request reads from. The handler gets this
    /// repository if the caller may read it.
    pub fn also_read(mut self, repository: impl Into<String>) -> Self {
        self.also_read.push(repository.into());
        self
    }

    /// Marks a read as part of a publish. This has no effect on any other action.
    pub fn for_publish(mut self) -> Self {
        self.for_publish = true;
        self
    }

    /// Names a package that the request is about, spelled as in
    /// [`Version::name`](crate::Version::name). Call it for each candidate if an address can belong
    /// to several packages. The host leaves out a group's proxies if the name belongs to the
    /// organization. Without this call, the handler gets the proxies only if the caller may read
    /// every hosted member.
    pub fn about_package(mut self, name: impl Into<String>) -> Self {
        self.packages.push(name.into());
        self
    }

    /// Declares that the request is about no package, or about packages that only its body or an
    /// upstream's response names. The handler then gets a group's proxies. It must call
    /// [`Repository::withheld`](crate::Repository::withheld) before it sends a package name to a
    /// proxy, or returns a package of a proxy.
    ///
    /// A publish with this mark may concern no package, even if its path names one. A credential
    /// for only some packages may then make it, unless its change lists, hides or
    /// [names](crate::Transaction::about_package) another package.
    pub fn many_packages(mut self) -> Self {
        self.many_packages = true;
        self
    }
}

/// Standard plans for rows.
#[derive(Clone, Copy, Debug)]
pub struct Plan;

impl Plan {
    /// Plans a request that needs no credential.
    ///
    /// # Errors
    /// Never fails.
    pub fn open(_request: &Request<'_>, params: &Params<'_>) -> Result<Intent, Failure> {
        Ok(about(Intent::open(), params))
    }

    /// Plans a read of what the path names.
    ///
    /// # Errors
    /// Never fails.
    pub fn read(_request: &Request<'_>, params: &Params<'_>) -> Result<Intent, Failure> {
        Ok(about(Intent::read(), params))
    }

    /// Plans a read about no package, or about packages that the handler passes to
    /// [`Repository::withheld`](crate::Repository::withheld).
    ///
    /// # Errors
    /// Never fails.
    pub fn read_many(_request: &Request<'_>, params: &Params<'_>) -> Result<Intent, Failure> {
        Ok(about(Intent::read(), params).many_packages())
    }

    /// Plans a read that is part of a publish.
    ///
    /// # Errors
    /// Never fails.
    pub fn read_for_publish(_request: &Request<'_>, params: &Params<'_>) -> Result<Intent, Failure> {
        Ok(about(Intent::read(), params).for_publish())
    }

    /// Plans a write without a body.
    ///
    /// # Errors
    /// Never fails.
    pub fn publish(_request: &Request<'_>, params: &Params<'_>) -> Result<Intent, Failure> {
        Ok(about(Intent::publish(), params))
    }

    /// Plans a deletion of what the path names.
    ///
    /// # Errors
    /// Never fails.
    pub fn delete(_request: &Request<'_>, params: &Params<'_>) -> Result<Intent, Failure> {
        Ok(about(Intent::delete(), params))
    }
}

/// Sets the subject to the value of the row's first parameter.
fn about(intent: Intent, params: &Params<'_>) -> Intent {
    match params.first() {
        Some(subject) => intent.subject(subject),
        None => intent,
    }
}
