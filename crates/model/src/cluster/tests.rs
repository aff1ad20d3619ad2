use bench_base::error::UserError;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn nodes(count: i32) -> Vec<NodeSpec> {
    (0..count)
        .map(|number| NodeSpec {
            node: number + 1,
            host: "db".to_owned(),
            port: 5432 + number,
            is_coordinator: number == 0,
            is_local: number == 0,
            clients: 0,
        })
        .collect()
}

fn placed(count: i32, chosen: Nodes) -> Vec<u32> {
    let mut all = nodes(count);
    place(&mut all, chosen, 8).expect("placed");
    all.iter().map(|node| node.clients).collect()
}

#[test]
fn clients_are_on_the_chosen_nodes() {
    assert_eq!(placed(3, Nodes::Local), [8, 0, 0]);
    assert_eq!(placed(3, Nodes::Workers), [0, 8, 8]);
    assert_eq!(placed(3, Nodes::All), [8, 8, 8]);
    assert_eq!(placed(1, Nodes::All), [8]);
}

#[test]
fn nodes_that_are_not_there_are_not_chosen() {
    let error = place(&mut nodes(1), Nodes::Workers, 8).expect_err("no workers");
    assert_eq!((error.sqlstate.as_str(), error.message.contains("no workers")), ("55000", true));
    let mut workers = nodes(3).split_off(1);
    let error = place(&mut workers, Nodes::All, 8).expect_err("no coordinator");
    assert!(error.hint.is_some_and(|hint| hint.contains("citus_set_coordinator_host")));
    let mut unknown = nodes(3);
    unknown[0].node = 0;
    place(&mut unknown, Nodes::All, 8).expect_err("a coordinator that only knows itself");
    place(&mut workers, Nodes::Workers, 8).expect("workers can do without");
}

const ROOMY: Limits = Limits {
    max_connections: 100,
    reserved: 3,
    in_use: 2,
    max_shared_pool_size: 0,
    max_client_connections: -1,
    max_worker_processes: 20,
    workers_in_use: 3,
    cached_connections: 1,
    executor_pool: 16,
};

fn demand(holds: bool, tasks: u32) -> Demand {
    Demand { holds, tasks, script: None }
}

fn check(chosen: Nodes, clients: u32, limits: &[Limits]) -> Result<(), UserError> {
    let mut all = nodes(limits.len() as i32);
    place(&mut all, chosen, clients)?;
    check_connections(&all.into_iter().zip(limits.iter().cloned()).collect::<Vec<_>>(), &demand(true, 1))
}

#[test]
fn a_pool_has_to_have_room_for_all_clients_and_five() {
    let pool = |size| [Limits { max_shared_pool_size: size, ..ROOMY }, ROOMY, ROOMY];
    check(Nodes::Local, 20, &pool(25)).expect("just enough");
    let error = check(Nodes::Local, 20, &pool(24)).expect_err("one too few");
    assert_eq!(error.sqlstate, "53300");
    assert!(error.message.contains("db:5432"), "{}", error.message);
    let detail = error.detail.unwrap_or_default();
    assert!(detail.contains("25") && detail.contains("is 24"), "{detail}");
    assert!(error.hint.unwrap_or_default().contains("19"));
    check(Nodes::Local, 90, &pool(-1)).expect("no limit");
    // Nobody else to connect to.
    check(Nodes::Local, 20, &pool(24)[..1]).expect("one node");
    // It only serves the others.
    check(Nodes::Workers, 20, &pool(24)).expect("no clients there");
}

#[test]
fn a_pool_without_a_size_is_that_of_max_connections() {
    let small = Limits { max_connections: 30, reserved: 0, in_use: 0, ..ROOMY };
    check(Nodes::Local, 25, &[small.clone(), ROOMY]).expect("just enough");
    let error = check(Nodes::Local, 26, &[small, ROOMY]).expect_err("one too few");
    assert!(error.detail.unwrap_or_default().contains("max_connections counts, which is 30"));
    let role = Limits { max_client_connections: 10, ..ROOMY };
    check(Nodes::Local, 5, &[role.clone(), ROOMY]).expect("just enough");
    let error = check(Nodes::Local, 6, &[role, ROOMY]).expect_err("one too few");
    assert!(error.detail.unwrap_or_default().contains("citus.max_client_connections counts, which is 10"));
}

