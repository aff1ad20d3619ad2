//! Searches over simulated queues, whose own answers are known from long simulations.

use std::collections::BinaryHeap;

use bench_script::Prng;
use bench_stats::Histogram;
use bench_stats::histogram::percentile_of;

use crate::capacity::search::{NextTrial, Reference, Trial, limit_of, next};
use crate::capacity::{CapacitySearch, Limit, Purpose, TrialOutcome, answers, *};

/// Requests come at random, and the first free of some servers takes the one that waits the longest.
#[derive(Clone)]
struct Queue {
    servers: usize,
    service: Service,
    /// Above so many that wait, everything takes longer by this factor: throughput collapses beyond the peak.
    collapse: Option<(usize, f64)>,
    /// Once overloaded it is slower by this factor, for good.
    hysteresis: Option<f64>,
    /// Whole trials are slower or faster by this share, at random.
    noise: f64,
    random: Prng,
    was_overloaded: bool,
}

/// Box and Muller's.
fn normal(random: &mut Prng) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit_interval()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit_interval()).cos()
}

#[derive(Clone, Copy)]
enum Service {
    Constant(f64),
    /// Median in seconds, and sigma of the logarithm.
    Lognormal(f64, f64),
}

impl Queue {
    fn new(servers: usize, service: Service, seed: u64) -> Self {
        Self {
            servers,
            service,
            collapse: None,
            hysteresis: None,
            noise: 0.0,
            random: Prng::from_seed(seed),
            was_overloaded: false,
        }
    }

    fn service_secs(&mut self) -> f64 {
        match self.service {
            Service::Constant(secs) => secs,
            Service::Lognormal(median, sigma) => median * (sigma * normal(&mut self.random)).exp(),
        }
    }

    fn mean_service_secs(&self) -> f64 {
        match self.service {
            Service::Constant(secs) => secs,
            Service::Lognormal(median, sigma) => median * (sigma * sigma / 2.0).exp(),
        }
    }

    /// A run of so many seconds; without a rate the servers are always busy.
    fn run(&mut self, rate: Option<f64>, secs: f64, percentile: f64) -> TrialOutcome {
        let slowness = (1.0 + self.noise * normal(&mut self.random))
            * if self.was_overloaded { self.hysteresis.unwrap_or(1.0) } else { 1.0 };
        let Some(rate) = rate else {
            let tps = self.servers as f64 / (self.mean_service_secs() * slowness);
            return TrialOutcome {
                tps,
                due: (tps * secs) as u64,
                done: (tps * secs) as u64,
                ..TrialOutcome::default()
            };
        };
        // When each server is free, the soonest first.
        let mut free: BinaryHeap<std::cmp::Reverse<u64>> =
            (0..self.servers).map(|_| std::cmp::Reverse(0)).collect();
        let mut latencies = Histogram::new();
        let mut lags: Vec<(f64, f64)> = Vec::new();
        let (mut due, mut done, mut now, mut busy) = (0, 0, 0.0, 0.0);
        loop {
            now += -(1.0 - self.random.unit_interval()).ln() / rate;
            if now >= secs {
                break;
            }
            due += 1;
            let std::cmp::Reverse(soonest) = free.pop().expect("there are servers");
            let start = (soonest as f64 / 1e9).max(now);
            let waiting = ((start - now) * rate) as usize;
            let slower = self.collapse.filter(|(most, _)| waiting > *most).map_or(1.0, |(_, factor)| factor);
            let service = self.service_secs() * slowness * slower;
            let end = start + service;
            free.push(std::cmp::Reverse((end * 1e9) as u64));
            if end < secs {
                done += 1;
                busy += service;
                latencies.record(((end - now) * 1e9) as u64);
                lags.push((now, start - now));
            }
        }
        let growth = bench_stats::trend::slope(&lags)
            .filter(|slope| slope.slope >= 0.005 && slope.slope > slope.margin(0.99));
        self.was_overloaded |= growth.is_some();
        TrialOutcome {
            tps: done as f64 / secs,
            latency_ms: latencies.percentile_ns(percentile).map(|ns| ns / 1e6),
            due,
            done,
            failed: 0,
            lag_growth: growth.map(|slope| slope.slope),
            service_ms: Some(busy * 1e3 / done.max(1) as f64),
            busy: Some(busy / secs / self.servers as f64),
            cpu_idle: Some(0.9),
            ..TrialOutcome::default()
        }
    }

