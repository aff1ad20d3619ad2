//! How clients count by intervals, and how one reader takes the intervals of all of them, in memory that they share,
//! without either waiting for a process that has no processor.
//!
//! A client counts into one of two cells of its own. When its clock has left a cell's interval it goes on with the
//! other one; what that held has usually been moved by the reader to the interval's tally in the ring, and otherwise
//! the client moves it there itself. So a reader that gets no processor for as long as the ring lasts costs nothing, and
//! its work does not grow with its lateness: one tally for each interval, however many the clients are. A cell belongs to
//! the process that has marked it as taken, and the reader takes one at a time: a client always has one.
//!
//! An interval is complete when each client has passed its end. A client announces itself by an odd sequence number
//! *before* it reads the clock at the end of a transaction, and makes it even when the transaction is counted. The reader
//! reads the clock first, then the sequence. The two full fences between (Dekker's way) make sure of one of two: the reader
//! sees the odd number and comes back later, or the client's clock shows what the reader's showed, or more. So each
//! transaction is in the interval in which it ended by its client's own clock.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*, fence};

use crate::tally::{Counter, Tally};

/// What one client did in one interval.
#[derive(Default)]
#[repr(C)]
struct IntervalCell {
    /// [`label_of`] the interval; 0: free.
    label: AtomicU64,
    tally: Tally,
}

/// Set in the label of a cell that is being moved.
const TAKEN: u64 = 1;

/// The label of an interval's cell.
fn label_of(interval: u32) -> u64 {
    (u64::from(interval) + 1) << 1
}

/// The interval of a label that is not 0.
fn interval_of(label: u64) -> u32 {
    ((label >> 1) - 1) as u32
}

/// What one client shares with the reader.
#[derive(Default)]
#[repr(C, align(128))]
pub struct ClientIntervals {
    /// Odd from before the client reads the clock at a transaction's end until it has counted the transaction.
    sequence: AtomicU32,
    /// Transactions that are in another interval's sample than their own, because the reader was later than the ring is
    /// long.
    pub misplaced: Counter,
    cells: [IntervalCell; 2],
}

impl ClientIntervals {
    fn is_announced(&self) -> bool {
        self.sequence.load(Acquire) % 2 == 1
    }

    /// Moves a cell to the ring, unless the other side has taken it. One from beyond the ring's ends goes to the interval
    /// nearest to its own.
    fn hand_over(&self, cell: &IntervalCell, ring: Ring) -> bool {
        let label = cell.label.load(Relaxed);
        if label == 0 || label & TAKEN != 0 {
            return label == 0;
        }
        if cell.label.compare_exchange(label, label | TAKEN, AcqRel, Relaxed).is_err() {
            return false;
        }
        let own = interval_of(label);
        let interval = ring.nearest_open(own);
        if interval != own {
            self.misplaced.add(cell.tally.transactions());
        }
        cell.tally.move_to(ring.tally(interval));
        cell.label.store(0, Release);
        true
    }
}

/// The intervals of all clients together, from the one that is read next on.
#[derive(Clone, Copy)]
pub struct Ring<'a> {
    /// Intervals below this one are read.
    pub closed: &'a AtomicU32,
    /// At least two.
    pub tallies: &'a [Tally],
}

impl<'a> Ring<'a> {
    fn tally(self, interval: u32) -> &'a Tally {
        &self.tallies[interval as usize % self.tallies.len()]
    }

    /// The intervals that may be collected and read together, from the next one on. One fewer than there is room for: so
    /// the last one of the ring stays open for a client that has announced itself since it was passed.
    pub fn readable_from(self, next: u32) -> impl Iterator<Item = u32> + 'a {
        next..next.saturating_add(self.tallies.len() as u32 - 1)
    }

    /// The interval itself, or the one nearest to it for which there is room. It stays open while the client that asks
    /// is announced, see [`Ring::readable_from`].
    fn nearest_open(self, interval: u32) -> u32 {
        let closed = self.closed.load(Acquire);
        interval.clamp(closed, closed.saturating_add(self.tallies.len() as u32 - 1))
    }

    /// Takes a client's part of all intervals up to this one, when the reader's clock has reached its end. False while
    /// the client may still count into them: then it is to be asked again.
    pub fn collect(self, client: &ClientIntervals, interval: u32) -> bool {
        // The second fence of the module's head.
        fence(SeqCst);
        !client.is_announced() && self.collect_rest(client, interval)
    }

    /// As [`Ring::collect`], of a client that has ended, in whatever way.
    pub fn collect_rest(self, client: &ClientIntervals, interval: u32) -> bool {
        client.cells.iter().all(|cell| {
            let label = cell.label.load(Acquire);
            label == 0 || interval_of(label) > interval || client.hand_over(cell, self)
        })
    }

    /// Reads the next interval, of which everything has been collected, and closes it: its place in the ring is free for
    /// a later one.
    pub fn read<T>(self, read: impl FnOnce(&Tally) -> T) -> T {
        let interval = self.closed.load(Relaxed);
        let tally = self.tally(interval);
        let result = read(tally);
        tally.clear();
        self.closed.store(interval + 1, Release);
        result
    }

    /// Whether anything has been counted that is not read.
    pub fn holds_more(self, mut clients: impl Iterator<Item = &'a ClientIntervals>) -> bool {
        // What a client has taken that was ended in the middle of it stays there.
        let waits = |cell: &IntervalCell| matches!(cell.label.load(Acquire), label if label != 0 && label & TAKEN == 0);
        let in_cell = |client: &ClientIntervals| client.cells.iter().any(waits);
        self.tallies.iter().any(|tally| tally.transactions() > 0) || clients.any(in_cell)
    }
}

/// A client's hold on its intervals. There is one for each client.
pub struct IntervalWriter<'a> {
    own: &'a ClientIntervals,
    ring: Ring<'a>,
    sequence: u32,
    /// The cell at work, and the label that it was given; 0: none yet.
    at: usize,
    label: u64,
}

impl<'a> IntervalWriter<'a> {
    /// The only writer of a client that has not counted anything.
    pub fn new(own: &'a ClientIntervals, ring: Ring<'a>) -> Self {
        Self { own, ring, sequence: own.sequence.load(Relaxed), at: 0, label: 0 }
    }

    /// To be called before the clock is read at a transaction's end.
    #[inline]
    pub fn announce(&mut self) {
        if self.sequence.is_multiple_of(2) {
            self.step(Relaxed);
        }
        // The first fence of the module's head.
        fence(SeqCst);
    }

    /// To be called when that transaction is counted, or is not to be.
    #[inline]
    pub fn pass(&mut self) {
        if self.sequence % 2 == 1 {
            self.step(Release);
        }
    }

    #[inline]
    fn step(&mut self, ordering: std::sync::atomic::Ordering) {
        self.sequence = self.sequence.wrapping_add(1);
        self.own.sequence.store(self.sequence, ordering);
    }

    /// Where a transaction counts that ended in this interval, by a clock that was read after [`IntervalWriter::announce`].
    #[inline]
    pub fn tally(&mut self, interval: u32) -> &'a Tally {
        if self.label != label_of(interval) {
            self.turn_to(interval);
        }
        &self.own.cells[self.at].tally
    }

    #[cold]
    fn turn_to(&mut self, interval: u32) {
        self.label = label_of(interval);
        // The reader may have taken one of them; it releases that before it takes the other one.
        loop {
            self.at = 1 - self.at;
            let cell = &self.own.cells[self.at];
            if cell.label.load(Acquire) == 0 || self.own.hand_over(cell, self.ring) {
                cell.label.store(self.label, Release);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
