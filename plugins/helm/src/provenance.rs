//! A chart's signature, a `.prov` file: whose it is, and that it is of the bytes that are there. Who signed is for clients to check.

use packhouse_sdk::{Blob, Error, Failure};

/// Bytes of a signature with the Chart.yaml that it holds.
pub(crate) const LIMIT: u64 = 1 << 20;

/// The file that a signature is of, and its SHA-256 in hex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signed {
    pub(crate) file: String,
    pub(crate) sha256: String,
}

/// Reads one that was sent.
///
/// # Errors
/// 400 `invalid_provenance` for what is none.
pub(crate) fn read(blob: &Blob) -> Result<Signed, Failure> {
    let text = blob.text(LIMIT).map_err(|error| match error {
        Error::TooLarge(_) => bad("It is larger than 1 MiB"),
        Error::Invalid(_) => bad("It is no text"),
        other => other.into(),
    })?;
    parse(&text)
        .ok_or_else(|| bad("It is no clear-signed message that names one chart's file with its sha256"))
}

pub(crate) fn bad(text: &str) -> Failure {
    Failure::new(400, "invalid_provenance", format!("This is no provenance file of a chart. {text}"))
}

/// Of a clear-signed message the line below `files:` that names a chart's file.
fn parse(text: &str) -> Option<Signed> {
    let (_, message) = text.split_once("-----BEGIN PGP SIGNED MESSAGE-----")?;
    let (message, _) = message.split_once("-----BEGIN PGP SIGNATURE-----")?;
    let mut named =
        message.lines().skip_while(|line| line.trim_end() != "files:").skip(1).filter_map(|line| {
            let (file, digest) = line.trim().split_once(':')?;
            let sha256 = digest.trim().strip_prefix("sha256:")?;
            let hex = sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
            let file = file.trim_matches(['"', '\'']);
            (hex && file.ends_with(".tgz"))
                .then(|| Signed { file: file.to_owned(), sha256: sha256.to_ascii_lowercase() })
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
        for none in [
            text(""),
            text("  demo-1.0.0.tgz: sha256:12\n"),
            text(&format!("  a-1.tgz: sha256:{hex}\n  b-1.tgz: sha256:{hex}\n")),
            format!("files:\n  demo-1.0.0.tgz: sha256:{hex}\n"),
        ] {
            assert_eq!(parse(&none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(-----BEGIN PGP SIGNED MESSAGE-----)?.{0,60}(\nfiles:\n)?.{0,80}") {
            let _ = parse(&text);
        }
    }
}