    /// The greatest rate whose percentile stays within the limit, by bisection over long runs.
    fn own_answer(&self, limit_ms: f64, percentile: f64) -> f64 {
        let most = self.servers as f64 / self.mean_service_secs();
        let (mut low, mut high) = (0.05 * most, 1.2 * most);
        for _ in 0..11 {
            let rate = (low + high) / 2.0;
            let mut queue = Self { noise: 0.0, was_overloaded: false, ..self.clone() };
            let outcome = queue.run(Some(rate), 400_000.0 / rate, percentile);
            let passes = outcome.lag_growth.is_none() && outcome.latency_ms.is_some_and(|ms| ms <= limit_ms);
            if passes { low = rate } else { high = rate }
        }
        (low + high) / 2.0
    }
}

fn search(limits: &[f64]) -> CapacitySearch {
    CapacitySearch {
        latency_limits_ms: limits.to_vec(),
        percentile: 0.99,
        trials: 3,
        margin: 0.05,
        max_failed: 0.0,
        rounds: 1,
    }
}

/// A whole search: its trials.
fn trials_of(search: &CapacitySearch, queue: &mut Queue) -> Vec<Trial> {
    let mut trials = Vec::new();
    while let Some(step) = next(search, &trials) {
        assert!(trials.len() < 300, "it goes on and on");
        let outcome = queue.run(step.rate, 10.0, search.percentile);
        trials.push(Trial { step, place: trials.len() as u32 + 1, outcome });
    }
    trials
}

/// Of twenty searches, how many come within 5 % of the queue's own answer.
fn hits(limit_ms: f64, queue: impl Fn(u64) -> Queue) -> usize {
    let own = queue(1000).own_answer(limit_ms, 0.99);
    let search = search(&[limit_ms]);
    (0..20)
        .filter(|seed| {
            let rate = answers(&search, &trials_of(&search, &mut queue(*seed)))[0].rate;
            let found = rate.expect("some rate passes");
            let is_near = (found / own - 1.0).abs() <= 0.05;
            if !is_near {
                println!("{found} instead of {own}");
            }
            is_near
        })
        .count()
}

#[test]
fn constant_service() {
    // 2 ms and four servers: a p99 of 10 ms at about 1,750/s.
    let queue = |seed| Queue::new(4, Service::Constant(0.002), seed);
    let own = queue(1).own_answer(10.0, 0.99);
    assert!((1700.0..1850.0).contains(&own), "{own}");
    assert!(hits(10.0, queue) >= 19);
    assert!(hits(10.0, |seed| Queue::new(32, Service::Constant(0.005), seed)) >= 19);
}

#[test]
fn lognormal_service() {
    assert!(hits(20.0, |seed| Queue::new(4, Service::Lognormal(0.002, 0.8), seed)) >= 19);
    assert!(hits(30.0, |seed| Queue::new(16, Service::Lognormal(0.004, 0.5), seed)) >= 19);
}

#[test]
fn noise_between_runs() {
    let queue = |seed| Queue { noise: 0.01, ..Queue::new(8, Service::Lognormal(0.003, 0.5), seed) };
    assert!(hits(15.0, queue) >= 19);
}

#[test]
fn collapse_beyond_the_peak() {
    let queue = |seed| Queue { collapse: Some((20, 3.0)), ..Queue::new(4, Service::Constant(0.002), seed) };
    assert!(hits(9.0, queue) >= 19);
}

