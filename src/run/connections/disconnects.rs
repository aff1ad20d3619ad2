//! The end of the sessions whose clients are over. Each is a process of the server's that gives back its memory: thousands
//! that do so at once leave no processor to anybody else, the coordinator that writes the results included.

use std::collections::{HashSet, VecDeque};

/// Sessions of a job that may be ending at a time.
const ENDING_AT_ONCE: usize = 16;

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
