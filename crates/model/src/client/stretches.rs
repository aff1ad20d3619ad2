//! Alternates the arms of a duel. A block consists of two stretches of time, one for each arm in random order, so disturbances
//! of the machine affect both. Stretches follow the clock: all clients run the same arm at the same time, and their waits belong to
//! it. A transaction belongs to the arm in whose stretch it starts. During the ramp each client stays in one arm, which also shows
//! sessions that have executed no other. A client of only one arm, such as a connection to one of two servers, waits during the
//! other's stretches: two servers on one machine do not run at the same time.

use std::sync::atomic::Ordering::*;

use super::recorder::TransactionRecorder;

/// The shortest stretch: long compared to a switch, and short enough for the machine to be the same throughout a block.
const STRETCH_NS: i64 = 3_000_000;

/// An arm's transaction time is the minimum over this number of latest stretches, which excludes stalls.
const TIMED_STRETCHES: usize = 3;

/// How the clients of a duel alternate.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    /// Determines the order of arms in blocks; the same for all clients.
    pub seed: u64,
    /// Several clients wait for each other's locks and commits, so fewer of their transactions may cross the end of a stretch.
    pub has_several_clients: bool,
    /// The longest stretch, however long transactions take.
    pub longest_ns: i64,
    /// The client's arm during the ramp.
    pub first: usize,
    /// The client's only arm; it waits during the other's stretches.
    pub only: Option<usize>,
}

/// What a client does before its next transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The stretch under way goes on.
    Stay,
    /// A stretch of this arm has begun.
    Begin(usize),
    /// The other arm's stretch lasts until this time.
    Wait { until_ns: i64 },
}

/// A client's position in the stretches.
pub(super) struct Stretches {
    turns: Turns,
    /// The current stretch, counted from the clock's origin in units of `width_ns`.
    number: i64,
    width_ns: i64,
    began_ns: i64,
    arm: usize,
    /// The stretch is the other arm's.
    is_waiting: bool,
    transactions: i64,
    /// Mean nanoseconds per transaction in each arm's latest stretches.
    latest_ns: [[i64; TIMED_STRETCHES]; 2],
}

impl Stretches {
    pub fn new(turns: Turns) -> Self {
        Self {
            turns,
            number: 0,
            width_ns: 0,
            began_ns: 0,
            arm: 0,
            is_waiting: false,
            transactions: 0,
            latest_ns: [[0; TIMED_STRETCHES]; 2],
        }
    }

    /// Returns what to do at this time.
    #[inline]
    pub fn turn<L: TransactionRecorder>(&mut self, now_ns: i64, ledger: &L) -> Turn {
        let width_ns = ledger.stretch_ns().load(Relaxed).max(STRETCH_NS);
        let number = now_ns.div_euclid(width_ns);
        if (number, width_ns) == (self.number, self.width_ns) {
            return if self.is_waiting { self.wait() } else { Turn::Stay };
        }
        if self.width_ns != 0 && !self.is_waiting {
            self.measure(now_ns);
            let needed_ns = self.needed_ns();
            if needed_ns > width_ns {
                ledger.stretch_ns().fetch_max(needed_ns, Relaxed);
            }
        }
        (self.number, self.width_ns, self.began_ns, self.transactions) = (number, width_ns, now_ns, 0);
        let Turns { seed, first, only, .. } = self.turns;
        let arm = if now_ns < ledger.ramp_end_ns() { only.unwrap_or(first) } else { arm_of(seed, number) };
        self.is_waiting = only.is_some_and(|only| only != arm);
        if self.is_waiting {
            return self.wait();
        }
        self.arm = arm;
        Turn::Begin(arm)
    }

    /// Waits until the current stretch is over.
    fn wait(&self) -> Turn {
        Turn::Wait { until_ns: (self.number + 1) * self.width_ns }
    }

    /// Returns the arm of the client's current or last stretch.
    pub fn arm(&self) -> usize {
        self.arm
    }

    /// Counts a transaction and returns its arm.
    #[inline]
    pub fn take(&mut self) -> usize {
        self.transactions += 1;
        self.arm
    }

    /// Records the mean transaction time of the stretch that has ended.
    fn measure(&mut self, now_ns: i64) {
        let latest = &mut self.latest_ns[self.arm];
        latest.rotate_right(1);
        latest[0] = (now_ns - self.began_ns) / self.transactions.max(1);
    }

    /// Returns the length of stretches that the slower arm's transactions need: the shortest, times a power of two.
    fn needed_ns(&self) -> i64 {
        let transaction_ns =
            |latest: &[i64; TIMED_STRETCHES]| latest.iter().copied().min().unwrap_or_default();
        let slower_ns = self.latest_ns.iter().map(transaction_ns).max().unwrap_or_default();
        let transactions = if self.turns.has_several_clients { 8 } else { 2 };
        let needed_ns = slower_ns.saturating_mul(transactions).min(self.turns.longest_ns);
        let mut width_ns = STRETCH_NS;
        while width_ns < needed_ns {
            width_ns *= 2;
        }
        width_ns
    }
}

