//! The nodes of a Citus cluster side by side, over time: whether one of them falls behind, and when.

use bench_base::number::{fixed, mean, tps};
use bench_results::{Document, NodeSamples, Samples};

use super::Chart;
use super::chart::Panel;
use super::palette::{CURVES, GREY};
use super::times::{Curve, Times, axis_from_zero, values};

/// Throughput and latency by node; `None` where clients ran on one node only.
pub fn chart(document: &Document) -> Option<Chart> {
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
        let chart = chart(&document(3)).expect("a plot");
        let names: Vec<&str> = chart.legend.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["db2:5432", "db1:5432", "db0:5432"]);
        let svg = crate::plot::svg(&chart);
        assert!(svg.contains("db2:5432 tps: 998"), "{svg}");
        assert!(svg.contains("db0:5432 p99: 2.500 ms"), "{svg}");
    }

    #[test]
    fn many_nodes_share_a_colour_and_one_has_no_plot() {
        let many = chart(&document(50)).expect("a plot");
        assert_eq!(many.legend.last().expect("a line").1, "42 others");
        assert!(chart(&document(1)).is_none());
        assert!(chart(&Document::default()).is_none());
    }
}