#[test]
fn hysteresis_is_said() {
    let queue = |seed| Queue { hysteresis: Some(2.0), ..Queue::new(4, Service::Constant(0.002), seed) };
    let search = search(&[10.0]);
    for seed in 0..20 {
        // What the overload left behind shows in the search already: its answer is that of the slower server, or what
        // passed before is found to fail afterwards.
        let found = answers(&search, &trials_of(&search, &mut queue(seed)));
        let slow = found[0].rate.is_some_and(|rate| rate < 1000.0);
        assert!(slow || found[0].hysteresis == Some(true), "{found:?}");
        let calm = answers(&search, &trials_of(&search, &mut Queue::new(4, Service::Constant(0.002), seed)));
        assert_eq!(calm[0].hysteresis, Some(false));
    }
}

#[test]
fn several_objectives_share_their_trials() {
    let queue = || Queue::new(4, Service::Constant(0.002), 7);
    let all = search(&[5.0, 10.0, 25.0]);
    let trials = trials_of(&all, &mut queue());
    let found = answers(&all, &trials);
    let rates: Vec<f64> = found.iter().map(|answer| answer.rate.expect("a rate")).collect();
    assert!(rates.is_sorted() && rates[0] < rates[2], "{rates:?}");
    let alone: usize =
        [5.0, 10.0, 25.0].iter().map(|limit| trials_of(&search(&[*limit]), &mut queue()).len()).sum();
    assert!(trials.len() < alone, "{} and {alone}", trials.len());
    for (limit, answer) in [5.0, 10.0, 25.0].iter().zip(&found) {
        let own = queue().own_answer(*limit, 0.99);
        assert!((answer.rate.unwrap() / own - 1.0).abs() < 0.06, "{limit}: {answer:?}, {own}");
        assert!(answer.operating_rate.is_some());
    }
}

#[test]
fn throughput_alone() {
    let search = search(&[]);
    let found = &answers(&search, &trials_of(&search, &mut Queue::new(4, Service::Constant(0.002), 3)))[0];
    assert!((found.rate.unwrap() / 2000.0 - 1.0).abs() < 0.06, "{found:?}");
    // Four clients are busy and the processors idle.
    assert_eq!((found.limited_by, found.latency_limit_ms), (Some(Limit::Clients), None));
}

#[test]
fn rounds_give_an_interval() {
    let search = CapacitySearch { rounds: 4, ..search(&[10.0]) };
    let trials = trials_of(&search, &mut Queue::new(4, Service::Constant(0.002), 11));
    let found = &answers(&search, &trials)[0];
    let (low, rate, high) = (found.rate_low.unwrap(), found.rate.unwrap(), found.rate_high.unwrap());
    assert!(low < rate && rate < high && high / low < 1.2, "{found:?}");
    assert_eq!(trials.iter().filter(|trial| trial.step.purpose == Purpose::Estimate).count(), 4);
    assert_eq!(trials.iter().filter(|trial| trial.step.purpose == Purpose::Operating).count(), 1);
}

#[test]
fn nothing_passes_where_service_alone_is_too_long() {
    let search = search(&[1.0]);
    let found = &answers(&search, &trials_of(&search, &mut Queue::new(4, Service::Constant(0.002), 5)))[0];
    assert_eq!((found.rate, found.limited_by, found.hysteresis), (None, Some(Limit::Latency), None));
    assert!(found.rate_high.is_some_and(|rate| rate < 10.0));
}

fn outcome() -> TrialOutcome {
    TrialOutcome { latency_ms: Some(5.0), due: 1000, done: 1000, tps: 100.0, ..TrialOutcome::default() }
}