#[test]
fn a_node_has_to_have_slots_for_its_clients_and_for_what_leads_them() {
    let check = |chosen, clients| {
        let mut all = nodes(3);
        place(&mut all, chosen, clients)?;
        check_worker_slots(&all.into_iter().map(|node| (node, ROOMY)).collect::<Vec<_>>())
    };
    check(Nodes::Workers, 16).expect("16 clients, one that leads them, and 3 in use");
    let error = check(Nodes::Workers, 17).expect_err("one too many");
    assert_eq!((error.sqlstate.as_str(), error.message.contains("db:5433")), ("53400", true));
    assert!(error.hint.unwrap_or_default().contains("at least 21"));
    check(Nodes::All, 12).expect("three nodes and the whole besides");
    assert!(check(Nodes::All, 13).expect_err("one too many").message.contains("db:5432"));
}

#[test]
fn clients_that_nobody_has_counted_are_as_many_as_fit() {
    let room = |chosen, all: &[Limits]| {
        room_for(
            64,
            &nodes(all.len() as i32).into_iter().zip(all.iter().cloned()).collect::<Vec<_>>(),
            chosen,
        )
    };
    // The node that is asked has a sweep's leader as well.
    assert_eq!(room(Nodes::Workers, &[ROOMY, ROOMY, ROOMY]), 16);
    assert_eq!(room(Nodes::All, &[ROOMY, ROOMY, ROOMY]), 11);
    let many = Limits { max_worker_processes: 1000, ..ROOMY };
    assert_eq!(room(Nodes::All, &[many.clone(), many.clone(), many.clone()]), 46, "two others' 46");
    assert_eq!(room(Nodes::Workers, &[many.clone(), many]), 64, "as many as are wanted");
    let none = Limits { max_worker_processes: 3, ..ROOMY };
    assert_eq!(room(Nodes::All, &[none.clone(), none]), 1);
    assert_eq!(ROOMY.free_connections(), 92);
}

#[test]
fn clients_wait_for_what_other_sessions_keep_with_blocks_or_without() {
    let check = |limits: Limits, demand: Demand| {
        let mut all = nodes(2);
        place(&mut all, Nodes::Local, 30).expect("placed");
        check_connections(&all.into_iter().map(|node| (node, limits.clone())).collect::<Vec<_>>(), &demand)
    };
    let small = Limits { max_shared_pool_size: 10, ..ROOMY };
    let error = check(small.clone(), demand(false, 5)).expect_err("each keeps one");
    assert!(
        error
            .detail
            .unwrap_or_default()
            .contains("Needed to each other node: 35 (one for each of 30 clients")
    );
    assert!(error.hint.unwrap_or_default().contains("at most 5 clients"));
    let uncached = Limits { cached_connections: 0, ..small };
    check(uncached.clone(), demand(false, 5)).expect("nobody keeps what another needs");
    check(uncached, demand(true, 5)).expect_err("they may");
}

#[test]
fn a_larger_cache_takes_more_of_the_pool() {
    let check = |pool, cached_connections, demand: Demand| {
        let mut all = nodes(3);
        place(&mut all, Nodes::Local, 30).expect("placed");
        let limits = Limits { max_shared_pool_size: pool, cached_connections, ..ROOMY };
        check_connections(&all.into_iter().map(|node| (node, limits.clone())).collect::<Vec<_>>(), &demand)
    };
    check(35, 1, demand(false, 5)).expect("one each");
    check(155, 16, demand(false, 5)).expect("five each");
    let planned = Demand { script: Some("mine".to_owned()), ..demand(false, 5) };
    let error = check(154, 16, planned).expect_err("one too few");
    let detail = error.detail.unwrap_or_default();
    assert!(detail.contains("155 (5 for each of 30 clients"), "{detail}");
    assert!(detail.contains("script \"mine\" has 5 tasks on one node"), "{detail}");
    let hint = error.hint.unwrap_or_default();
    assert!(
        hint.contains("at most 29 clients") && hint.contains("lower citus.max_cached_conns_per_worker"),
        "{hint}"
    );
    let error = check(8, 16, Demand::most()).expect_err("less than a client's");
    assert!(!error.hint.unwrap_or_default().contains("0 clients"));
}

