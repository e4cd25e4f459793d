//! Output of a guest through WASI: tracebacks of Python and JavaScript, and other output of its
//! libraries. The host holds the output, up to a bound, while the call runs, and then logs it as
//! one line.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// Bytes of a call's output that are held.
const MOST: usize = 8 << 10;

/// Standard output and standard error of one call. Cheap to clone; all clones share the same
/// output.
#[derive(Clone, Default)]
pub(crate) struct GuestOutput(Arc<Mutex<BoundedOutput>>);

#[derive(Default)]
struct BoundedOutput {
    bytes: Vec<u8>,
    /// Number of bytes printed beyond the bound.
    cut: usize,
}

impl GuestOutput {
    /// Takes the output since the previous call. None if it is empty.
    pub(crate) fn take(&self) -> Option<String> {
        let BoundedOutput { bytes, cut } =
            std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        if cut > 0 {
            text.push_str(&format!(" … and {cut} bytes more"));
        }
        (!text.is_empty()).then_some(text)
    }

    fn append(&self, bytes: &[u8]) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, beyond) = bytes.split_at(bytes.len().min(MOST.saturating_sub(held.bytes.len())));
        held.bytes.extend_from_slice(first);
        held.cut = held.cut.saturating_add(beyond.len());
    }
}

impl IsTerminal for GuestOutput {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for GuestOutput {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // WASI 0.3 uses this stream, but the host does not link it.
        Box::new(tokio::io::empty())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for GuestOutput {
    async fn ready(&mut self) {}
}

#[wasmtime_wasi::async_trait]
impl OutputStream for GuestOutput {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.append(&bytes);
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
    fn output_is_held_up_to_a_bound() {
        let output = GuestOutput::default();
        assert_eq!(output.take(), None);
        output.append(b"one\n");
        output.append(b"two\n");
        assert_eq!(output.take().as_deref(), Some("one\ntwo"));
        assert_eq!(output.take(), None, "it is taken once");
        output.append(&vec![b'x'; MOST + 5]);
        output.append(b"yy");
        let text = output.take().unwrap_or_default();
        assert!(text.ends_with("x … and 7 bytes more") && text.len() < MOST + 40);
    }
}
