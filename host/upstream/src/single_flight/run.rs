//! Runs a shared fetch: hands the head of the response to all who wait, and receives its body once somebody demands it.

use tokio::sync::watch;

use super::super::fetched::{Content, FetchedResponse};
use super::download::Download;
use super::fetcher::Fetcher;
use super::head::{Judged, Received};
use super::shared_fetch::BodyDemand;

impl Fetcher {
    /// Runs to the end, or until no waiter is left.
    pub(super) async fn run(self, demand: BodyDemand) {
        self.run_to_end(demand).await;
        self.release().await;
    }

    async fn run_to_end(&self, mut demand: BodyDemand) {
        let mut is_demanded = false;
        let received = {
            let mut receive_head = std::pin::pin!(self.receive_head());
            loop {
                tokio::select! {
                    biased;
                    received = &mut receive_head => break received,
                    demanded = demand.wait(), if !is_demanded => {
                        if !demanded {
                            // No waiter is left.
                            return;
                        }
                        is_demanded = true;
                    }
                }
            }
        };
        match received {
            Ok(Received { judged: Judged::Body { response, coding, head }, slot }) => {
                let (readers, content) = watch::channel(None);
                self.shared
                    .publish_head(Ok(FetchedResponse { content: Content::Body(content), ..head.clone() }));
                // Whoever decides about the body may have to ask the same upstream something else first. That request must not wait
                // for a slot that is held meanwhile.
                let slot = slot.filter(|_| is_demanded);
                if is_demanded || demand.wait().await {
                    self.download(Download { response, coding, head, slot, readers }).await;
                }
            }
            Ok(Received { judged: Judged::Complete(fetched), .. }) => self.shared.publish_head(Ok(fetched)),
            Err(error) => self.shared.publish_head(Err(error)),
        }
    }
}
