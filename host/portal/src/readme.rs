//! READMEs on pages. Each rendering is bounded (`packhouse_readme`). Few renderings run at the same
//! time. A rendering stops when the request for its page ends. Results are cached by the digest of
//! the text.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use maud::{Markup, PreEscaped, html};
use packhouse_readme::{Bounds, MAX_TEXT, MarkupKind, Rendered, render};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum nesting depth of elements. Deeper content is shown as plain text.
const MAX_DEPTH: usize = 24;
/// Time limit of a rendering. The page shows the part that is finished by then.
const MAX_TIME: Duration = Duration::from_millis(500);
/// Renderings that may run at the same time.
const MAX_CONCURRENT: usize = 2;
/// How long a page waits for a free slot. Without one, the README is shown as plain text.
const MAX_WAIT: Duration = Duration::from_millis(250);
/// The size limit of a rendering is a multiple of this, so that small changes of the page around
/// the README use the same cached result.
const ROOM_STEP: usize = 4 * 1024;
/// Maximum bytes of all cached results.
const CACHE_BYTES: u64 = 4 * 1024 * 1024;
/// Estimated overhead of a cached result in bytes.
const ENTRY_BYTES: u64 = 256;

/// Cache of rendered READMEs, with the limit on concurrent renderings.
pub(crate) struct Readmes {
    made: Cache<RenderKey, Option<Arc<Rendered>>, RenderWeight>,
    turns: Arc<Semaphore>,
}

impl Default for Readmes {
    fn default() -> Self {
        let items = usize::try_from(CACHE_BYTES / (16 * ENTRY_BYTES)).unwrap_or(usize::MAX);
        let made = Cache::with_weighter(items, CACHE_BYTES, RenderWeight);
        Self { made, turns: Arc::new(Semaphore::new(MAX_CONCURRENT)) }
    }
}

/// Key of a cached result.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
struct RenderKey {
    digest: [u8; 32],
    kind: MarkupKind,
    room: usize,
}

#[derive(Clone)]
struct RenderWeight;

impl Weighter<RenderKey, Option<Arc<Rendered>>> for RenderWeight {
    fn weight(&self, _: &RenderKey, made: &Option<Arc<Rendered>>) -> u64 {
        ENTRY_BYTES + made.as_ref().map_or(0, |made| made.html.len() as u64)
    }
}

/// Stops a rendering when the request that waits for it ends.
struct Abandon(Arc<AtomicBool>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Readmes {
    /// Returns the HTML of a README in at most `room` bytes. Markdown and reStructuredText are
    /// rendered; anything else is shown as plain text.
    pub(crate) async fn html(&self, media_type: &str, text: &str, room: usize) -> Markup {
        let (text, cut) = cut(text, MAX_TEXT);
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        let kind = match essence.to_ascii_lowercase().as_str() {
            "text/markdown" => Some(MarkupKind::Markdown),
            "text/x-rst" => Some(MarkupKind::RestructuredText),
            _ => None,
        };
        let made = match kind {
            Some(kind) => self.rendered(kind, text, room).await,
            None => None,
        };
        match made {
            Some(made) => html! { (PreEscaped(&made.html)) (more(cut || !made.whole)) },
            None => plain(text, cut, room),
        }
    }

    /// Returns the rendered text; `None` if it cannot be rendered or no slot became free.
    async fn rendered(&self, kind: MarkupKind, text: &str, room: usize) -> Option<Arc<Rendered>> {
        let key = RenderKey { digest: Sha256::digest(text).into(), kind, room: room - room % ROOM_STEP };
        if let Some(made) = self.made.get(&key) {
            return made;
        }
        let turn = tokio::time::timeout(MAX_WAIT, Arc::clone(&self.turns).acquire_owned());
        let Ok(Ok(turn)) = turn.await else {
            metrics::counter!("packhouse_readmes_as_text_total").increment(1);
            return None;
        };
        // Another request may have rendered the README meanwhile.
        if let Some(made) = self.made.get(&key) {
            return made;
        }
        let rendering = make(key, text.to_owned(), turn).await;
        if rendering.in_time {
            self.made.insert(key, rendering.made.clone());
        }
        rendering.made
    }
}

/// Outcome of a rendering, complete or stopped early.
struct Rendering {
    made: Option<Arc<Rendered>>,
    /// True if it finished before the time limit and was not abandoned.
    in_time: bool,
}

/// Renders on a blocking thread. The slot is held until the thread ends, even if the request is
/// gone.
async fn make(key: RenderKey, text: String, turn: OwnedSemaphorePermit) -> Rendering {
    let abandoned = Arc::new(AtomicBool::new(false));
    let _abandon = Abandon(Arc::clone(&abandoned));
    let made = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let until = Instant::now() + MAX_TIME;
        let is_over = || abandoned.load(Ordering::Relaxed) || Instant::now() > until;
        let made = render(key.kind, &text, Bounds { depth: MAX_DEPTH, bytes: key.room, is_over: &is_over });
        Rendering { made: made.map(Arc::new), in_time: !is_over() }
    });
    made.await.unwrap_or(Rendering { made: None, in_time: false })
}

