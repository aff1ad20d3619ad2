use serde_json::{Map, Value};

use super::values::MAX_SETTINGS;
use super::*;

fn defaults() -> RunArguments {
    RunArguments {
        workload: Some("pk_update".to_owned()),
        sample_interval: Some(1.0),
        ..RunArguments::with_defaults()
    }
}

fn state(arguments: RunArguments) -> String {
    RunOptions::new(arguments).expect_err("an error").sqlstate
}

#[test]
fn defaults_are_ten_seconds() {
    assert_eq!(RunOptions::new(defaults()).expect("valid").extent, Extent::Secs(10.0));
}

#[test]
fn samples_are_as_long_as_a_run_asks_for() {
    let of = |secs, transactions| {
        let arguments = RunArguments { secs, transactions, sample_interval: None, ..defaults() };
        RunOptions::new(arguments).expect("valid").sample_interval_secs
    };
    for (secs, interval) in [(0.1, 0.25), (10.0, 0.25), (29.9, 0.25), (30.0, 0.5), (60.0, 1.0), (1e5, 1.0)] {
        assert_eq!(of(Some(secs), None), interval, "{secs} s");
    }
    assert_eq!(of(None, None), 0.25, "ten seconds");
    assert_eq!(of(None, Some(100)), 1.0);
}

#[test]
fn a_warmup_without_an_end_has_short_samples() {
    let of = |warmup, sample_interval| {
        let arguments = RunArguments { warmup, sample_interval: Some(sample_interval), ..defaults() };
        RunOptions::new(arguments).expect("valid").warmup_interval_secs()
    };
    assert_eq!((of(Some(5.0), 1.0), of(None, 1.0), of(None, 0.1)), (1.0, 0.25, 0.1));
    for nodes in ["workers", "all"] {
        let arguments = RunArguments { warmup: None, nodes: Some(nodes.to_owned()), ..defaults() };
        assert_eq!(state(arguments), "0A000");
    }
}

#[test]
fn numbers_out_of_range() {
    for clients in [0, -1, i32::MIN] {
        assert_eq!(state(RunArguments { clients: Some(clients), ..defaults() }), "22023");
    }
    for secs in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e12] {
        assert_eq!(state(RunArguments { secs: Some(secs), ..defaults() }), "22023", "{secs}");
    }
    for warmup in [-1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(state(RunArguments { warmup: Some(warmup), ..defaults() }), "22023");
    }
    for interval in [0.0, 0.01, f64::NAN, 4000.0] {
        assert_eq!(state(RunArguments { sample_interval: Some(interval), ..defaults() }), "22023");
    }
    for log_rate in [-0.1, 1.1, f64::NAN] {
        assert_eq!(state(RunArguments { log_rate: Some(log_rate), ..defaults() }), "22023", "{log_rate}");
    }
    assert_eq!(state(RunArguments { transactions: Some(0), ..defaults() }), "22023");
    for number in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(state(RunArguments { rate: Some(number), ..defaults() }), "22023");
        assert_eq!(state(RunArguments { latency_limit: Some(number), ..defaults() }), "22023");
    }
    assert_eq!(state(RunArguments { max_tries: Some(-1), ..defaults() }), "22023");
}

#[test]
fn steps_before_a_run_survive_their_text() {
    let of = |before: &str| RunOptions::new(RunArguments { before: Some(before.into()), ..defaults() });
    for (before, text) in [("none", "none"), (" checkpoint,vacuum , vacuum", "vacuum,checkpoint")] {
        let options = of(before).expect("valid");
        assert_eq!(options.arguments().expect("valid").before.as_deref(), Some(text));
        assert_eq!(of(text).expect("valid").before, options.before);
    }
    for before in ["", "vacuum,", "none,vacuum", "Vacuum"] {
        assert_eq!(of(before).expect_err("an error").sqlstate, "22023", "{before}");
    }
}

#[test]
fn nulls_and_exclusions() {
    assert_eq!(state(RunArguments { workload: None, ..defaults() }), "22004");
    assert_eq!(state(RunArguments { clients: None, ..defaults() }), "22004");
    assert_eq!(state(RunArguments { log_rate: None, ..defaults() }), "22004");
    assert_eq!(state(RunArguments { exit_on_abort: None, ..defaults() }), "22004");
    assert_eq!(state(RunArguments { continue_on_error: None, ..defaults() }), "22004");
    assert_eq!(state(RunArguments { reconnect: None, ..defaults() }), "22004");
    assert_eq!(state(RunArguments { on_disconnect: None, ..defaults() }), "22004");
    assert_eq!(state(RunArguments { secs: Some(1.0), transactions: Some(1), ..defaults() }), "22023");
    assert_eq!(state(RunArguments { transactions: Some(1), max_tries: Some(0), ..defaults() }), "22023");
}

