//! Compact cache entries for responses that contain a small stored file. An entry takes a few
//! hundred bytes: it contains everything but the file, which the database can return again. Ten
//! times as many entries fit in memory as with their files, so even rarely requested files need no
//! call of the plugin.

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
use crate::validity::{PackedValidity, ValidUpTo, Validity};

/// Names of headers that most responses have. An entry contains their index in this list.
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

/// Initial capacity for header values, in bytes. It is enough for most responses, so that the
/// buffer is not reallocated.
const TEXT_BYTES: usize = 512;

/// An entry of the response cache in encoded form.
pub(crate) struct PackedEntry {
    valid_up_to: ValidUpTo,
    advisories: i64,
    /// True after an odd number of requests for this entry.
    requested_odd: AtomicBool,
    bytes: Box<[u8]>,
}

/// A decoded entry, still without the bytes of its file.
pub(crate) struct UnpackedEntry {
    pub validity: Validity,
    /// Number of the last change of advisories when the entry was made.
    pub advisories: i64,
    /// The intent on which the access decision is based.
    pub intent: Arc<Intent>,
    /// Location of the file's bytes in the store.
    pub small: SmallBlob,
    /// True if the entry is worth caching in unpacked form. Entries that are requested only once
    /// would displace frequently requested ones.
    pub requested_again: bool,
    response: PreparedResponse,
}

/// The encoded fields of an entry.
#[derive(Deserialize, Serialize)]
struct PackedFields<'a> {
    #[serde(borrow)]
    validity: PackedValidity<'a>,
    #[serde(borrow)]
    intent: PackedIntent<'a>,
    #[serde(borrow)]
    headers: Vec<(PackedName<'a>, PackedValue<'a>)>,
    modified: Option<u64>,
    has_variants: bool,
    confidential: bool,
    looked: u8,
    cache_uses: Vec<(i64, Option<CacheName>, bool)>,
    repository: Option<i64>,
    sha256: [u8; 32],
    small: SmallBlob,
}

/// An intent of a read. Fields that are not listed here have their default values.
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
enum PackedName<'a> {
    Known(u8),
    Other(&'a str),
}

#[derive(Deserialize, Serialize)]
enum PackedValue<'a> {
    Known(u8),
    /// SHA-256 of the file in hex.
    Digest,
    /// SHA-256 of the file as a quoted tag.
    Tag,
    /// Time of the last change.
    Modified,
    /// Lower-case hex of these bytes.
    Hex(#[serde(borrow)] Cow<'a, [u8]>),
    Other(&'a [u8]),
}

/// Values that recur in the headers of a file.
struct RecurringValues {
    /// SHA-256 of the file in hex.
    digest: [u8; 64],
    modified: Option<String>,
}

impl RecurringValues {
    fn of(sha256: Sha256, modified: Option<u64>) -> Self {
        let mut digest = [0; 64];
        // The encoding cannot fail, because the lengths match.
        let _ = hex::encode_to_slice(sha256.0, &mut digest);
        let date = |seconds| httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        Self { digest, modified: modified.map(date) }
    }

    fn is_tag(&self, value: &[u8]) -> bool {
        let quoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
        quoted == Some(&self.digest)
    }

    fn pack<'a>(&self, value: &'a HeaderValue) -> PackedValue<'a> {
        let bytes = value.as_bytes();
        let known = HOST_VALUES.iter().position(|known| known.as_bytes() == bytes);
        if let Some(known) = known.and_then(|known| u8::try_from(known).ok()) {
            return PackedValue::Known(known);
        }
        match bytes {
            _ if bytes == self.digest => PackedValue::Digest,
            _ if self.is_tag(bytes) => PackedValue::Tag,
            _ if self.modified.as_ref().is_some_and(|date| date.as_bytes() == bytes) => PackedValue::Modified,
            _ => match hex::decode(bytes) {
                Ok(decoded) if !bytes.iter().any(u8::is_ascii_uppercase) => PackedValue::Hex(decoded.into()),
                _ => PackedValue::Other(bytes),
            },
        }
    }

    /// Appends a value to `text` and returns its length. Returns `None` for values of the host,
    /// which need no text, and for invalid values.
    fn write(&self, value: &PackedValue<'_>, text: &mut BytesMut) -> Option<usize> {
        let start = text.len();
        match value {
            PackedValue::Known(_) => return None,
            PackedValue::Digest => text.extend_from_slice(&self.digest),
            PackedValue::Tag => {
                text.put_u8(b'"');
                text.extend_from_slice(&self.digest);
                text.put_u8(b'"');
            }
            PackedValue::Modified => text.extend_from_slice(self.modified.as_ref()?.as_bytes()),
            PackedValue::Hex(bytes) => {
                text.resize(start + 2 * bytes.len(), 0);
                hex::encode_to_slice(bytes, text.get_mut(start..)?).ok()?;
            }
            PackedValue::Other(bytes) => text.extend_from_slice(bytes),
        }
        Some(text.len() - start)
    }

    /// Decodes the headers. All values share one allocation; see
    /// [`gathered`](crate::response_headers::gathered).
    fn unpack(&self, packed: &[(PackedName<'_>, PackedValue<'_>)]) -> Option<HeaderMap> {
        let mut text = BytesMut::with_capacity(TEXT_BYTES);
        let lengths: Vec<_> = packed.iter().map(|(_, value)| self.write(value, &mut text)).collect();
        let mut text = text.freeze();
        let mut headers = HeaderMap::with_capacity(packed.len());
        for ((name, value), length) in packed.iter().zip(lengths) {
            let value = match (value, length) {
                (PackedValue::Known(known), _) => {
                    HeaderValue::from_static(HOST_VALUES.get(usize::from(*known))?)
                }
                (_, length) => HeaderValue::from_maybe_shared(text.split_to(length?)).ok()?,
            };
            headers.append(name.unpack()?, value);
        }
        Some(headers)
    }
}

