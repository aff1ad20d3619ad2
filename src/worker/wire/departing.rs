//! Connections whose clients have taken leave. The server closes each when it has ended the session: its statistics are
//! there then, and it no longer counts against max_connections.

use std::collections::VecDeque;

use mio::Registry;

use crate::wire::{Done, Link};

/// Such connections, the oldest first.
pub struct Departing {
    registry: Registry,
    links: VecDeque<Link>,
}

impl Departing {
    /// For connections of this poll.
    pub fn new(registry: Registry) -> Self {
        Self { registry, links: VecDeque::new() }
    }

    /// Takes a connection whose last message has been sent.
    pub fn push(&mut self, mut link: Link) {
        // One that cannot be deregistered would only wake its client without a reason.
        let _ = link.deregister(&self.registry);
        self.links.push_back(link);
        self.reap();
    }

    /// Lets go of those that the server has closed, up to the first that it has not; how many are left.
    pub fn reap(&mut self) -> usize {
        let mut buffer = [0; 512];
        while let Some(link) = self.links.front_mut() {
            match link.drain(&mut buffer) {
                // What the server still has to say nobody wants.
                Ok(Done::Some(_)) => {}
                Ok(Done::Blocked) => break,
                Ok(Done::Closed) | Err(_) => drop(self.links.pop_front()),
            }
        }
        self.links.len()
    }
}
