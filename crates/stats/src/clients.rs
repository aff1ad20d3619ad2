//! How many clients a rate takes.

/// Clients of whom one is free nearly always when a transaction is due: at `rate` transactions per second that take
/// `duration_ms` on average, so many are under way at a time as a Poisson distribution of mean `rate * duration` has, and three
/// standard deviations above the mean are enough for 999 of 1,000 moments.
#[must_use]
pub fn clients_for(rate: f64, duration_ms: f64) -> u64 {
    let mean = (rate * duration_ms / 1e3).max(0.0);
    (mean + 3.0 * mean.sqrt()).ceil().max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::clients_for;

    #[test]
    fn a_rate_takes_clients_with_room() {
        let cases = [(105.8, 47.0), (1.0, 0.1), (80.0, 0.0), (1000.0, 100.0)];
        assert_eq!(cases.map(|(rate, ms)| clients_for(rate, ms)), [12, 1, 1, 130]);
    }
}
