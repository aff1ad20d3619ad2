//! When transactions are due under a rate, constant or changing: an open loop, whose arrivals do not wait for the server.
//!
//! As in a thread of pgbench (`CSTATE_PREPARE_THROTTLE` in pgbench.c), all clients take from one sequence of arrivals,
//! a client that is free the next one: one queue with as many servers as there are clients, as a pool of connections is. With a
//! sequence for each client, transactions would wait for one client while others are idle, which is no property of the
//! server.
//!
//! As there, the times between arrivals are exponentially distributed, which makes the arrivals a Poisson process, and
//! each is counted from when the one before was due, not from when it was started: a stall delays what comes after it, and
//! does not thin it out. pgbench rounds these times to a microsecond, which at a million a second makes arrivals too
//! frequent; here they are rounded to a nanosecond.
//!
//! The clients are processes, and none waits for another: an arrival is a function of the one before it and of the seed, so
//! that the last one taken is all that they share, and to take the next one is a compare-and-swap.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;

use bench_base::error::{UserError, sqlstate};
use bench_script::Prng;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Makes the seed of the arrivals another one than those of the clients.
const ARRIVALS: u64 = 0xA5A5_0F0F_3C3C_9696;

/// The arrivals of a run, of which those that share `last` (nanoseconds from the start to the last one taken, 0 at the
/// beginning) take each one once.
#[derive(Clone, Debug)]
pub struct Schedule {
    seed: u64,
    pace: Pace,
    start_ns: i64,
}

#[derive(Clone, Debug)]
enum Pace {
    /// Mean time between two arrivals, ns.
    Constant(f64),
    /// Rates, and the nanoseconds from the start to the begin of their time.
    Varying(Arc<Rates>, i64),
}

const NS_PER_SEC: f64 = 1e9;

impl Schedule {
    /// `rate` transactions per second from `start_ns` on; the same ones for the same `seed`.
    pub fn new(seed: u64, rate: f64, start_ns: i64) -> Schedule {
        Schedule { seed: seed ^ ARRIVALS, pace: Pace::Constant(NS_PER_SEC / rate), start_ns }
    }

    /// As [`new`](Self::new), of rates that change, whose time begins `warmup_ns` after `start_ns`.
    pub fn varying(seed: u64, rates: Rates, start_ns: i64, warmup_ns: i64) -> Schedule {
        Schedule { seed: seed ^ ARRIVALS, pace: Pace::Varying(Arc::new(rates), warmup_ns), start_ns }
    }

    /// Takes the next arrival: when it is due, ns.
    #[inline]
    pub fn take(&self, last: &AtomicI64) -> i64 {
        let mut before = last.load(Relaxed);
        loop {
            let next = self.after(before);
            match last.compare_exchange_weak(before, next, Relaxed, Relaxed) {
                Ok(_) => return self.start_ns.saturating_add(next),
                Err(now) => before = now,
            }
        }
    }

    /// Counts the transactions that are due before `end_ns` and not taken: exactly up to a million, and from there on by the mean.
    pub fn rest_until(&self, last: &AtomicI64, end_ns: i64) -> u64 {
        const EXACT: u64 = 1_000_000;
        let end = end_ns.saturating_sub(self.start_ns);
        let mut before = last.load(Relaxed);
        for count in 0..EXACT {
            before = self.after(before);
            if before >= end {
                return count;
            }
        }
        let rest = match &self.pace {
            Pace::Constant(mean_ns) => (end - before) as f64 / mean_ns,
            Pace::Varying(rates, warmup_ns) => {
                let secs = |at: i64| at.saturating_sub(*warmup_ns) as f64 / NS_PER_SEC;
                rates.expected(secs(before), secs(end))
            }
        };
        EXACT + rest as u64
    }

    /// The arrival after one, both counted from the start. No two are at the same nanosecond, for what follows would be the
    /// same as well.
    #[inline]
    fn after(&self, before: i64) -> i64 {
        let mut random = Prng::from_seed(self.seed.wrapping_add(before.cast_unsigned()));
        match &self.pace {
            Pace::Constant(mean_ns) => before.saturating_add(random.poisson(*mean_ns).max(1)),
            Pace::Varying(rates, warmup_ns) => {
                let secs = before.saturating_sub(*warmup_ns) as f64 / NS_PER_SEC;
                // Infinity becomes the greatest time there is.
                let next = (rates.after(secs, random.exponential()) * NS_PER_SEC).round() as i64;
                next.saturating_add(*warmup_ns).max(before.saturating_add(1))
            }
        }
    }
}

