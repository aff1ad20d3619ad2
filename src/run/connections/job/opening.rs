//! How a job opens its connections: those of the beginning, and those of later transactions.

use bench_base::error::UserError;
use mio::Token;

use super::{GATE, Job, failed_to_wait};
use crate::driver::connection;
use crate::driver::connection::Link;
use crate::run::connections::connection::Next;
use crate::server::process::now_ns;

/// Connections that a job opens at a time: each is a process that the server starts.
const OPENED_AT_ONCE: usize = 32;

/// When a connection is tried again for which there was no room in the server's queue.
const AGAIN_NS: i64 = 5_000_000;

impl Job<'_> {
    /// Opens all connections and waits until they stand at the gate; false when the run was stopped before.
    pub(super) fn open_all(&mut self) -> Result<bool, UserError> {
        let (mut begun, mut at_gate) = (0, 0);
        let mut again_ns = 0;
        let timeout_ns = self.shared.routes[0].timeout_ns();
        let mut progress_ns = now_ns();
        while at_gate < self.connections.len() {
            if self.is_stopped() {
                return Ok(false);
            }
            while begun < self.connections.len() && begun - at_gate < OPENED_AT_ONCE && now_ns() >= again_ns {
                if !self.open(begun)? {
                    again_ns = now_ns() + AGAIN_NS;
                    break;
                }
                begun += 1;
            }
            self.wait(GATE)?;
            for place in 0..self.served.len() {
                if let Some(Next::Gate) = self.turn(place)? {
                    at_gate += 1;
                    progress_ns = now_ns();
                }
            }
            if timeout_ns.is_some_and(|timeout_ns| now_ns() - progress_ns > timeout_ns) {
                return Err(connection::failed(&self.shared.routes[0].to, "timeout expired"));
            }
        }
        Ok(true)
    }

    /// Begins to open a connection; false where there is no room for it in the server's queue.
    ///
    /// # Errors
    /// Why it cannot be had.
    fn open(&mut self, index: usize) -> Result<bool, UserError> {
        let Some(mut link) = Link::connect(self.connections[index].route(&self.shared))? else {
            return Ok(false);
        };
        link.register(self.poll.registry(), Token(index)).map_err(failed_to_wait)?;
        self.connections[index].start(link);
        Ok(true)
    }

    /// Opens a connection for a client's next transaction. While as many as the job has clients are still to be ended by
    /// the server, there is no room for another one.
    pub(super) fn open_anew(&mut self, index: usize) -> Next {
        let has_room = self.shared.closing.reap() <= self.connections.len();
        let opened = if has_room { self.open(index) } else { Ok(false) };
        let connection = &mut self.connections[index];
        match opened {
            Ok(true) => connection.await_server(&mut self.shared),
            Ok(false) => connection.connect_later(&mut self.shared),
            Err(error) => connection.refused(error, &mut self.shared),
        }
    }

    /// The run has been stopped: connections that are being opened are given up.
    pub(super) fn stop_connecting(&mut self) {
        for index in 0..self.connections.len() {
            let next = self.connections[index].stop_connecting(&mut self.shared);
            self.note(index, next);
        }
    }
}
