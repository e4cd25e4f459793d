//! The writer of the log. It buffers request lines briefly so that a request does not pay for a
//! system call. Every other line is written immediately, after all buffered lines.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

use super::ACCESS;

/// How long a request line may stay in the buffer. A killed process loses at most the request lines
/// of this time.
const WAIT: Duration = Duration::from_millis(20);
/// Most bytes in the buffer.
const ROOM: usize = 64 * 1024;

/// Buffered log that is written to `W`. Clones share one buffer.
pub(super) struct Lines<W>(Arc<LineBuffer<W>>);

struct LineBuffer<W> {
    waiting: Mutex<Vec<u8>>,
    arrived: Condvar,
    /// Locked from before the buffer is taken until it is written, so that lines stay in order.
    output: Mutex<LogOutput<W>>,
}

struct LogOutput<W> {
    to: W,
    /// An empty buffer whose memory is reused.
    spare: Vec<u8>,
}

impl<W> Clone for Lines<W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<W: Write + Send + 'static> Lines<W> {
    /// Starts a writer to `to` and the thread that writes buffered lines. Fails if the system
    /// cannot start another thread.
    pub(super) fn start(to: W) -> io::Result<Self> {
        let output = Mutex::new(LogOutput { to, spare: Vec::new() });
        let lines = Self(Arc::new(LineBuffer { waiting: Mutex::default(), arrived: Condvar::new(), output }));
        let writing = lines.clone();
        std::thread::Builder::new().name("log".to_owned()).spawn(move || writing.write_in_background())?;
        Ok(lines)
    }

    fn write_in_background(&self) {
        loop {
            let waiting = lock(&self.0.waiting);
            drop(self.0.arrived.wait_while(waiting, |waiting| waiting.is_empty()));
            std::thread::sleep(WAIT);
            // If the log cannot be written, there is nowhere to report it.
            let _ = self.write_waiting();
        }
    }

    pub(super) fn write_waiting(&self) -> io::Result<()> {
        let mut output = lock(&self.0.output);
        let LogOutput { to, spare } = &mut *output;
        std::mem::swap(&mut *lock(&self.0.waiting), spare);
        let written = to.write_all(spare);
        spare.clear();
        written
    }

    /// Adds a line. Returns true if the buffer must be written now.
    fn add(&self, line: &[u8], may_wait: bool) -> bool {
        let mut waiting = lock(&self.0.waiting);
        let first = waiting.is_empty();
        waiting.extend_from_slice(line);
        let full = waiting.len() >= ROOM;
        drop(waiting);
        if first && may_wait {
            self.0.arrived.notify_one();
        }
        full || !may_wait
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A writer for one line.
pub(super) struct LineWriter<'a, W> {
    lines: &'a Lines<W>,
    may_wait: bool,
}

impl<W: Write + Send + 'static> Write for LineWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.lines.add(bytes, self.may_wait) {
            self.lines.write_waiting()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a, W: Write + Send + 'static> MakeWriter<'a> for Lines<W> {
    type Writer = LineWriter<'a, W>;

    fn make_writer(&'a self) -> LineWriter<'a, W> {
        LineWriter { lines: self, may_wait: false }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> LineWriter<'a, W> {
        LineWriter { lines: self, may_wait: metadata.target() == ACCESS }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    struct ChannelWriter(Sender<Vec<u8>>);

    impl Write for ChannelWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).unwrap();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn start() -> (Lines<ChannelWriter>, Receiver<Vec<u8>>) {
        let (sender, receiver) = channel();
        (Lines::start(ChannelWriter(sender)).unwrap(), receiver)
    }

    fn add(lines: &Lines<ChannelWriter>, text: &[u8], may_wait: bool) {
        LineWriter { lines, may_wait }.write_all(text).unwrap();
    }

    #[test]
    fn a_buffered_line_is_written_after_a_while() {
        let (lines, written) = start();
        for text in [b"a\n", b"b\n"] {
            add(&lines, text, true);
            assert_eq!(written.recv().unwrap(), text);
        }
    }

    #[test]
    fn an_unbuffered_line_is_written_after_all_buffered_lines() {
        let (lines, written) = start();
        add(&lines, b"a\n", true);
        add(&lines, b"b\n", false);
        let mut all = written.recv().unwrap();
        // The thread may already have written the first line.
        all.extend(written.try_iter().flatten());
        assert_eq!(all, b"a\nb\n");
    }

    #[test]
    fn a_full_buffer_is_written_at_once() {
        let (lines, written) = start();
        add(&lines, &[b'x'; ROOM], true);
        assert_eq!(written.try_iter().flatten().count(), ROOM);
    }
}