#[test]
fn settings_of_a_run_count_for_its_sessions() {
    let mut limits = ROOMY;
    let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    limits.set(&[
        setting("Citus.max_cached_conns_per_worker", "7"),
        setting("citus.max_adaptive_executor_pool_size", " 3"),
        setting("work_mem", "64"),
        setting("citus.max_cached_conns_per_worker", "many"),
    ]);
    assert_eq!((limits.cached_connections, limits.executor_pool), (7, 3));
}

#[test]
fn a_node_has_to_bear_the_clients_of_all_others() {
    check(Nodes::Local, 92, &[ROOMY, ROOMY]).expect("100 less 3, 2 and 3 more");
    let error = check(Nodes::Local, 93, &[ROOMY, ROOMY]).expect_err("one too many");
    assert!(error.message.contains("db:5433"), "{}", error.message);
    assert!(error.hint.unwrap_or_default().contains("101"));
    check(Nodes::All, 46, &[ROOMY, ROOMY, ROOMY]).expect("two others' 46");
    check(Nodes::All, 47, &[ROOMY, ROOMY, ROOMY]).expect_err("two others' 47");
}

#[test]
fn without_an_answer_there_is_no_offset() {
    assert_eq!(clock_offset(&[]), None);
}

proptest! {
    /// Whatever the delays, the true offset is within the error, and more exchanges never widen it.
    #[test]
    fn the_true_offset_is_within_the_error(
        offset in -10_000_000_i64..10_000_000,
        delays in proptest::collection::vec((0_i64..50_000, 0_i64..50_000, 0_i64..50_000), 1..8),
    ) {
        let mut now = 1_000_000_000;
        let exchanges: Vec<ClockReading> = delays
            .iter()
            .map(|(there, work, back)| {
                let sent_us = now;
                now += there + work + back;
                ClockReading {
                    sent_us,
                    began_us: sent_us + there + offset,
                    answered_us: sent_us + there + work + offset,
                    received_us: now,
                }
            })
            .collect();
        let found = clock_offset(&exchanges).expect("an offset");
        prop_assert!((found.offset_us - offset as f64).abs() <= found.error_us);
        let first = clock_offset(&exchanges[..1]).expect("an offset");
        prop_assert!(found.error_us <= first.error_us);
    }

    /// Calls up to three times as slow as the slowest so far still come in time.
    #[test]
    fn the_margin_bears_slower_calls(slowest in 0_i64..1_000_000) {
        prop_assert!(start_margin_us(slowest) > 3 * slowest);
    }
}

#[test]
fn samples_are_thinned_only_where_there_are_too_many() {
    let secs = |wanted, nodes, secs| sample_interval_secs(wanted, nodes, secs);
    assert_eq!(secs(1.0, 50, Some(600.0)), 1.0);
    assert_eq!(secs(0.1, 10, Some(600.0)), 0.1);
    assert_eq!(secs(0.1, 50, Some(600.0)), 0.5);
    assert_eq!(secs(0.1, 50, None), 0.5);
    // A day on fifty nodes: 4,320,000 samples at one a second.
    assert_eq!(secs(1.0, 50, Some(86_400.0)), 4.4);
    assert_eq!(secs(10.0, 50, Some(86_400.0)), 10.0);
}

fn machines_of(nodes: &[(i32, &str, Option<&str>)]) -> Vec<i32> {
    let tenants: Vec<_> =
        nodes.iter().map(|&(node, host, identity)| Tenant { node, host, identity }).collect();
    machines(&tenants)
}

#[test]
fn nodes_of_one_machine_have_one_number() {
    let same =
        [(1, "db0", Some("x")), (2, "127.0.0.1", Some("x")), (3, "db2", Some("y")), (4, "db0", Some("y"))];
    assert_eq!(machines_of(&same), [1, 1, 3, 3], "whatever they are called");
    assert_eq!(machines_of(&[(2, "db0", None), (5, "db0", None), (7, "db1", None)]), [2, 2, 7]);
    assert_eq!(machines_of(&[(2, "db0", Some("x")), (5, "db0", None)]), [2, 2]);
    assert_eq!(machines_of(&[]), Vec::<i32>::new());
}

