//! Reads the signature of a chart, a `.prov` file. The server checks that the signature is for the
//! stored chart. Clients check which key made the signature.

use packhouse_sdk::{Blob, Error, Failure};

/// The largest `.prov` file, in bytes. It contains a copy of Chart.yaml and the signature.
pub(crate) const LIMIT: u64 = 1 << 20;

/// The file that was signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignedFile {
    /// Name of the file.
    pub(crate) file: String,
    /// SHA-256 in hex.
    pub(crate) sha256: String,
}

/// Reads an uploaded signature. Returns the file that was signed.
///
/// # Errors
/// 400 `invalid_provenance` if the file is not a signature of exactly one chart.
pub(crate) fn read(blob: &Blob) -> Result<SignedFile, Failure> {
    let text = blob.text(LIMIT).map_err(|error| match error {
        Error::TooLarge(_) => invalid_provenance("It is larger than 1 MiB"),
        Error::Invalid(_) => invalid_provenance("It is not text"),
        other => other.into(),
    })?;
    parse(&text).ok_or_else(|| {
        invalid_provenance("It is not a clear-signed message with the SHA-256 of exactly one chart")
    })
}

/// Creates a 400 with a sentence for the publisher.
pub(crate) fn invalid_provenance(text: &str) -> Failure {
    Failure::new(400, "invalid_provenance", format!("This is not a valid provenance file. {text}"))
}

/// Reads the chart's file name and SHA-256 below `files:` in a clear-signed message. Returns `None`
/// unless the message lists exactly one chart.
fn parse(text: &str) -> Option<SignedFile> {
    let (_, message) = text.split_once("-----BEGIN PGP SIGNED MESSAGE-----")?;
    let (message, _) = message.split_once("-----BEGIN PGP SIGNATURE-----")?;
    let mut named =
        message.lines().skip_while(|line| line.trim_end() != "files:").skip(1).filter_map(|line| {
            let (file, digest) = line.trim().split_once(':')?;
            let sha256 = digest.trim().strip_prefix("sha256:")?;
            let hex = sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
            let file = file.trim_matches(['"', '\'']);
            (hex && file.ends_with(".tgz"))
                .then(|| SignedFile { file: file.to_owned(), sha256: sha256.to_ascii_lowercase() })
        });
    let found = named.next()?;
    named.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::parse;
    use proptest::prelude::*;

    #[test]
    fn a_signature_names_its_file() {
        let hex = "ab".repeat(32);
        let text = |files: &str| {
            format!(
                "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\nname: demo\nversion: 1.0.0\n\n...\nfiles:\n{files}\
                 -----BEGIN PGP SIGNATURE-----\n\nx\n-----END PGP SIGNATURE-----\n"
            )
        };
        let found = parse(&text(&format!("  demo-1.0.0.tgz: sha256:{hex}\n"))).unwrap();
        assert_eq!((found.file.as_str(), found.sha256), ("demo-1.0.0.tgz", hex.clone()));
        for invalid in [
            text(""),
            text("  demo-1.0.0.tgz: sha256:12\n"),
            text(&format!("  a-1.tgz: sha256:{hex}\n  b-1.tgz: sha256:{hex}\n")),
            format!("files:\n  demo-1.0.0.tgz: sha256:{hex}\n"),
        ] {
            assert_eq!(parse(&invalid), None, "{invalid}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_handled(text in "(-----BEGIN PGP SIGNED MESSAGE-----)?.{0,60}(\nfiles:\n)?.{0,80}") {
            let _ = parse(&text);
        }
    }
}
