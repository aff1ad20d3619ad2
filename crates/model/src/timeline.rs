//! How a client's clock reading maps to a phase and an interval of the run.
//!
//! A run is a ramp, a warm-up, a measurement and a drain. Warm-up and measurement are cut into intervals, and a
//! last interval shorter than half of the nominal one is joined to the one before: an interval of a few
//! milliseconds would show a throughput that is nothing but noise.
//! All times are nanoseconds of `CLOCK_MONOTONIC`, the one clock that every process of a machine shares.

/// The part of a run that an instant belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before the warm-up: clients are still starting.
    Ramp,
    /// In the warm-up or in the measurement. The index counts the warm-up's intervals first, then the measured ones.
    Interval(u32),
    /// After the measurement: transactions under way are finished, none is started.
    Drain,
}

/// The instants that divide one run. Plain data, so that it can lie in shared memory.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Timeline {
    /// The warm-up's begin, ns.
    pub warmup_start_ns: i64,
    /// The measurement's begin and the warm-up's end, ns.
    pub measure_start_ns: i64,
    /// The measurement's end, ns; `i64::MAX` when it is open-ended.
    pub measure_end_ns: i64,
    /// The nominal length of an interval of the warm-up, ns, at least 1.
    pub warmup_interval_ns: i64,
    /// The nominal length of an interval of the measurement, ns, at least 1.
    pub interval_ns: i64,
    /// How many intervals the warm-up has.
    pub warmup_intervals: u32,
    /// How many intervals the measurement has; `u32::MAX - warmup_intervals` when it is open-ended.
    pub measured_intervals: u32,
}

impl Timeline {
    /// Lays out a run whose warm-up begins at `start_ns` and lasts `warmup_ns` (may be 0), and whose measurement
    /// then lasts `measure_ns`, or until the run is stopped (`None`). Lengths below 0 count as 0, an interval
    /// below 1 ns as 1 ns: the specification of a run refuses them long before.
    pub fn new(start_ns: i64, warmup_ns: i64, measure_ns: Option<i64>, interval_ns: i64) -> Timeline {
        Self::with_warmup(start_ns, warmup_ns, interval_ns, measure_ns, interval_ns)
    }

    /// As [`Timeline::new`], with a length of its own for the warm-up's intervals.
    pub fn with_warmup(
        start_ns: i64,
        warmup_ns: i64,
        warmup_interval_ns: i64,
        measure_ns: Option<i64>,
        interval_ns: i64,
    ) -> Timeline {
        let (warmup_interval_ns, interval_ns) = (warmup_interval_ns.max(1), interval_ns.max(1));
        let warmup_ns = warmup_ns.max(0);
        let measure_start_ns = start_ns.saturating_add(warmup_ns);
        let warmup_intervals = intervals_in(warmup_ns, warmup_interval_ns, u32::MAX / 2);
        let most_measured = u32::MAX - warmup_intervals;
        let (measure_end_ns, measured_intervals) = match measure_ns {
            None => (i64::MAX, most_measured),
            Some(length_ns) => (
                measure_start_ns.saturating_add(length_ns.max(0)),
                intervals_in(length_ns.max(0), interval_ns, most_measured),
            ),
        };
        Timeline {
            warmup_start_ns: start_ns,
            measure_start_ns,
            measure_end_ns,
            warmup_interval_ns,
            interval_ns,
            warmup_intervals,
            measured_intervals,
        }
    }

    /// The same run, whose warm-up ends with the first of its intervals that ends at `earliest_ns` or later; what has
    /// ended before then is in the same interval of both. The measurement, as long as before, begins there.
    pub fn with_warmup_until(&self, earliest_ns: i64) -> Timeline {
        let passed_ns = earliest_ns.saturating_sub(self.warmup_start_ns).max(1);
        let count = (passed_ns - 1) / self.warmup_interval_ns + 1;
        let Some(warmup_intervals) = u32::try_from(count).ok().filter(|&count| count < self.warmup_intervals)
        else {
            return *self;
        };
        let warmup_ns = self.warmup_interval_ns * count;
        let measure_ns =
            (self.measure_end_ns != i64::MAX).then(|| self.measure_end_ns - self.measure_start_ns);
        let Self { warmup_start_ns, warmup_interval_ns, interval_ns, .. } = *self;
        let earlier =
            Self::with_warmup(warmup_start_ns, warmup_ns, warmup_interval_ns, measure_ns, interval_ns);
        debug_assert_eq!(earlier.warmup_intervals, warmup_intervals);
        earlier
    }

