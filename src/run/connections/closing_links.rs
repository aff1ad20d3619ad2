//! Connections whose clients have taken leave. The server closes each when it has ended the session: its statistics are
//! there then, and it no longer counts against max_connections.

use std::collections::VecDeque;

use mio::Registry;

use crate::driver::connection::{Done, Link};

/// As much as a server may have to say after the end of a session, in bytes. One that talks on does not end it.
const MOST_WORDS: usize = 1 << 20;

/// How often it is read at a time.
const READS: usize = 64;

/// Such connections, the oldest first, with the bytes that have come since.
pub struct ClosingLinks {
    registry: Registry,
    links: VecDeque<(Link, usize)>,
}

impl ClosingLinks {
    /// For connections of this poll.
    pub fn new(registry: Registry) -> Self {
        Self { registry, links: VecDeque::new() }
    }

    /// Takes a connection whose last message has been sent.
    pub fn push(&mut self, mut link: Link) {
        // One that cannot be deregistered would only wake its client without a reason.
        let _ = link.deregister(&self.registry);
        self.links.push_back((link, 0));
        self.reap();
    }

    /// Lets go of those that the server has closed, up to the first that it has not; how many are left.
    pub fn reap(&mut self) -> usize {
        let mut buffer = [0; 8192];
        for _ in 0..READS {
            let Some((link, heard)) = self.links.front_mut() else { break };
            match link.drain(&mut buffer) {
                // What the server still has to say nobody wants.
                Ok(Done::Some(bytes)) if *heard + bytes <= MOST_WORDS => *heard += bytes,
                Ok(Done::Blocked) => break,
                Ok(Done::Some(_) | Done::Closed) | Err(_) => drop(self.links.pop_front()),
            }
        }
        self.links.len()
    }
}