/// The highest rate, in transactions per second: a schedule's least time between two arrivals is a nanosecond.
pub const MAX_RATE: f64 = 1e6;

/// More points than this are taken for a mistake.
const MAX_POINTS: usize = 10_000;

/// The key beside those of seconds, and its words.
const SHAPE: &str = "shape";
const STEPS: &str = "steps";
const RAMPS: &str = "ramps";

/// Transactions per second over the seconds of a run's measured time; before them as at their begin. As JSON it is an object
/// such as `{"0": 500, "30": 2000, "shape": "ramps"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Rates {
    /// (seconds, transactions per second), the first at 0, ascending.
    points: Vec<(f64, f64)>,
    /// Linear from each point to the next, instead of constant from each one on.
    has_ramps: bool,
}

/// What an error says of how it is written.
const EXAMPLE: &str = "For example: rates => '{\"0\": 500, \"30\": 2000, \"60\": 500}', the seconds from which on so many \
                       transactions per second are started; with \"shape\": \"ramps\", linear in between.";

fn invalid(message: impl Into<String>) -> UserError {
    UserError::invalid(message).hint(EXAMPLE)
}

impl Rates {
    /// # Errors
    /// 22023 for what is not such an object, with rates from 0 to [`MAX_RATE`]; 54000 for too many points.
    pub fn parse(value: &Value) -> Result<Self, UserError> {
        let Value::Object(object) = value else { return Err(invalid("rates must be a JSON object")) };
        let has_ramps = match object.get(SHAPE) {
            None => false,
            Some(shape) if shape == STEPS => false,
            Some(shape) if shape == RAMPS => true,
            Some(shape) => return Err(invalid(format!("unrecognized shape of rates: {shape}"))),
        };
        if object.len() > MAX_POINTS {
            let message = format!("rates must not have more than {MAX_POINTS} points, not {}", object.len());
            return Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let mut points = Vec::with_capacity(object.len());
        for (secs, rate) in object.iter().filter(|(key, _)| *key != SHAPE) {
            let at = secs.trim().parse::<f64>().ok().filter(|at| at.is_finite() && *at >= 0.0);
            let at = at.ok_or_else(|| invalid(format!("\"{secs}\" is no number of seconds")))?;
            let rate = rate.as_f64().filter(|rate| (0.0..=MAX_RATE).contains(rate)).ok_or_else(|| {
                invalid(format!("the rate at {secs} s must be a number between 0 and {MAX_RATE}, not {rate}"))
            })?;
            points.push((at, rate));
        }
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        if points.first().is_none_or(|first| first.0 != 0.0) {
            return Err(invalid("rates must begin at second 0"));
        }
        if let Some(pair) = points.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(invalid(format!("rates has second {} twice", pair[0].0)));
        }
        Ok(Self { points, has_ramps })
    }

    /// Multiplies the rates by a factor.
    pub fn scaled(&self, factor: f64) -> Self {
        Self { points: self.points.iter().map(|(at, rate)| (*at, rate * factor)).collect(), ..*self }
    }

    /// The segment that a time lies in: its begin and rate there, its end (infinite of the last one), and the rate just before
    /// that.
    fn segment(&self, index: usize) -> (f64, f64, f64, f64) {
        let (begin, rate) = self.points[index];
        match self.points.get(index + 1) {
            Some(next) => (begin, rate, next.0, if self.has_ramps { next.1 } else { rate }),
            None => (begin, rate, f64::INFINITY, rate),
        }
    }

    /// The index of the segment that a time lies in.
    fn index(&self, secs: f64) -> usize {
        self.points.partition_point(|(at, _)| *at <= secs).saturating_sub(1)
    }

