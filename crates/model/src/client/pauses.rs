//! How long a client waits around a transaction.

use bench_script::Prng;

/// The longest think time, as a multiple of the mean: TPC-C 5.2.5.4.
const MOST_OF_MEAN: f64 = 10.0;

/// How long a client waits around a transaction, in nanoseconds. None of it is part of the transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pauses {
    /// Before it.
    pub keying_ns: i64,
    /// After it, on average.
    pub think_ns: f64,
}

impl Pauses {
    /// Of times in seconds: keying before each transaction, and the mean of think times after it.
    pub fn of_secs(keying: f64, think: f64) -> Self {
        Self { keying_ns: (keying * 1e9) as i64, think_ns: think * 1e9 }
    }

    /// A think time: exponentially distributed, and cut off at ten times the mean.
    pub(super) fn draw_think_ns(self, random: &mut Prng) -> i64 {
        random.poisson(self.think_ns).min((self.think_ns * MOST_OF_MEAN) as i64)
    }
}