/// Returns the arm of a stretch; a hash of the block's number decides which is first (SplitMix64; Steele, Lea & Flood, "Fast
/// splittable pseudorandom number generators", OOPSLA 2014).
fn arm_of(seed: u64, number: i64) -> usize {
    let block = (number >> 1).cast_unsigned();
    let mut mixed = seed ^ block.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let first = (mixed ^ (mixed >> 31)) & 1;
    (first ^ (number & 1).cast_unsigned()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::tests::recorder;

    const TURNS: Turns =
        Turns { seed: 7, has_several_clients: false, longest_ns: i64::MAX, first: 0, only: None };

    /// Nanoseconds that a client spends in each arm within ten seconds, where its transactions take so long, and its transactions.
    fn spent(turns: Turns, transaction_ns: [i64; 2]) -> ([i64; 2], [i64; 2]) {
        let (mut stretches, recorder) = (Stretches::new(turns), recorder());
        let (mut spent, mut counts, mut now_ns) = ([0, 0], [0, 0], 0);
        while now_ns < 10_000_000_000 {
            stretches.turn(now_ns, &recorder);
            let arm = stretches.take();
            counts[arm] += 1;
            spent[arm] += transaction_ns[arm];
            now_ns += transaction_ns[arm];
        }
        (spent, counts)
    }

    #[test]
    fn both_arms_have_as_much_time() {
        for b_ns in [100_000, 1_000_000, 5_000_000, 30_000_000] {
            let ([a, b], counts) = spent(TURNS, [100_000, b_ns]);
            let share = a as f64 / (a + b) as f64;
            assert!((0.4..=0.6).contains(&share), "{b_ns}: {share} of the time, {counts:?}");
        }
    }

    #[test]
    fn blocks_are_balanced_and_their_order_is_drawn() {
        let firsts = (0..1000).map(|block| {
            let [first, second] = [2 * block, 2 * block + 1].map(|number| arm_of(7, number));
            assert_eq!(first + second, 1);
            first
        });
        let firsts: usize = firsts.sum();
        assert!((430..570).contains(&firsts), "{firsts}");
    }

    #[test]
    fn all_clients_are_of_the_same_arm() {
        let (mut one, mut other, recorder) = (Stretches::new(TURNS), Stretches::new(TURNS), recorder());
        for now_ns in (0..1_000_000_000).step_by(700_000) {
            one.turn(now_ns, &recorder);
            other.turn(now_ns + 1, &recorder);
            assert_eq!(one.take(), other.take(), "at {now_ns}");
        }
    }

    #[test]
    fn a_client_stays_in_its_first_arm_until_the_ramp_ends() {
        for first in [0, 1] {
            let (mut stretches, mut recorder) = (Stretches::new(Turns { first, ..TURNS }), recorder());
            recorder.ramp_end_ns = 200_000_000;
            let mut arms = Vec::new();
            for now_ns in (0..400_000_000).step_by(1_000_000) {
                let begins = stretches.turn(now_ns, &recorder) != Turn::Stay;
                arms.push(stretches.take());
                assert_eq!(begins, now_ns % STRETCH_NS == 0, "at {now_ns}");
            }
            let (ramp, rest) = arms.split_at(201);
            assert!(ramp.iter().all(|arm| *arm == first));
            assert!(rest.contains(&0) && rest.contains(&1));
        }
    }

    #[test]
    fn stretches_are_as_long_as_transactions_need_and_no_longer_than_they_may_be() {
        let needed = |turns, transaction_ns: i64| {
            let (mut stretches, recorder) = (Stretches::new(turns), recorder());
            for number in 0..100 {
                stretches.turn(number * transaction_ns, &recorder);
                stretches.take();
            }
            recorder.stretch_ns().load(Relaxed)
        };
        assert_eq!(needed(TURNS, 100_000), 0);
        assert_eq!(needed(TURNS, 10_000_000), 24_000_000);
        assert_eq!(needed(Turns { has_several_clients: true, ..TURNS }, 10_000_000), 96_000_000);
        assert_eq!(needed(Turns { longest_ns: 5_000_000, ..TURNS }, 10_000_000), 6_000_000);
        // One stall changes nothing.
        let (mut stretches, recorder) = (Stretches::new(TURNS), recorder());
        for now_ns in (0..1_000_000_000).step_by(1_000_000) {
            stretches.turn(if now_ns < 500_000_000 { now_ns } else { now_ns + 300_000_000 }, &recorder);
            stretches.take();
        }
        assert_eq!(recorder.stretch_ns().load(Relaxed), 0);
    }

    #[test]
    fn clients_of_one_arm_wait_while_the_other_has_its_stretch() {
        let (mut recorder, only) = (recorder(), |arm| Stretches::new(Turns { only: Some(arm), ..TURNS }));
        recorder.ramp_end_ns = 200_000_000;
        let (mut a, mut b) = (only(0), only(1));
        let mut waits = [0, 0];
        for now_ns in (0..1_000_000_000).step_by(1_000_000) {
            let turns = [a.turn(now_ns, &recorder), b.turn(now_ns, &recorder)];
            let until_ns = (now_ns / STRETCH_NS + 1) * STRETCH_NS;
            for (arm, client) in [&mut a, &mut b].into_iter().enumerate() {
                match turns[arm] {
                    Turn::Wait { until_ns: end_ns } => assert_eq!((waits[arm] += 1, end_ns), ((), until_ns)),
                    _ => assert_eq!(client.take(), arm),
                }
            }
            let waiting = turns.iter().filter(|turn| matches!(turn, Turn::Wait { .. })).count();
            assert_eq!(waiting, usize::from(now_ns > 200_000_000), "at {now_ns}: {turns:?}");
        }
        assert!(waits.iter().all(|count| (350..=450).contains(count)), "{waits:?}");
    }

    #[test]
    fn a_client_that_waited_begins_with_its_arm() {
        let (mut stretches, recorder) = (Stretches::new(Turns { only: Some(1), ..TURNS }), recorder());
        let mut now_ns = 0;
        for _ in 0..100 {
            match stretches.turn(now_ns, &recorder) {
                Turn::Wait { until_ns } => {
                    assert!(until_ns > now_ns);
                    now_ns = until_ns;
                }
                Turn::Begin(arm) => assert_eq!(arm, 1),
                Turn::Stay => now_ns += 1_000_000,
            }
        }
    }
}
