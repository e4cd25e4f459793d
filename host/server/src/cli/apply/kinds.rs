//! Kinds of the documents for `packhouse apply`.

/// Kind of a document, in the order in which objects are created.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum DocumentKind {
    Repository,
    Team,
    ServiceAccount,
    TrustedPublisher,
    Policy,
    RetentionPolicy,
    Webhook,
}

impl DocumentKind {
    pub(super) const ALL: [DocumentKind; 7] = [
        DocumentKind::Repository,
        DocumentKind::Team,
        DocumentKind::ServiceAccount,
        DocumentKind::TrustedPublisher,
        DocumentKind::Policy,
        DocumentKind::RetentionPolicy,
        DocumentKind::Webhook,
    ];

    /// Returns the kind's name in documents.
    pub(super) fn name(self) -> &'static str {
        match self {
            DocumentKind::Repository => "Repository",
            DocumentKind::Team => "Team",
            DocumentKind::ServiceAccount => "ServiceAccount",
            DocumentKind::TrustedPublisher => "TrustedPublisher",
            DocumentKind::Policy => "Policy",
            DocumentKind::RetentionPolicy => "RetentionPolicy",
            DocumentKind::Webhook => "Webhook",
        }
    }

    /// Finds a kind by its name in documents. The error lists all names.
    pub(super) fn of(name: &str) -> Result<DocumentKind, String> {
        DocumentKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let names = DocumentKind::ALL.map(DocumentKind::name).join(", ");
            format!("there is no kind {name:?}; the kinds are {names}")
        })
    }

    /// Returns the path segment of the kind's objects in the API.
    pub(super) fn segment(self) -> &'static str {
        match self {
            DocumentKind::Repository => "repositories",
            DocumentKind::Team => "teams",
            DocumentKind::ServiceAccount => "service-accounts",
            DocumentKind::TrustedPublisher => "trusted-publishers",
            DocumentKind::Policy => "policies",
            DocumentKind::RetentionPolicy => "retention-policies",
            DocumentKind::Webhook => "webhooks",
        }
    }
}
