//! Axes: where they begin and end, and which round values are written at them.

use bench_base::number::compact;

/// How much of an axis a digit takes, at most.
const DIGIT: f64 = 0.018;

/// How much there is beside its end, of its length.
const BEYOND: f64 = 0.05;

/// More than the error of a place, in half pixels.
const ROUNDING: f64 = 1e-3;

/// The least end of an axis: from a lesser one no step could be taken.
const LEAST: f64 = 1e-300;

/// How values lie on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    Linear,
    /// Names at 1, 2, 3 …, each written over its place.
    Names,
    Logarithmic,
    /// Shares of all transactions on HdrHistogram's scale, the logarithm of 1/(1 − p).
    Percentiles,
}

impl Scale {
    /// Where a value lies.
    fn scaled(self, value: f64) -> f64 {
        match self {
            Scale::Linear | Scale::Names => value,
            Scale::Logarithmic => value.log10(),
            Scale::Percentiles => -(1.0 - value).log10(),
        }
    }
}

/// An axis. Its ends and ticks are scaled: those of a logarithmic one are logarithms.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub scale: Scale,
    pub low: f64,
    pub high: f64,
    /// Ascending, none outside.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    fn linear(low: f64, high: f64, ticks: Vec<(f64, String)>) -> Axis {
        Axis { scale: Scale::Linear, low, high, ticks }
    }

    /// From 0 to `high`, with at most about `count` round ticks.
    pub fn from_zero(high: f64, count: usize) -> Axis {
        let high = if high.is_finite() && high >= LEAST { high } else { 1.0 };
        let step = nice_step(high / count as f64, &[1.0, 2.0, 2.5, 5.0, 10.0]);
        let steps = (high / step + 1e-9) as u64;
        let ticks =
            (0..=steps).map(|i| (i as f64 * step).min(high)).map(|value| (value, compact(value, high)));
        Axis::linear(0.0, high, ticks.collect())
    }

    /// From 0 to 100 %.
    pub fn of_shares() -> Axis {
        let ticks = [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| (share, format!("{}%", share * 100.0)));
        Axis::linear(0.0, 1.0, ticks.to_vec())
    }

    /// Time from 0 to `end` seconds; ticks are whole seconds, minutes or hours where that is possible.
    pub fn of_time(end: f64) -> Axis {
        let end = if end.is_finite() && end >= LEAST { end } else { 1.0 };
        let (unit, name) = match end {
            end if end <= 300.0 => (1.0, "s"),
            end if end <= 3.0 * 3_600.0 => (60.0, "min"),
            _ => (3_600.0, "h"),
        };
        let multiples: &[f64] =
            if unit > 1.0 || end >= 60.0 { &[1.0, 1.5, 2.0, 3.0, 6.0, 10.0] } else { &[1.0, 2.0, 5.0, 10.0] };
        let step = nice_step(end / unit / 6.0, multiples).max(if unit > 1.0 { 1.0 } else { 0.0 });
        let step = if step > 1.0 { step.round() } else { step };
        let mut ticks = Vec::new();
        for i in 0..=(end / unit / step + 1e-9) as u64 {
            let value = i as f64 * step;
            let label = if i == 0 { "0".to_owned() } else { format!("{} {name}", compact(value, value)) };
            ticks.push(((value * unit).min(end), label));
        }
        Axis::linear(0.0, end, ticks)
    }

    /// Milliseconds on a logarithmic scale that has room for both values.
    pub fn of_latencies(low: f64, high: f64) -> Axis {
        Axis::logarithmic(low, high, latency)
    }

    /// Transactions per second on a logarithmic scale that has room for both values.
    pub fn of_rates(low: f64, high: f64) -> Axis {
        Axis::logarithmic(low, high, |rate| compact(rate, rate))
    }

    /// 1, 2 and 5 times the powers of ten as far as they are needed, each with its name.
    fn logarithmic(low: f64, high: f64, name: fn(f64) -> String) -> Axis {
        let steps = round_steps();
        let first = steps.iter().rposition(|(value, _)| *value <= low).unwrap_or(0);
        let last = steps.iter().position(|(value, _)| *value >= high).unwrap_or(steps.len() - 1);
        let last = last.max(first + 1).min(steps.len() - 1);
        let first = first.min(last - 1);
        let shown = &steps[first..=last];
        // Powers of ten alone where there are enough of them.
        let powers = shown.iter().filter(|(_, is_power)| *is_power).count();
        let ticks = shown.iter().filter(|(_, is_power)| *is_power || powers < 3);
        let ticks = ticks.map(|(value, _)| (value.log10(), name(*value))).collect();
        let (low, high) = (shown[0].0.log10(), shown[shown.len() - 1].0.log10());
        Axis { scale: Scale::Logarithmic, low, high, ticks }
    }

    /// Shares of all transactions up to the last of `count`.
    pub fn of_percentiles(count: u64) -> Axis {
        let scale = Scale::Percentiles;
        let high = scale.scaled(count as f64 / (count as f64 + 1.0));
        let mut ticks = vec![(0.0, "0%".to_owned()), (scale.scaled(0.5), "50%".to_owned())];
        for nines in 1..=9 {
            let digits = "9".repeat(nines);
            let (whole, fraction) = if nines == 1 { ("90", "") } else { digits.split_at(2) };
            let point = if fraction.is_empty() { "" } else { "." };
            ticks.push((nines as f64, format!("{whole}{point}{fraction}%")));
        }
        ticks.retain(|(position, _)| *position <= high);
        // A great many transactions have more percentiles than room for their names.
        keep_apart(&mut ticks, high);
        Axis { scale, low: 0.0, high, ticks }
    }

    /// Numbers of clients from 0 to the greatest of the rungs, which are ascending, with a tick at each.
    pub fn of_clients(rungs: &[u32]) -> Axis {
        let high = rungs.last().copied().unwrap_or(0).max(1).into();
        let mut ticks = vec![(0.0, "0".to_owned())];
        ticks.extend(rungs.iter().filter(|rung| **rung > 0).map(|rung| (f64::from(*rung), rung.to_string())));
        keep_apart(&mut ticks, high);
        Axis::linear(0.0, high, ticks)
    }

    /// Ratios on a logarithmic scale that has room for both values, with some beside them.
    pub fn of_ratios(low: f64, high: f64) -> Axis {
        let known = |ratio: f64| if ratio.is_nan() { 1.0 } else { ratio };
        let (low, high) = (known(low).clamp(1e-3, 1.0), known(high).clamp(1.0, 1e3));
        let room = ((high / low).log10() * 0.06).max(1e-3);
        let (from, to) = (low.log10() - room, high.log10() + room);
        let (low, high) = (10f64.powf(from), 10f64.powf(to));
        // Within a factor of three the scale looks like a linear one.
        let values: Vec<f64> = if high / low < 3.0 {
            let step = nice_step((high - low) / 6.0, &[1.0, 2.0, 5.0, 10.0]);
            (0..=((high - low) / step) as u64 + 1).map(|i| ((low / step).ceil() + i as f64) * step).collect()
        } else {
            let wide = high / low > 100.0;
            (-4..=3)
                .flat_map(|power| [1.0, 2.0, 5.0].map(|digit| (digit, digit * 10f64.powi(power))))
                .filter_map(|(digit, value)| (!wide || digit == 1.0).then_some(value))
                .collect()
        };
        let inside = values.into_iter().filter(|value| (from..=to).contains(&value.log10()));
        let ticks = inside.map(|value| (value.log10(), compact(value, 1.0))).collect();
        Axis { scale: Scale::Logarithmic, low: from, high: to, ticks }
    }

    /// Names at 1, 2, 3 …
    pub fn of_names(names: impl IntoIterator<Item = String>) -> Axis {
        let ticks: Vec<_> = (1..).map(f64::from).zip(names).collect();
        Axis { scale: Scale::Names, low: 0.5, high: ticks.len().max(1) as f64 + 0.5, ticks }
    }

    /// From a value of at most 0 to one of at least 0, with at most about `count` round ticks.
    pub fn around_zero(low: f64, high: f64, count: usize) -> Axis {
        let known = |end: f64| if end.is_finite() { end } else { 0.0 };
        let (low, high) = (known(low).min(0.0), known(high).max(0.0));
        let (low, high) = if high - low >= LEAST { (low, high) } else { (0.0, 1.0) };
        let step = nice_step((high - low) / count as f64, &[1.0, 2.0, 5.0, 10.0]);
        let steps = (low / step).ceil() as i64..=(high / step).floor() as i64;
        let ticks = steps.map(|i| i as f64 * step).map(|value| {
            let sign = if value < 0.0 { "\u{2212}" } else { "" };
            (value, format!("{sign}{}", compact(value.abs(), high.max(-low))))
        });
        Axis::linear(low, high, ticks.collect())
    }

    /// Whether a value has a place: 0 has none on a logarithmic axis.
    pub fn has(&self, value: f64) -> bool {
        self.scale.scaled(value).is_finite()
    }

    /// Where a value lies between the places of both ends. One past an end is drawn at the end.
    pub fn place(&self, value: f64, low_at: i32, high_at: i32) -> i32 {
        self.place_scaled(self.scale.scaled(value), low_at, high_at)
    }

    /// As [`Axis::place`], for a value that is already scaled, as ticks are.
    pub fn place_scaled(&self, value: f64, low_at: i32, high_at: i32) -> i32 {
        let share = (value.clamp(self.low, self.high) - self.low) / (self.high - self.low);
        let length = f64::from(high_at - low_at) * share;
        // What rounding took from a whole number is put back.
        low_at + (length + ROUNDING.copysign(length)).trunc() as i32
    }

    /// The value at a share of the axis's length.
    pub fn value_at(&self, share: f64) -> f64 {
        let value = self.low + (self.high - self.low) * share;
        match self.scale {
            Scale::Linear | Scale::Names => value,
            Scale::Logarithmic => 10f64.powf(value),
            Scale::Percentiles => 1.0 - 10f64.powf(-value),
        }
    }
}

