//! What a call was told by others than the store: upstreams, and the keys that sign. Kept for whoever is to be told the same once more.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use packhouse_runtime::{Fetch, PublicKey, Reply, ReplyLifetime, RepositoryView, ServiceFuture};
use packhouse_store::{Arriving, Digest, RepositoryId};

/// Replies that are noted; further ones are not, and a candidate that asks for them is not answered.
const MOST: usize = 256;

/// See the module.
#[derive(Default)]
pub(crate) struct Heard {
    replies: Mutex<Vec<Arc<HeardReply>>>,
    keys: Mutex<Option<Vec<PublicKey>>>,
}

/// A reply, as far as the call asked for it.
pub(crate) struct HeardReply {
    proxy: RepositoryId,
    /// What was asked.
    fetch: Fetch,
    pub status: OnceLock<u16>,
    pub headers: OnceLock<Vec<(String, String)>>,
    pub address: OnceLock<String>,
    pub bytes: OnceLock<Arriving>,
}

impl Heard {
    /// The same reply, which notes what is asked of it.
    pub(crate) fn note(&self, proxy: &RepositoryView, fetch: Fetch, reply: Box<dyn Reply>) -> Box<dyn Reply> {
        let heard = Arc::new(HeardReply {
            proxy: proxy.id,
            fetch,
            status: OnceLock::new(),
            headers: OnceLock::new(),
            address: OnceLock::new(),
            bytes: OnceLock::new(),
        });
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        if replies.len() < MOST {
            replies.push(Arc::clone(&heard));
        }
        Box::new(Noting { reply, heard })
    }

    /// Notes the keys that the call was told.
    pub(crate) fn note_keys(&self, keys: &[PublicKey]) {
        *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = Some(keys.to_vec());
    }

    /// The keys that the call was told, if it asked.
    pub(crate) fn keys(&self) -> Option<Vec<PublicKey>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The last reply to the same fetch: a call may have been begun again.
    pub(crate) fn find(&self, proxy: RepositoryId, fetch: &Fetch) -> Option<Arc<HeardReply>> {
        let replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |reply: &&Arc<HeardReply>| {
            let asked = &reply.fetch;
            reply.proxy == proxy
                && (&asked.method, &asked.target) == (&fetch.method, &fetch.target)
                && (&asked.headers, &asked.body) == (&fetch.headers, &fetch.body)
        };
        replies.iter().rev().find(is_it).cloned()
    }
}

/// A reply to the active component.
struct Noting {
    reply: Box<dyn Reply>,
    heard: Arc<HeardReply>,
}

impl Reply for Noting {
    fn status(&self) -> ServiceFuture<'_, u16> {
        Box::pin(async {
            let status = self.reply.status().await?;
            let _ = self.heard.status.set(status);
            Ok(status)
        })
    }

    fn headers(&self) -> ServiceFuture<'_, Vec<(String, String)>> {
        Box::pin(async {
            let headers = self.reply.headers().await?;
            let _ = self.heard.headers.set(headers.clone());
            Ok(headers)
        })
    }

    fn address(&self) -> ServiceFuture<'_, String> {
        Box::pin(async {
            let address = self.reply.address().await?;
            let _ = self.heard.address.set(address.clone());
            Ok(address)
        })
    }

    fn lifetime(&self) -> Option<ReplyLifetime> {
        self.reply.lifetime()
    }

    fn expect(&mut self, digest: Digest) {
        self.reply.expect(digest);
    }

    fn body(self: Box<Self>) -> ServiceFuture<'static, Arriving> {
        Box::pin(async move {
            let arriving = self.reply.body().await?;
            let _ = self.heard.bytes.set(arriving.clone());
            Ok(arriving)
        })
    }
}
