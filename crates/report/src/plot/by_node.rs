//! The nodes of a Citus cluster side by side, over time: whether one of them falls behind, and when.

use bench_base::number::{finite, fixed, tps};
use bench_results::{Document, NodeSamples, Samples, Series};

use super::Figure;
use super::axis::Axis;
use super::frame::{Chart, Panel, svg};
use super::hover::{value, with_values};
use super::lines::draw_line;
use super::palette::{CURVES, GREY, Ink};
use super::times::Times;
use crate::downsample::Envelope;

/// A node's curve.
struct Curve {
    ink: Ink,
    name: String,
    thinned: Vec<Option<Envelope>>,
}

/// The plot of throughput and latency by node; `None` where clients ran on one node only.
pub fn figure(document: &Document) -> Option<Figure> {
    let nodes = slowest_first(&document.node_samples);
    if nodes.len() < 2 {
        return None;
    }
    // All nodes have measured at the same time; one that ended early has the shorter curve.
    let longest = nodes.iter().max_by_key(|node| node.elapsed.len())?;
    let samples =
        Samples { elapsed: longest.elapsed.clone(), secs: longest.secs.clone(), ..Samples::default() };
    let times = Times::of(&samples)?;
    let curves = |series: fn(&NodeSamples) -> &Series| -> Vec<Curve> {
        let curve = |(place, node): (usize, &&NodeSamples)| Curve {
            ink: CURVES.get(place).copied().unwrap_or(GREY),
            name: document.node_name(node.node).unwrap_or_default(),
            thinned: times.thinned(series(node)),
        };
        nodes.iter().enumerate().map(curve).collect()
    };
    let (rates, latencies) = (curves(|node| &node.tps), curves(|node| &node.latency_p99_ms));
    let (draw_rates, draw_latencies) = (
        |chart: &mut Chart| draw(chart, &times, &rates),
        |chart: &mut Chart| draw(chart, &times, &latencies),
    );
    let mut panels =
        vec![Panel { title: Some("tps"), y: Axis::from_zero(highest(&rates)? * 1.08, 4), draw: &draw_rates }];
    if let Some(longest) = highest(&latencies) {
        let y = Axis::from_zero(longest * 1.08, 4);
        panels.push(Panel { title: Some("p99, ms"), y, draw: &draw_latencies });
    }
    let label = format!("Throughput and latency over time, of {} nodes", nodes.len());
    let svg = svg(&label, &times.axis, false, &panels)?;
    let svg = with_values(&svg, &times, &|columns| {
        let rates = rates.iter().take(CURVES.len());
        let latencies = latencies.iter().take(CURVES.len());
        rates
            .zip(latencies)
            .flat_map(|(rate, latency)| {
                let tps =
                    value(&format!("{} tps", rate.name), &rate.thinned, columns.clone(), |v| tps(Some(v)));
                let ms = |ms| format!("{} ms", fixed(Some(ms), 3));
                let p99 = value(&format!("{} p99", latency.name), &latency.thinned, columns.clone(), ms);
                tps.into_iter().chain(p99)
            })
            .collect()
    });
    let mut legend: Vec<(Ink, String)> =
        rates.iter().take(CURVES.len()).map(|curve| (curve.ink, curve.name.clone())).collect();
    if let Some(others) = rates.len().checked_sub(CURVES.len()).filter(|others| *others > 0) {
        legend.push((GREY, format!("{others} others")));
    }
    let caption = format!(
        "Transactions per second and 99th percentile of each node's own clients, the slowest node first.{}",
        times.note("the mean, and paler the range,")
    );
    Some(Figure { id: "plot-nodes", title: "By node", caption, legend, svg })
}

/// The nodes by their mean throughput: whoever looks for the node that holds up the others finds it among the first.
fn slowest_first(nodes: &[NodeSamples]) -> Vec<&NodeSamples> {
    let mean = |node: &NodeSamples| {
        let known: Vec<f64> = node.tps.iter().copied().filter_map(finite).collect();
        if known.is_empty() { 0.0 } else { known.iter().map(|tps| tps / known.len() as f64).sum() }
    };
    let mut sorted: Vec<&NodeSamples> = nodes.iter().filter(|node| !node.elapsed.is_empty()).collect();
    sorted.sort_by(|one, other| mean(one).total_cmp(&mean(other)));
    sorted
}

fn highest(curves: &[Curve]) -> Option<f64> {
    curves
        .iter()
        .flat_map(|curve| curve.thinned.iter().flatten())
        .map(|envelope| envelope.high)
        .reduce(f64::max)
}

/// Those of the fast nodes beneath those that are looked for.
fn draw(chart: &mut Chart, times: &Times, curves: &[Curve]) -> super::frame::DrawResult {
    curves.iter().rev().try_for_each(|curve| draw_line(chart, times, curve.ink, &curve.thinned))
}

#[cfg(test)]
mod tests {
    use bench_results::Node;

    use super::*;

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
        let figure = figure(&document(3)).expect("a plot");
        let names: Vec<&str> = figure.legend.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["db2:5432", "db1:5432", "db0:5432"]);
        assert!(figure.svg.contains("db2:5432 tps: 998"), "{}", figure.svg);
        assert!(figure.svg.contains("db0:5432 p99: 2.500 ms"), "{}", figure.svg);
    }

    #[test]
    fn many_nodes_share_a_colour_and_one_has_no_plot() {
        let many = figure(&document(50)).expect("a plot");
        assert_eq!(many.legend.last().expect("a line").1, "42 others");
        assert!(figure(&document(1)).is_none());
        assert!(figure(&Document::default()).is_none());
    }
}
