//! What files are sent as.

/// A chart.
pub(crate) const MEDIA_TYPE: &str = "application/gzip";
/// Its provenance, an OpenPGP message in clear text.
pub(crate) const PROVENANCE_TYPE: &str = "text/plain; charset=utf-8";
