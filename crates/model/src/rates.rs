//! A rate of transactions that changes over the time of a run: in steps, or linear between points.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use bench_base::error::{UserError, sqlstate};

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

    /// So many times as much at each time.
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

    /// When so many transactions are due after a time, on average: the inverse of the integral, by which arrivals of a Poisson
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