#[test]
fn reasons_have_an_order() {
    let search = search(&[10.0]);
    let reference = Reference { light_ms: Some(5.0), closed_ms: Some(6.0) };
    let limit = |outcome: &TrialOutcome| limit_of(outcome, &search, Some(10.0), reference);
    assert_eq!(limit(&outcome()), None);
    assert_eq!(limit(&TrialOutcome { latency_ms: Some(10.1), ..outcome() }), Some(Limit::Latency));
    assert_eq!(limit(&TrialOutcome { latency_ms: None, ..outcome() }), Some(Limit::Latency));
    assert_eq!(limit(&TrialOutcome { done: 989, ..outcome() }), Some(Limit::Throughput));
    assert_eq!(limit(&TrialOutcome { lag_growth: Some(0.01), ..outcome() }), Some(Limit::Throughput));
    assert_eq!(limit(&TrialOutcome { failed: 1, latency_ms: Some(50.0), ..outcome() }), Some(Limit::Errors));
    let busy = |service, idle| TrialOutcome {
        busy: Some(0.95),
        service_ms: Some(service),
        cpu_idle: idle,
        latency_ms: Some(50.0),
        ..outcome()
    };
    assert_eq!(limit(&busy(5.5, Some(0.6))), Some(Limit::Clients));
    assert_eq!(limit(&busy(5.5, None)), Some(Limit::Clients));
    assert_eq!(limit(&busy(5.5, Some(0.1))), Some(Limit::Latency), "the server does not idle");
    assert_eq!(limit(&busy(9.0, Some(0.6))), Some(Limit::Latency), "transactions take longer under load");
    let slow = Reference { closed_ms: Some(11.0), ..reference };
    let limit = limit_of(&busy(5.5, Some(0.6)), &search, Some(10.0), slow);
    assert_eq!(limit, Some(Limit::Latency), "with all of them busy it is too late as well");
    let allowed = CapacitySearch { max_failed: 0.002, ..search.clone() };
    assert_eq!(
        limit_of(&TrialOutcome { failed: 2, ..outcome() }, &allowed, None, Reference::default()),
        None
    );
}

#[test]
fn the_least_rate_that_fails_bounds_the_answer() {
    // 100 passes, 200 fails, 300 passes: what passes above a failure is not believed.
    let search = CapacitySearch { trials: 1, margin: 1.0, ..search(&[10.0]) };
    let trial = |place, rate, latency_ms| Trial {
        step: NextTrial { round: 1, purpose: Purpose::Trial, rate: Some(rate) },
        place,
        outcome: TrialOutcome { latency_ms: Some(latency_ms), ..outcome() },
    };
    let found = &answers(&search, &[trial(1, 300.0, 5.0), trial(2, 200.0, 50.0), trial(3, 100.0, 5.0)])[0];
    assert_eq!((found.rate, found.rate_high, found.failing.as_slice()), (Some(100.0), Some(200.0), &[2][..]));
}

#[test]
fn a_majority_of_trials_decides() {
    let search = search(&[10.0]);
    let step = |purpose, rate| NextTrial { round: 1, purpose, rate };
    let mut trials = vec![Trial { step: step(Purpose::Estimate, None), place: 1, outcome: outcome() }];
    for latency_ms in [50.0, 5.0] {
        assert_eq!(next(&search, &trials), Some(step(Purpose::Trial, Some(50.0))));
        let outcome = TrialOutcome { latency_ms: Some(latency_ms), ..outcome() };
        trials.push(Trial { step: step(Purpose::Trial, Some(50.0)), place: 2, outcome });
    }
    // One of each: the third decides.
    assert_eq!(next(&search, &trials), Some(step(Purpose::Trial, Some(50.0))));
    trials.push(Trial { step: step(Purpose::Trial, Some(50.0)), place: 4, outcome: outcome() });
    assert_eq!(next(&search, &trials), Some(step(Purpose::Trial, Some(75.0))));
}

