use bench_base::error::UserError;
use bench_model::spec::{Before, Extent, RunArguments};
use bench_results::experiment::SweepSetup;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::capacity::NextTrial;
use crate::capacity::Purpose;
use crate::sweep::*;

fn arguments() -> SweepArguments {
    SweepArguments {
        clients: Some(vec![Some(1), Some(8), Some(4)]),
        rounds: Some(3),
        variants: Some(json!({"off": {"synchronous_commit": "off"}, "on": {"synchronous_commit": "on"}})),
        run: RunArguments {
            workload: Some("pk_update".to_owned()),
            secs: Some(10.0),
            seed: Some(1),
            ..RunArguments::with_defaults()
        },
        ..SweepArguments::default()
    }
}

fn options(change: impl FnOnce(&mut SweepArguments)) -> Result<SweepOptions, UserError> {
    let mut arguments = arguments();
    change(&mut arguments);
    SweepOptions::new(arguments, 7, &mut || {})
}

fn message(change: impl FnOnce(&mut SweepArguments)) -> String {
    options(change).expect_err("it is wrong").to_string()
}

#[test]
fn a_kept_sweep_is_read_with_either_warmup() {
    for warmup in [Some(2.5), None] {
        let options = options(|a| a.run.warmup = warmup).unwrap();
        let kept = serde_json::to_value(&options).unwrap();
        assert_eq!(kept["warmup"], json!(warmup));
        assert_eq!(serde_json::from_value::<SweepOptions>(kept).unwrap(), options);
        let variant = &options.setup.variants[0];
        assert_eq!(options.run_arguments(variant, 1, None).warmup, warmup);
    }
}

#[test]
fn every_cell_comes_once_in_each_round() {
    let options = options(|_| {}).unwrap();
    let plan = options.plan();
    assert_eq!(plan.len(), 18);
    for (place, cells) in plan.chunks(6).enumerate() {
        let mut seen: Vec<(u32, usize)> = cells.iter().map(|cell| (cell.clients, cell.variant)).collect();
        seen.sort_unstable();
        assert_eq!(seen, [(1, 0), (1, 1), (4, 0), (4, 1), (8, 0), (8, 1)]);
        assert!(cells.iter().all(|cell| cell.round as usize == place + 1));
    }
    let orders: Vec<_> =
        plan.chunks(6).map(|round| round.iter().map(|c| (c.clients, c.variant)).collect()).collect();
    let orders: &[Vec<_>] = &orders;
    assert!(orders[0] != orders[1] || orders[1] != orders[2], "rounds have orders of their own");
}

#[test]
fn the_order_is_the_seeds() {
    let of = |seed| options(|a| a.run.seed = Some(seed)).unwrap().plan();
    assert_eq!(of(5), of(5));
    assert!((6..16).any(|seed| of(seed) != of(5)));
    // Kept with a sweep, and so must never change.
    let first: Vec<(u32, usize)> = of(5)[..6].iter().map(|c| (c.clients, c.variant)).collect();
    assert_eq!(first, [(4, 1), (1, 0), (1, 1), (4, 0), (8, 0), (8, 1)]);
}

#[test]
fn what_loads_is_loaded_once_a_round() {
    let options = options(|a| {
        a.variants = Some(json!({"small": {"load": {"rows": 10}}, "large": {"load": {"rows": 1000}}}));
    })
    .unwrap();
    for round in options.plan().chunks(6) {
        let changes = round.windows(2).filter(|pair| pair[0].variant != pair[1].variant).count();
        assert_eq!(changes, 1);
    }
}

#[test]
fn a_variant_goes_before_the_sweep() {
    let options = options(|a| {
        a.run.settings = Some(json!({"work_mem": "1MB", "jit": "off"}));
        a.run.variables = Some(json!({"x": 1, "y": 2}));
        a.variants = Some(json!({"v": {"work_mem": "2MB", "variables": {"x": 3}}}));
    })
    .unwrap();
    let run = options.run_arguments(&options.setup.variants[0], 4, Some(9));
    assert_eq!(run.settings, Some(json!({"work_mem": "2MB", "jit": "off"})));
    assert_eq!(run.variables, Some(json!({"x": 3, "y": 2})));
    assert_eq!((run.clients, run.seed), (Some(4), Some(9)));
}

