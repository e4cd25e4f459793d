//! Words of the protocol by which registries are spoken to, and of the files that their clients write. Some have a format's name in them
//! by chance: components come from registries, whatever formats there are here.

/// How a reference begins.
pub const SCHEME: &str = "oci://";
/// A manifest.
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// A list of them.
pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// What is asked for as a manifest.
pub(super) const ACCEPT: &str =
    "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json";
/// A component's config, and its layer.
pub(super) const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";
pub(super) const WASM: &str = "application/wasm";
/// A signature's config, its layer, and the annotation that holds it.
pub(super) const IMAGE_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
pub(super) const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
pub(super) const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// Of what is signed: the reference, and the digest of its manifest.
pub(super) const SIGNED_REFERENCE: &str = "docker-reference";
pub(super) const SIGNED_DIGEST: &str = "docker-manifest-digest";
/// The header that tells a digest.
pub(super) const DIGEST_HEADER: &str = "docker-content-digest";
/// How the programs are called that keep passwords for a file of credentials.
pub(super) const HELPER: &str = "docker-credential-";
