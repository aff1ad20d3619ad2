//! Requests to another server to cancel statements. Each is a process that the server starts: some are under way at a
//! time, and the job serves its connections meanwhile.

use std::collections::VecDeque;

use mio::{Registry, Token};

use super::connection::Connection;
use super::shared::JobState;
use crate::driver::connection::CancelRequest;
use crate::server::process::now_ns;

/// Requests of a job that may be under way at a time.
const AT_ONCE: usize = 32;

/// How long all of them may take.
const LONGEST_NS: i64 = 2_000_000_000;

/// The token of the requests' sockets.
pub const TOKEN: Token = Token(usize::MAX - 1);

/// The requests of a job.
pub struct Cancels {
    registry: Registry,
    /// Connections whose statements are still to be canceled, by their places in the job.
    waiting: VecDeque<usize>,
    under_way: Vec<CancelRequest>,
    /// When those that are left are given up; `None` before they are asked for.
    until_ns: Option<i64>,
}

impl Cancels {
    /// None yet; their sockets will be part of this poll.
    pub fn new(registry: Registry) -> Self {
        Self { registry, waiting: VecDeque::new(), under_way: Vec::new(), until_ns: None }
    }

    /// Asks for the statements of so many connections to be canceled, once.
    pub fn begin(&mut self, connections: usize) {
        if self.until_ns.is_none() {
            self.until_ns = Some(now_ns() + LONGEST_NS);
            self.waiting = (0..connections).collect();
        }
    }

    /// Sends requests for those that still have a statement under way, as many as there may be at a time.
    pub fn go_on(&mut self, connections: &[Connection], shared: &JobState) {
        self.under_way.retain_mut(|request| !request.is_over());
        while self.under_way.len() < AT_ONCE
            && let Some(connection) = self.waiting.front().and_then(|&index| connections.get(index))
        {
            if let Some(backend) = connection.backend_at_work() {
                let route = connection.route(shared);
                match CancelRequest::begin(route, backend, &self.registry, TOKEN) {
                    Ok(Some(request)) => self.under_way.push(request),
                    // The server's queue is full.
                    Ok(None) => return,
                    // A server that takes no connection cannot be asked.
                    Err(_) => {}
                }
            }
            self.waiting.pop_front();
        }
    }

    /// Whether nothing is left to be sent or waited for.
    pub fn are_over(&self) -> bool {
        (self.waiting.is_empty() && self.under_way.is_empty())
            || self.until_ns.is_some_and(|until_ns| now_ns() >= until_ns)
    }
}
