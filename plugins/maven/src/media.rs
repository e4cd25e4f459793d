//! `Content-Type` of a file, from a fixed list. Publishers therefore cannot decide how browsers
//! treat the file.

/// The media type for a file's extension. Unlisted types, and types that a browser could run, are
/// `application/octet-stream`.
pub(crate) fn of(path: &str) -> &'static str {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension {
        "pom" | "xml" => "text/xml",
        "jar" | "war" | "ear" | "rar" | "sar" | "har" | "hpi" | "jpi" => "application/java-archive",
        "module" | "json" | "sigstore" => "application/json",
        "zip" | "aar" | "klib" | "nar" => "application/zip",
        "gz" | "tgz" => "application/gzip",
        "txt" | "md5" | "sha1" | "sha256" | "sha512" => "text/plain; charset=utf-8",
        "asc" => "application/pgp-signature",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn unlisted_and_executable_types_are_octet_streams() {
        assert_eq!(of("g/a/1/a-1.pom"), "text/xml");
        assert_eq!(of("g/a/1/a-1.jar"), "application/java-archive");
        assert_eq!(of("g/a/1/a-1.jar.asc"), "application/pgp-signature");
        for path in ["x.html", "x.svg", "x.js", "x.xhtml", "x", "a.jar/x", "x.HTML"] {
            assert_eq!(of(path), "application/octet-stream", "{path}");
        }
    }
}