/// Takes the names from ticks of an axis from 0 to `high` that have no room beside those before them.
fn keep_apart(ticks: &mut [(f64, String)], high: f64) {
    let half = |label: &str| high * DIGIT * label.len() as f64 / 2.0;
    let mut free_from = 0.0;
    for (position, label) in ticks.iter_mut().skip(1) {
        if *position - half(label) < free_from || *position + half(label) > high * (1.0 + BEYOND) {
            label.clear();
        } else {
            free_from = *position + half(label) + high * DIGIT;
        }
    }
    let is_first_apart = ticks
        .get(1)
        .is_none_or(|(position, label)| half(&ticks[0].1) + high * DIGIT < *position - half(label));
    if !is_first_apart {
        ticks[0].1.clear();
    }
}

/// 1, 2 and 5 times the powers of ten, from a nanosecond to more than a day in ms, and whether it is a power itself.
fn round_steps() -> Vec<(f64, bool)> {
    let steps =
        (-6..=9).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| (digit * 10f64.powi(power), digit == 1.0)));
    steps.collect()
}

/// A round latency with its unit.
fn latency(ms: f64) -> String {
    match ms {
        ms if ms >= 1_000.0 => format!("{} s", compact(ms / 1_000.0, 1.0)),
        ms if ms >= 1.0 => format!("{} ms", compact(ms, 1.0)),
        ms if ms >= 0.001 => format!("{} µs", compact(ms * 1e3, 1.0)),
        ms => format!("{} ns", compact(ms * 1e6, 1.0)),
    }
}

