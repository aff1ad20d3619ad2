//! What OpenSSL takes for a socket.

use std::io::{self, ErrorKind, Read, Write};

/// The capacity in bytes that an empty output may keep.
const KEPT: usize = 4096;

/// Encrypted bytes that have come in, and those that are to be sent.
#[derive(Default)]
pub struct Records {
    input: Vec<u8>,
    /// How many bytes of the input have been read.
    read: usize,
    output: Vec<u8>,
    /// How many bytes of the output have been sent.
    sent: usize,
}

impl Records {
    /// Takes what has come in.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.input.drain(..self.read);
        self.read = 0;
        self.input.extend_from_slice(bytes);
    }

    /// Whether all that has come in was read.
    pub fn is_read(&self) -> bool {
        self.read == self.input.len()
    }

    /// What is to be sent.
    pub fn output(&self) -> &[u8] {
        &self.output[self.sent..]
    }

    /// Takes this many bytes off the front of the output.
    pub fn sent(&mut self, bytes: usize) {
        self.sent = self.output.len().min(self.sent.saturating_add(bytes));
        if self.sent == self.output.len() {
            self.sent = 0;
            self.output.clear();
            self.output.shrink_to(KEPT);
        }
    }
}

impl Read for Records {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = &self.input[self.read..];
        if left.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let bytes = left.len().min(buffer.len());
        buffer[..bytes].copy_from_slice(&left[..bytes]);
        self.read += bytes;
        Ok(bytes)
    }
}

impl Write for Records {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