#[test]
fn arguments_are_checked() {
    let message =
        |search: CapacitySearch| crate::capacity::checked(search).expect_err("it is wrong").to_string();
    assert!(
        message(CapacitySearch { latency_limits_ms: vec![5.0, 0.0], ..search(&[]) })
            .starts_with("latency_limit must be above 0")
    );
    assert!(message(CapacitySearch { percentile: 99.0, ..search(&[]) }).contains("between 0 and 1, not 99"));
    assert!(message(CapacitySearch { margin: 0.0, ..search(&[]) }).contains("margin"));
    assert!(message(CapacitySearch { max_failed: -1.0, ..search(&[]) }).contains("max_failed"));
    let sorted = crate::capacity::checked(search(&[25.0, 5.0, 5.0])).expect("valid");
    assert_eq!(sorted.latency_limits_ms, [5.0, 25.0]);
}

#[test]
fn an_outcome_is_that_of_its_document() {
    use bench_results::{Bucket, Document};
    let mut document = Document::default();
    document.run.clients = 4;
    document.run.status = "completed".to_owned();
    document.summary.transactions = 90;
    document.summary.failed = 2;
    document.summary.aborted = Some(1);
    document.summary.backlog = Some(7);
    document.summary.tps = Some(100.0);
    document.summary.latency_avg_ms = Some(30.0);
    document.summary.lag_avg_ms = Some(10.0);
    document.latencies = vec![Bucket { low_ms: 1.0, high_ms: 2.0, count: 100 }];
    document.samples.cpu_idle = vec![Some(0.5), None, Some(0.7)];
    document.samples.elapsed = (1..=40).map(|at| Some(f64::from(at) * 0.25)).collect();
    document.samples.lag_avg_ms = (1..=40).map(|at| Some(f64::from(at) * 10.0)).collect();
    let outcome = outcome_of(&document, 0.5);
    assert_eq!((outcome.due, outcome.done, outcome.failed), (100, 90, 3));
    assert_eq!((outcome.service_ms, outcome.busy, outcome.cpu_idle), (Some(20.0), Some(0.5), Some(0.6)));
    assert!((outcome.latency_ms.unwrap() - 1.5).abs() < 0.02);
    assert!((outcome.lag_growth.unwrap() - 0.04).abs() < 1e-9);
    assert!(!outcome.ended_early);
    let of = [(1.0, 2.0, 100)].into_iter();
    assert_eq!(percentile_of(of, 0.5), outcome.latency_ms);
    document.samples.lag_avg_ms = (1..=40).map(|at| Some(f64::from(at % 7))).collect();
    document.run.status = "incomplete".to_owned();
    let outcome = outcome_of(&document, 0.5);
    assert_eq!((outcome.lag_growth, outcome.ended_early), (None, true));
}

#[test]
fn errors_that_end_clients_are_the_limit() {
    // However many transactions may fail: what is left of the clients is not what was asked for.
    let search = CapacitySearch { max_failed: 1.0, ..search(&[10.0]) };
    let ended = TrialOutcome { ended_early: true, ..outcome() };
    assert_eq!(limit_of(&ended, &search, Some(10.0), Reference::default()), Some(Limit::Errors));
}

#[test]
fn errors_in_the_closed_loop_are_told() {
    let search = search(&[10.0]);
    let step = NextTrial { round: 1, purpose: Purpose::Estimate, rate: None };
    let all_fail = TrialOutcome { due: 50, failed: 50, ..TrialOutcome::default() };
    let trials = [Trial { step, place: 1, outcome: all_fail }];
    assert_eq!(next(&search, &trials), None);
    let found = &answers(&search, &trials)[0];
    assert_eq!((found.rate, found.limited_by, &found.failing[..]), (None, Some(Limit::Errors), &[1][..]));
    // One that did something and met no limit has none.
    let trials = [Trial { step, place: 1, outcome: outcome() }];
    assert_eq!(answers(&search, &trials)[0].limited_by, None);
}

