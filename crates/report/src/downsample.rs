//! Series of a long run made short enough to draw: neighbouring intervals become one column with the lowest, the
//! highest and the mean of their values.
//!
//! Showing every n-th interval would be shorter, and would hide the very dip that a report is read for.

use std::ops::Range;

/// How many columns a plot has at most: more than it has pixels on most desks, and enough for ten minutes by second.
pub const PLOT_COLUMNS: usize = 720;

/// What is known of the intervals of one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Envelope {
    pub low: f64,
    pub high: f64,
    pub mean: f64,
}

/// How many neighbouring intervals one column takes so that there are at most `columns` of them.
pub fn per_column(intervals: usize, columns: usize) -> usize {
    intervals.div_ceil(columns.max(1)).max(1)
}

/// The intervals of each column.
pub fn columns(intervals: usize, per_column: usize) -> impl Iterator<Item = Range<usize>> {
    let per_column = per_column.max(1);
    (0..intervals.div_ceil(per_column)).map(move |column| {
        let start = column * per_column;
        start..(start + per_column).min(intervals)
    })
}

/// A series thinned to its envelopes; `None` for a column without any value.
pub fn envelopes(series: &[Option<f64>], per_column: usize) -> Vec<Option<Envelope>> {
    columns(series.len(), per_column).map(|range| envelope(&series[range])).collect()
}

/// The envelope of some values; `None` without any.
pub fn envelope(values: &[Option<f64>]) -> Option<Envelope> {
    let finite = || values.iter().flatten().copied().filter(|value| value.is_finite());
    let count = finite().count();
    if count == 0 {
        return None;
    }
    let low = finite().fold(f64::INFINITY, f64::min);
    let high = finite().fold(f64::NEG_INFINITY, f64::max);
    // Each is divided before they are added up, lest the sum be infinite; rounding must not carry it outside.
    let mean = finite().map(|value| value / count as f64).sum::<f64>().clamp(low, high);
    Some(Envelope { low, high, mean })
}

/// The range of several columns, as it is over all of their values; `None` without any.
pub fn range(columns: &[Option<Envelope>]) -> Option<(f64, f64)> {
    let known = columns.iter().flatten().map(|envelope| (envelope.low, envelope.high));
    known.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn series() -> impl Strategy<Value = Vec<Option<f64>>> {
        proptest::collection::vec(
            proptest::option::weighted(0.8, prop_oneof![9 => -1e6..1e6f64, 1 => Just(f64::NAN)]),
            0..400,
        )
    }

    #[test]
    fn a_dip_of_one_interval_survives() {
        let mut series = vec![Some(100.0); 28_800];
        series[12_345] = Some(0.0);
        let per_column = per_column(series.len(), PLOT_COLUMNS);
        let thinned = envelopes(&series, per_column);
        assert_eq!(per_column, 40);
        assert!(thinned.len() <= PLOT_COLUMNS);
        let dip = thinned[12_345 / per_column].unwrap();
        assert_eq!((dip.low, dip.high), (0.0, 100.0));
        assert_eq!(thinned.iter().flatten().filter(|envelope| envelope.low < 100.0).count(), 1);
    }

    proptest! {
        #[test]
        fn every_value_is_in_its_envelope(series in series(), most in 1..100usize) {
            let per_column = per_column(series.len(), most);
            let thinned = envelopes(&series, per_column);
            prop_assert!(thinned.len() <= most);
            for (index, value) in series.iter().enumerate() {
                if let Some(value) = value.filter(|value| value.is_finite()) {
                    let envelope = thinned[index / per_column].expect("a column with a value");
                    prop_assert!(envelope.low <= value && value <= envelope.high);
                }
            }
        }

        #[test]
        fn lowest_and_highest_of_the_whole_are_kept(series in series(), most in 1..100usize) {
            let thinned = envelopes(&series, per_column(series.len(), most));
            let finite: Vec<f64> = series.iter().flatten().copied().filter(|value| value.is_finite()).collect();
            let lowest = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::min);
            let highest = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::max);
            let columns = || thinned.iter().flatten();
            prop_assert_eq!(lowest(&mut columns().map(|e| e.low)), lowest(&mut finite.iter().copied()));
            prop_assert_eq!(highest(&mut columns().map(|e| e.high)), highest(&mut finite.iter().copied()));
            for envelope in columns() {
                prop_assert!(envelope.low <= envelope.mean && envelope.mean <= envelope.high);
            }
        }

        #[test]
        fn columns_tile_the_intervals(intervals in 0..2_000usize, per_column in 0..50usize) {
            let all: Vec<usize> = columns(intervals, per_column).flatten().collect();
            prop_assert_eq!(all, (0..intervals).collect::<Vec<_>>());
        }

        #[test]
        fn a_short_series_stays_as_it_is(series in series()) {
            let thinned = envelopes(&series, per_column(series.len(), 400));
            prop_assert_eq!(thinned.len(), series.len());
            for (envelope, value) in thinned.iter().zip(&series) {
                let value = value.filter(|value| value.is_finite());
                prop_assert_eq!(envelope.map(|e| (e.low, e.mean, e.high)), value.map(|v| (v, v, v)));
            }
        }
    }
}
