//! The clients of a run as sessions, whether each is a worker of its own or jobs share them.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::*};

use super::{ClientState, Segment};

/// A client as others see it.
#[derive(Clone, Copy, Debug)]
pub struct ClientSession {
    /// The backend that executes its statements; 0: none.
    pub pid: i32,
    pub state: ClientState,
    /// When it left its loop, by CLOCK_MONOTONIC; 0 before.
    pub ended_ns: i64,
    /// Processor time that its backend had used then, in nanoseconds; 0 before, or where it is not known.
    pub cpu_ns: i64,
    /// Context switches of its backend by then; 0 before, or where they are not known.
    pub switches: i64,
    /// Transactions ended so far, in all phases.
    pub attempts: u64,
    /// In a duel, the arm whose stretch is under way.
    pub arm: Option<usize>,
}

impl ClientSession {
    /// Ended, in whatever way.
    pub fn is_over(&self) -> bool {
        self.state.is_over()
    }
}

/// An arm from its number in shared memory.
fn arm(number: &AtomicU32) -> Option<usize> {
    (number.load(Relaxed) as usize).checked_sub(1)
}

impl Segment {
    /// Clients of the run that are here.
    pub fn clients(&self) -> u32 {
        match self.shape().connections {
            0 => self.shape().slots,
            connections => connections,
        }
    }

    /// The clients of a slot.
    pub fn clients_of(&self, slot: u32) -> Range<u32> {
        let (slots, clients) = (u64::from(self.shape().slots), u64::from(self.clients()));
        let first = |slot: u64| (slot * clients / slots) as u32;
        first(slot.into())..first(u64::from(slot) + 1)
    }

    /// A client's session.
    pub fn session(&self, client: u32) -> ClientSession {
        if self.shape().connections > 0 {
            let cell = self.connection(client);
            return ClientSession {
                pid: cell.pid.load(Relaxed),
                state: cell.state(),
                ended_ns: cell.ended_ns.load(Relaxed),
                cpu_ns: cell.cpu_ns.load(Relaxed),
                switches: cell.switches.load(Relaxed),
                attempts: cell.attempts.get(),
                arm: arm(&cell.arm),
            };
        }
        let slot = self.slot(client);
        ClientSession {
            pid: slot.pid.load(Relaxed),
            state: slot.state(),
            ended_ns: slot.ended_ns.load(Relaxed),
            cpu_ns: slot.cpu_ns.load(Relaxed),
            switches: slot.switches.load(Relaxed),
            attempts: slot.attempts(),
            arm: arm(&slot.arm),
        }
    }

    /// The sessions of all clients, in their order.
    pub fn sessions(&self) -> impl Iterator<Item = ClientSession> {
        (0..self.clients()).map(|client| self.session(client))
    }

    /// The backends on another server that serve clients, as the protocol tells of them.
    pub fn remote_pids(&self) -> Vec<i32> {
        let connections = 0..self.shape().connections;
        let pids = connections.map(|client| self.connection(client).remote_pid.load(Relaxed));
        pids.filter(|pid| *pid > 0).collect()
    }

    /// The clients of a slot that have not ended are lost, at this moment; how many they are.
    pub fn lose_clients(&self, slot: u32, now_ns: i64) -> u32 {
        let whole = self.slot(slot);
        whole.ended_ns.store(now_ns, Relaxed);
        whole.set_state(ClientState::Lost);
        if self.shape().connections == 0 {
            return 1;
        }
        let cells = self.clients_of(slot).map(|client| self.connection(client));
        let mut lost = 0;
        for cell in cells.filter(|cell| !cell.state().is_over()) {
            cell.ended_ns.store(now_ns, Relaxed);
            cell.set_state(ClientState::Lost);
            lost += 1;
        }
        lost
    }
}