    /// Transactions per second at a time.
    pub fn at(&self, secs: f64) -> f64 {
        let (begin, first, end, last) = self.segment(self.index(secs));
        if end.is_infinite() || secs <= begin {
            return first;
        }
        first + (last - first) * (secs - begin) / (end - begin)
    }

    /// Transactions that are due from one time to another, on average.
    pub fn expected(&self, from: f64, to: f64) -> f64 {
        let mut count = self.points[0].1 * (to.min(0.0) - from).max(0.0);
        let mut now = from.max(0.0);
        let mut index = self.index(now);
        while now < to {
            let (begin, first, end, last) = self.segment(index);
            let until = end.min(to);
            let rate = |at: f64| {
                if end.is_infinite() || at <= begin {
                    first
                } else {
                    first + (last - first) * (at - begin) / (end - begin)
                }
            };
            count += (rate(now) + rate(until)) / 2.0 * (until - now);
            (now, index) = (until, index + 1);
        }
        count
    }

    /// When `count` transactions are due after a time, on average: the inverse of the integral, by which arrivals of a Poisson
    /// process of rate 1 become those of this one (Çinlar, "Introduction to Stochastic Processes", 1975, ch. 4.7), without
    /// rejections. Infinite where the rate stays 0.
    pub fn after(&self, from: f64, count: f64) -> f64 {
        // Before the measured time the rate is constant.
        let first = self.points[0].1;
        let before = first * (-from).max(0.0);
        if count < before {
            return from + count / first;
        }
        let (mut now, mut left) = (from.max(0.0), count - before);
        let mut index = self.index(now);
        loop {
            let (begin, first, end, last) = self.segment(index);
            let slope = if end.is_infinite() { 0.0 } else { (last - first) / (end - begin) };
            let rate = (first + slope * (now - begin)).max(0.0);
            let in_segment =
                if end.is_infinite() { f64::INFINITY } else { (rate + last) / 2.0 * (end - now) };
            if left <= in_segment && (rate > 0.0 || slope > 0.0) {
                // The smaller root of rate x + slope x² / 2 = left, in the form that loses no digits.
                let root = (rate * rate + 2.0 * slope * left).max(0.0).sqrt();
                return (now + 2.0 * left / (rate + root)).min(end);
            }
            if end.is_infinite() {
                return f64::INFINITY;
            }
            left = (left - in_segment).max(0.0);
            (now, index) = (end, index + 1);
        }
    }

    /// (seconds, rate), the corners of its graph up to a time.
    pub fn corners(&self, until: f64) -> Vec<(f64, f64)> {
        let mut corners = Vec::new();
        for index in 0..self.points.len() {
            let (begin, first, end, last) = self.segment(index);
            if begin >= until {
                break;
            }
            let end = end.min(until);
            corners.push((begin, first));
            corners.push((end, if self.has_ramps { self.at(end) } else { last }));
        }
        corners
    }

    /// As `0 s: 500, 30 s: 2000, ramps`.
    pub fn text(&self) -> String {
        let points: Vec<String> = self.points.iter().map(|(at, rate)| format!("{at} s: {rate}")).collect();
        format!("{}, {}", points.join(", "), if self.has_ramps { RAMPS } else { STEPS })
    }
}

impl TryFrom<Value> for Rates {
    type Error = UserError;

    fn try_from(value: Value) -> Result<Self, UserError> {
        Self::parse(&value)
    }
}

