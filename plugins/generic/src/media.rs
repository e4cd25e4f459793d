//! `Content-Type` of a file, from a fixed list. The uploader cannot choose it, so that browsers
//! never run an uploaded file.

/// Returns the media type for a file's extension. Types that are not in the list become
/// `application/octet-stream`. The list has no type that a browser could run.
pub(crate) fn of(path: &str) -> &'static str {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension {
        "json" | "sigstore" => "application/json",
        "zip" => "application/zip",
        "gz" | "tgz" => "application/gzip",
        "zst" => "application/zstd",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "txt" | "log" | "md" | "csv" | "md5" | "sha1" | "sha256" | "sha512" => "text/plain; charset=utf-8",
        "asc" | "sig" => "application/pgp-signature",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn unlisted_and_executable_types_are_octet_streams() {
        assert_eq!(of("a/tool.zip"), "application/zip");
        assert_eq!(of("notes.md"), "text/plain; charset=utf-8");
        for path in ["x.html", "x.svg", "x.js", "x.xhtml", "x", "a.zip/x", "x.HTML"] {
            assert_eq!(of(path), "application/octet-stream", "{path}");
        }
    }
}