#[test]
fn groups_are_told_from_parameters() {
    let options = options(|a| {
        a.variants = Some(json!({"v": {
            "jit": "off", "settings": {"work_mem": "1MB"}, "load": {"rows": 5}, "system": {"full_page_writes": "off"}
        }}));
    })
    .unwrap();
    let variant = &options.setup.variants[0];
    assert_eq!(Value::Object(variant.settings.clone()), json!({"jit": "off", "work_mem": "1MB"}));
    assert_eq!(Value::Object(variant.load.clone()), json!({"rows": 5}));
    assert!(options.changes_system());
}

#[test]
fn an_array_of_variants_keeps_its_order() {
    let names = |variants: Value| {
        let options = options(|a| a.variants = Some(variants))?;
        Ok::<_, UserError>(options.setup.variants.into_iter().map(|of| of.name).collect::<Vec<_>>())
    };
    assert_eq!(names(json!({"on": {}, "off": {}})).unwrap(), ["off", "on"]);
    assert_eq!(names(json!([{"on": {}}, {"off": {}, "none": {}}])).unwrap(), ["on", "none", "off"]);
    let error = |variants| names(variants).unwrap_err().message;
    assert_eq!(error(json!([{"on": {}}, {"on": {}}])), "variant \"on\" is given twice");
    assert_eq!(error(json!(["on"])), "each of variants must be a JSON object");
}

#[test]
fn a_variant_may_have_a_driver() {
    let options = options(|a| {
        a.run.query_mode = Some("extended".to_owned());
        a.variants =
            Some(json!({"engine": {}, "wire": {"driver": "wire", "query_mode": "simple", "jobs": 2}}));
    })
    .unwrap();
    let run = |variant: usize| options.run_arguments(&options.setup.variants[variant], 4, Some(9));
    let of = |a: RunArguments| (a.driver.unwrap(), a.query_mode.unwrap(), a.jobs);
    assert_eq!(of(run(0)), ("engine".to_owned(), "extended".to_owned(), None));
    assert_eq!(of(run(1)), ("wire".to_owned(), "simple".to_owned(), Some(2)));
    assert!(options.setup.variants[1].settings.is_empty());
    let all = json!({"driver": "wire", "target": "replica", "reconnect": true, "on_disconnect": "reconnect"});
    let options = self::options(|a| a.variants = Some(json!({ "v": all }))).unwrap();
    let run = options.run_arguments(&options.setup.variants[0], 4, Some(9));
    assert_eq!((run.target.as_deref(), run.reconnect), (Some("replica"), Some(true)));
    assert_eq!(run.on_disconnect.as_deref(), Some("reconnect"));
    for wrong in [
        json!({"reconnect": "true", "driver": "wire"}),
        json!({"reconnect": true}),
        json!({"on_disconnect": true}),
        json!({"target": 1, "driver": "wire"}),
        json!({"jobs": 1.5}),
        json!({"jobs": "2"}),
        json!({"driver": true}),
        json!({"driver": "libpq"}),
        json!({"jobs": 2}),
    ] {
        assert!(message(|a| a.variants = Some(json!({ "v": wrong }))).ends_with("(22023)"));
    }
}

#[test]
fn steps_before_a_run_have_an_order_of_their_own() {
    let options = options(|a| a.run.before = Some("checkpoint, vacuum,checkpoint".to_owned())).unwrap();
    assert_eq!(options.before, [Before::Vacuum, Before::Checkpoint]);
}