/// The least of the multiples of a power of ten that is not below `least`.
fn nice_step(least: f64, multiples: &[f64]) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let multiple = multiples.iter().find(|multiple| **multiple * power >= least * (1.0 - 1e-9));
    multiple.copied().unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn values_are_round() {
        assert_eq!(labels(&Axis::from_zero(1_234.0, 5)), ["0", "250", "500", "750", "1,000"]);
        assert_eq!(labels(&Axis::from_zero(0.0, 4)), ["0", "0.25", "0.5", "0.75", "1"]);
        assert_eq!(labels(&Axis::from_zero(23_456.0, 5)), ["0", "5k", "10k", "15k", "20k"]);
        assert_eq!(labels(&Axis::of_time(60.0)), ["0", "10 s", "20 s", "30 s", "40 s", "50 s", "60 s"]);
        assert_eq!(labels(&Axis::of_time(600.0)), ["0", "2 min", "4 min", "6 min", "8 min", "10 min"]);
        assert_eq!(labels(&Axis::of_time(28_800.0)), ["0", "2 h", "4 h", "6 h", "8 h"]);
        assert_eq!(labels(&Axis::of_latencies(0.3, 700.0)), ["1 ms", "10 ms", "100 ms", "1 s"]);
        assert_eq!(labels(&Axis::of_rates(130.0, 45_000.0)), ["100", "1,000", "10k"]);
        assert_eq!(labels(&Axis::of_latencies(3.0, 4.0)), ["2 ms", "5 ms"]);
        assert_eq!(labels(&Axis::of_percentiles(20_000)), ["0%", "50%", "90%", "99%", "99.9%", "99.99%"]);
        assert_eq!(labels(&Axis::of_percentiles(1)), ["0%", "50%"]);
        let rungs = [16, 32, 64, 72, 86, 96, 128, 192, 256];
        let named = ["0", "16", "32", "64", "", "86", "", "128", "192", "256"];
        assert_eq!(labels(&Axis::of_clients(&rungs)), named, "as many as there is room for");
        assert_eq!(labels(&Axis::around_zero(-5.0, 12.0, 5)), ["\u{2212}5", "0", "5", "10"]);
        assert_eq!(labels(&Axis::of_ratios(0.98, 1.061)), ["0.98", "1", "1.02", "1.04", "1.06"]);
        assert_eq!(labels(&Axis::of_ratios(0.3, 1.2)), ["0.5", "1"]);
        assert_eq!(labels(&Axis::of_ratios(0.001, 1.2)), ["0.001", "0.01", "0.1", "1"]);
    }

    /// Whatever the figures are: a table may hold anything.
    #[test]
    fn axes_of_the_least_and_the_greatest_have_an_end() {
        for value in [0.0, 5e-324, 1e-310, 1e-300, 1e300, f64::MAX, f64::INFINITY, f64::NAN, -1.0] {
            for axis in [Axis::from_zero(value, 6), Axis::of_time(value), Axis::around_zero(-value, value, 6)]
            {
                assert!(axis.low < axis.high && (1..=17).contains(&axis.ticks.len()), "{value}: {axis:?}");
            }
            for (low, high) in [(value, value), (0.0, value), (value, 1.0)] {
                let axis = Axis::of_ratios(low, high);
                assert!(axis.low < axis.high && axis.ticks.len() <= 17, "{low} to {high}: {axis:?}");
            }
        }
    }

    #[test]
    fn values_are_between_the_places_of_the_ends() {
        let axis = Axis::of_latencies(1.0, 100.0);
        assert_eq!(
            [0.0, 1.0, 10.0, 100.0, 1e9].map(|ms| axis.place(ms, 500, 100)),
            [500, 500, 300, 100, 100]
        );
        assert!((axis.value_at(0.5) - 10.0).abs() < 1e-9 && axis.has(1e-9) && !axis.has(0.0));
        let axis = Axis::of_percentiles(999);
        assert_eq!([0.0, 0.9, 0.99, 1.0].map(|share| axis.place(share, 0, 300)), [0, 100, 200, 300]);
    }

    proptest! {
        #[test]
        fn ticks_are_few_ascending_and_inside(size in -9.0..12.0f64, ratio in 0.0..8.0f64, count in 0..u64::MAX) {
            let value = 10f64.powf(size);
            let axes = [
                Axis::from_zero(value, 5),
                Axis::of_time(value.min(1e7)),
                Axis::of_latencies(value, value * 10f64.powf(ratio)),
                Axis::of_rates(value, value * 10f64.powf(ratio)),
                Axis::of_percentiles(count),
                Axis::of_clients(&[count as u32 / 2, u32::MAX - 1]),
                Axis::of_names((0..count % 9).map(|number| number.to_string()).chain([String::new()])),
                Axis::around_zero(-value, value * ratio, 5),
                Axis::of_ratios(1.0 - ratio / 9.0, 1.0 + ratio / 100.0),
                Axis::of_ratios(1.0 / value, value),
            ];
            for axis in axes {
                prop_assert!(axis.low < axis.high, "{axis:?}");
                prop_assert!(axis.ticks.is_sorted_by(|a, b| a.0 < b.0), "{axis:?}");
                prop_assert!(axis.ticks.iter().all(|tick| axis.low <= tick.0 && tick.0 <= axis.high), "{axis:?}");
                prop_assert!((1..=17).contains(&axis.ticks.len()), "{axis:?}");
            }
        }
    }
}