impl From<Rates> for Value {
    fn from(rates: Rates) -> Value {
        let number = |rate: f64| match rate.fract() == 0.0 && rate < 1e15 {
            true => Value::from(rate as i64),
            false => Value::from(rate),
        };
        let mut object: Map<String, Value> =
            rates.points.iter().map(|(at, rate)| (at.to_string(), number(*rate))).collect();
        if rates.has_ramps {
            object.insert(SHAPE.to_owned(), RAMPS.into());
        }
        Value::Object(object)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// So many arrivals.
    fn arrivals(seed: u64, rate: f64, start_ns: i64, count: usize) -> Vec<i64> {
        let (schedule, last) = (Schedule::new(seed, rate, start_ns), AtomicI64::new(0));
        (0..count).map(|_| schedule.take(&last)).collect()
    }

    #[test]
    fn arrivals_come_at_the_rate() {
        const COUNT: usize = 100_000;
        let all = arrivals(42, 250.0, 5 * SECOND, COUNT);
        let gaps: Vec<f64> = std::iter::once(5 * SECOND)
            .chain(all.iter().copied())
            .zip(&all)
            .map(|(a, b)| (b - a) as f64 / 4e6)
            .collect();
        let mean = |of: &dyn Fn(usize) -> f64| (0..COUNT).map(of).sum::<f64>() / COUNT as f64;
        assert!(gaps.iter().all(|gap| *gap > 0.0));
        assert!((mean(&|at| gaps[at]) - 1.0).abs() < 0.02);
        // An exponential distribution's second moment is twice the square of its mean, and its third six times the cube.
        assert!((mean(&|at| gaps[at].powi(2)) / 2.0 - 1.0).abs() < 0.05);
        assert!((mean(&|at| gaps[at].powi(3)) / 6.0 - 1.0).abs() < 0.15);
        // Neighbours have nothing to do with each other: the correlation's standard error is 0.003.
        let product = mean(&|at| gaps[at] * gaps[(at + 1) % COUNT]);
        assert!((product - 1.0).abs() < 0.015, "{product}");
    }

    #[test]
    fn a_million_a_second_are_a_million() {
        const COUNT: usize = 10_000_000;
        let (schedule, last) = (Schedule::new(42, 1e6, 0), AtomicI64::new(0));
        let end = (0..COUNT).fold(0, |_, _| schedule.take(&last));
        // The mean of so many has a standard error of 0.03 %.
        let rate = COUNT as f64 / (end as f64 / 1e9);
        assert!((rate / 1e6 - 1.0).abs() < 1e-3, "{rate}");
    }

    #[test]
    fn arrivals_follow_rates_that_change() {
        use serde_json::json;
        for value in [
            json!({"0": 2000, "10": 20_000, "20": 0, "25": 5000}),
            json!({"0": 0, "10": 20_000, "25": 1000, "shape": "ramps"}),
        ] {
            let rates = Rates::parse(&value).expect("rates");
            let schedule = Schedule::varying(5, rates.clone(), 7 * SECOND, 2 * SECOND);
            let (last, mut counts) = (AtomicI64::new(0), [0u32; 32]);
            loop {
                let secs = (schedule.take(&last) - 7 * SECOND) / SECOND;
                let Some(count) = counts.get_mut(secs as usize) else { break };
                *count += 1;
            }
            for (second, count) in counts.into_iter().enumerate() {
                // Warming up at the first rate.
                let expected = rates.expected(second as f64 - 2.0, second as f64 - 1.0);
                let stray = (f64::from(count) - expected).abs();
                assert!(stray <= 4.5 * expected.sqrt(), "{value}: second {second}: {count} of {expected}");
            }
        }
        // Nothing comes after a rate that stays 0.
        let rates = Rates::parse(&json!({"0": 10, "1": 0})).expect("rates");
        let (schedule, last) = (Schedule::varying(5, rates, 0, 0), AtomicI64::new(0));
        assert!((0..100).map(|_| schedule.take(&last)).filter(|due| *due < SECOND).count() < 40);
        assert_eq!(schedule.take(&last), i64::MAX);
        assert_eq!(schedule.rest_until(&last, 100 * SECOND), 0);
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(arrivals(1, 1000.0, 0, 100), arrivals(1, 1000.0, 0, 100));
        assert_ne!(arrivals(1, 1000.0, 0, 100), arrivals(2, 1000.0, 0, 100));
        let shifted: Vec<i64> = arrivals(1, 1000.0, 0, 100).iter().map(|due| due + 7 * SECOND).collect();
        assert_eq!(arrivals(1, 1000.0, 7 * SECOND, 100), shifted);
    }

    #[test]
    fn each_arrival_is_taken_once_by_whoever_comes() {
        let (schedule, last) = (Schedule::new(3, 1e5, 0), AtomicI64::new(0));
        let mut taken: Vec<i64> = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..10_000).map(|_| schedule.take(&last)).collect::<Vec<_>>()))
                .collect();
            takers.into_iter().flat_map(|taker| taker.join().expect("it takes")).collect()
        });
        taken.sort_unstable();
        assert_eq!(taken, arrivals(3, 1e5, 0, 40_000));
    }

    #[test]
    fn the_rest_is_what_is_due_before_the_end() {
        let (schedule, last) = (Schedule::new(1, 100.0, SECOND), AtomicI64::new(0));
        schedule.take(&last);
        let rest = schedule.rest_until(&last, 10 * SECOND);
        assert_eq!(rest, schedule.rest_until(&last, 10 * SECOND), "nothing is taken");
        let mut count = 0;
        while schedule.take(&last) < 10 * SECOND {
            count += 1;
        }
        assert_eq!(rest, count);
        let many = Schedule::new(1, 1e6, 0).rest_until(&AtomicI64::new(0), 100 * SECOND);
        assert!((many as f64 / 1e8 - 1.0).abs() < 0.01, "{many}");
    }

    fn rates(value: Value) -> Rates {
        Rates::parse(&value).expect("rates")
    }

    #[test]
    fn steps_and_ramps() {
        let steps = rates(json!({"30": 2000, "0": 500, "60": 0}));
        assert_eq!(
            [-5.0, 0.0, 29.9, 30.0, 59.0, 60.0, 1e6].map(|at| steps.at(at)),
            [500.0, 500.0, 500.0, 2000.0, 2000.0, 0.0, 0.0]
        );
        assert_eq!(steps.expected(-2.0, 61.0), 32.0 * 500.0 + 30.0 * 2000.0);
        assert_eq!(steps.after(59.0, 4000.0), f64::INFINITY);
        assert_eq!(steps.text(), "0 s: 500, 30 s: 2000, 60 s: 0, steps");
        let ramps = rates(json!({"0": 0, "10": 100, "20": 0, "shape": "ramps"}));
        assert_eq!([0.0, 5.0, 10.0, 15.0, 25.0].map(|at| ramps.at(at)), [0.0, 50.0, 100.0, 50.0, 0.0]);
        assert_eq!(ramps.expected(0.0, 100.0), 1000.0);
        assert_eq!(ramps.expected(2.5, 7.5), 250.0);
        assert!((ramps.after(0.0, 500.0) - 10.0).abs() < 1e-12);
        assert_eq!(ramps.corners(15.0), [(0.0, 0.0), (10.0, 100.0), (10.0, 100.0), (15.0, 50.0)]);
        assert_eq!(Rates::try_from(Value::from(ramps.clone())), Ok(ramps));
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for (value, message) in [
            (json!([1]), "rates must be a JSON object"),
            (json!({}), "rates must begin at second 0"),
            (json!({"1": 5}), "rates must begin at second 0"),
            (json!({"0": 5, "now": 5}), "\"now\" is no number of seconds"),
            (json!({"0": 5, "-1": 5}), "\"-1\" is no number of seconds"),
            (json!({"0": 5, "0.0": 5}), "rates has second 0 twice"),
            (json!({"0": "many"}), "the rate at 0 s must be a number between 0 and 1000000, not \"many\""),
            (json!({"0": 2e6}), "the rate at 0 s must be a number between 0 and 1000000, not 2000000.0"),
            (json!({"0": 5, "shape": "waves"}), "unrecognized shape of rates: \"waves\""),
        ] {
            assert_eq!(Rates::parse(&value).expect_err("refused").message, message);
        }
    }

    proptest! {
        #[test]
        fn the_inverse_is_one(
            points in proptest::collection::vec((0.01..50.0f64, 0.0..5000.0f64), 1..8),
            first in 0.1..1000.0f64,
            has_ramps: bool,
            from in -20.0..100.0f64,
            count in 0.0..5000.0f64,
        ) {
            let mut at = 0.0;
            let mut all = vec![(0.0, first)];
            for (gap, rate) in points {
                at += gap;
                all.push((at, rate));
            }
            let rates = Rates { points: all, has_ramps };
            let after = rates.after(from, count);
            prop_assert!(after >= from);
            if after.is_finite() {
                prop_assert!((rates.expected(from, after) - count).abs() < 1e-6 * count.max(1.0));
            } else {
                prop_assert!(rates.expected(from, 1e6) < count + 1e-6);
            }
        }
    }
}
