//! Responses of small stored files in a few hundred bytes each: all but their bytes, which are read again from the database. Ten times
//! as many find room as with their bytes, so that what is asked for now and then needs no call of its plugin either.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use bytes::{BufMut as _, Bytes, BytesMut};
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, LAST_MODIFIED,
    VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use packhouse_runtime::{Action, BodyPlan, CacheUse, Content, Intent, Looked, Reads};
use packhouse_store::{CacheName, RepositoryId, Sha256, SmallBlob};
use packhouse_wire::conditional::Validators;
use serde::{Deserialize, Serialize};

use crate::REQUEST_ID;
use crate::cache_entry::CacheEntry;
use crate::coded_variants::CodedVariants;
use crate::prepared_response::PreparedResponse;
use crate::response_headers::HOST_VALUES;
use crate::sent_file::SentFile;
use crate::validity::{GoodAt, PackedValidity, Validity};

/// Names that nearly each response has, written as their number here.
const NAMES: [HeaderName; 10] = [
    CONTENT_TYPE,
    CACHE_CONTROL,
    X_CONTENT_TYPE_OPTIONS,
    CONTENT_SECURITY_POLICY,
    ETAG,
    ACCEPT_RANGES,
    VARY,
    LAST_MODIFIED,
    CONTENT_LENGTH,
    REQUEST_ID,
];

/// Room for the values of a response's headers: more than most have, so that it is made once.
const TEXT_BYTES: usize = 512;

/// An entry of the response cache as bytes.
pub(crate) struct PackedEntry {
    good_at: GoodAt,
    advisories: i64,
    /// Whether it was asked for an odd number of times.
    asked: AtomicBool,
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
    /// Whether it is worth keeping as it is sent: what is asked for once would displace what is asked for often.
    pub asked_again: bool,
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
    /// The file's SHA-256 in hex.
    digest: [u8; 64],
    modified: Option<String>,
}

impl Marks {
    fn of(sha256: Sha256, modified: Option<u64>) -> Self {
        let mut digest = [0; 64];
        // Of so many bytes it is so long.
        let _ = hex::encode_to_slice(sha256.0, &mut digest);
        let date = |seconds| httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        Self { digest, modified: modified.map(date) }
    }

    fn is_tag(&self, value: &[u8]) -> bool {
        let quoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
        quoted == Some(&self.digest)
    }

    fn pack<'a>(&self, value: &'a HeaderValue) -> Value<'a> {
        let bytes = value.as_bytes();
        let known = HOST_VALUES.iter().position(|known| known.as_bytes() == bytes);
        if let Some(known) = known.and_then(|known| u8::try_from(known).ok()) {
            return Value::Known(known);
        }
        match bytes {
            _ if bytes == self.digest => Value::Digest,
            _ if self.is_tag(bytes) => Value::Tag,
            _ if self.modified.as_ref().is_some_and(|date| date.as_bytes() == bytes) => Value::Modified,
            _ => match hex::decode(bytes) {
                Ok(decoded) if !bytes.iter().any(u8::is_ascii_uppercase) => Value::Hex(decoded.into()),
                _ => Value::Other(bytes),
            },
        }
    }

    /// Appends a value to others; returns how long it is. None of one that the host has, and of what makes no sense.
    fn write(&self, value: &Value<'_>, text: &mut BytesMut) -> Option<usize> {
        let start = text.len();
        match value {
            Value::Known(_) => return None,
            Value::Digest => text.extend_from_slice(&self.digest),
            Value::Tag => {
                text.put_u8(b'"');
                text.extend_from_slice(&self.digest);
                text.put_u8(b'"');
            }
            Value::Modified => text.extend_from_slice(self.modified.as_ref()?.as_bytes()),
            Value::Hex(bytes) => {
                text.resize(start + 2 * bytes.len(), 0);
                hex::encode_to_slice(bytes, text.get_mut(start..)?).ok()?;
            }
            Value::Other(bytes) => text.extend_from_slice(bytes),
        }
        Some(text.len() - start)
    }

    /// The headers, whose values lie in one piece of memory, as [`gathered`](crate::response_headers::gathered) says.
    fn unpack(&self, packed: &[(Name<'_>, Value<'_>)]) -> Option<HeaderMap> {
        let mut text = BytesMut::with_capacity(TEXT_BYTES);
        let lengths: Vec<_> = packed.iter().map(|(_, value)| self.write(value, &mut text)).collect();
        let mut text = text.freeze();
        let mut headers = HeaderMap::with_capacity(packed.len());
        for ((name, value), length) in packed.iter().zip(lengths) {
            let value = match (value, length) {
                (Value::Known(known), _) => HeaderValue::from_static(HOST_VALUES.get(usize::from(*known))?),
                (_, length) => HeaderValue::from_maybe_shared(text.split_to(length?)).ok()?,
            };
            headers.append(name.unpack()?, value);
        }
        Some(headers)
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
        // The one that is sent is the one that conditions are judged by.
        if !marks.is_tag(validators.etag.as_bytes()) || headers.get(ETAG) != Some(&validators.etag) {
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
        let (good_at, asked) = (Arc::clone(good_at), AtomicBool::default());
        Some(Self { good_at, advisories: entry.advisories, asked, bytes })
    }

    /// The entry but for its file's bytes.
    pub(crate) fn unpack(&self) -> Option<UnpackedEntry> {
        let packed: Packed<'_> = postcard::from_bytes(&self.bytes).ok()?;
        let (sha256, modified) = (Sha256(packed.sha256), packed.modified);
        let marks = Marks::of(sha256, modified);
        let headers = marks.unpack(&packed.headers)?;
        let validators = Validators { etag: headers.get(ETAG)?.clone(), modified };
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
            asked_again: self.asked.fetch_xor(true, Ordering::Relaxed),
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
        // A copy has no room for more headers than there are, which would be kept as well.
        let headers = if self.asked_again { response.headers.clone() } else { response.headers };
        let response = Arc::new(PreparedResponse { headers, content: Content::Inline(bytes), ..response });
        CacheEntry { validity, advisories, intent, response, compared: Default::default() }
    }
}

#[cfg(test)]
mod tests;