impl PackedName<'_> {
    fn pack(name: &HeaderName) -> PackedName<'_> {
        let known = NAMES.iter().position(|known| known == name);
        known
            .and_then(|known| u8::try_from(known).ok())
            .map_or(PackedName::Other(name.as_str()), PackedName::Known)
    }

    fn unpack(&self) -> Option<HeaderName> {
        match self {
            PackedName::Known(known) => NAMES.get(usize::from(*known)).cloned(),
            PackedName::Other(name) => HeaderName::try_from(*name).ok(),
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
    /// Encodes an entry. Returns `None` unless the entry is the response with a whole small file.
    pub(crate) fn of(entry: &CacheEntry) -> Option<Self> {
        let PreparedResponse {
            status: StatusCode::OK,
            headers,
            content: Content::Inline(_),
            validators: Some(validators),
            variants,
            stands_for_variants: false,
            confidential,
            cached: true,
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
        let recurring = RecurringValues::of(*sha256, validators.modified);
        // The tag in the header must equal the tag with which conditions are compared.
        if !recurring.is_tag(validators.etag.as_bytes()) || headers.get(ETAG) != Some(&validators.etag) {
            return None;
        }
        let (validity, valid_up_to) = entry.validity.pack();
        let uses = cache_uses.iter().map(|used| (used.repository.0, used.name, used.stale));
        let packed = PackedFields {
            validity,
            intent: PackedIntent::pack(&entry.intent)?,
            headers: headers
                .iter()
                .map(|(name, value)| (PackedName::pack(name), recurring.pack(value)))
                .collect(),
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
        let (valid_up_to, requested_odd) = (Arc::clone(valid_up_to), AtomicBool::default());
        Some(Self { valid_up_to, advisories: entry.advisories, requested_odd, bytes })
    }

    /// Decodes the entry, without the bytes of its file. Returns `None` if the encoding is invalid.
    pub(crate) fn unpack(&self) -> Option<UnpackedEntry> {
        let packed: PackedFields<'_> = postcard::from_bytes(&self.bytes).ok()?;
        let (sha256, modified) = (Sha256(packed.sha256), packed.modified);
        let recurring = RecurringValues::of(sha256, modified);
        let headers = recurring.unpack(&packed.headers)?;
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
            cached: true,
            cacheable: true,
            looked: looked(packed.looked)?,
            reads: Reads::default(),
            until: None,
            cache_uses: packed.cache_uses.into_iter().map(used).collect(),
            file: Some(SentFile { repository, sha256: Some(sha256), small: Some(packed.small) }),
        };
        Some(UnpackedEntry {
            validity: Validity::unpack(packed.validity, &self.valid_up_to),
            advisories: self.advisories,
            intent: Arc::new(packed.intent.unpack()?),
            small: packed.small,
            requested_again: self.requested_odd.fetch_xor(true, Ordering::Relaxed),
            response,
        })
    }

    /// Returns the approximate size in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + size_of_val(&*self.valid_up_to)
    }
}

impl UnpackedEntry {
    /// Completes the entry with the bytes of its file.
    pub(crate) fn with(self, bytes: Bytes) -> CacheEntry {
        let Self { validity, advisories, intent, response, .. } = self;
        // Cloning drops the spare capacity of the headers, which the cache would otherwise keep in
        // memory.
        let headers = if self.requested_again { response.headers.clone() } else { response.headers };
        let response = Arc::new(PreparedResponse { headers, content: Content::Inline(bytes), ..response });
        CacheEntry { validity, advisories, intent, response }
    }
}

#[cfg(test)]
mod tests;
