//! The style sheet, the script and the icon. They are embedded in the program. Their paths contain
//! their digests, so that browsers cache them permanently.

use std::sync::{Arc, LazyLock};

use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use sha2::{Digest as _, Sha256};

use crate::Portal;

/// A static file embedded in the program.
pub(crate) struct Asset {
    /// Path with the digest of the content.
    pub(crate) path: String,
    media_type: &'static str,
    text: &'static str,
}

impl Asset {
    fn new(name: &str, ending: &str, media_type: &'static str, text: &'static str) -> Asset {
        let digest = hex::encode(Sha256::digest(text.as_bytes()));
        let digest: String = digest.chars().take(16).collect();
        Asset { path: format!("/assets/{name}-{digest}.{ending}"), media_type, text }
    }
}

pub(crate) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("portal", "css", "text/css; charset=utf-8", include_str!("../assets/portal.css"))
});
pub(crate) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("portal", "js", "text/javascript; charset=utf-8", include_str!("../assets/portal.js"))
});
pub(crate) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon", "svg", "image/svg+xml", include_str!("../assets/icon.svg")));

/// Returns the routes of all assets.
pub(crate) fn all() -> Vec<(&'static str, MethodRouter<Arc<Portal>>)> {
    let assets: [&'static LazyLock<Asset>; 3] = [&STYLE, &SCRIPT, &ICON];
    let route = |asset: &'static LazyLock<Asset>| {
        let cache_control = "public, max-age=31536000, immutable";
        let response = move || async move {
            ([(CONTENT_TYPE, asset.media_type), (CACHE_CONTROL, cache_control)], asset.text)
        };
        (asset.path.as_str(), get(move || async move { response().await.into_response() }))
    };
    assets.into_iter().map(route).collect()
}
