//! What a guest prints by WASI: tracebacks of Python and JavaScript, and whatever its libraries write. It is kept up to a bound as long as
//! the call lasts, and told in one line of the log.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// Bytes of a call's output that are kept.
const MOST: usize = 8 << 10;

/// Standard output and standard error of one call. Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub(crate) struct Said(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    /// How many bytes were printed beyond.
    cut: usize,
}

impl Said {
    /// What was printed since this was asked last; none where nothing was.
    pub(crate) fn take(&self) -> Option<String> {
        let Kept { bytes, cut } = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        if cut > 0 {
            text.push_str(&format!(" … and {cut} bytes more"));
        }
        (!text.is_empty()).then_some(text)
    }

    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, beyond) = bytes.split_at(bytes.len().min(MOST.saturating_sub(kept.bytes.len())));
        kept.bytes.extend_from_slice(first);
        kept.cut = kept.cut.saturating_add(beyond.len());
    }
}

impl IsTerminal for Said {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Said {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // WASI 0.3's, which is not linked.
        Box::new(tokio::io::empty())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Said {
    async fn ready(&mut self) {}
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Said {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.keep(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_kept_up_to_a_bound() {
        let said = Said::default();
        assert_eq!(said.take(), None);
        said.keep(b"one\n");
        said.keep(b"two\n");
        assert_eq!(said.take().as_deref(), Some("one\ntwo"));
        assert_eq!(said.take(), None, "it is told once");
        said.keep(&vec![b'x'; MOST + 5]);
        said.keep(b"yy");
        let told = said.take().unwrap_or_default();
        assert!(told.ends_with("x … and 7 bytes more") && told.len() < MOST + 40);
    }
}
