//! `advisories`: known problems of packages, from the server's services.

use wasmtime::Result;
use wasmtime::component::Resource;

use crate::bindings::packhouse::format::advisories::Host;
use crate::host_error::HostError;
use crate::services::MAX_ADVISORY_BYTES;
use crate::state::HostState;
use crate::state::records::RepositoryRep;

const MAX_NAMES: usize = 1_000;
const MAX_NAME_BYTES: usize = 256 << 10;

impl Host for HostState {
    async fn find(&mut self, of: Resource<RepositoryRep>, names: Vec<String>) -> Result<String, HostError> {
        let bytes: usize = names.iter().map(String::len).sum();
        if names.len() > MAX_NAMES || bytes > MAX_NAME_BYTES {
            return Err(HostError::invalid(format!("{} names of {bytes} bytes", names.len())));
        }
        let view = self.held(&of)?.view.clone();
        // An import of advisories does not invalidate memoized pieces, so a piece in progress must
        // not be memoized.
        self.uncacheable |= self.making.is_some();
        let services = self.services.clone();
        let _host_work = self.clock.begin_host_work();
        let text = services.advisories.find(&view, names).await?;
        if text.len() > MAX_ADVISORY_BYTES {
            return Err(HostError::too_large(text.len() as u64));
        }
        Ok(text)
    }
}
