//! Responses of small stored files in a few hundred bytes each: all but their bytes, which are read again from the database. Ten times
//! as many find room as with their bytes, so that what is asked for now and then needs no call of its plugin either.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, LAST_MODIFIED, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use packhouse_runtime::{Action, BodyPlan, CacheUse, Content, Intent, Looked, Reads};
use packhouse_store::{CacheName, RepositoryId, Sha256, SmallBlob};
use packhouse_wire::conditional::Validators;
use serde::{Deserialize, Serialize};

use crate::cache_entry::CacheEntry;
use crate::coded_variants::CodedVariants;
use crate::prepared_response::PreparedResponse;
use crate::sent_file::SentFile;
use crate::validity::{GoodAt, PackedValidity, Validity};

/// Names that nearly each response has, written as their number here.
const NAMES: [HeaderName; 8] = [
    CONTENT_TYPE,
    CACHE_CONTROL,
    X_CONTENT_TYPE_OPTIONS,
    CONTENT_SECURITY_POLICY,
    ETAG,
    ACCEPT_RANGES,
    VARY,
    LAST_MODIFIED,
];
/// Values of the host's own that nearly each has.
const VALUES: [&str; 5] =
    ["nosniff", "sandbox", "bytes", "Accept, Authorization", "Accept, Authorization, Accept-Encoding"];

/// An entry of the response cache as bytes.
pub(crate) struct PackedEntry {
    good_at: GoodAt,
    advisories: i64,
    bytes: Box<[u8]>,
}

/// The same without its file's bytes.
pub(crate) struct UnpackedEntry {
    /// How long it is valid.
    pub validity: Validity,
    /// The number of changes of advisories at which it was made.
    pub advisories: i64,
    /// What access is decided on.
    pub intent: Arc<Intent>,
    /// By which its bytes are read.
    pub small: SmallBlob,
    response: PreparedResponse,
}

/// What the bytes say.
#[derive(Deserialize, Serialize)]
struct Packed<'a> {
    #[serde(borrow)]
    validity: PackedValidity<'a>,
    #[serde(borrow)]
    intent: PackedIntent<'a>,
    #[serde(borrow)]
    headers: Vec<(Name<'a>, Value<'a>)>,
    modified: Option<u64>,
    has_variants: bool,
    confidential: bool,
    looked: u8,
    cache_uses: Vec<(i64, Option<CacheName>, bool)>,
    repository: Option<i64>,
    sha256: [u8; 32],
    small: SmallBlob,
}

/// An intent that only reads; what else one may say, none of these does.
#[derive(Deserialize, Serialize)]
struct PackedIntent<'a> {
    subject: Option<&'a str>,
    #[serde(borrow)]
    packages: Vec<&'a str>,
    for_publish: bool,
    many_packages: bool,
    looked: u8,
}

#[derive(Deserialize, Serialize)]
enum Name<'a> {
    Known(u8),
    Other(&'a str),
}

#[derive(Deserialize, Serialize)]
enum Value<'a> {
    Known(u8),
    /// The file's SHA-256 in hex.
    Digest,
    /// The same as a tag.
    Tag,
    /// The time of its last change.
    Modified,
    /// Lower-case hex of these bytes.
    Hex(#[serde(borrow)] Cow<'a, [u8]>),
    Other(&'a [u8]),
}

/// What values of a file's headers are told by.
struct Marks {
    digest: String,
    tag: String,
    modified: Option<String>,
}

impl Marks {
    fn of(sha256: Sha256, modified: Option<u64>) -> Self {
        let digest = hex::encode(sha256.0);
        let date = |seconds| httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        Self { tag: format!("\"{digest}\""), digest, modified: modified.map(date) }
    }

    fn pack<'a>(&self, value: &'a HeaderValue) -> Value<'a> {
        let bytes = value.as_bytes();
        let known = VALUES.iter().position(|known| known.as_bytes() == bytes);
        if let Some(known) = known.and_then(|known| u8::try_from(known).ok()) {
            return Value::Known(known);
        }
        match bytes {
            _ if bytes == self.digest.as_bytes() => Value::Digest,
            _ if bytes == self.tag.as_bytes() => Value::Tag,
            _ if self.modified.as_ref().is_some_and(|date| date.as_bytes() == bytes) => Value::Modified,
            _ => match hex::decode(bytes) {
                Ok(decoded) if !bytes.iter().any(u8::is_ascii_uppercase) => Value::Hex(decoded.into()),
                _ => Value::Other(bytes),
            },
        }
    }

    fn unpack(&self, value: &Value<'_>) -> Option<HeaderValue> {
        match value {
            Value::Known(known) => VALUES.get(usize::from(*known)).copied().map(HeaderValue::from_static),
            Value::Digest => HeaderValue::from_str(&self.digest).ok(),
            Value::Tag => HeaderValue::from_str(&self.tag).ok(),
            Value::Modified => HeaderValue::from_str(self.modified.as_ref()?).ok(),
            Value::Hex(bytes) => HeaderValue::try_from(hex::encode(bytes)).ok(),
            Value::Other(bytes) => HeaderValue::from_bytes(bytes).ok(),
        }
    }
}

impl Name<'_> {
    fn pack(name: &HeaderName) -> Name<'_> {
        let known = NAMES.iter().position(|known| known == name);
        known.and_then(|known| u8::try_from(known).ok()).map_or(Name::Other(name.as_str()), Name::Known)
    }

    fn unpack(&self) -> Option<HeaderName> {
        match self {
            Name::Known(known) => NAMES.get(usize::from(*known)).cloned(),
            Name::Other(name) => HeaderName::try_from(*name).ok(),
        }
    }
}