#[test]
fn what_is_wrong_is_said() {
    type SweepCase = (fn(&mut SweepArguments), &'static str);
    let cases: [SweepCase; 14] = [
        (
            |a| a.variants = Some(json!({"a": {}, "b": {"load": {"rows": 1}}})),
            "variant \"b\" loads a fixture and variant \"a\" does not (22023)",
        ),
        (|a| a.run.secs = Some(f64::NAN), "secs must be above 0 and at most 31622400, not NaN (22023)"),
        (|a| a.run.workload = None, "workload must not be null (22004)"),
        (|a| a.clients = Some(vec![]), "clients must name at least one rung (22023)"),
        (|a| a.clients = Some(vec![Some(2), None]), "a rung of clients must not be null (22004)"),
        (|a| a.clients = Some(vec![Some(0)]), "clients must be at least 1, not 0 (22023)"),
        (|a| a.clients = Some(vec![Some(2), Some(2)]), "clients names the rung 2 twice (22023)"),
        (|a| a.rounds = Some(0), "rounds must be at least 1, not 0 (22023)"),
        (|a| a.rounds = Some(i32::MAX), "a sweep of 12884901882 runs is more than 10000 (54000)"),
        (|a| a.run.before = Some("reboot".to_owned()), "unrecognized value for before: \"reboot\" (22023)"),
        (|a| a.variants = Some(json!([])), "variants must be a JSON object (22023)"),
        (|a| a.variants = Some(json!({"a": 1})), "variant \"a\" must be a JSON object (22023)"),
        (
            |a| a.variants = Some(json!({"a": {"lod": {}}})),
            "variant \"a\" has an unrecognized group: \"lod\" (22023)",
        ),
        (|a| a.run.secs = Some(-1.0), "secs must be above 0 and at most 31622400, not -1 (22023)"),
    ];
    for (change, expected) in cases {
        assert_eq!(message(change), expected);
    }
}

proptest! {
    #[test]
    fn json_brings_back_what_it_was_given(seed: i64, rounds in 1..5i32, clients in proptest::collection::btree_set(1..1000i32, 1..8)) {
        let options = options(|a| {
            a.run.seed = Some(seed);
            a.rounds = Some(rounds);
            a.clients = Some(clients.iter().copied().map(Some).collect());
        }).unwrap();
        let text = serde_json::to_string(&options).unwrap();
        let back: SweepOptions = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(back.plan(), options.plan());
        prop_assert_eq!(options.plan().len(), rounds as usize * clients.len() * 2);
        let seeds: Vec<i64> = (1..=rounds as u32).map(|round| options.seed_of_round(round)).collect();
        prop_assert!(seeds.windows(2).all(|pair| pair[0] != pair[1]));
    }
}

#[test]
fn whoever_waits_is_served_between_variants() {
    let variants: Map<String, Value> = (0..50).map(|n| (format!("v{n}"), json!({}))).collect();
    let mut pulses = 0;
    let arguments = SweepArguments { variants: Some(Value::Object(variants)), ..arguments() };
    SweepOptions::new(arguments, 7, &mut || pulses += 1).expect("valid");
    assert_eq!(pulses, 50);
}

#[test]
fn more_rungs_than_a_sweep_may_have_runs() {
    let error = options(|a| a.clients = Some(vec![Some(1); 5_000_000])).expect_err("it is wrong");
    assert_eq!(error.sqlstate, "54000");
}

#[test]
fn a_sweep_may_have_a_driver_that_a_variant_replaces() {
    let options = options(|a| {
        a.run.driver = Some("wire".to_owned());
        a.run.jobs = Some(3);
        a.run.reconnect = Some(true);
        a.variants =
            Some(json!({"held": {"reconnect": false}, "single": {"jobs": 1}, "x": {"driver": "engine"}}));
    })
    .unwrap();
    assert_eq!(
        Value::Object(options.setup.run.clone()),
        json!({"driver": "wire", "jobs": 3, "reconnect": true})
    );
    let of = |variant: usize| {
        let run = options.run_arguments(&options.setup.variants[variant], 4, None);
        (run.driver.unwrap(), run.jobs, run.reconnect)
    };
    assert_eq!(of(0), ("wire".to_owned(), Some(3), Some(false)));
    assert_eq!(of(1), ("wire".to_owned(), Some(1), Some(true)));
    assert_eq!(of(2), ("engine".to_owned(), None, Some(false)));
    assert!(message(|a| a.run.jobs = Some(2)).contains("jobs"), "the engine has none");
}

/// Tps of a sweep's first rounds.
fn done(options: &SweepOptions, tps: impl Fn(&SweepCell) -> f64) -> Vec<(SweepCell, f64)> {
    options.plan().into_iter().map(|cell| (cell, tps(&cell))).collect()
}

#[test]
fn rounds_go_on_until_each_mean_is_sure() {
    let options = options(|a| a.rounds = None).unwrap();
    assert_eq!(options.plan().len(), 5 * 6);
    // One rung of one variant varies by ±4 %, all others not at all.
    let varies = |cell: &SweepCell| cell.variant == 1 && cell.clients == 8;
    let tps = |cell: &SweepCell| if varies(cell) && cell.round.is_multiple_of(2) { 1040.0 } else { 1000.0 };
    let further = options.further(&done(&options, tps));
    assert!(further.len() >= 5 && further.iter().all(varies), "{further:?}");
    let rounds: Vec<u32> = further.iter().map(|cell| cell.round).collect();
    assert!(rounds.windows(2).all(|pair| pair[1] == pair[0] + 1) && rounds[0] == 6, "{rounds:?}");
    assert!(options.further(&done(&options, |_| 1000.0)).is_empty());
    let wild_tps = |cell: &SweepCell| if cell.round.is_multiple_of(2) { 100.0 } else { 1000.0 };
    let wild = options.further(&done(&options, wild_tps));
    assert_eq!(wild.iter().map(|cell| cell.round).max(), Some(50), "there is a limit");
    let all = |rounds, tps: &dyn Fn(&SweepCell) -> f64| {
        let setup = SweepSetup { rounds, ..options.setup.clone() };
        done(&SweepOptions { setup, ..options.clone() }, tps)
    };
    assert!(options.reached(&all(50, &wild_tps)).is_some_and(|share| share > 0.3), "and it was too narrow");
    assert!(options.reached(&all(further[further.len() - 1].round, &tps)).is_some_and(|share| share <= 0.02));
    assert!(options.reached(&all(5, &tps)).is_some_and(|share| share > 0.02));
    assert_eq!(options.reached(&all(4, &tps)), None);
    let mut missing = done(&options, |cell| f64::from(cell.round));
    missing.pop();
    assert!(options.further(&missing).is_empty(), "what is missing is made first");
}

#[test]
fn further_rounds_keep_to_the_most_runs() {
    let rungs = (1..=400).map(Some).collect();
    let options = options(|a| (a.rounds, a.clients) = (None, Some(rungs))).unwrap();
    let wild = |cell: &SweepCell| if cell.round.is_multiple_of(2) { 100.0 } else { 1000.0 };
    let (first, further) = (options.plan().len(), options.further(&done(&options, wild)).len());
    // Two variants: 800 runs a round, of which twelve rounds are 9,600.
    assert_eq!((first, first + further), (4000, 9600));
}

fn trial(options: &SweepOptions, purpose: Purpose, round: u32) -> RunArguments {
    options.trial_arguments(&NextTrial { round, purpose, rate: None }, 1)
}

#[test]
fn the_first_run_of_a_search_warms_up() {
    let of = |secs, warmup, nodes: &str| {
        let options = options(|a| {
            (a.run.secs, a.run.warmup, a.run.nodes) = (Some(secs), warmup, Some(nodes.to_owned()));
        });
        let options = options.unwrap();
        let secs = |purpose, round| trial(&options, purpose, round).warmup;
        assert_eq!(secs(Purpose::Trial, 1), warmup);
        assert_eq!(secs(Purpose::Estimate, 2), warmup, "the server is warm by then");
        secs(Purpose::Estimate, 1)
    };
    assert_eq!(of(10.0, Some(0.0), "local"), None);
    assert_eq!(of(10.0, Some(0.0), "workers"), Some(10.0));
    assert_eq!(of(1.0, Some(0.0), "local"), Some(1.0));
    assert_eq!(of(10.0, Some(3.0), "local"), Some(3.0));
}

#[test]
fn trials_have_samples_enough_for_a_trend() {
    for secs in [2.0, 3.0, 5.0, 10.0, 60.0, 3600.0] {
        let options = options(|a| a.run.secs = Some(secs)).unwrap();
        let interval = trial(&options, Purpose::Trial, 1).sample_interval.unwrap();
        assert!(interval >= 0.1 && secs / interval >= 19.99, "{secs}: {interval}");
        assert!(interval <= Extent::Secs(secs).sample_interval_secs());
    }
}

#[test]
fn what_is_compared_goes_on_until_the_ratio_is_sure() {
    let options = options(|a| (a.rounds, a.paired) = (None, true)).unwrap();
    // All drift alike, by far.
    let drift = |cell: &SweepCell| 1000.0 * f64::from(cell.round);
    assert!(options.further(&done(&options, drift)).is_empty());
    let apart = |cell: &SweepCell| {
        drift(cell) * if cell.variant == 1 && cell.round.is_multiple_of(2) { 1.03 } else { 1.0 }
    };
    let further = options.further(&done(&options, apart));
    let of = |variant| further.iter().filter(|cell| cell.variant == variant).count();
    assert!(of(0) > 0 && of(0) == of(1));
}

#[test]
fn a_number_of_rounds_is_final() {
    let options = options(|_| {}).unwrap();
    assert!(options.further(&done(&options, |cell| f64::from(cell.round))).is_empty());
}
