//! The arms of a duel, by turns. A block is two stretches of equally many transactions, one for each arm, in an order that is
//! drawn anew for each block: what the machine does meanwhile falls on both alike.

use bench_script::Prng;

/// What a stretch is to take, in nanoseconds: a switch is to cost little of it, and the machine to be the same throughout a
/// block.
const STRETCH_NS: f64 = 3e6;

/// Transactions of a stretch at most.
const MOST: f64 = 10_000.0;

/// Where a client is.
pub(super) struct Stretches {
    random: Prng,
    /// Transactions of each of the block's two stretches; 0 before the first block.
    length: u64,
    /// Of this stretch, those to come.
    left: u64,
    first: usize,
    is_second: bool,
    began_ns: i64,
    /// A client of one arm has one stretch, without end.
    only: Option<usize>,
}

impl Stretches {
    /// Their order is drawn by a generator of its own: scripts draw the same numbers whichever arm they have. `only`: the
    /// client is of this arm all the time.
    pub fn new(mut choice: Prng, only: Option<usize>) -> Self {
        let random = Prng::from_seed(choice.next_u64());
        Self { random, length: 0, left: 0, first: 0, is_second: true, began_ns: 0, only }
    }

    /// Whether the next transaction begins a stretch.
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Begins the next stretch; its arm.
    pub fn turn(&mut self, now_ns: i64) -> usize {
        if let Some(arm) = self.only {
            (self.first, self.is_second, self.left) = (arm, false, u64::MAX);
            return arm;
        }
        if self.is_second {
            let took_ns = (now_ns - self.began_ns).max(1) as f64 / (2 * self.length).max(1) as f64;
            self.length = if self.length == 0 { 1 } else { (STRETCH_NS / took_ns).clamp(1.0, MOST) as u64 };
            self.first = self.random.uint64_range(0, 1) as usize;
            self.began_ns = now_ns;
        }
        self.is_second = !self.is_second;
        self.left = self.length;
        self.arm()
    }

    /// Takes a transaction; its arm.
    pub fn take(&mut self) -> usize {
        self.left = self.left.saturating_sub(1);
        self.arm()
    }

    fn arm(&self) -> usize {
        self.first ^ usize::from(self.is_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_balanced_and_their_order_is_drawn() {
        let mut stretches = Stretches::new(Prng::from_seed(7), None);
        let (mut counts, mut orders) = ([0, 0], [0, 0]);
        let mut now_ns = 0;
        for _ in 0..1000 {
            let first = stretches.turn(now_ns);
            orders[first] += 1;
            for arm in [first, 1 - first] {
                if arm != first {
                    assert_eq!(stretches.turn(now_ns), arm);
                }
                while !stretches.is_over() {
                    assert_eq!(stretches.take(), arm);
                    counts[arm] += 1;
                    now_ns += 100_000;
                }
            }
            assert_eq!(counts[0], counts[1]);
        }
        assert_eq!(stretches.length, 30);
        assert!((430..570).contains(&orders[0]), "{orders:?}");
    }

    #[test]
    fn a_client_of_one_arm_stays_there() {
        for arm in [0, 1] {
            let mut stretches = Stretches::new(Prng::from_seed(7), Some(arm));
            assert!(stretches.is_over());
            assert_eq!(stretches.turn(0), arm);
            for _ in 0..1000 {
                assert_eq!(stretches.take(), arm);
                assert!(!stretches.is_over());
            }
        }
    }
}
