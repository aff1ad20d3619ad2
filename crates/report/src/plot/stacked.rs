//! Shares of a whole over time, stacked: waits of the clients, and what the processors did.

use bench_base::number::{MISSING, percent};
use bench_results::{Document, Series};
use plotters::prelude::*;

use super::Figure;
use super::axis::Axis;
use super::frame::{Chart, DrawResult, Panel, svg};
use super::hover::with_values;
use super::palette::{BLUE, GREEN, GREY, Ink, ORANGE, PINK, RED, WAITS};
use super::steps;
use super::times::Times;

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

    /// Its mean over the run.
    fn mean(&self) -> Option<f64> {
        let count = self.means.iter().flatten().count();
        (count > 0).then(|| self.means.iter().flatten().sum::<f64>() / count as f64)
    }
}

/// What the clients' time went to; `None` when nothing is known of it.
pub fn waits(document: &Document) -> Option<Figure> {
    let samples = &document.samples;
    let times = Times::of(samples)?;
    let total = |shares: &Vec<f64>| shares.iter().filter(|share| share.is_finite()).sum::<f64>();
    let mut events: Vec<(&str, &Vec<f64>)> =
        samples.waits.iter().map(|(name, shares)| (name.as_str(), shares)).collect();
    events.retain(|(_, shares)| total(shares) > 0.0);
    events.sort_by(|(_, one), (_, other)| total(other).total_cmp(&total(one)));
    let series = |shares: &[f64]| shares.iter().map(|share| Some(*share)).collect::<Series>();
    let mut layers = Vec::new();
    for (name, ink) in [("CPU", GREEN), ("Runnable", ORANGE)] {
        if let Some(index) = events.iter().position(|(event, _)| *event == name) {
            layers.push(Layer::new(ink, name, &series(events.remove(index).1), &times));
        }
    }
    let named = events.len().min(WAITS.len());
    let (named, others) = events.split_at(named);
    layers.extend(
        named.iter().zip(WAITS).map(|((name, shares), ink)| Layer::new(ink, name, &series(shares), &times)),
    );
    if !others.is_empty() {
        let sum = |interval: usize| others.iter().filter_map(|(_, shares)| shares.get(interval)).sum::<f64>();
        let shares: Vec<f64> = (0..samples.len()).map(sum).collect();
        layers.push(Layer::new(GREY, &format!("{} others", others.len()), &series(&shares), &times));
    }
    let caption = format!("Where the clients' time went.{}", times.note("the mean"));
    figure("plot-waits", "Waits, share of the clients' time", caption, &times, layers)
}

/// What the processors did; `None` when nothing is known of it.
pub fn processors(document: &Document) -> Option<Figure> {
    let samples = &document.samples;
    let times = Times::of(samples)?;
    let series = [
        (BLUE, "user", &samples.cpu_user),
        (RED, "system", &samples.cpu_system),
        (ORANGE, "iowait", &samples.cpu_iowait),
        (PINK, "steal", &samples.cpu_steal),
        (GREY, "idle", &samples.cpu_idle),
    ];
    let layers = series.map(|(ink, name, series)| Layer::new(ink, name, series, &times));
    let layers = layers.into_iter().filter(|layer| layer.mean().is_some()).collect();
    let whose = match document.client_nodes() {
        1 => "all processors of the machine",
        _ => "the processors of the nodes that clients ran on, on average,",
    };
    let caption = format!("Where the time of {whose} went.{}", times.note("the mean"));
    figure("plot-processors", "Processors, share of their time", caption, &times, layers)
}

/// The plot of some layers, the first one lowest.
fn figure(
    id: &'static str,
    title: &'static str,
    caption: String,
    times: &Times,
    layers: Vec<Layer>,
) -> Option<Figure> {
    if layers.is_empty() {
        return None;
    }
    let draw = |chart: &mut Chart| draw_stack(chart, times, &layers);
    let svg = svg(title, &times.axis, false, &[Panel { title: None, y: Axis::of_shares(), draw: &draw }])?;
    let svg = with_values(&svg, times, &|columns| {
        let shares = layers.iter().filter_map(|layer| {
            let known: Vec<f64> = layer.means.get(columns.clone())?.iter().flatten().copied().collect();
            let share = percent((!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64));
            (!says_nothing(&share)).then(|| format!("{}: {share}", layer.name))
        });
        // As they lie on each other.
        shares.collect::<Vec<_>>().into_iter().rev().collect()
    });
    let named = layers.iter().map(|layer| (layer, percent(layer.mean())));
    let named = named.filter(|(_, share)| !says_nothing(share));
    let legend = named.map(|(layer, share)| (layer.ink, format!("{} {share}", layer.name))).collect();
    Some(Figure { id, title, caption, legend, svg })
}

/// Whether a share is not known or rounds to none.
fn says_nothing(share: &str) -> bool {
    share == MISSING || share == percent(Some(0.0))
}

/// Draws the layers on top of each other.
fn draw_stack(chart: &mut Chart, times: &Times, layers: &[Layer]) -> DrawResult {
    let mut floor = vec![0.0; times.spans.len()];
    for layer in layers {
        let value = |column: usize| layer.means.get(column).copied().flatten();
        let upper: Vec<_> = floor
            .iter()
            .enumerate()
            .map(|(column, floor)| value(column).map(|value| floor + value))
            .collect();
        steps::draw(chart, times, &floor, &upper, layer.ink.color().filled())?;
        floor.iter_mut().zip(&upper).for_each(|(floor, upper)| *floor = upper.unwrap_or(*floor));
    }
    Ok(())
}
