//! Connections whose clients have taken leave. The server closes each when it has ended the session: its statistics are
//! there then, and it no longer counts against max_connections.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};

use mio::Registry;

/// As much as a server may have to say after the end of a session, in bytes. One that talks on does not end it.
const MOST_WORDS: usize = 1 << 20;

/// How often it is read at a time.
const READS: usize = 64;

/// Such connections, the oldest first, with the bytes that have come since.
pub struct ClosingLinks {
    registry: Registry,
    links: VecDeque<(OwnedFd, usize)>,
}

impl ClosingLinks {
    /// For connections of this poll.
    pub fn new(registry: Registry) -> Self {
        Self { registry, links: VecDeque::new() }
    }

    /// The poll that its connections were part of.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Takes what is left of a connection.
    pub fn push(&mut self, link: OwnedFd) {
        self.links.push_back((link, 0));
        self.reap();
    }

    /// Lets go of those that the server has closed, up to the first that it has not; how many are left.
    pub fn reap(&mut self) -> usize {
        while let Some((link, heard)) = self.links.front_mut() {
            if !is_drained(link, heard) {
                break;
            }
            self.links.pop_front();
        }
        self.links.len()
    }
}

/// Whether the server has closed the connection, or talks on and on; what it still has to say nobody wants.
pub fn is_drained(fd: &OwnedFd, heard: &mut usize) -> bool {
    let mut buffer = [0_u8; 8192];
    for _ in 0..READS {
        // SAFETY: its own descriptor, and a buffer of the length that is given.
        let read = unsafe {
            libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT)
        };
        match read {
            1.. => {
                *heard += read.unsigned_abs();
                if *heard > MOST_WORDS {
                    return true;
                }
            }
            0 => return true,
            _ => {
                let error = std::io::Error::last_os_error();
                return error.kind() != std::io::ErrorKind::WouldBlock;
            }
        }
    }
    false
}
