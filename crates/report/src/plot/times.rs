//! Where a run's intervals lie on the time axis, thinned to the columns of a plot.

use bench_base::number::{duration, finite};
use bench_results::Samples;

use super::axis::Axis;
use crate::downsample::{Envelope, PLOT_COLUMNS, columns, envelopes, per_column};

/// The columns of a plot over time.
pub struct Times {
    /// Begin and end of each, in seconds since measuring began.
    pub spans: Vec<(f64, f64)>,
    /// How many intervals a column has.
    pub per_column: usize,
    pub axis: Axis,
}

impl Times {
    /// The times of the measured intervals; `None` when there is none.
    pub fn of(samples: &Samples) -> Option<Times> {
        Times::in_columns(samples, PLOT_COLUMNS)
    }

    /// As [`Times::of`], in at most so many columns.
    pub fn in_columns(samples: &Samples, most: usize) -> Option<Times> {
        let intervals = samples.len();
        let mut ends = Vec::with_capacity(intervals);
        let mut begin = 0.0;
        for (index, elapsed) in samples.elapsed.iter().enumerate() {
            let secs = samples.secs.get(index).copied().flatten();
            // One without an end has its length, or is taken for a second long; time does not run backwards.
            let end = finite(*elapsed).unwrap_or(begin + finite(secs).unwrap_or(1.0)).max(begin);
            ends.push(end);
            begin = end;
        }
        let per_column = per_column(intervals, most);
        let begin_of = |interval: usize| if interval == 0 { 0.0 } else { ends[interval - 1] };
        let spans = columns(intervals, per_column)
            .map(|range| (begin_of(range.start), ends[range.end - 1]))
            .collect();
        Some(Times { spans, per_column, axis: Axis::of_time(*ends.last()?) })
    }

    /// A series thinned to the columns; one that is shorter than the others has no value in the rest.
    pub fn thinned(&self, series: &[Option<f64>]) -> Vec<Option<Envelope>> {
        let mut thinned = envelopes(series, self.per_column);
        thinned.resize(self.spans.len(), None);
        thinned
    }

    /// The middle of a column.
    pub fn middle(&self, column: usize) -> f64 {
        let (begin, end) = self.spans[column];
        (begin + end) / 2.0
    }

    /// A sentence on what a column shows of its intervals, where it has more than one.
    pub fn note(&self, shown: &str) -> String {
        if self.per_column == 1 {
            return String::new();
        }
        let (begin, end) = self.spans[0];
        let length = duration(((end - begin) * 10.0).round() / 10.0);
        format!(" Each column shows {shown} of {} intervals ({length}).", self.per_column)
    }
}