#[test]
fn the_contract_s_later_parts_are_refused_by_name() {
    assert_eq!(state(RunArguments { nodes: Some("everywhere".into()), ..defaults() }), "22023");
}

#[test]
fn mixes() {
    let of = |workload: &str| RunOptions::new(RunArguments { workload: Some(workload.into()), ..defaults() });
    let shares = |workload: &str| {
        of(workload).expect("valid").mix.into_iter().map(|s| (s.workload, s.weight)).collect::<Vec<_>>()
    };
    assert_eq!(shares("a"), [("a".to_owned(), 1)]);
    assert_eq!(shares("a@9, b@1,c"), [("a".to_owned(), 9), ("b".to_owned(), 1), ("c".to_owned(), 1)]);
    assert_eq!(shares("a@0,b@2147483647"), [("a".to_owned(), 0), ("b".to_owned(), 2_147_483_647)]);
    for wrong in ["a@", "a@x", "a@-1", "a@1.5", "a@2147483648", "a@0", "a@0,b@0", "a@1@2"] {
        assert_eq!(of(wrong).expect_err(wrong).sqlstate, "22023");
    }
    assert_eq!(of(&"a,".repeat(128)).expect_err("too many").sqlstate, "22023");
}

#[test]
fn a_name_stands_for_a_mix() {
    let share = |workload: &str, weight| Share { workload: workload.to_owned(), weight, is_dealt: false };
    let of_name = |name: &str| Ok((name == "both").then(|| vec![share("a", 9), share("b", 1)]));
    let expanded = |text: &str| expand(&mix(text).expect("a mix"), of_name);
    assert_eq!(expanded("both@2,c").expect("valid"), [share("a", 18), share("b", 2), share("c", 1)]);
    assert_eq!(expanded("both@2147483647").expect_err("too large").sqlstate, "22023");
    let dealt = |workload: &str, weight| Share { is_dealt: true, ..share(workload, weight) };
    assert_eq!(expanded("deck:both@2,c").expect("a deck"), [dealt("a", 18), dealt("b", 2), dealt("c", 1)]);
    assert_eq!(expanded(" deck: a@9999,b").expect("a deck"), [dealt("a", 9999), dealt("b", 1)]);
    assert_eq!(expanded("deck:a@10000,b").expect_err("too many cards").sqlstate, "22023");
    let of_deck = |name: &str| Ok((name == "both").then(|| vec![dealt("a", 10), dealt("b", 1)]));
    assert_eq!(expand(&mix("both").expect("a mix"), of_deck), Ok(vec![dealt("a", 10), dealt("b", 1)]));
    let beside = expand(&mix("both,c@5").expect("a mix"), of_deck).expect_err("a deck beside a weight");
    assert_eq!((beside.sqlstate.as_str(), beside.hint.is_some()), ("22023", true));
    assert_eq!(expanded("both,".repeat(65).trim_end_matches(',')).expect_err("too many").sqlstate, "22023");
}

