//! Receives the body of a shared fetch. Readers get the bytes as they arrive, except the last ones,
//! which they get after the whole body was verified and stored.

use packhouse_store::{Arrival, Arriving, Blob, StoreError};
use reqwest::Response;
use tokio::sync::{SemaphorePermit, watch};

use super::super::body::{self, BodyLimits, Coding};
use super::super::error::UpstreamError;
use super::super::fetched::FetchedResponse;
use super::fetcher::Fetcher;

pub(super) struct Download<'a> {
    pub response: Response,
    pub coding: Coding,
    pub head: FetchedResponse,
    /// The request slot, if it is still held.
    pub slot: Option<SemaphorePermit<'a>>,
    /// Publishes the bytes to readers.
    pub readers: watch::Sender<Option<Arriving>>,
}

impl Fetcher {
    /// Receives and stores a body. Readers get the error if it fails.
    pub(super) async fn download(&self, download: Download<'_>) {
        let Download { response, coding, head, slot, readers } = download;
        let algorithms = body::algorithms(&self.shared.expected());
        let declared = body::declared(response.headers(), coding);
        let limit = self.plan.limit;
        let (arrival, arriving) = self.context.store.arrive(&algorithms, limit, declared);
        let mut arrival = arrival.of(self.plan.repository);
        readers.send_replace(Some(arriving));
        let received = match declared.filter(|length| *length > limit) {
            Some(observed) => Err(StoreError::TooLarge { limit, observed }),
            None => self.receive(response, coding, &mut arrival, slot).await,
        };
        match self.verify_and_cache(received, &head).await {
            Ok(blob) => arrival.end(blob),
            Err(error) => {
                let (repository, path) = (&*self.plan.repository_name, self.plan.path());
                tracing::warn!(repository, path, status = head.status, %error, "receiving an upstream response failed");
                let error = match error {
                    StoreError::BrokenOff(why) => {
                        self.note_failure(&UpstreamError::Unavailable(why.clone()));
                        StoreError::BrokenOff(format!("{why}, for {}", self.plan.public_path()))
                    }
                    other => other,
                };
                self.shared.note_failed();
                arrival.fail(&error);
            }
        }
        self.context.shrink_cache(&self.client, &self.plan).await;
    }

    async fn receive(
        &self,
        response: Response,
        coding: Coding,
        arrival: &mut Arrival,
        slot: Option<SemaphorePermit<'_>>,
    ) -> Result<Blob, StoreError> {
        let _slot = match slot {
            Some(slot) => slot,
            None => {
                self.client.request_slot().await.map_err(|busy| StoreError::BrokenOff(busy.to_string()))?
            }
        };
        let limits = BodyLimits { max_bytes: self.plan.limit, idle: self.client.bounds.idle };
        body::receive(response, coding, arrival, limits).await
    }

    async fn verify_and_cache(
        &self,
        received: Result<Blob, StoreError>,
        head: &FetchedResponse,
    ) -> Result<Blob, StoreError> {
        let blob = received?;
        body::verify(&blob, &self.shared.expected_for_comparison()).await?;
        if self.plan.is_cacheable() {
            self.cache(head, Some(blob.clone())).await?;
        }
        Ok(blob)
    }
}
