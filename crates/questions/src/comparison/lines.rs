//! What is said of each metric.

use bench_results::{ComparisonLine, Document, Summary};
use bench_stats::compare;
use bench_stats::compare::{Better, MOST_RUNS, Terms, Verdict};

/// How the runs were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    Groups,
    /// A run of the baseline and one of the candidate each.
    Pairs,
}

/// What runs are compared by.
pub struct Metric {
    /// As in bench.summary.
    pub name: &'static str,
    pub of: fn(&Summary) -> Option<f64>,
}

static TPS: Metric = Metric { name: "tps", of: |summary| summary.tps };

static LATENCIES: [Metric; 4] = [
    Metric { name: "latency_avg_ms", of: |summary| summary.latency_avg_ms },
    Metric { name: "latency_p50_ms", of: |summary| summary.latency_p50_ms },
    Metric { name: "latency_p95_ms", of: |summary| summary.latency_p95_ms },
    Metric { name: "latency_p99_ms", of: |summary| summary.latency_p99_ms },
];

static SERVER_CPU: Metric = Metric { name: "server_cpu_us", of: |summary| summary.server_cpu_us };

/// The chance of an interval that does not hold: of that of TPS, of any of those of latency, and of that of processor time.
const ALPHA: f64 = 0.05;

/// All metrics, TPS first, each with the confidence of its interval.
pub fn metrics() -> Vec<(&'static Metric, f64)> {
    // Bonferroni: of k metrics each has α / k, and together they have at most α.
    let of_latency = 1.0 - ALPHA / LATENCIES.len() as f64;
    let latencies = LATENCIES.iter().map(|metric| (metric, of_latency));
    [(&TPS, 1.0 - ALPHA)].into_iter().chain(latencies).chain([(&SERVER_CPU, 1.0 - ALPHA)]).collect()
}

/// A line for each metric, in their order.
pub fn lines(
    baseline: &[Document],
    candidate: &[Document],
    margin: f64,
    design: Design,
) -> Vec<ComparisonLine> {
    let sides = Sides { baseline, candidate, design };
    let mut lines: Vec<ComparisonLine> = metrics()
        .into_iter()
        .map(|(metric, confidence)| {
            let better = if metric.name == TPS.name { Better::Higher } else { Better::Lower };
            let of = |document: &Document| (metric.of)(&document.summary);
            sides.line(metric.name, of, Terms { margin, confidence, better })
        })
        .collect();
    let scripts = sides.scripts();
    // As of the metrics of latency, all of them hold together.
    let terms =
        Terms { margin, confidence: 1.0 - ALPHA / scripts.len().max(1) as f64, better: Better::Lower };
    lines.extend(scripts.iter().enumerate().map(|(place, script)| {
        let of = |document: &Document| document.scripts.get(place)?.latency_avg_ms;
        ComparisonLine { script: Some(script.clone()), ..sides.line(LATENCIES[0].name, of, terms) }
    }));
    if sides.all_kept_their_rate() {
        lines[0].advice = Some(
            "All runs reached their rate, so TPS shows the rate and not the capacity of the server. Compare the \
             latencies."
                .to_owned(),
        );
    }
    lines
}

struct Sides<'a> {
    baseline: &'a [Document],
    candidate: &'a [Document],
    design: Design,
}