#[test]
fn json_arguments() {
    let json = |text: &str| Some(serde_json::from_str(text).expect("JSON"));
    assert_eq!(state(RunArguments { variables: json("[1]"), ..defaults() }), "22023");
    assert_eq!(state(RunArguments { variables: json(r#"{"1x": 1}"#), ..defaults() }), "22023");
    assert_eq!(state(RunArguments { variables: json(r#"{"x": [1]}"#), ..defaults() }), "22023");
    assert_eq!(state(RunArguments { settings: json(r#"{"work_mem": null}"#), ..defaults() }), "22023");
    assert_eq!(state(RunArguments { tags: json("1"), ..defaults() }), "22023");
    let options = RunOptions::new(RunArguments {
        settings: json(r#"{"work_mem": "4MB", "jit": false, "geqo_effort": 3}"#),
        ..defaults()
    })
    .expect("valid");
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(options.settings, [pair("geqo_effort", "3"), pair("jit", "off"), pair("work_mem", "4MB")]);
}

#[test]
fn a_spec_survives_its_journey() {
    let spec = RunSpec {
        options: RunOptions::new(defaults()).expect("valid"),
        seed: -3,
        scripts: vec![ScriptSpec {
            name: "x".into(),
            source: "SELECT 1;".into(),
            weight: 1,
            terminal: Some(Terminal { keying_secs: 18.0, think_secs: 12.0 }),
            is_dealt: true,
            ..ScriptSpec::default()
        }],
        role: "r".into(),
        role_oid: 10,
        database_oid: 5,
        database: "postgres".into(),
        starter: Starter { pid: 7, has_unsent: true },
        ..RunSpec::default()
    };
    let text = serde_json::to_string(&spec).expect("serializes");
    assert_eq!(serde_json::from_str::<RunSpec>(&text).expect("parses"), spec);
}

#[test]
fn arguments_beyond_the_limits() {
    let long = || Some("x".repeat(MAX_ARGUMENT + 1));
    for arguments in [
        RunArguments { workload: long(), ..defaults() },
        RunArguments { driver: long(), ..defaults() },
        RunArguments { query_mode: long(), ..defaults() },
        RunArguments { results: long(), ..defaults() },
        RunArguments { nodes: long(), ..defaults() },
    ] {
        assert_eq!(state(arguments), "54000");
    }
    let settings = |count: usize| {
        let all: Map<String, Value> = (0..count).map(|n| (format!("a.b{n}"), n.into())).collect();
        RunOptions::new(RunArguments { settings: Some(Value::Object(all)), ..defaults() })
    };
    assert_eq!(settings(MAX_SETTINGS).expect("as many as may be").settings.len(), MAX_SETTINGS);
    assert_eq!(settings(MAX_SETTINGS + 1).expect_err("one more").sqlstate, "54000");
}

#[test]
fn a_script_stands_in_place_of_a_workload() {
    let script = Some("SELECT 1;".to_owned());
    let both = RunArguments { script: script.clone(), ..defaults() };
    assert_eq!(state(both.clone()), "22023");
    let options = RunOptions::new(RunArguments { workload: None, ..both }).expect("valid");
    assert_eq!((options.workload.as_str(), &options.script), (SCRIPT, &script));
    assert_eq!(options.mix, [Share { workload: SCRIPT.to_owned(), weight: 1, is_dealt: false }]);
    assert_eq!(RunOptions::new(options.arguments().expect("valid")), Ok(options));
}

#[test]
fn the_wire_driver_has_jobs_and_takes_all_rows() {
    let wire = RunArguments { driver: Some("wire".into()), ..defaults() };
    let options = RunOptions::new(wire.clone()).expect("valid");
    assert_eq!((options.driver, options.jobs), (Driver::Wire, None));
    let two = RunOptions::new(RunArguments { jobs: Some(2), ..wire.clone() }).expect("valid");
    assert_eq!(two.jobs, Some(2));
    assert_eq!(RunOptions::new(two.arguments().expect("valid")).expect("valid"), two);
    assert_eq!(state(RunArguments { jobs: Some(0), ..wire.clone() }), "22023");
    assert_eq!(state(RunArguments { jobs: Some(2), ..defaults() }), "22023");
    assert_eq!(state(RunArguments { results: Some("discard".into()), ..wire.clone() }), "0A000");
    let all = RunArguments {
        target: Some("replica".into()),
        reconnect: Some(true),
        on_disconnect: Some("reconnect".into()),
        ..wire.clone()
    };
    let options = RunOptions::new(all.clone()).expect("valid");
    assert_eq!(options.target.as_deref(), Some("replica"));
    assert_eq!((options.reconnect, options.on_disconnect), (true, OnDisconnect::Reconnect));
    assert_eq!(RunOptions::new(options.arguments().expect("valid")), Ok(options));
    for alone in [
        RunArguments { target: all.target, ..defaults() },
        RunArguments { reconnect: all.reconnect, ..defaults() },
        RunArguments { on_disconnect: all.on_disconnect, ..defaults() },
        RunArguments { target: Some(String::new()), ..wire.clone() },
        RunArguments { on_disconnect: Some("wait".into()), ..wire.clone() },
    ] {
        assert_eq!(state(alone), "22023");
    }
    assert_eq!(state(RunArguments { nodes: Some("all".into()), ..wire }), "0A000");
}

#[test]
fn exit_on_abort_is_of_one_node() {
    let local = RunArguments { exit_on_abort: Some(true), ..defaults() };
    assert!(RunOptions::new(local.clone()).expect("valid").exit_on_abort);
    assert_eq!(state(RunArguments { nodes: Some("all".into()), ..local }), "0A000");
}
