//! Media types of the served files.

/// The media type of a chart.
pub(crate) const MEDIA_TYPE: &str = "application/gzip";
/// The media type of a signature, which is a clear-signed OpenPGP message.
pub(crate) const PROVENANCE_TYPE: &str = "text/plain; charset=utf-8";
