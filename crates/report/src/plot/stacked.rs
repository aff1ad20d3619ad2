//! What server and machine did over time: the clients' waits and the processors' time as stacked shares, and the WAL.

use bench_base::number::{MISSING, fixed, percent};
use bench_results::{Document, Series};

use crate::plot::axis::Axis;
use crate::plot::chart::{BLUE, Chart, GREEN, GREY, Ink, ORANGE, PINK, Panel, Plot, RED, Shape, WAITS};
use crate::plot::marks::Marks;
use crate::plot::times::{Times, axis_from_zero, legend, per_second, values};

/// A layer of the stack: the mean of each column.
struct Layer {
    ink: Ink,
    name: String,
    means: Vec<Option<f64>>,
}

impl Layer {
    /// Thins a series.
    fn new(ink: Ink, name: &str, series: &[Option<f64>], times: &Times) -> Layer {
        let thinned = times.thinned(series);
        let means = thinned.iter().map(|envelope| envelope.map(|envelope| envelope.mean.max(0.0))).collect();
        Layer { ink, name: name.to_owned(), means }
    }

    /// The mean of some columns; `None` where that is not known or rounds to none.
    fn share(&self, means: &[Option<f64>]) -> Option<String> {
        let known = means.iter().flatten().count();
        let share = percent((known > 0).then(|| means.iter().flatten().sum::<f64>() / known as f64));
        let says_nothing = share == MISSING || share == percent(Some(0.0));
        (!says_nothing).then_some(share)
    }
}

/// What the clients' time went to; `None` when nothing is known of it.
pub fn waits(document: &Document) -> Option<Chart> {
    let samples = &document.samples;
    let times = Times::of(samples)?;
    let total = |shares: &Vec<f64>| shares.iter().filter(|share| share.is_finite()).sum::<f64>();
    let mut events: Vec<(&str, &Vec<f64>)> =
        samples.waits.iter().map(|(name, shares)| (name.as_str(), shares)).collect();
    events.retain(|(_, shares)| total(shares) > 0.0);
    events.sort_by(|(_, one), (_, other)| total(other).total_cmp(&total(one)));
    let layer = |ink, name: &str, shares: &[f64]| {
        Layer::new(ink, name, &shares.iter().copied().map(Some).collect::<Series>(), &times)
    };
    let mut layers = Vec::new();
    for (name, ink) in [("CPU", GREEN), ("Runnable", ORANGE)] {
        if let Some(index) = events.iter().position(|(event, _)| *event == name) {
            layers.push(layer(ink, name, events.remove(index).1));
        }
    }
    let (named, others) = events.split_at(events.len().min(WAITS.len()));
    layers.extend(named.iter().zip(WAITS).map(|((name, shares), ink)| layer(ink, name, shares)));
    if !others.is_empty() {
        let sum = |interval: usize| others.iter().filter_map(|(_, shares)| shares.get(interval)).sum::<f64>();
        let shares: Vec<f64> = (0..samples.len()).map(sum).collect();
        layers.push(layer(GREY, &format!("{} others", others.len()), &shares));
    }
    let title = "Waits, share of the clients' time";
    Some(Chart {
        id: "plot-waits",
        title,
        label: title.to_owned(),
        caption: format!("Where the clients' time went.{}", times.note("the mean")),
        legend: share_legend(&layers),
        plot: stack(&times, &layers)?,
    })
}

/// What the processors did; `None` when nothing is known of it.
pub fn processors(document: &Document) -> Option<Chart> {
    let samples = &document.samples;
    let times = Times::of(samples)?;
    let layers = [
        (BLUE, "user", &samples.cpu_user),
        (RED, "system", &samples.cpu_system),
        (ORANGE, "iowait", &samples.cpu_iowait),
        (PINK, "steal", &samples.cpu_steal),
        (GREY, "idle", &samples.cpu_idle),
    ]
    .map(|(ink, name, series)| Layer::new(ink, name, series, &times));
    let layers: Vec<Layer> =
        layers.into_iter().filter(|layer| layer.means.iter().any(Option::is_some)).collect();
    let whose = match document.client_nodes() {
        1 => "all processors of the machine",
        _ => "the processors of the nodes that clients ran on, on average,",
    };
    let title = "Processors, share of their time";
    Some(Chart {
        id: "plot-processors",
        title,
        label: title.to_owned(),
        caption: format!("Where the time of {whose} went.{}", times.note("the mean")),
        legend: share_legend(&layers),
        plot: stack(&times, &layers)?,
    })
}

/// The layers with their shares of the whole.
fn share_legend(layers: &[Layer]) -> Vec<(Ink, String)> {
    let named = |layer: &Layer| Some((layer.ink, format!("{} {}", layer.name, layer.share(&layer.means)?)));
    layers.iter().filter_map(named).collect()
}

/// The plot of some layers, the first one lowest; `None` of none.
fn stack(times: &Times, layers: &[Layer]) -> Option<Plot> {
    let mut floor = vec![0.0; times.spans.len()];
    let mut shapes: Vec<Shape> = Vec::new();
    for layer in layers {
        let upper: Series =
            floor.iter().zip(&layer.means).map(|(floor, mean)| mean.map(|mean| floor + mean)).collect();
        shapes.extend(times.steps(layer.ink, &floor, &upper));
        floor.iter_mut().zip(&upper).for_each(|(floor, upper)| *floor = upper.unwrap_or(*floor));
    }
    let plot = times.plot(vec![Panel::new(Axis::of_shares()).with(shapes)], |columns| {
        let named = |layer: &Layer| {
            Some(format!("{}: {}", layer.name, layer.share(layer.means.get(columns.clone())?)?))
        };
        // As they lie on each other.
        layers.iter().rev().filter_map(named).collect()
    });
    (!layers.is_empty()).then_some(plot)
}

const MEGABYTE: f64 = 1024.0 * 1024.0;

/// The chart; `None` when nothing is known of the WAL.
pub fn wal(document: &Document) -> Option<Chart> {
    let samples = &document.samples.wal_in_bins();
    let times = Times::of(samples)?;
    let marks = Marks::of(document, &times.axis);
    let megabytes = per_second(&samples.wal_bytes, &samples.secs, MEGABYTE);
    let images = per_second(&samples.wal_fpi, &samples.secs, 1.0);
    let curves = [
        times.curve(BLUE, "WAL", &megabytes, |rate| format!("{} MB/s", fixed(Some(rate), 1))),
        times.curve(RED, "full-page images", &images, |rate| format!("{}/s", fixed(Some(rate), 0))),
    ];
    let known = curves.iter().zip(["WAL, MB/s", "full-page images/s"]).filter_map(|(curve, title)| {
        Some((curve, marks.panel(axis_from_zero([curve], 4)?).titled(title).with(times.area(curve))))
    });
    let (known, panels): (Vec<_>, Vec<_>) = known.unzip();
    (!panels.is_empty()).then(|| Chart {
        id: "plot-wal",
        title: "WAL",
        label: "WAL and full-page images over time".to_owned(),
        caption: format!(
            "Generated by the whole server; a checkpoint makes the first change of each page a full-page image.{}",
            times.note("the mean, and paler the highest,")
        ),
        legend: marks.legend(legend(known)),
        plot: times.plot(panels, |columns| values(&curves, &columns)),
    })
}
