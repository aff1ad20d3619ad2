//! An open loop over time: what was offered and what became of it, and how far the clients were behind.

use bench_base::number::{finite, fixed, tps};
use bench_results::{Document, Series};

use super::Chart;
use super::axis::Axis;
use super::marks::Marks;
use super::palette::{BLUE, ORANGE, PINK, RED, TEAL};
use super::times::{ABOVE, Curve, Times, axis_from_zero, legend, per_second, values};
use crate::downsample::range;

fn with_tps(rate: f64) -> String {
    format!("{} tps", tps(Some(rate)))
}

/// The offered rate with what was achieved, skipped and late; `None` of a closed loop.
pub fn rates(document: &Document) -> Option<Chart> {
    let rate = finite(document.run.rate)?;
    let changing = document.run.changing_rates();
    let samples = &document.samples;
    let times = Times::of(samples)?;
    let offered = match &changing {
        Some(rates) => rates.corners(times.axis.high),
        None => times.level(rate),
    };
    let mut curves = vec![times.curve(BLUE, "achieved", &samples.tps, with_tps)];
    let lost = [(RED, "skipped", &samples.skipped), (ORANGE, "late", &samples.late)]
        .map(|(ink, name, counts)| times.curve(ink, name, &per_second(counts, &samples.secs, 1.0), with_tps));
    let highest = |curve: &Curve| range(&curve.columns).map(|(_, high)| high);
    // What never happened needs no line on the axis.
    curves.extend(lost.into_iter().filter(|curve| highest(curve).is_some_and(|high| high > 0.0)));
    let rates = curves.iter().filter_map(highest).chain(offered.iter().map(|(_, rate)| *rate));
    let y = Axis::from_zero(rates.fold(rate, f64::max) * ABOVE, 6);
    let marks = Marks::of(document, &times.axis);
    let panel = marks
        .panel(y)
        .with(curves.iter().rev().flat_map(|curve| times.line(curve)))
        .with([TEAL.line(offered, 4)]);
    let mean = if changing.is_some() { " on average" } else { "" };
    let mut names = vec![(TEAL, "offered".to_owned())];
    names.extend(legend(&curves));
    Some(Chart {
        id: "plot-rate",
        title: "Offered and achieved, tps",
        label: format!("Offered and achieved rate over time, {} tps offered{mean}", tps(Some(rate))),
        caption: format!(
            "Transactions per second of each interval.{}",
            times.note("the range, as a band, and the mean, as a line,")
        ),
        legend: marks.legend(names),
        plot: times.plot(vec![panel], |columns| values(&curves, &columns)),
    })
}

/// Lag and backlog; `None` of a closed loop, and where no lag is known.
pub fn lag(document: &Document) -> Option<Chart> {
    let rate = finite(document.run.rate)?;
    let samples = &document.samples;
    let times = Times::of(samples)?;
    let curves = [
        times.curve(BLUE, "lag", &samples.lag_avg_ms, |ms| format!("{} ms", fixed(Some(ms), 3))),
        times.curve(PINK, "backlog", &backlog(document, rate), |count| fixed(Some(count), 0)),
    ];
    let greatest = range(&curves[1].columns)?.1;
    let marks = Marks::of(document, &times.axis);
    let panel = |title, curve: &Curve| {
        Some(marks.panel(axis_from_zero([curve], 4)?).titled(title).with(times.area(curve)))
    };
    let panels = vec![panel("lag, ms", &curves[0])?, panel("backlog", &curves[1])?];
    Some(Chart {
        id: "plot-lag",
        title: "Lag and backlog",
        label: format!("Lag and backlog over time, at most {} transactions", fixed(Some(greatest), 0)),
        caption: format!(
            "How late transactions started, on average, and how many were due and not started: rate × lag, by Little's law.{}",
            times.note("the mean, and paler the highest,")
        ),
        legend: marks.legend(legend(&curves)),
        plot: times.plot(panels, |columns| values(&curves, &columns)),
    })
}

/// Transactions that are due and not started: those that became due during the lag (Little, "A proof for the queuing
/// formula L = λW", Operations Research 9, 1961). While none ends, no lag is known, and the backlog grows by what becomes
/// due.
fn backlog(document: &Document, rate: f64) -> Series {
    let samples = &document.samples;
    let changing = document.run.changing_rates();
    let mut last = 0.0;
    let intervals = samples.lag_avg_ms.iter().enumerate();
    let known = intervals.map(|(index, lag)| {
        let of = |series: &Series| series.get(index).copied().flatten().and_then(|value| finite(Some(value)));
        // Of one that changes: that at the interval's end, where what waits has become due.
        let end = of(&samples.elapsed).filter(|end| *end > 0.0);
        let rate = changing.as_ref().zip(end).map_or(rate, |(rates, end)| rates.at(end));
        last = match finite(*lag) {
            Some(lag) => rate * lag.max(0.0) / 1_000.0,
            None => (last + rate * of(&samples.secs).unwrap_or_default()
                - of(&samples.skipped).unwrap_or_default())
            .max(0.0),
        };
        Some(last)
    });
    known.collect()
}

#[cfg(test)]
mod tests {
    use bench_results::Samples;

    use super::*;

    #[test]
    fn the_backlog_is_rate_times_lag_and_grows_during_a_stall() {
        let samples = Samples {
            elapsed: [1.0, 2.0, 3.0, 4.0].map(Some).to_vec(),
            secs: vec![Some(1.0); 4],
            skipped: [0.0, 0.0, 30.0, 0.0].map(Some).to_vec(),
            lag_avg_ms: vec![Some(2.0), None, None, Some(1_500.0)],
            ..Samples::default()
        };
        let document = Document { samples, ..Document::default() };
        assert_eq!(backlog(&document, 100.0), [0.2, 100.2, 170.2, 150.0].map(Some));
    }
}
