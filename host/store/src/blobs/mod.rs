//! Blobs: handles to bytes, the staging of new bytes, and the storage that holds them.

mod arriving;
pub(crate) mod budget;
pub(crate) mod bytes;
mod check;
mod file_reader;
pub(crate) mod fs;
mod handle;
pub(crate) mod hashing;
pub(crate) mod held;
pub(crate) mod objects;
pub(crate) mod orphans;
mod presigned;
pub(crate) mod repair;
pub(crate) mod row;
mod s3_meters;
mod settle;
pub(crate) mod sink;
mod small;
pub(crate) mod source;
pub(crate) mod stage;
pub(crate) mod storage;
mod stream;

pub use arriving::{Arrival, Arriving};
pub use handle::Blob;
pub use held::HeldBlob;
pub use objects::s3_bucket;
pub use presigned::SentAs;
pub use small::SmallBlob;
pub use stage::Stager;
pub(crate) use storage::Storage;
pub use stream::BlobStream;