impl<'a> PackedIntent<'a> {
    fn pack(intent: &'a Intent) -> Option<Self> {
        let Intent {
            action: Action::Read,
            subject,
            body: BodyPlan::None,
            limit: None,
            digests,
            also_read,
            check: false,
            for_publish,
            packages,
            many_packages,
            for_caller: false,
            looked,
        } = intent
        else {
            return None;
        };
        (digests.is_empty() && also_read.is_empty()).then(|| Self {
            subject: subject.as_deref(),
            packages: packages.iter().map(String::as_str).collect(),
            for_publish: *for_publish,
            many_packages: *many_packages,
            looked: number(*looked),
        })
    }

    fn unpack(self) -> Option<Intent> {
        Some(Intent {
            action: Action::Read,
            subject: self.subject.map(str::to_owned),
            body: BodyPlan::None,
            limit: None,
            digests: Vec::new(),
            also_read: Vec::new(),
            check: false,
            for_publish: self.for_publish,
            packages: self.packages.into_iter().map(str::to_owned).collect(),
            many_packages: self.many_packages,
            for_caller: false,
            looked: looked(self.looked)?,
        })
    }
}

fn number(looked: Looked) -> u8 {
    match looked {
        Looked::AtPath => 0,
        Looked::AtHeaders => 1,
        Looked::AtQuery => 2,
    }
}

fn looked(number: u8) -> Option<Looked> {
    [Looked::AtPath, Looked::AtHeaders, Looked::AtQuery].get(usize::from(number)).copied()
}

impl PackedEntry {
    /// The entry as bytes; none unless it is of a whole small file.
    pub(crate) fn of(entry: &CacheEntry) -> Option<Self> {
        let PreparedResponse {
            status: StatusCode::OK,
            headers,
            content: Content::Inline(_),
            validators: Some(validators),
            variants,
            stands_for_variants: false,
            confidential,
            kept: true,
            cacheable: true,
            looked,
            reads: _,
            until: _,
            cache_uses,
            file: Some(SentFile { repository, sha256: Some(sha256), small: Some(small) }),
        } = &*entry.response
        else {
            return None;
        };
        let marks = Marks::of(*sha256, validators.modified);
        if validators.etag.as_bytes() != marks.tag.as_bytes() {
            return None;
        }
        let (validity, good_at) = entry.validity.pack();
        let uses = cache_uses.iter().map(|used| (used.repository.0, used.name, used.stale));
        let packed = Packed {
            validity,
            intent: PackedIntent::pack(&entry.intent)?,
            headers: headers.iter().map(|(name, value)| (Name::pack(name), marks.pack(value))).collect(),
            modified: validators.modified,
            has_variants: variants.is_some(),
            confidential: *confidential,
            looked: number(*looked),
            cache_uses: uses.collect(),
            repository: repository.map(|repository| repository.0),
            sha256: sha256.0,
            small: *small,
        };
        let bytes = postcard::to_allocvec(&packed).ok()?.into_boxed_slice();
        Some(Self { good_at: Arc::clone(good_at), advisories: entry.advisories, bytes })
    }

    /// The entry but for its file's bytes.
    pub(crate) fn unpack(&self) -> Option<UnpackedEntry> {
        let packed: Packed<'_> = postcard::from_bytes(&self.bytes).ok()?;
        let (sha256, modified) = (Sha256(packed.sha256), packed.modified);
        let marks = Marks::of(sha256, modified);
        let mut headers = HeaderMap::with_capacity(packed.headers.len() + 1);
        for (name, value) in &packed.headers {
            headers.append(name.unpack()?, marks.unpack(value)?);
        }
        let validators = Validators { etag: marks.unpack(&Value::Tag)?, modified };
        let variants = match packed.has_variants {
            true => Some(CodedVariants::of(&headers, &validators)?),
            false => None,
        };
        let used = |(repository, name, stale)| CacheUse { repository: RepositoryId(repository), name, stale };
        let repository = packed.repository.map(RepositoryId);
        let response = PreparedResponse {
            status: StatusCode::OK,
            headers,
            content: Content::None,
            validators: Some(validators),
            variants,
            stands_for_variants: false,
            confidential: packed.confidential,
            kept: true,
            cacheable: true,
            looked: looked(packed.looked)?,
            reads: Reads::default(),
            until: None,
            cache_uses: packed.cache_uses.into_iter().map(used).collect(),
            file: Some(SentFile { repository, sha256: Some(sha256), small: Some(packed.small) }),
        };
        Some(UnpackedEntry {
            validity: Validity::unpack(packed.validity, &self.good_at),
            advisories: self.advisories,
            intent: Arc::new(packed.intent.unpack()?),
            small: packed.small,
            response,
        })
    }

    /// Bytes that it takes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + size_of_val(&*self.good_at)
    }
}

impl UnpackedEntry {
    /// The entry, with its file's bytes.
    pub(crate) fn with(self, bytes: Bytes) -> CacheEntry {
        let Self { validity, advisories, intent, response, .. } = self;
        let response = Arc::new(PreparedResponse { content: Content::Inline(bytes), ..response });
        CacheEntry { validity, advisories, intent, response, compared: Default::default() }
    }
}

#[cfg(test)]
mod tests;
