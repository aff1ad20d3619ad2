//! Throughput over time, as a point for each interval: lines would join what is not joined. Of an open loop, what was
//! offered, what became of it, and how far the clients were behind; of a cluster, its nodes side by side.

use bench_base::number::{finite, fixed, mean, tps};
use bench_results::{Document, NodeSamples, Samples, Series};
use bench_stats::robust::median;

use crate::downsample::range;
use crate::plot::axis::Axis;
use crate::plot::chart::{BLUE, CURVES, Chart, GREEN, GREY, ORANGE, PINK, Panel, RED, TEAL};
use crate::plot::marks::Marks;
use crate::plot::times::{ABOVE, Curve, Times, axis_from_zero, legend, per_second, values};

/// Few points can be larger.
const FEW: usize = 120;

/// The chart; `None` without any interval.
pub fn throughput(document: &Document) -> Option<Chart> {
    let samples = &document.samples;
    let times = Times::of(samples)?;
    let curve = times.curve(BLUE, "tps", &samples.tps, |value| tps(Some(value)));
    let (low, high) = range(&curve.columns)?;
    let median = median(&samples.tps.iter().copied().filter_map(finite).collect::<Vec<_>>())?;
    let radius = if curve.columns.len() <= FEW { 7 } else { 4 };
    let (mut ranges, mut means) = (Vec::new(), Vec::new());
    for (column, envelope) in curve.columns.iter().enumerate() {
        let (x, Some(envelope)) = (times.middle(column), envelope) else { continue };
        if times.per_column > 1 {
            ranges.push(BLUE.line(vec![(x, envelope.low), (x, envelope.high)], 2).faint(0.35));
        }
        means.push(BLUE.dot((x, envelope.mean), radius));
    }
    let marks = Marks::of(document, &times.axis);
    let panel = marks
        .panel(axis_from_zero([&curve], 6)?)
        .with([GREEN.line(times.level(median), 2)])
        .with(ranges)
        .with(means);
    let point = if times.per_column > 1 { "mean and range" } else { "interval" };
    Some(Chart {
        id: "plot-tps",
        title: "Throughput, tps",
        label: format!("Throughput over time, from {} to {} tps", tps(Some(low)), tps(Some(high))),
        caption: format!(
            "Transactions per second of each interval.{}",
            times.note("the range, as a line, and the mean, as a point,")
        ),
        legend: marks
            .legend(vec![(BLUE, point.to_owned()), (GREEN, format!("median {}", tps(Some(median))))]),
        plot: times.plot(vec![marks.numbered(panel, &times.axis)], |columns| values([&curve], &columns)),
    })
}

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

/// Throughput and latency by node; `None` where clients ran on one node only.
pub fn by_node(document: &Document) -> Option<Chart> {
    let nodes = slowest_first(&document.node_samples);
    if nodes.len() < 2 {
        return None;
    }
    // All nodes have measured at the same time; one that ended early has the shorter curve.
    let longest = nodes.iter().max_by_key(|node| node.elapsed.len())?;
    let samples =
        Samples { elapsed: longest.elapsed.clone(), secs: longest.secs.clone(), ..Samples::default() };
    let times = Times::of(&samples)?;
    let name = |node: &NodeSamples| document.node_name(node.node).unwrap_or_default();
    let inks = || CURVES.into_iter().chain(std::iter::repeat(GREY)).zip(&nodes);
    let rates: Vec<Curve> = inks()
        .map(|(ink, node)| {
            times.curve(ink, &format!("{} tps", name(node)), &node.tps, |rate| tps(Some(rate)))
        })
        .collect();
    let latencies: Vec<Curve> = inks()
        .map(|(ink, node)| times.curve(ink, &format!("{} p99", name(node)), &node.latency_p99_ms, with_ms))
        .collect();
    // Those of the fast nodes beneath those that are looked for.
    let panel = |title, curves: &[Curve]| {
        let lines = curves.iter().rev().flat_map(|curve| times.line(curve));
        Some(Panel::new(axis_from_zero(curves, 4)?).titled(title).with(lines))
    };
    let mut panels = vec![panel("tps", &rates)?];
    panels.extend(panel("p99, ms", &latencies));
    let mut legend: Vec<_> = inks().take(CURVES.len()).map(|(ink, node)| (ink, name(node))).collect();
    if nodes.len() > CURVES.len() {
        legend.push((GREY, format!("{} others", nodes.len() - CURVES.len())));
    }
    let named =
        || rates.iter().zip(&latencies).take(CURVES.len()).flat_map(|(rate, latency)| [rate, latency]);
    Some(Chart {
        id: "plot-nodes",
        title: "By node",
        label: format!("Throughput and latency over time, of {} nodes", nodes.len()),
        caption: format!(
            "Transactions per second and 99th percentile of each node's own clients, the slowest node first.{}",
            times.note("the mean, and paler the range,")
        ),
        legend,
        plot: times.plot(panels, |columns| values(named(), &columns)),
    })
}

fn with_ms(ms: f64) -> String {
    format!("{} ms", fixed(Some(ms), 3))
}

/// The nodes by their mean throughput: whoever looks for the node that holds up the others finds it among the first.
fn slowest_first(nodes: &[NodeSamples]) -> Vec<&NodeSamples> {
    let mean = |node: &NodeSamples| mean(&node.tps).unwrap_or_default();
    let mut sorted: Vec<&NodeSamples> = nodes.iter().filter(|node| !node.elapsed.is_empty()).collect();
    sorted.sort_by(|one, other| mean(one).total_cmp(&mean(other)));
    sorted
}

#[cfg(test)]
mod tests {
    use bench_results::{Node, Samples};

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

    fn document(nodes: usize) -> Document {
        let node = |place: usize| Node {
            node: place as i32 + 1,
            name: format!("db{place}:5432"),
            ..Node::default()
        };
        let curve = |place: usize| NodeSamples {
            node: place as i32 + 1,
            elapsed: (1..=10).map(|end| Some(f64::from(end))).collect(),
            secs: vec![Some(1.0); 10],
            tps: vec![Some(1000.0 - place as f64); 10],
            latency_p99_ms: vec![Some(2.5); 10],
        };
        Document {
            nodes: (0..nodes).map(node).collect(),
            node_samples: (0..nodes).map(curve).collect(),
            ..Document::default()
        }
    }

    #[test]
    fn each_node_has_its_curve_the_slowest_first() {
        let chart = by_node(&document(3)).expect("a plot");
        let names: Vec<&str> = chart.legend.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["db2:5432", "db1:5432", "db0:5432"]);
        let svg = crate::plot::svg::svg(&chart);
        assert!(svg.contains("db2:5432 tps: 998"), "{svg}");
        assert!(svg.contains("db0:5432 p99: 2.500 ms"), "{svg}");
    }

    #[test]
    fn many_nodes_share_a_colour_and_one_has_no_plot() {
        let many = by_node(&document(50)).expect("a plot");
        assert_eq!(many.legend.last().expect("a line").1, "42 others");
        assert!(by_node(&document(1)).is_none());
        assert!(by_node(&Document::default()).is_none());
    }
}
