use serde_json::json;

use super::*;
use crate::cluster::ClusterSpec;
use crate::spec::{FixtureSpec, RunArguments, ScriptSpec};

fn request() -> PartRequest {
    let arguments = RunArguments {
        workload: Some("pk_select@9,pk_update".to_owned()),
        clients: Some(4),
        secs: Some(1.5),
        warmup: Some(0.5),
        rate: Some(100.0),
        latency_limit: Some(10.0),
        max_tries: Some(3),
        seed: Some(7),
        variables: Some(json!({ "x": 1 })),
        settings: Some(json!({ "work_mem": "8MB" })),
        sample_interval: Some(0.5),
        query_mode: Some("simple".to_owned()),
        results: Some("discard".to_owned()),
        nodes: Some("all".to_owned()),
        tags: Some(json!({ "release": "42" })),
        log_rate: Some(0.5),
        ..RunArguments::with_defaults()
    };
    let options = RunOptions::new(arguments).expect("options");
    let script = |name: &str, weight| ScriptSpec {
        name: name.to_owned(),
        source: "SELECT 1;".to_owned(),
        weight,
        fixture: Some(0),
        ..ScriptSpec::default()
    };
    let fixture = FixtureSpec {
        name: "pk".to_owned(),
        schema: Some("bench_data".to_owned()),
        rows: 10,
        scale: 1,
        tables: vec![1],
        shard_keys: vec![],
        options: json!({}),
    };
    let spec = RunSpec {
        options,
        seed: 7,
        scripts: vec![script("pk_select", 9), script("pk_update", 1)],
        fixtures: vec![fixture],
        role: "dba".to_owned(),
        role_oid: 10,
        database_oid: 5,
        database: "postgres".into(),
        sweep_id: Some(3),
        cluster: Some(ClusterSpec::default()),
        ..RunSpec::default()
    };
    PartRequest { spec, tables: vec![vec![("bench_data".to_owned(), "pk".to_owned())]], kept: Vec::new() }
}

#[test]
fn a_part_has_the_options_of_the_whole() {
    let sent = request();
    let text = serde_json::to_string(&sent).expect("JSON");
    let received: PartRequest = serde_json::from_str(&text).expect("a request");
    let checked = received.checked().expect("whole").spec;
    assert_eq!(checked.options, sent.spec.options);
    assert_eq!((checked.cluster, checked.sweep_id), (None, None));
}

#[test]
fn a_part_has_sessions_of_whoever_asks_only() {
    let mut sent = request();
    let superuser = crate::spec::Role { name: "postgres".to_owned(), oid: 10 };
    sent.spec.scripts[0].role = Some(superuser.clone());
    sent.spec.caller = Some(superuser.clone());
    sent.spec.answering = vec![superuser];
    sent.spec.may_be_special = true;
    let connects = RunArguments {
        workload: Some("pk_select@9,pk_update".to_owned()),
        driver: Some("wire".to_owned()),
        target: Some("elsewhere".to_owned()),
        ..RunArguments::with_defaults()
    };
    sent.spec.options = RunOptions::new(connects).expect("options");
    let checked = sent.checked().expect("whole").spec;
    assert!(checked.answering.is_empty() && !checked.may_be_special);
    assert!(checked.scripts.iter().all(|script| script.role.is_none()));
    assert_eq!((checked.caller, checked.options.run_as, checked.options.target), (None, None, None));
}

#[test]
fn a_part_that_sql_would_refuse_is_refused() {
    let refused = |change: &dyn Fn(&mut PartRequest)| {
        let mut request = request();
        change(&mut request);
        request.checked().expect_err("refused").sqlstate
    };
    assert_eq!(refused(&|r| r.spec.options.clients = 0), "22023");
    assert_eq!(refused(&|r| r.spec.options.clients = u32::MAX), "22023");
    assert_eq!(refused(&|r| r.spec.options.sample_interval_secs = 1e-9), "22023");
    assert_eq!(refused(&|r| r.spec.options.workload = "a,b,c".to_owned()), "22023");
    assert_eq!(refused(&|r| r.spec.scripts[0].weight = 8), "22023");
    assert_eq!(refused(&|r| r.spec.scripts[1].fixture = Some(1)), "22023");
    assert_eq!(refused(&|r| r.tables.clear()), "22023");
}