fn limits(cached_connections: u32, executor_pool: u32) -> Limits {
    Limits { cached_connections, executor_pool, ..Limits::default() }
}

#[test]
fn a_client_keeps_a_connection_for_each_task_up_to_what_its_session_caches() {
    assert_eq!(demand(false, 1).connections(&limits(1, 16)), 1);
    assert_eq!(demand(false, 9).connections(&limits(1, 16)), 1, "the others are optional");
    assert_eq!(demand(false, 9).connections(&limits(4, 16)), 4);
    assert_eq!(demand(false, 5).connections(&limits(32, 16)), 5);
    assert_eq!(demand(false, 40).connections(&limits(32, 16)), 16, "no more than the executor opens");
    assert_eq!(Demand::most().connections(&limits(32, 16)), 16);
    assert_eq!(demand(false, 0).connections(&limits(1, 16)), 1);
}

#[test]
fn without_a_cache_a_client_holds_one_where_it_waits_for_another() {
    assert_eq!(demand(false, 9).connections(&limits(0, 16)), 0);
    assert_eq!(demand(true, 9).connections(&limits(0, 16)), 1);
}

fn job(count: u32, nodes: &[&str]) -> Value {
    let tasks: Vec<Value> = nodes
        .iter()
        .map(|node| json!({ "Node": node, "Remote Plan": [[{ "Plan": { "Node Type": "Insert" } }]] }))
        .collect();
    json!({ "Task Count": count, "Tasks Shown": "All", "Tasks": tasks })
}

fn plan(job: Value) -> Value {
    json!([{ "Plan": { "Node Type": "Custom Scan", "Distributed Query": { "Job": job } } }])
}

fn fan_out(plan: &Value) -> (u32, u32, u32) {
    let FanOut { tasks, all, steps } = FanOut::of_plan(plan, false);
    (tasks, all, steps)
}

#[test]
fn tasks_count_by_the_node_that_they_are_on() {
    assert_eq!(fan_out(&plan(job(5, &["a", "b", "a", "a", "b"]))), (3, 5, 1));
    assert_eq!(fan_out(&plan(job(1, &["a"]))), (1, 1, 1));
    assert_eq!(fan_out(&json!([{ "Plan": { "Node Type": "Result" } }])), (0, 0, 0));
    assert_eq!(fan_out(&Value::Null), (0, 0, 0));
}

#[test]
fn what_a_plan_does_not_show_may_be_on_one_node() {
    assert_eq!(fan_out(&plan(job(9, &["a", "b"]))), (8, 9, 1));
    assert_eq!(fan_out(&plan(json!({ "Task Count": 4, "Tasks": [{ "Error": "no plan" }] }))), (4, 4, 1));
    let repartition = json!({
        "Task Count": 4, "Tasks Shown": "None, not supported for re-partition queries",
        "Dependent Jobs": [{ "Map Task Count": 32, "Merge Task Count": 4 }]
    });
    assert_eq!(fan_out(&plan(repartition)), (32, 36, 2));
    let copies = FanOut::of_plan(&plan(job(5, &["a", "b", "a", "a", "b"])), true);
    assert_eq!(copies.tasks, 5, "each is on two nodes");
}

#[test]
fn the_largest_step_of_a_statement_counts() {
    let both = json!([{ "Plan": { "Distributed Query": {
        "Subplans": [{ "PlannedStmt": [{ "Plan": { "Distributed Query": { "Job": job(4, &["a", "a", "a", "b"]) } } }] }],
        "Job": job(2, &["a", "b"])
    } } }]);
    assert_eq!(fan_out(&both), (3, 6, 2));
}

#[test]
fn an_insert_of_several_rows_takes_one_at_a_time() {
    let rows =
        FanOut::of_plan(&plan(job(9, &["a", "b", "a", "b", "a", "b", "a", "b", "a"])), false).one_by_one();
    assert_eq!(rows, FanOut { tasks: 1, all: 9, steps: 9 });
    assert_eq!(FanOut::default().one_by_one(), FanOut::default());
}