    /// The phase at the instant `now_ns`. A transaction that ends exactly at an interval's end belongs to the
    /// next interval, and one that ends exactly at the measurement's end to the drain.
    #[inline]
    pub fn phase_at(&self, now_ns: i64) -> Phase {
        if now_ns >= self.measure_end_ns {
            Phase::Drain
        } else if now_ns >= self.measure_start_ns {
            let index =
                index_in_part(self.measure_start_ns, self.interval_ns, self.measured_intervals, now_ns);
            Phase::Interval(self.warmup_intervals + index)
        } else if now_ns >= self.warmup_start_ns {
            let (start_ns, interval_ns) = (self.warmup_start_ns, self.warmup_interval_ns);
            Phase::Interval(index_in_part(start_ns, interval_ns, self.warmup_intervals, now_ns))
        } else {
            Phase::Ramp
        }
    }

    /// Begin and end `[begin, end)` of an interval, ns. For an interval past the last one both are the
    /// measurement's end.
    pub fn bounds(&self, interval: u32) -> (i64, i64) {
        let (part_start_ns, part_end_ns, intervals, index) = if self.is_warmup(interval) {
            (self.warmup_start_ns, self.measure_start_ns, self.warmup_intervals, interval)
        } else {
            let index = interval - self.warmup_intervals;
            (self.measure_start_ns, self.measure_end_ns, self.measured_intervals, index)
        };
        if index >= intervals {
            return (part_end_ns, part_end_ns);
        }
        let interval_ns = self.nominal_ns(interval);
        let start_of =
            |index: u32| part_start_ns.saturating_add(interval_ns.saturating_mul(i64::from(index)));
        let start_ns = start_of(index);
        // The last interval takes the rest, be it shorter or longer than the nominal length.
        let is_last = index.checked_add(1) == Some(intervals);
        let end_ns = if is_last { part_end_ns } else { start_of(index.saturating_add(1)) };
        (start_ns, end_ns)
    }

    /// Whether an interval belongs to the warm-up.
    #[inline]
    pub fn is_warmup(&self, interval: u32) -> bool {
        interval < self.warmup_intervals
    }

    /// The nominal length of an interval, ns.
    pub fn nominal_ns(&self, interval: u32) -> i64 {
        if self.is_warmup(interval) { self.warmup_interval_ns } else { self.interval_ns }
    }
}

/// The index of the interval where `now_ns` lies, in its own part (warm-up or measurement).
#[inline]
fn index_in_part(part_start_ns: i64, interval_ns: i64, intervals: u32, now_ns: i64) -> u32 {
    let nominal = now_ns.saturating_sub(part_start_ns) / interval_ns;
    // What lies past the nominal end of the last interval is the short rest that was joined to it.
    let last = intervals.saturating_sub(1);
    u32::try_from(nominal).map_or(last, |index| index.min(last))
}

