//! One instant by several clocks.

/// A question about the time, and its answer: microseconds since the same epoch, by two clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockReading {
    /// By the clock of the node that asks, before it asked.
    pub sent_us: i64,
    /// By the other's, when the question had arrived.
    pub began_us: i64,
    /// By the other's, when it answered.
    pub answered_us: i64,
    /// By the clock of the node that asks.
    pub received_us: i64,
}

/// How far another node's clock is ahead of this one's, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockOffset {
    pub offset_us: f64,
    /// The most that it may be wrong by.
    pub error_us: f64,
}

/// The offset that no exchange speaks against: the question arrived after it was sent, and the answer was
/// received after it was given (the bounds of Cristian's algorithm, Distributed Computing 3, 1989, page 146 ff., over
/// several exchanges). `None` without any.
pub fn clock_offset(exchanges: &[ClockReading]) -> Option<ClockOffset> {
    let low = exchanges.iter().map(|e| e.answered_us - e.received_us).max()?;
    let high = exchanges.iter().map(|e| e.began_us - e.sent_us).min()?;
    // A clock that is being set may leave no offset at all.
    Some(ClockOffset { offset_us: (low + high) as f64 / 2.0, error_us: (high - low).abs() as f64 / 2.0 })
}

/// How many microseconds before the start the nodes are to be told of it, all at once: long enough for calls three times as
/// slow as the slowest so far, which took `slowest_us`.
pub fn start_margin_us(slowest_us: i64) -> i64 {
    const LEAST_US: i64 = 200_000;
    LEAST_US + 3 * slowest_us.max(0)
}