/// A trial of a first round.
fn tried(place: u32, rate: f64, outcome: TrialOutcome) -> Trial {
    Trial { step: NextTrial { round: 1, purpose: Purpose::Trial, rate: Some(rate) }, place, outcome }
}

#[test]
fn a_rate_at_which_nothing_is_due_tells_nothing() {
    let search = CapacitySearch { trials: 1, ..search(&[10.0]) };
    let estimate = Trial {
        step: NextTrial { round: 1, purpose: Purpose::Estimate, rate: None },
        place: 1,
        outcome: outcome(),
    };
    let late = TrialOutcome { latency_ms: Some(50.0), ..outcome() };
    let mut trials = vec![estimate, tried(2, 50.0, late.clone()), tried(3, 22.22, late)];
    let silent = next(&search, &trials).and_then(|step| step.rate).expect("a lower rate");
    trials.push(tried(4, silent, TrialOutcome::default()));
    assert_eq!(next(&search, &trials), None);
    let found = &answers(&search, &trials)[0];
    assert_eq!((found.rate, found.rate_high, found.limited_by), (None, Some(22.22), Some(Limit::Latency)));
    assert_eq!(found.failing, [3]);
}

#[test]
fn few_transactions_above_the_percentile_are_counted() {
    let search = CapacitySearch { trials: 1, margin: 1.0, ..search(&[10.0]) };
    let of = |latency_ms, done| TrialOutcome { latency_ms: Some(latency_ms), done, due: done, ..outcome() };
    let trials =
        [tried(1, 100.0, of(5.0, 700)), tried(2, 200.0, of(50.0, 1400)), tried(3, 400.0, of(90.0, 20))];
    assert_eq!(answers(&search, &trials)[0].above, Some(7));
    let alone = CapacitySearch { latency_limits_ms: Vec::new(), ..search };
    assert_eq!(answers(&alone, &trials)[0].above, None);
}

#[test]
fn a_round_without_an_answer_leaves_none() {
    let search = CapacitySearch { trials: 1, margin: 1.0, rounds: 2, ..search(&[10.0]) };
    let late = TrialOutcome { latency_ms: Some(50.0), ..outcome() };
    let second = |trial: Trial| Trial { step: NextTrial { round: 2, ..trial.step }, ..trial };
    let first = [tried(1, 100.0, outcome()), tried(2, 200.0, late.clone())];
    let none = [first.to_vec(), vec![second(tried(3, 50.0, late.clone()))]].concat();
    let found = &answers(&search, &none)[0];
    assert_eq!((found.rate, found.rate_high, found.operating_rate), (None, Some(50.0), None));
    assert_eq!((found.rounds, found.rounds_without), (2, 1));
    // Of two that have one, the operating rate is that of their mean.
    let both =
        [first.to_vec(), vec![second(tried(3, 400.0, outcome())), second(tried(4, 800.0, late))]].concat();
    let mean = 200.0;
    let operating = Trial {
        step: NextTrial { round: 2, purpose: Purpose::Operating, rate: Some(140.0) },
        place: 5,
        outcome: TrialOutcome { checkpoints: 1, ..outcome() },
    };
    let found = &answers(&search, &[both, vec![operating]].concat())[0];
    assert!((found.rate.unwrap() - mean).abs() < 1e-9);
    assert_eq!((found.operating_rate, found.checkpoints), (Some(140.0), Some(1)));
    assert_eq!((found.failing.as_slice(), found.limited_by), (&[2, 4][..], Some(Limit::Latency)));
}

#[test]
fn with_one_rate_nobody_knows_a_lighter_load() {
    let search = CapacitySearch { trials: 1, latency_limits_ms: Vec::new(), ..search(&[]) };
    let busy =
        TrialOutcome { busy: Some(1.0), service_ms: Some(9.0), cpu_idle: Some(0.9), done: 500, ..outcome() };
    let found = &answers(&search, &[tried(1, 100.0, busy)])[0];
    assert_eq!(found.limited_by, Some(Limit::Throughput));
}