impl Sides<'_> {
    fn runs(&self) -> impl Iterator<Item = &Document> {
        self.baseline.iter().chain(self.candidate)
    }

    /// The scripts of a mix, where all runs have the same.
    fn scripts(&self) -> Vec<String> {
        let of = |document: &Document| -> Vec<String> {
            document.scripts.iter().map(|script| script.workload.clone()).collect()
        };
        let scripts = self.baseline.first().map(of).unwrap_or_default();
        let is_mix = scripts.len() > 1 && self.runs().all(|document| of(document) == scripts);
        if is_mix { scripts } else { Vec::new() }
    }

    fn line(
        &self,
        name: &'static str,
        of: impl Fn(&Document) -> Option<f64>,
        terms: Terms,
    ) -> ComparisonLine {
        let of = |document: &Document| of(document).filter(|value| value.is_finite());
        let values = |side: &[Document]| side.iter().map(of).collect::<Option<Vec<f64>>>();
        let (Some(baseline), Some(candidate)) = (values(self.baseline), values(self.candidate)) else {
            return ComparisonLine {
                metric: name.to_owned(),
                verdict: Verdict::Inconclusive.as_str().to_owned(),
                advice: Some(format!("{} no {}.", self.have(|run| of(run).is_none()), name)),
                ..ComparisonLine::default()
            };
        };
        let compared = match self.design {
            Design::Groups => compare::groups(&baseline, &candidate, terms),
            Design::Pairs => {
                let pairs: Vec<_> = baseline.iter().copied().zip(candidate.iter().copied()).collect();
                compare::pairs(&pairs, terms)
            }
        };
        let quotient = (compared.baseline > 0.0).then(|| compared.candidate / compared.baseline);
        // A server on which nothing is done any more is slower, whatever the spread.
        let stands_still =
            terms.better == Better::Higher && compared.candidate == 0.0 && compared.baseline > 0.0;
        let verdict = if stands_still { Verdict::Slower } else { compared.verdict };
        let line = ComparisonLine::default().with_ratio(compared.ratio);
        ComparisonLine {
            metric: name.to_owned(),
            baseline: Some(compared.baseline),
            candidate: Some(compared.candidate),
            // Without an interval it still is what was measured.
            ratio: line.ratio.or(quotient),
            verdict: verdict.as_str().to_owned(),
            advice: (verdict == Verdict::Inconclusive).then(|| match compared.ratio {
                Some(_) => self.how_many(compared.runs),
                None => self.why_no_interval(|run| of(run).is_some_and(|value| value <= 0.0), name),
            }),
            ..line
        }
    }

    /// "Run 7 has", "Runs 7, 8 have": those of which something is so.
    fn have(&self, is_so: impl Fn(&Document) -> bool) -> String {
        let ids: Vec<String> =
            self.runs().filter(|run| is_so(run)).map(|document| document.run.run_id.to_string()).collect();
        match ids.as_slice() {
            [one] => format!("Run {one} has"),
            several => format!("Runs {} have", several.join(", ")),
        }
    }

    fn why_no_interval(&self, has_no_ratio: impl Fn(&Document) -> bool, metric: &str) -> String {
        if self.runs().any(&has_no_ratio) {
            return format!("{} a {} of 0 or less, so there is no ratio.", self.have(has_no_ratio), metric);
        }
        let one = match self.design {
            Design::Pairs => "One pair shows no spread: use at least 2 pairs",
            Design::Groups if self.baseline.len() == 1 && self.candidate.len() == 1 => {
                "One run per side shows no spread: use at least 2 per side"
            }
            Design::Groups if self.baseline.len() == 1 => {
                "One baseline run shows no spread: use at least 2 per side"
            }
            Design::Groups => "One candidate run shows no spread: use at least 2 per side",
        };
        format!("{one}; 5 or more are better.")
    }

    /// How many runs decide.
    fn how_many(&self, runs: Option<u32>) -> String {
        let several = match self.design {
            Design::Groups => "runs per side",
            Design::Pairs => "pairs",
        };
        match runs {
            Some(runs) => format!(
                "Start over with {runs} {several}: at this effect and spread, they decide in four of five cases. \
                 Adding runs until there is a verdict makes false verdicts more frequent."
            ),
            None => format!(
                "At this effect and spread, not even {MOST_RUNS} {several} would decide. Try longer runs or a \
                 wider margin."
            ),
        }
    }

    /// Whether every run had a rate to keep and kept it. Arrivals are a Poisson process: their number strays from
    /// its mean by the mean's root, and hardly by more than three of them.
    fn all_kept_their_rate(&self) -> bool {
        self.runs().all(|document| {
            let (Some(rate), Some(tps)) = (document.run.rate, document.summary.tps) else { return false };
            let stray = document.summary.secs.map_or(0.0, |secs| 3.0 * (rate / secs).sqrt());
            // What is under way at the end is counted in the next interval, of which there is none.
            (tps - rate).abs() <= stray.max(0.01 * rate)
        })
    }
}
