//! Constants of the registry protocol, and of the files that clients of registries write. Some
//! names contain the name of a format, but have nothing to do with that format. Components come
//! from registries, whichever formats are installed.

pub const SCHEME: &str = "oci://";
/// Media type of a manifest.
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of a list of manifests.
pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Media types that the server accepts in response to a request for a manifest.
pub(super) const ACCEPT: &str =
    "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json";
/// Media types of a component's config and of its layer.
pub(super) const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";
pub(super) const WASM: &str = "application/wasm";
/// Media types of a signature's config and of its layer, and the annotation that contains the
/// signature.
pub(super) const IMAGE_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
pub(super) const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
pub(super) const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// Names in the signed payload, for the reference and for the digest of its manifest.
pub(super) const SIGNED_REFERENCE: &str = "docker-reference";
pub(super) const SIGNED_DIGEST: &str = "docker-manifest-digest";
/// Response header that contains the digest.
pub(super) const DIGEST_HEADER: &str = "docker-content-digest";
/// Prefix of the names of credential helpers.
pub(super) const HELPER: &str = "docker-credential-";
