//! Runs a shared fetch: passes the head of the response to all waiting calls, and receives the body
//! once one of them demands it.

use tokio::sync::watch;

use super::super::fetched::{FetchedResponse, ResponseContent};
use super::download::Download;
use super::fetcher::Fetcher;
use super::head::{JudgedHead, ReceivedHead};
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
            Ok(ReceivedHead { judged: JudgedHead::Body { response, coding, head }, slot }) => {
                let (readers, content) = watch::channel(None);
                self.shared.publish_head(Ok(FetchedResponse {
                    content: ResponseContent::Body(content),
                    ..head.clone()
                }));
                // The fetch gives up its slot while no call has demanded the body. A call may first
                // send another request to the same upstream, and that request must not wait for
                // this slot.
                let slot = slot.filter(|_| is_demanded);
                if is_demanded || demand.wait().await {
                    self.download(Download { response, coding, head, slot, readers }).await;
                }
            }
            Ok(ReceivedHead { judged: JudgedHead::Complete(fetched), .. }) => {
                self.shared.publish_head(Ok(fetched))
            }
            Err(error) => self.shared.publish_head(Err(error)),
        }
    }
}
