//! Bytes to publish, of any length. A seed determines the bytes; a source generates them piece by
//! piece and needs no memory for the whole.

use std::io::{self, Read};

/// An endless source of bytes that do not compress and do not repeat (splitmix64 over a counter).
#[derive(Clone, Debug)]
pub struct Payload {
    state: u64,
    word: [u8; 8],
    used: usize,
}

impl Payload {
    /// The source with this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), word: [0; 8], used: 8 }
    }

    fn next_word(&mut self) -> [u8; 8] {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).to_le_bytes()
    }
}

impl Read for Payload {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for byte in buffer.iter_mut() {
            if self.used == self.word.len() {
                self.word = self.next_word();
                self.used = 0;
            }
            *byte = self.word[self.used];
            self.used += 1;
        }
        Ok(buffer.len())
    }
}

/// The first `length` bytes of the source with this seed.
pub fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Payload::new(seed).read_exact(&mut bytes).expect("the source does not end");
    bytes
}

/// An endless source that repeats one block of 1 MiB which does not compress. It is for sizes at
/// which generating every byte would take most of the time.
#[derive(Clone, Debug)]
pub struct Blocks {
    block: Vec<u8>,
    at: usize,
}

impl Blocks {
    /// The source with this seed.
    pub fn new(seed: u64) -> Self {
        Self { block: bytes(seed, 1 << 20), at: 0 }
    }
}

impl Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = (&self.block[self.at..]).read(buffer)?;
        self.at = (self.at + read) % self.block.len();
        Ok(read)
    }
}
