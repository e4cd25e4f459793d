//! READMEs on pages. Each rendering has bounds of its own (`packhouse_readme`); here few run at one time, a rendering ends when its
//! page is no longer wanted, and its result is kept by the digest of the text.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use maud::{Markup, PreEscaped, html};
use packhouse_readme::{Bounds, MAX_TEXT, MarkupKind, Rendered, render};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How deep elements may stand in each other. What stands deeper is shown as text.
const DEPTH: usize = 24;
/// How long making one may take. The page then shows as much as there is.
const TIME: Duration = Duration::from_millis(500);
/// Renderings at one time.
const AT_ONE_TIME: usize = 2;
/// How long a page waits for its turn. A README whose turn does not come is shown as text.
const PATIENCE: Duration = Duration::from_millis(250);
/// The room that a README is rendered for is a multiple of this, so that small changes of the page around it use the same result.
const ROOM_STEP: usize = 4 * 1024;
/// Bytes of all results that are kept.
const KEPT_BYTES: u64 = 4 * 1024 * 1024;
/// What one costs besides its bytes.
const ENTRY_BYTES: u64 = 256;

/// The results of renderings, and their turns.
pub(crate) struct Readmes {
    made: Cache<Key, Option<Arc<Rendered>>, Weight>,
    turns: Arc<Semaphore>,
}

impl Default for Readmes {
    fn default() -> Self {
        let items = usize::try_from(KEPT_BYTES / (16 * ENTRY_BYTES)).unwrap_or(usize::MAX);
        let made = Cache::with_weighter(items, KEPT_BYTES, Weight);
        Self { made, turns: Arc::new(Semaphore::new(AT_ONE_TIME)) }
    }
}

/// Of a text, its markup and the room for its HTML.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
struct Key {
    digest: [u8; 32],
    kind: MarkupKind,
    room: usize,
}

#[derive(Clone)]
struct Weight;

impl Weighter<Key, Option<Arc<Rendered>>> for Weight {
    fn weight(&self, _: &Key, made: &Option<Arc<Rendered>>) -> u64 {
        ENTRY_BYTES + made.as_ref().map_or(0, |made| made.html.len() as u64)
    }
}

/// Ends a rendering when the request that waits for it is gone.
struct Abandon(Arc<AtomicBool>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Readmes {
    /// Shows a README in at most `room` bytes: Markdown and reStructuredText as HTML, anything else as the text that it is.
    pub(crate) async fn shown(&self, media_type: &str, text: &str, room: usize) -> Markup {
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

    /// The text as HTML; none of one that cannot be shown so, or whose turn did not come.
    async fn rendered(&self, kind: MarkupKind, text: &str, room: usize) -> Option<Arc<Rendered>> {
        let key = Key { digest: Sha256::digest(text).into(), kind, room: room - room % ROOM_STEP };
        if let Some(made) = self.made.get(&key) {
            return made;
        }
        let turn = tokio::time::timeout(PATIENCE, Arc::clone(&self.turns).acquire_owned());
        let Ok(Ok(turn)) = turn.await else {
            metrics::counter!("packhouse_readmes_as_text_total").increment(1);
            return None;
        };
        // It may have been made meanwhile.
        if let Some(made) = self.made.get(&key) {
            return made;
        }
        let outcome = make(key, text.to_owned(), turn).await;
        if outcome.in_time {
            self.made.insert(key, outcome.made.clone());
        }
        outcome.made
    }
}

/// What a rendering came to.
struct Outcome {
    made: Option<Arc<Rendered>>,
    /// Whether it ended by itself.
    in_time: bool,
}

/// Renders on a thread that may be blocked. The turn lasts until that is done, even if nobody waits any more.
async fn make(key: Key, text: String, turn: OwnedSemaphorePermit) -> Outcome {
    let abandoned = Arc::new(AtomicBool::new(false));
    let _abandon = Abandon(Arc::clone(&abandoned));
    let made = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let until = Instant::now() + TIME;
        let is_over = || abandoned.load(Ordering::Relaxed) || Instant::now() > until;
        let made = render(key.kind, &text, Bounds { depth: DEPTH, bytes: key.room, is_over: &is_over });
        Outcome { made: made.map(Arc::new), in_time: !is_over() }
    });
    made.await.unwrap_or(Outcome { made: None, in_time: false })
}

fn plain(text: &str, cut: bool, room: usize) -> Markup {
    // Escaped, a text may grow: what is markup in it sixfold at most.
    let grows = text.matches(['<', '>', '&', '"']).count() > text.len() / 50;
    let (text, again) = self::cut(text, if grows { room / 6 } else { room * 9 / 10 });
    html! { pre tabindex="0" role="region" aria-label="The text of the README" { (text) } (more(cut || again)) }
}

fn more(cut: bool) -> Markup {
    html! { @if cut { p.soft { "It goes on; this is its beginning." } } }
}

fn cut(text: &str, most: usize) -> (&str, bool) {
    let end = text.floor_char_boundary(most.min(text.len()));
    (text.get(..end).unwrap_or_default(), end < text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 30_000;

    async fn shown(media_type: &str, text: &str) -> String {
        Readmes::default().shown(media_type, text, ROOM).await.into_string()
    }

    #[tokio::test]
    async fn restructured_text_becomes_html_that_does_nothing() {
        let text = "Title\n=====\n\nA *b* `c <https://example.com/x>`_ |badge|\n\n.. |badge| image:: https://evil.example/p.png\n   :alt: Badge\n\n\
            .. raw:: html\n\n   <script>alert(1)</script>\n\n`x <javascript:alert(1)>`_ <img src=x onerror=alert(1)>\n";
        let html = shown("text/x-rst; charset=UTF-8", text).await;
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
        let deep = shown("text/x-rst", &"* ".repeat(300_000)).await;
        assert!(deep.starts_with("<pre") && deep.len() < ROOM + 500, "what is too deep is text");
        let long = shown("text/x-rst", &"A paragraph.\n\n".repeat(4000)).await;
        assert!(
            long.contains("<p>A paragraph.</p>") && long.contains("It goes on") && long.len() < ROOM + 500
        );
    }

    #[tokio::test]
    async fn a_mebibyte_of_nesting_is_shown_as_text() {
        let shown = shown("text/markdown; charset=utf-8", &"> <b>".repeat(200_000)).await;
        assert!(shown.starts_with("<pre") && shown.contains("&gt; &lt;b&gt;"), "{}", &shown[..200]);
        assert!(shown.len() < ROOM + 500, "{}", shown.len());
    }

    #[tokio::test]
    async fn a_result_is_kept_and_one_without_a_turn_is_text() {
        let readmes = Readmes::default();
        let html = readmes.shown("text/markdown", "A *b*.", ROOM).await.into_string();
        assert!(html.contains("<em>b</em>"), "{html}");
        let _turns = readmes.turns.acquire_many(2).await.unwrap();
        assert_eq!(readmes.shown("text/markdown", "A *b*.", ROOM + 1).await.into_string(), html);
        let other = readmes.shown("text/markdown", "A *c*.", ROOM).await.into_string();
        assert!(other.starts_with("<pre") && other.contains("A *c*."), "{other}");
    }
}
