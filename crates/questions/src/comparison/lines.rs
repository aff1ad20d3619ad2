//! Compares the runs of two sides by each metric.

use bench_results::{ComparisonLine, Document, Summary};
use bench_stats::compare;
use bench_stats::compare::{Better, MOST_RUNS, Terms, Verdict};

/// How the runs of the sides belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    Groups,
    /// Each run of the baseline has a partner among the candidate's.
    Pairs,
}

/// A metric by which runs are compared.
pub struct Metric {
    /// Its name in bench.summary.
    pub name: &'static str,
    pub value: fn(&Summary) -> Option<f64>,
}

static TPS: Metric = Metric { name: "tps", value: |summary| summary.tps };

static LATENCIES: [Metric; 4] = [
    Metric { name: "latency_avg_ms", value: |summary| summary.latency_avg_ms },
    Metric { name: "latency_p50_ms", value: |summary| summary.latency_p50_ms },
    Metric { name: "latency_p95_ms", value: |summary| summary.latency_p95_ms },
    Metric { name: "latency_p99_ms", value: |summary| summary.latency_p99_ms },
];

static SERVER_CPU: Metric = Metric { name: "server_cpu_us", value: |summary| summary.server_cpu_us };

/// The probability that an interval misses the true ratio: for TPS, for all latencies together, and for processor time.
const ALPHA: f64 = 0.05;

/// Returns all metrics, TPS first, each with the confidence of its interval.
pub fn metrics() -> Vec<(&'static Metric, f64)> {
    // Bonferroni: α / k for each of k metrics gives at most α for all together.
    let confidence = 1.0 - ALPHA / LATENCIES.len() as f64;
    let latencies = LATENCIES.iter().map(|metric| (metric, confidence));
    [(&TPS, 1.0 - ALPHA)].into_iter().chain(latencies).chain([(&SERVER_CPU, 1.0 - ALPHA)]).collect()
}

/// Returns a line for each metric in order, then one for each script of a mix.
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
            let value = |document: &Document| (metric.value)(&document.summary);
            sides.line(metric.name, value, Terms { margin, confidence, better })
        })
        .collect();
    let scripts = sides.scripts();
    // Bonferroni, as for the latencies.
    let terms =
        Terms { margin, confidence: 1.0 - ALPHA / scripts.len().max(1) as f64, better: Better::Lower };
    lines.extend(scripts.iter().enumerate().map(|(place, script)| {
        let latency_ms = |document: &Document| document.scripts.get(place)?.latency_avg_ms;
        ComparisonLine { script: Some(script.clone()), ..sides.line(LATENCIES[0].name, latency_ms, terms) }
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

    /// Returns the scripts of a mix if all runs have the same ones.
    fn scripts(&self) -> Vec<String> {
        let workloads = |document: &Document| -> Vec<String> {
            document.scripts.iter().map(|script| script.workload.clone()).collect()
        };
        let scripts = self.baseline.first().map(workloads).unwrap_or_default();
        let is_mix = scripts.len() > 1 && self.runs().all(|document| workloads(document) == scripts);
        if is_mix { scripts } else { Vec::new() }
    }

    fn line(
        &self,
        name: &'static str,
        value: impl Fn(&Document) -> Option<f64>,
        terms: Terms,
    ) -> ComparisonLine {
        let value = |document: &Document| value(document).filter(|value| value.is_finite());
        let values = |side: &[Document]| side.iter().map(value).collect::<Option<Vec<f64>>>();
        let (Some(baseline), Some(candidate)) = (values(self.baseline), values(self.candidate)) else {
            return ComparisonLine {
                metric: name.to_owned(),
                verdict: Verdict::Inconclusive.as_str().to_owned(),
                advice: Some(format!("{} no {}.", self.have(|run| value(run).is_none()), name)),
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
        // A server that does nothing any more is slower, whatever the spread.
        let stands_still =
            terms.better == Better::Higher && compared.candidate == 0.0 && compared.baseline > 0.0;
        let verdict = if stands_still { Verdict::Slower } else { compared.verdict };
        let line = ComparisonLine::default().with_ratio(compared.ratio);
        ComparisonLine {
            metric: name.to_owned(),
            baseline: Some(compared.baseline),
            candidate: Some(compared.candidate),
            // Without an interval, the quotient of what was measured.
            ratio: line.ratio.or(quotient),
            verdict: verdict.as_str().to_owned(),
            advice: (verdict == Verdict::Inconclusive).then(|| match compared.ratio {
                Some(_) => self.advise_runs(compared.runs),
                None => self.explain_no_interval(|run| value(run).is_some_and(|value| value <= 0.0), name),
            }),
            ..line
        }
    }

    /// Returns "Run 7 has" or "Runs 7, 8 have", for the runs that `applies` selects.
    fn have(&self, applies: impl Fn(&Document) -> bool) -> String {
        let ids: Vec<String> =
            self.runs().filter(|run| applies(run)).map(|document| document.run.run_id.to_string()).collect();
        match ids.as_slice() {
            [one] => format!("Run {one} has"),
            several => format!("Runs {} have", several.join(", ")),
        }
    }

    fn explain_no_interval(&self, has_no_ratio: impl Fn(&Document) -> bool, metric: &str) -> String {
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

    /// Advises how many runs decide.
    fn advise_runs(&self, runs: Option<u32>) -> String {
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

    /// Returns whether every run had a rate and reached it.
    fn all_kept_their_rate(&self) -> bool {
        /// The number of arrivals, a Poisson process, seldom deviates further from its mean.
        const STANDARD_DEVIATIONS: f64 = 3.0;
        /// Transactions under way at the end of a run are not counted.
        const UNFINISHED_SHARE: f64 = 0.01;
        self.runs().all(|document| {
            let (Some(rate), Some(tps)) = (document.run.rate, document.summary.tps) else { return false };
            let deviation =
                document.summary.secs.map_or(0.0, |secs| STANDARD_DEVIATIONS * (rate / secs).sqrt());
            (tps - rate).abs() <= deviation.max(UNFINISHED_SHARE * rate)
        })
    }
}
