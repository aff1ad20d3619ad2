//! The figures of a progress line: of all samples since the previous line.

/// What a sample, or several together, had. Zero where nothing was committed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampleFigures {
    pub tps: f64,
    pub latency_avg_ms: f64,
    pub latency_stddev_ms: f64,
    pub lag_avg_ms: f64,
}

/// The samples since the last line, added up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    secs: f64,
    transactions: f64,
    /// Sums over the transactions, in milliseconds and their squares.
    latency: f64,
    latency_squares: f64,
    lag: f64,
}

impl Window {
    /// Adds a sample that lasted `secs` seconds.
    pub fn add(&mut self, secs: f64, sample: SampleFigures) {
        let transactions = sample.tps * secs;
        self.secs += secs;
        self.transactions += transactions;
        self.latency += sample.latency_avg_ms * transactions;
        self.latency_squares +=
            (sample.latency_avg_ms.powi(2) + sample.latency_stddev_ms.powi(2)) * transactions;
        self.lag += sample.lag_avg_ms * transactions;
    }

    /// The figures of all samples together; the next window is empty.
    pub fn take(&mut self) -> SampleFigures {
        let Self { secs, transactions, latency, latency_squares, lag } = std::mem::take(self);
        if transactions <= 0.0 {
            return SampleFigures::default();
        }
        let latency_avg_ms = latency / transactions;
        SampleFigures {
            tps: transactions / secs,
            latency_avg_ms,
            latency_stddev_ms: (latency_squares / transactions - latency_avg_ms.powi(2)).max(0.0).sqrt(),
            lag_avg_ms: lag / transactions,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half a second with one transaction of 2 ms, and one and a half with 3, of 4, 6 and 8 ms.
    #[test]
    fn figures_are_those_of_all_transactions() {
        let mut window = Window::default();
        window.add(
            0.5,
            SampleFigures { tps: 2.0, latency_avg_ms: 2.0, latency_stddev_ms: 0.0, lag_avg_ms: 1.0 },
        );
        let stddev = (8.0_f64 / 3.0).sqrt();
        window.add(
            1.5,
            SampleFigures { tps: 2.0, latency_avg_ms: 6.0, latency_stddev_ms: stddev, lag_avg_ms: 5.0 },
        );
        let figures = window.take();
        assert_eq!((figures.tps, figures.latency_avg_ms, figures.lag_avg_ms), (2.0, 5.0, 4.0));
        // Of 2, 4, 6 and 8.
        assert!((figures.latency_stddev_ms - 5.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(window.take(), SampleFigures::default());
    }

    #[test]
    fn a_stall_counts_with_its_length() {
        let mut window = Window::default();
        window.add(1.0, SampleFigures { tps: 100.0, latency_avg_ms: 1.0, ..SampleFigures::default() });
        window.add(4.0, SampleFigures::default());
        let figures = window.take();
        assert_eq!((figures.tps, figures.latency_avg_ms), (20.0, 1.0));
        window.add(1.0, SampleFigures::default());
        assert_eq!(window.take(), SampleFigures::default());
    }
}
