//! Where the log's lines go. Those of requests are gathered for a moment, so that a request does not pay for a system call of its
//! own; every other line is written at once, behind all that were gathered before it.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

use super::ACCESS;

/// How long a request's line may wait: what a kill of the process may cost the log.
const WAIT: Duration = Duration::from_millis(20);
/// Bytes of lines that wait at most.
const ROOM: usize = 64 * 1024;

/// The lines of a process on their way to `W`. Cheap to clone; all clones are one.
pub(super) struct Lines<W>(Arc<Shared<W>>);

struct Shared<W> {
    waiting: Mutex<Vec<u8>>,
    arrived: Condvar,
    /// Held from before the waiting lines are taken until they are written: lines stay in their order.
    output: Mutex<Output<W>>,
}

struct Output<W> {
    to: W,
    /// Empty; its memory is used again.
    spare: Vec<u8>,
}

impl<W> Clone for Lines<W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<W: Write + Send + 'static> Lines<W> {
    /// Lines that go to `to`, with the thread that writes those that waited. An error if the system has no more threads.
    pub(super) fn start(to: W) -> io::Result<Self> {
        let output = Mutex::new(Output { to, spare: Vec::new() });
        let lines = Self(Arc::new(Shared { waiting: Mutex::default(), arrived: Condvar::new(), output }));
        let writing = lines.clone();
        std::thread::Builder::new().name("log".to_owned()).spawn(move || writing.write_now_and_then())?;
        Ok(lines)
    }

    fn write_now_and_then(&self) {
        loop {
            let waiting = lock(&self.0.waiting);
            drop(self.0.arrived.wait_while(waiting, |waiting| waiting.is_empty()));
            std::thread::sleep(WAIT);
            // There is nowhere to say that the log cannot be written.
            let _ = self.write_waiting();
        }
    }

    /// Writes all lines that wait.
    pub(super) fn write_waiting(&self) -> io::Result<()> {
        let mut output = lock(&self.0.output);
        let Output { to, spare } = &mut *output;
        std::mem::swap(&mut *lock(&self.0.waiting), spare);
        let written = to.write_all(spare);
        spare.clear();
        written
    }

    /// Adds a line, and says whether lines are to be written now.
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

/// Takes one line.
pub(super) struct Line<'a, W> {
    lines: &'a Lines<W>,
    may_wait: bool,
}

impl<W: Write + Send + 'static> Write for Line<'_, W> {
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
    type Writer = Line<'a, W>;

    fn make_writer(&'a self) -> Line<'a, W> {
        Line { lines: self, may_wait: false }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Line<'a, W> {
        Line { lines: self, may_wait: metadata.target() == ACCESS }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    struct Sent(Sender<Vec<u8>>);

    impl Write for Sent {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).unwrap();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn start() -> (Lines<Sent>, Receiver<Vec<u8>>) {
        let (sender, receiver) = channel();
        (Lines::start(Sent(sender)).unwrap(), receiver)
    }

    fn add(lines: &Lines<Sent>, text: &[u8], may_wait: bool) {
        Line { lines, may_wait }.write_all(text).unwrap();
    }

    #[test]
    fn a_line_that_waits_is_written_by_itself() {
        let (lines, written) = start();
        for text in [b"a\n", b"b\n"] {
            add(&lines, text, true);
            assert_eq!(written.recv().unwrap(), text);
        }
    }

    #[test]
    fn a_line_that_may_not_wait_comes_behind_those_before_it() {
        let (lines, written) = start();
        add(&lines, b"a\n", true);
        add(&lines, b"b\n", false);
        let mut all = written.recv().unwrap();
        // The thread may have written the first by itself.
        all.extend(written.try_iter().flatten());
        assert_eq!(all, b"a\nb\n");
    }

    #[test]
    fn no_more_waits_than_there_is_room_for() {
        let (lines, written) = start();
        add(&lines, &[b'x'; ROOM], true);
        assert_eq!(written.try_iter().flatten().count(), ROOM);
    }
}
