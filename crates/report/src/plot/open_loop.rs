//! An open loop over time: what was offered and what became of it, and how far the clients were behind.

use bench_base::number::{finite, fixed, tps};
use bench_results::{Document, Series};
use plotters::prelude::*;

use super::Figure;
use super::axis::Axis;
use super::frame::{Chart, Panel, svg};
use super::hover::{value, with_values};
use super::lines::draw_line;
use super::marks::Marks;
use super::palette::{BLUE, Ink, ORANGE, PINK, RED, TEAL};
use super::steps::draw_area;
use super::times::Times;
use crate::downsample::Envelope;

/// The offered rate with what was achieved, skipped and late; `None` of a closed loop.
pub fn rates(document: &Document) -> Option<Figure> {
    let rate = finite(document.run.rate)?;
    let changing = document.run.changing_rates();
    let samples = &document.samples;
    let times = Times::of(samples)?;
    let lines: Vec<(Ink, &str, Vec<Option<Envelope>>)> = [
        (BLUE, "achieved", samples.tps.clone()),
        (RED, "skipped", per_second(&samples.skipped, &samples.secs)),
        (ORANGE, "late", per_second(&samples.late, &samples.secs)),
    ]
    .into_iter()
    .map(|(ink, name, series)| (ink, name, times.thinned(&series)))
    // What never happened needs no line on the axis.
    .filter(|(_, name, thinned)| *name == "achieved" || thinned.iter().flatten().any(|of| of.high > 0.0))
    .collect();
    let high = lines.iter().flat_map(|(_, _, thinned)| thinned.iter().flatten()).map(|of| of.high);
    let offered = changing.iter().flat_map(|rates| rates.corners(times.axis.high)).map(|(_, rate)| rate);
    let y = Axis::from_zero(high.chain(offered).fold(rate, f64::max) * 1.08, 6);
    let marks = Marks::of(document, &times.axis);
    let draw = |chart: &mut Chart| {
        marks.draw(chart)?;
        lines.iter().rev().try_for_each(|(ink, _, thinned)| draw_line(chart, &times, *ink, thinned))?;
        let offered = match &changing {
            Some(rates) => rates.corners(times.axis.high),
            None => vec![(times.axis.low, rate), (times.axis.high, rate)],
        };
        chart.draw_series([PathElement::new(offered, TEAL.color().stroke_width(4))])?;
        Ok(())
    };
    let mean = if changing.is_some() { " on average" } else { "" };
    let label = format!("Offered and achieved rate over time, {} tps offered{mean}", tps(Some(rate)));
    let svg = svg(&label, &times.axis, false, &[Panel { title: None, y, draw: &draw }])?;
    let svg = with_values(&svg, &times, &|columns| {
        let named = lines.iter();
        let shown = |value: f64| format!("{} tps", tps(Some(value)));
        named.filter_map(|(_, name, thinned)| value(name, thinned, columns.clone(), shown)).collect()
    });
    let mut legend = vec![(TEAL, "offered".to_owned())];
    legend.extend(lines.iter().map(|(ink, name, _)| (*ink, (*name).to_owned())));
    legend.extend(marks.legend());
    let caption = format!(
        "Transactions per second of each interval.{}",
        times.note("the range, as a band, and the mean, as a line,")
    );
    Some(Figure { id: "plot-rate", title: "Offered and achieved, tps", caption, legend, svg })
}

/// Lag and backlog; `None` of a closed loop, and where no lag is known.
pub fn lag(document: &Document) -> Option<Figure> {
    let rate = finite(document.run.rate)?;
    let samples = &document.samples;
    let times = Times::of(samples)?;
    let lag = times.thinned(&samples.lag_avg_ms);
    let backlog = times.thinned(&backlog(document, rate));
    let highest = |thinned: &[Option<Envelope>]| thinned.iter().flatten().map(|of| of.high).reduce(f64::max);
    let (longest, greatest) = (highest(&lag)?, highest(&backlog)?);
    let marks = Marks::of(document, &times.axis);
    let draw = |ink, thinned: &[Option<Envelope>], chart: &mut Chart| {
        marks.draw(chart)?;
        draw_area(chart, &times, ink, thinned)
    };
    let draw_lag = |chart: &mut Chart| draw(BLUE, &lag, chart);
    let draw_backlog = |chart: &mut Chart| draw(PINK, &backlog, chart);
    let panels = [
        Panel { title: Some("lag, ms"), y: Axis::from_zero(longest * 1.08, 4), draw: &draw_lag },
        Panel { title: Some("backlog"), y: Axis::from_zero(greatest * 1.08, 4), draw: &draw_backlog },
    ];
    let label = format!("Lag and backlog over time, at most {} transactions", fixed(Some(greatest), 0));
    let svg = svg(&label, &times.axis, false, &panels)?;
    let svg = with_values(&svg, &times, &|columns| {
        let lag = value("lag", &lag, columns.clone(), |ms| format!("{} ms", fixed(Some(ms), 3)));
        let backlog = value("backlog", &backlog, columns, |count| fixed(Some(count), 0));
        lag.into_iter().chain(backlog).collect()
    });
    let mut legend = vec![(BLUE, "lag".to_owned()), (PINK, "backlog".to_owned())];
    legend.extend(marks.legend());
    let caption = format!(
        "How late transactions started, on average, and how many were due and not started: rate × lag, by Little's law.{}",
        times.note("the mean, and paler the highest,")
    );
    Some(Figure { id: "plot-lag", title: "Lag and backlog", caption, legend, svg })
}

/// A count of each interval as a rate.
fn per_second(counts: &Series, secs: &Series) -> Series {
    let rates = counts.iter().enumerate().map(|(index, count)| {
        let secs = secs.get(index).copied().flatten().filter(|secs| *secs > 0.0)?;
        Some((*count)? / secs)
    });
    rates.collect()
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