/// How many intervals a part of `length_ns` has, at most `most`.
fn intervals_in(length_ns: i64, interval_ns: i64, most: u32) -> u32 {
    if length_ns == 0 {
        return 0;
    }
    let whole = length_ns / interval_ns;
    let rest_ns = length_ns % interval_ns;
    // Half an interval or more stands for itself (2 × rest ≥ interval, without the overflow).
    let rest_counts = rest_ns >= interval_ns - rest_ns;
    u32::try_from(whole + i64::from(rest_counts)).unwrap_or(most).clamp(1, most)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// Start, warm-up, measurement and interval of a run with at most some hundred intervals.
    fn lengths() -> impl Strategy<Value = (i64, i64, i64, i64)> {
        (1..2_000i64)
            .prop_flat_map(|interval| (0..SECOND, 0..interval * 100, 1..interval * 100, Just(interval)))
    }

    #[test]
    fn a_run_of_ten_seconds_after_two_of_warmup() {
        let timeline = Timeline::new(5 * SECOND, 2 * SECOND, Some(10 * SECOND), SECOND);
        assert_eq!((timeline.warmup_intervals, timeline.measured_intervals), (2, 10));
        assert_eq!(timeline.phase_at(5 * SECOND - 1), Phase::Ramp);
        assert_eq!(timeline.phase_at(5 * SECOND), Phase::Interval(0));
        assert_eq!(timeline.phase_at(6 * SECOND), Phase::Interval(1));
        assert_eq!(timeline.phase_at(7 * SECOND), Phase::Interval(2));
        assert_eq!(timeline.phase_at(17 * SECOND - 1), Phase::Interval(11));
        assert_eq!(timeline.phase_at(17 * SECOND), Phase::Drain);
        assert!(timeline.is_warmup(1) && !timeline.is_warmup(2));
        assert_eq!(timeline.bounds(2), (7 * SECOND, 8 * SECOND));
    }

    #[test]
    fn a_short_rest_is_joined_and_a_long_one_stands_for_itself() {
        let joined = Timeline::new(0, 0, Some(10_499), 1_000);
        assert_eq!(joined.measured_intervals, 10);
        assert_eq!(joined.bounds(9), (9_000, 10_499));
        assert_eq!(joined.phase_at(10_498), Phase::Interval(9));
        let alone = Timeline::new(0, 0, Some(10_500), 1_000);
        assert_eq!(alone.measured_intervals, 11);
        assert_eq!(alone.bounds(10), (10_000, 10_500));
        let only = Timeline::new(0, 1, Some(2), 1_000);
        assert_eq!((only.warmup_intervals, only.measured_intervals), (1, 1));
        assert_eq!((only.bounds(0), only.bounds(1)), ((0, 1), (1, 3)));
    }

    #[test]
    fn an_open_ended_run_never_drains() {
        let timeline = Timeline::new(0, SECOND, None, SECOND);
        assert_eq!(timeline.warmup_intervals, 1);
        assert_eq!(timeline.phase_at(1_000_000 * SECOND), Phase::Interval(1_000_000));
        assert_eq!(timeline.bounds(1_000_000), (1_000_000 * SECOND, 1_000_001 * SECOND));
        assert_eq!(timeline.phase_at(i64::MAX - 1), Phase::Interval(u32::MAX - 1));
    }

    /// Eight hours in intervals of 0.1 s, the shortest that there are, on a machine that has been up for ten years.
    #[test]
    fn a_soak_drifts_by_nothing() {
        let (interval, start) = (SECOND / 10, 10 * 365 * 86_400 * SECOND);
        let timeline = Timeline::new(start, 0, Some(8 * 3600 * SECOND), interval);
        assert_eq!(timeline.measured_intervals, 288_000);
        for index in 0..timeline.measured_intervals {
            let (begin, end) = timeline.bounds(index);
            assert_eq!(begin, start + i64::from(index) * interval);
            assert_eq!(end - begin, interval);
            assert_eq!(timeline.phase_at(begin), Phase::Interval(index));
            assert_eq!(timeline.phase_at(end - 1), Phase::Interval(index));
        }
        assert_eq!(timeline.phase_at(start + 8 * 3600 * SECOND), Phase::Drain);
    }

    /// The shortest intervals of an open-ended run are enough for as long as a machine lives.
    #[test]
    fn an_open_ended_run_has_intervals_for_years() {
        let ten_years = 10 * 365 * 86_400 * SECOND;
        let timeline = Timeline::new(ten_years, 0, None, SECOND / 10);
        assert_eq!(timeline.phase_at(2 * ten_years), Phase::Interval(3_153_600_000));
        assert_eq!(timeline.bounds(3_153_600_000), (2 * ten_years, 2 * ten_years + SECOND / 10));
    }

    proptest! {
        #[test]
        fn intervals_tile_both_parts((start, warmup, measure, interval) in lengths()) {
            let timeline = Timeline::new(start, warmup, Some(measure), interval);
            let mut expected_start = timeline.warmup_start_ns;
            for index in 0..timeline.warmup_intervals + timeline.measured_intervals {
                let (begin, end) = timeline.bounds(index);
                prop_assert_eq!(begin, expected_start);
                prop_assert!(begin < end);
                if index + 1 == timeline.warmup_intervals {
                    prop_assert_eq!(end, timeline.measure_start_ns);
                }
                expected_start = end;
            }
            prop_assert_eq!(expected_start, timeline.measure_end_ns);
            prop_assert_eq!(timeline.measure_start_ns - start, warmup);
            prop_assert_eq!(timeline.measure_end_ns - timeline.measure_start_ns, measure);
        }

        #[test]
        fn phase_agrees_with_bounds((start, warmup, measure, interval) in lengths(), share in 0.0..1.0f64) {
            let timeline = Timeline::new(start, warmup, Some(measure), interval);
            let now = start + ((warmup + measure) as f64 * share) as i64;
            for now in [now, timeline.measure_start_ns, timeline.measure_end_ns - 1] {
                let Phase::Interval(index) = timeline.phase_at(now) else { panic!("{now} is in no interval") };
                let (begin, end) = timeline.bounds(index);
                prop_assert!(begin <= now && now < end);
                prop_assert_eq!(timeline.is_warmup(index), now < timeline.measure_start_ns);
            }
            prop_assert_eq!(timeline.phase_at(start - 1), Phase::Ramp);
            prop_assert_eq!(timeline.phase_at(start + warmup + measure), Phase::Drain);
        }

        #[test]
        fn no_interval_is_too_short_or_too_long((start, warmup, measure, interval) in lengths()) {
            let timeline = Timeline::new(start, warmup, Some(measure), interval);
            for index in 0..timeline.warmup_intervals + timeline.measured_intervals {
                let (begin, end) = timeline.bounds(index);
                let in_part =
                    if timeline.is_warmup(index) { timeline.warmup_intervals } else { timeline.measured_intervals };
                prop_assert!(in_part == 1 || 2 * (end - begin) >= interval);
                prop_assert!(2 * (end - begin) < 3 * interval);
            }
        }

        #[test]
        fn an_earlier_end_of_the_warmup_moves_nothing_before_it(
            (start, warmup, measure, interval) in lengths(), short in 1..2_000i64, share in 0.0..1.0f64, at in 0.0..1.0f64,
        ) {
            let longest = Timeline::with_warmup(start, warmup, short, Some(measure), interval);
            let now = start + (warmup as f64 * share) as i64;
            let timeline = longest.with_warmup_until(now);
            prop_assert!(timeline.measure_start_ns >= now && timeline.measure_start_ns <= longest.measure_start_ns);
            let is_first = timeline.measure_start_ns - now < short || timeline.measure_start_ns == longest.measure_start_ns;
            prop_assert!(is_first || now == start);
            prop_assert_eq!(timeline.measure_end_ns - timeline.measure_start_ns, measure);
            prop_assert_eq!(timeline.measured_intervals, longest.measured_intervals);
            let before = start + ((timeline.measure_start_ns - start) as f64 * at) as i64;
            prop_assert_eq!(timeline.phase_at(before), if before < timeline.measure_start_ns { longest.phase_at(before) } else { timeline.phase_at(before) });
            for index in 0..timeline.warmup_intervals {
                prop_assert_eq!(timeline.bounds(index), longest.bounds(index));
            }
            let open = Timeline::with_warmup(start, warmup, short, None, interval).with_warmup_until(now);
            prop_assert_eq!((open.measure_start_ns, open.measure_end_ns), (timeline.measure_start_ns, i64::MAX));
        }

        #[test]
        fn no_reading_of_the_clock_panics(
            start: i64, warmup: i64, measure: Option<i64>, interval: i64, now: i64, index: u32,
        ) {
            let timeline = Timeline::new(start, warmup, measure, interval);
            timeline.phase_at(now);
            timeline.bounds(index);
            timeline.with_warmup_until(now);
        }
    }
}
