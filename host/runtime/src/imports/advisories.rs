//! `advisories`: what is known to be wrong with packages. The server's services know.

use wasmtime::Result;
use wasmtime::component::Resource;

use crate::bindings::packhouse::format::advisories::Host;
use crate::host_error::HostError;
use crate::services::MAX_TOLD_BYTES;
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
        // Of a piece that is remembered no one would tell that advisories were brought in.
        self.uncacheable |= self.making.is_some();
        let services = self.services.clone();
        let _host_work = self.clock.begin_host_work();
        let told = services.advisories.find(&view, names).await?;
        if told.len() > MAX_TOLD_BYTES {
            return Err(HostError::too_large(told.len() as u64));
        }
        Ok(told)
    }
}