fn plain(text: &str, cut: bool, room: usize) -> Markup {
    // Escaping makes a text longer: each markup character grows at most sixfold.
    let grows = text.matches(['<', '>', '&', '"']).count() > text.len() / 50;
    let (text, again) = self::cut(text, if grows { room / 6 } else { room * 9 / 10 });
    html! { pre tabindex="0" role="region" aria-label="README text" { (text) } (more(cut || again)) }
}

fn more(cut: bool) -> Markup {
    html! { @if cut { p.soft { "The rest of this README is not shown." } } }
}

fn cut(text: &str, most: usize) -> (&str, bool) {
    let end = text.floor_char_boundary(most.min(text.len()));
    (text.get(..end).unwrap_or_default(), end < text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 30_000;

    async fn rendered(media_type: &str, text: &str) -> String {
        Readmes::default().html(media_type, text, ROOM).await.into_string()
    }

    #[tokio::test]
    async fn restructured_text_becomes_inert_html() {
        let text = "Title\n=====\n\nA *b* `c <https://example.com/x>`_ |badge|\n\n.. |badge| image:: https://evil.example/p.png\n   :alt: Badge\n\n\
            .. raw:: html\n\n   <script>alert(1)</script>\n\n`x <javascript:alert(1)>`_ <img src=x onerror=alert(1)>\n";
        let html = rendered("text/x-rst; charset=UTF-8", text).await;
        for part in [
            "<h2>Title</h2>",
            "<em>b</em>",
            "href=\"https://example.com/x\" rel=\"nofollow noopener noreferrer\"",
            "Badge",
            "&lt;img src=x",
        ] {
            assert!(html.contains(part), "{part} in {html}");
        }
        for part in ["<script", "<img", "javascript:"] {
            assert!(!html.contains(part), "{part} in {html}");
        }
        let deep = rendered("text/x-rst", &"* ".repeat(300_000)).await;
        assert!(
            deep.starts_with("<pre") && deep.len() < ROOM + 500,
            "content that is nested too deeply becomes text"
        );
        let long = rendered("text/x-rst", &"A paragraph.\n\n".repeat(4000)).await;
        assert!(
            long.contains("<p>A paragraph.</p>")
                && long.contains("The rest of this README is not shown.")
                && long.len() < ROOM + 500
        );
    }

    #[tokio::test]
    async fn a_mebibyte_of_nesting_is_rendered_as_text() {
        let html = rendered("text/markdown; charset=utf-8", &"> <b>".repeat(200_000)).await;
        assert!(html.starts_with("<pre") && html.contains("&gt; &lt;b&gt;"), "{}", &html[..200]);
        assert!(html.len() < ROOM + 500, "{}", html.len());
    }

    #[tokio::test]
    async fn results_are_cached_and_without_a_permit_the_text_is_plain() {
        let readmes = Readmes::default();
        let html = readmes.html("text/markdown", "A *b*.", ROOM).await.into_string();
        assert!(html.contains("<em>b</em>"), "{html}");
        let _turns = readmes.turns.acquire_many(2).await.unwrap();
        assert_eq!(readmes.html("text/markdown", "A *b*.", ROOM + 1).await.into_string(), html);
        let other = readmes.html("text/markdown", "A *c*.", ROOM).await.into_string();
        assert!(other.starts_with("<pre") && other.contains("A *c*."), "{other}");
    }
}
