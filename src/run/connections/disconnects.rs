//! The end of the sessions whose clients are over: first they wait for their turn, then the server ends them. Each is a process
//! of the server's that gives back its memory: thousands that do so at once leave no processor to anybody else, the coordinator
//! that writes the results included.

use std::collections::{HashSet, VecDeque};

use mio::Registry;

use crate::driver::connection::{Done, Link};

/// Sessions of a job that may be ending at a time.
const ENDING_AT_ONCE: usize = 16;

/// As much as a server may have to say after the end of a session, in bytes. One that talks on does not end it.
const MOST_WORDS: usize = 1 << 20;

/// How often it is read at a time.
const READS: usize = 64;

/// Connections whose clients are over, by their places in the job.
#[derive(Default)]
pub struct Disconnects {
    /// Whose sessions are still to be ended, the first to come first.
    waiting: VecDeque<usize>,
    /// Whose sessions are being ended by the server.
    ending: HashSet<usize>,
}

impl Disconnects {
    /// The client of this connection is over.
    pub fn add(&mut self, index: usize) {
        self.waiting.push_back(index);
    }

    /// The session of this connection has ended.
    pub fn ended(&mut self, index: usize) {
        if !self.ending.remove(&index) {
            // The server has ended it by itself.
            self.waiting.retain(|&waiting| waiting != index);
        }
    }

    /// The next connection that is to take leave now, if there is one.
    pub fn next(&mut self) -> Option<usize> {
        if self.ending.len() >= ENDING_AT_ONCE {
            return None;
        }
        let index = self.waiting.pop_front()?;
        self.ending.insert(index);
        Some(index)
    }
}

/// Connections whose clients have taken leave, the oldest first, with the bytes that have come since. The server closes each
/// when it has ended the session: its statistics are there then, and it no longer counts against max_connections.
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
