//! Each risk just above its threshold and just below it, on a server at rest.

use bench_model::spec::Before;
use bench_results::Severity;
use proptest::prelude::*;
use serde_json::json;

use crate::preflight::situation::{BlockingLock, Situation, TableStatistics, warning};
use crate::preflight::*;

const GB: f64 = 1024.0 * 1024.0 * 1024.0;

/// A run of a minute that writes, on a server at rest that shows everything, with a table as it was loaded.
fn at_rest() -> Situation {
    let settings = [
        ("fsync", "on"),
        ("full_page_writes", "on"),
        ("synchronous_commit", "on"),
        ("autovacuum", "on"),
        ("track_counts", "on"),
        ("autovacuum_naptime", "60"),
        ("autovacuum_vacuum_threshold", "50"),
        ("autovacuum_vacuum_scale_factor", "0.2"),
        ("autovacuum_vacuum_insert_threshold", "1000"),
        ("autovacuum_vacuum_insert_scale_factor", "0.2"),
        ("autovacuum_analyze_threshold", "50"),
        ("autovacuum_analyze_scale_factor", "0.1"),
        ("autovacuum_freeze_max_age", "200000000"),
    ];
    Situation {
        plan: PlannedRun { secs: Some(60.0), writes: true, ..PlannedRun::default() },
        server: ServerState {
            active: Some(0),
            runs: Some(0),
            statement_timeout_secs: None,
            checkpoint: Some(Checkpoint {
                is_under_way: false,
                since_secs: 10.0,
                timeout_secs: 300.0,
                wal_bytes: 0.0,
                max_wal_bytes: GB,
                completion_target: 0.9,
            }),
            locks: Some(Vec::new()),
            tables: Some(vec![table()]),
            fixtures: Some(vec![FixtureState {
                name: "pk".to_owned(),
                rows: 10_000.0,
                loaded_bytes: Some(GB),
                bytes: Some(GB),
                live: Some(10_000.0),
            }]),
            holders: Some(Vec::new()),
            slots: Some(Vec::new()),
            settings: Some(settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into()),
        },
        machine: MachineState {
            busy: Some(0.04),
            steal: Some(0.0),
            processors: Some(8),
            governors: [("performance".to_owned(), 8)].into(),
            swapped_per_sec: Some(0.0),
            swap_used_bytes: Some(0.0),
            memory_bytes: Some(16.0 * GB),
        },
    }
}

fn table() -> TableStatistics {
    TableStatistics {
        relation: "bench_data.pk".to_owned(),
        live: 10_000.0,
        reltuples: 10_000.0,
        xid_age: 12.0,
        ..TableStatistics::default()
    }
}

/// The risks of a server at rest but for one thing, as `severity topic: finding`, with a + where a run tells it.
fn with(change: impl FnOnce(&mut Situation)) -> Vec<String> {
    let mut situation = at_rest();
    change(&mut situation);
    let line = |risk: Risk| {
        let announced = if risk.announced == Announced::Always { "+ " } else { "" };
        assert!(risk.finding.ends_with('.') && risk.advice.ends_with('.'), "{risk:?}");
        format!("{announced}{} {}: {}", risk.severity.as_str(), risk.topic.as_str(), risk.finding)
    };
    risks(&situation).into_iter().map(line).collect()
}

fn session(secs: Option<f64>, age: f64) -> Holder {
    let state = secs.map(|_| "idle in transaction".to_owned());
    Holder { kind: "session".to_owned(), name: "42".to_owned(), state, age, secs }
}

#[test]
fn a_server_at_rest_has_no_risks() {
    assert_eq!(with(|_| ()), [""; 0]);
}

#[test]
fn what_is_not_known_is_no_risk() {
    let nothing = Situation { plan: at_rest().plan, ..Situation::default() };
    assert_eq!(risks(&nothing), []);
}

#[test]
fn an_old_transaction_holds_the_horizon_of_a_run_that_writes() {
    let holders = |secs, age| move |s: &mut Situation| s.server.holders = Some(vec![session(secs, age)]);
    assert_eq!(
        with(holders(Some(12.0), 3.0)),
        [
            "+ warning horizon: The session with pid 42 (idle in transaction, since 12 s, 3 transactions old) holds back \
          the xmin horizon: rows that the run updates or deletes cannot be removed."
        ]
    );
    assert_eq!(with(holders(Some(0.1), 3.0)), [""; 0], "a transaction as they come and go");
    assert_eq!(with(holders(None, 999.0)), [""; 0]);
    assert_eq!(with(holders(None, 1000.0)).len(), 1, "its begin is not shown");
    let reads = |s: &mut Situation| {
        holders(Some(12.0), 3.0)(s);
        s.plan.writes = false;
    };
    assert_eq!(with(reads), [""; 0]);
}

#[test]
fn slots_and_prepared_transactions_hold_it_too() {
    let found = with(|s| {
        let holder = |kind: &str, name: &str, state: Option<&str>, secs, age| Holder {
            kind: kind.to_owned(),
            name: name.to_owned(),
            state: state.map(str::to_owned),
            age,
            secs,
        };
        s.server.holders = Some(vec![
            holder("replication slot", "followed", Some("active"), None, 5.0),
            holder("replication slot", "left", Some("inactive"), None, 0.0),
            holder("prepared transaction", "p", None, Some(9.0), 2000.0),
        ]);
    });
    assert_eq!(
        found,
        [
            "+ warning horizon: Prepared transaction \"p\" (since 9.0 s, 2,000 transactions old) and replication slot \
          \"left\" (inactive) hold back the xmin horizon: rows that the run updates or deletes cannot be removed."
        ]
    );
}

#[test]
fn a_slot_that_retains_more_than_the_server_keeps_is_told() {
    let slots = |wal_bytes| {
        move |s: &mut Situation| {
            s.server.slots =
                Some(vec![ReplicationSlot { name: "left".to_owned(), active: false, wal_bytes }]);
        }
    };
    assert_eq!(with(slots(GB)), [""; 0]);
    assert_eq!(
        with(slots(3.0 * GB)),
        [
            "+ warning slot: Replication slots retain more WAL than max_wal_size (1.0 GB): \"left\" (inactive) 3.0 GB."
        ]
    );
}

#[test]
fn a_checkpoint_is_told_while_it_is_under_way() {
    let under_way = |s: &mut Situation| s.server.checkpoint.as_mut().expect("known").is_under_way = true;
    assert_eq!(
        with(under_way),
        [
            "+ warning checkpoint: A checkpoint is under way: its writes overlap with this run, and other runs \
             may not have them."
        ]
    );
    let waits = |s: &mut Situation| {
        under_way(s);
        s.plan.before = vec![Before::Checkpoint];
    };
    assert_eq!(with(waits), [""; 0]);
}

#[test]
fn a_checkpoint_is_due_only_in_runs_shorter_than_the_interval() {
    let since = |since_secs, secs| {
        move |s: &mut Situation| {
            s.server.checkpoint.as_mut().expect("known").since_secs = since_secs;
            s.plan.secs = secs;
        }
    };
    assert_eq!(
        with(since(270.0, Some(60.0))),
        ["notice checkpoint: A checkpoint is due in 30 s (checkpoint_timeout), within the 60 s of the run."]
    );
    assert_eq!(
        with(since(4000.0, Some(60.0))),
        ["notice checkpoint: The last checkpoint began 4,000 s ago, which is more than checkpoint_timeout \
             (300 s), because the server was idle: the next one may begin during the run."]
    );
    for (since_secs, secs) in [(239.0, Some(60.0)), (270.0, Some(300.0)), (270.0, None)] {
        assert_eq!(with(since(since_secs, secs)), [""; 0], "{since_secs} {secs:?}");
    }
    let reads = |s: &mut Situation| {
        since(270.0, Some(60.0))(s);
        s.plan.writes = false;
    };
    assert_eq!(with(reads), [""; 0]);
}

#[test]
fn wal_brings_a_checkpoint_near() {
    let wal = |share: f64| {
        move |s: &mut Situation| s.server.checkpoint.as_mut().expect("known").wal_bytes = share * GB
    };
    // 1 GB / (1 + 0.9) are 0.53 GB.
    assert_eq!(with(wal(0.39)), [""; 0]);
    assert_eq!(
        with(wal(0.4)),
        [
            "notice checkpoint: The next checkpoint begins at about 538.9 MB of WAL (max_wal_size), of which 409.6 MB are \
          written."
        ]
    );
}

#[test]
fn settings_without_durability_are_named_where_the_run_does_not_set_them() {
    let off = |s: &mut Situation| {
        let settings = s.server.settings.as_mut().expect("known");
        settings.insert("fsync".to_owned(), "off".to_owned());
        settings.insert("synchronous_commit".to_owned(), "off".to_owned());
    };
    assert_eq!(
        with(off),
        [
            "notice safety: The server has fsync = off and synchronous_commit = off: the figures hold only for such a server."
        ]
    );
    let own = with(|s| {
        off(s);
        s.plan.settings = vec![("Synchronous_Commit".to_owned(), "off".to_owned())];
    });
    assert_eq!(own, ["notice safety: The server has fsync = off: the figures hold only for such a server."]);
}

#[test]
fn a_message_has_no_capital_and_no_full_stop() {
    let risk =
        warning(RiskTopic::Dead, "Tables have 1.5 GB. They grow.".to_owned(), "Wait.", Announced::Always);
    assert_eq!(risk.message(), "tables have 1.5 GB. They grow");
}

#[test]
fn machines_are_at_rest_up_to_a_threshold() {
    assert_eq!(with(|s| s.machine.busy = Some(0.19)), [""; 0]);
    assert_eq!(
        with(|s| s.machine.busy = Some(0.5)),
        ["+ warning load: Other work uses 50 % of 8 processors."]
    );
    assert_eq!(with(|s| s.server.active = Some(2)), ["+ warning load: 2 other sessions execute statements."]);
    assert_eq!(with(|s| s.server.runs = Some(1)), ["+ warning load: 1 other run is under way."]);
    assert_eq!(with(|s| s.server.runs = Some(2)), ["+ warning load: 2 other runs are under way."]);
    assert_eq!(
        with(|s| s.machine.steal = Some(0.07)),
        ["+ warning load: The hypervisor withholds 7 % of the processors' time (steal)."]
    );
    assert_eq!(
        with(|s| s.machine.swapped_per_sec = Some(3.0 * 1024.0 * 1024.0)),
        ["warning swap: The machine is swapping: 3.0 MB per second."]
    );
    assert_eq!(
        with(|s| s.machine.swap_used_bytes = Some(4.0 * GB)),
        ["notice swap: 4.0 GB are in swap, 25 % of the memory's size."]
    );
    let governors =
        |s: &mut Situation| s.machine.governors.insert("powersave".to_owned(), 2).map_or((), drop);
    assert_eq!(
        with(governors),
        [
            "warning governor: The frequency governor is powersave on 2 of 10 processors: processors change their speed with \
          the load."
        ]
    );
}

#[test]
fn what_others_do_is_told_before_runs_of_a_second_and_more_before_longer_ones() {
    let topics = |secs| {
        let mut situation = at_rest();
        situation.plan.secs = secs;
        if situation.plan.look_ms().is_some() {
            situation.server.active = Some(1);
            situation.machine.busy = Some(0.5);
            situation.machine.steal = Some(0.5);
        }
        situation.server.checkpoint.as_mut().expect("known").since_secs = 299.0;
        situation.server.tables = Some(vec![TableStatistics { modified: 5000.0, ..table() }]);
        situation.machine.swapped_per_sec = Some(GB);
        situation.machine.swap_used_bytes = Some(8.0 * GB);
        situation.machine.governors = [("powersave".to_owned(), 8)].into();
        announced(&situation).into_iter().map(|risk| risk.topic.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(topics(Some(0.9)), [""; 0]);
    assert_eq!(topics(Some(9.9)), ["load", "load", "load"]);
    assert_eq!(topics(None), [""; 0], "nobody knows how long it is");
    assert_eq!(
        topics(Some(10.0)),
        ["load", "autovacuum", "load", "load", "swap", "governor", "checkpoint", "swap"]
    );
}

#[test]
fn a_call_that_waits_is_subject_to_statement_timeout() {
    let found = |limit| {
        with(|s| {
            s.plan.secs = Some(60.0);
            s.server.statement_timeout_secs = Some(limit);
        })
    };
    assert_eq!(
        found(60.0),
        [
            "+ warning timeout: The session's statement_timeout (60 s) ends a call that waits for the 60 s of the run."
        ]
    );
    assert_eq!(found(60.1), [""; 0]);
}

#[test]
fn a_warm_up_of_unknown_length_may_last_until_a_checkpoint() {
    let found = with(|s| {
        s.server.checkpoint.as_mut().expect("known").since_secs = 200.0;
        s.plan.further_secs = 300.0;
    });
    assert_eq!(
        found,
        [
            "notice checkpoint: A checkpoint is due in 100 s (checkpoint_timeout), which is within the run if its warm-up \
          takes longer than 40 s."
        ]
    );
}

#[test]
fn of_another_server_only_the_machine_is_looked_at() {
    let found = with(|s| {
        s.plan.target = Some("standby".to_owned());
        s.server.active = Some(5);
        s.server.tables = None;
        s.machine.busy = Some(0.5);
    });
    assert_eq!(
        found,
        [
            "+ warning load: Other work uses 50 % of 8 processors.",
            "notice target: The server of target \"standby\" was not checked, only the machine that makes the \
             connections.",
        ]
    );
}

#[test]
fn what_the_run_changes_first_is_said() {
    let found = with(|s| {
        s.plan.missing = vec![("pk".to_owned(), 10_000), ("wide".to_owned(), 0)];
        s.plan.has_other_nodes = true;
    });
    assert_eq!(
        found,
        [
            "notice nodes: Only this node of the cluster was checked.",
            "notice fixture: Fixture \"pk\" is not loaded: the run loads it first, with 10,000 rows.",
            "notice fixture: Fixture \"wide\" is not loaded: the run loads it first, without rows.",
        ]
    );
}

#[test]
fn what_nodes_answer_is_said() {
    let seen = NodesSeen { nodes: 3, with_clients: 2, took_ms: 41.2, failures: Vec::new() };
    let answered = with(|s| {
        s.plan.has_other_nodes = true;
        s.plan.nodes = Some(seen.clone());
    });
    assert_eq!(
        answered,
        ["notice nodes: 3 nodes answered within 41 ms, and 2 with clients reach all others; \
          tables, locks and load were checked only on this node."]
    );
    let failure = |message: &str, is_needed| NodeFailure {
        message: message.to_owned(),
        hint: "See the node.".to_owned(),
        is_needed,
    };
    let failures = vec![failure("node b: no answer within 5 s", true), failure("node c: refused", false)];
    let unanswered = with(|s| s.plan.nodes = Some(NodesSeen { failures, ..seen }));
    assert_eq!(
        unanswered,
        [
            "critical nodes: The run would not start: node b: no answer within 5 s.",
            "warning nodes: The run would have no figures of one node: node c: refused.",
        ]
    );
}

#[test]
fn what_the_server_says_is_read() {
    let table: TableStatistics = serde_json::from_value(json!({
        "relation": "t", "live": 1, "dead": 2, "options": {"fillfactor": "70"}, "reltuples": -1, "a new one": 1,
    }))
    .expect("a table");
    assert_eq!((table.live, table.dead, table.reltuples), (1.0, 2.0, -1.0));
    let holder: Holder = serde_json::from_value(
        json!({"kind": "session", "name": "1", "state": null, "age": 3, "secs": null}),
    )
    .expect("a holder");
    assert_eq!((holder.age, holder.secs), (3.0, None));
}

proptest! {
    /// No figure, however odd, is a panic, and what is announced in any case is a warning.
    #[test]
    fn no_figure_is_too_odd(figures in proptest::collection::vec(proptest::num::f64::ANY, 12), writes: bool) {
        let mut situation = at_rest();
        situation.plan.writes = writes;
        situation.plan.secs = Some(figures[0]);
        situation.server.checkpoint = Some(Checkpoint {
            is_under_way: false,
            since_secs: figures[1],
            timeout_secs: figures[2],
            wal_bytes: figures[3],
            max_wal_bytes: figures[4],
            completion_target: figures[5],
        });
        situation.server.holders = Some(vec![session(Some(figures[6]), figures[7])]);
        let table = TableStatistics { live: figures[8], dead: figures[9], reltuples: figures[10], modified: figures[11], ..table() };
        situation.server.tables = Some(vec![table]);
        for risk in announced(&situation).into_iter().filter(|risk| risk.announced == Announced::Always) {
            prop_assert_eq!(risk.severity, Severity::Warning);
        }
    }
}

fn lock(mode: &str, command: Option<&str>) -> BlockingLock {
    BlockingLock {
        relation: "bench_data.pk".to_owned(),
        mode: mode.to_owned(),
        pid: 7,
        command: command.map(str::to_owned),
        is_autovacuum: Some(true),
        secs: Some(0.2),
    }
}

#[test]
fn vacuums_are_told_when_they_take_long() {
    let locks = |lock: BlockingLock| |s: &mut Situation| s.server.locks = Some(vec![lock]);
    let vacuum = lock("ShareUpdateExclusiveLock", Some("VACUUM"));
    assert_eq!(
        with(locks(vacuum.clone())),
        [
            "warning vacuum: Maintenance is running on tables of the run: VACUUM of bench_data.pk (autovacuum, pid \
             7, since 0.2 s)."
        ]
    );
    let long = BlockingLock { secs: Some(4.0), is_autovacuum: None, ..vacuum };
    assert_eq!(
        with(locks(long)),
        [
            "+ warning vacuum: Maintenance is running on tables of the run: VACUUM of bench_data.pk (pid 7, since \
             4.0 s)."
        ]
    );
    // ALTER TABLE … SET STATISTICS and the like.
    assert_eq!(with(locks(lock("ShareUpdateExclusiveLock", None))), [""; 0]);
}

#[test]
fn locks_that_clients_would_wait_for_are_obstacles() {
    let locks = |mode: &str, writes| {
        let lock = lock(mode, None);
        move |s: &mut Situation| {
            s.server.locks = Some(vec![lock]);
            s.plan.writes = writes;
        }
    };
    assert_eq!(
        with(locks("AccessExclusiveLock", false)),
        [
            "warning lock: The clients would wait for a lock: the session with pid 7 holds AccessExclusiveLock on \
          bench_data.pk."
        ]
    );
    assert_eq!(with(locks("ShareLock", true)).len(), 1);
    assert_eq!(with(locks("ShareLock", false)), [""; 0]);
    assert_eq!(with(locks("RowExclusiveLock", true)), [""; 0]);
}

#[test]
fn dead_rows_are_told_when_they_are_the_most() {
    let rows = |live: f64, dead: f64| {
        move |s: &mut Situation| {
            s.server.tables = Some(vec![TableStatistics { live, dead, reltuples: live, ..table() }]);
        }
    };
    assert_eq!(
        with(rows(10_000.0, 4000.0)),
        [
            "warning dead: Tables have many dead rows: bench_data.pk has 4,000 dead rows (29 %, autovacuum is due)."
        ]
    );
    assert_eq!(
        with(rows(10_000.0, 120_000.0)),
        [
            "+ warning dead: Tables have many dead rows: bench_data.pk has 120,000 dead rows (92 %, autovacuum is due)."
        ]
    );
    for (live, dead) in [(100.0, 60.0), (10_000.0, 1500.0)] {
        assert_eq!(with(rows(live, dead)), [""; 0], "{live} {dead}");
    }
    for step in [Before::Vacuum, Before::Reload] {
        let clean = |s: &mut Situation| {
            rows(10_000.0, 4000.0)(s);
            s.plan.before = vec![step];
        };
        assert_eq!(with(clean), [""; 0], "{step:?}");
    }
    let held = with(|s| {
        rows(10_000.0, 4000.0)(s);
        s.plan.before = vec![Before::Vacuum];
        s.server.holders = Some(vec![session(Some(12.0), 3.0)]);
    });
    assert_eq!(held.len(), 2, "a VACUUM that is held back removes nothing: {held:?}");
}

#[test]
fn autovacuum_is_due_by_the_thresholds_of_table_and_server() {
    let one = |change: &dyn Fn(&mut TableStatistics)| {
        let mut table = table();
        change(&mut table);
        move |s: &mut Situation| s.server.tables = Some(vec![table])
    };
    let option = |name: &str, value: &str| Some([(name.to_owned(), value.to_owned())].into());
    let due = |reason: &str| {
        [format!("warning autovacuum: Autovacuum is due, within 60 s, for bench_data.pk ({reason}).")]
    };
    // 50 + 0.1 × 10,000.
    assert_eq!(with(one(&|t| t.modified = 1050.0)), [""; 0]);
    assert_eq!(with(one(&|t| t.modified = 1051.0)), due("1,051 rows changed since ANALYZE, threshold 1,050"));
    assert_eq!(with(one(&|t| t.inserted = 3001.0)), due("3,001 rows inserted, threshold 3,000"));
    let own = |t: &mut TableStatistics| {
        t.dead = 600.0;
        t.options = option("autovacuum_vacuum_scale_factor", "0.05");
    };
    assert_eq!(with(one(&own)), due("600 dead rows, threshold 550"));
    let off = |t: &mut TableStatistics| {
        t.modified = 9000.0;
        t.options = option("autovacuum_enabled", "false");
    };
    assert_eq!(with(one(&off)), [""; 0]);
    let old = |t: &mut TableStatistics| {
        t.xid_age = 3e6;
        t.options = option("autovacuum_freeze_max_age", "2000000");
    };
    assert_eq!(with(one(&old)), due("3,000,000 transactions old, to prevent wraparound"));
    let limited = with(|s| {
        one(&|t| t.dead = 600.0)(s);
        let settings = s.server.settings.as_mut().expect("known");
        settings.insert("autovacuum_vacuum_max_threshold".to_owned(), "500".to_owned());
    });
    assert_eq!(limited, due("600 dead rows, threshold 500"));
}

#[test]
fn tables_without_statistics_are_named() {
    let never = with(|s| s.server.tables.as_mut().expect("known")[0].reltuples = -1.0);
    assert_eq!(
        never,
        [
            "notice statistics: A table was never vacuumed or analyzed: bench_data.pk. Plans are based on default \
             estimates, and change with the first ANALYZE."
        ]
    );
}

#[test]
fn bloat_is_growth_without_rows() {
    let grown = |bytes, live| {
        move |s: &mut Situation| {
            let fixture = &mut s.server.fixtures.as_mut().expect("known")[0];
            (fixture.bytes, fixture.live) = (Some(bytes), Some(live));
        }
    };
    assert_eq!(
        with(grown(2.0 * GB, 10_000.0)),
        [
            "warning bloat: The tables of fixture \"pk\" have grown from 1.0 GB to 2.0 GB since they were loaded, without more \
          rows."
        ]
    );
    assert_eq!(with(grown(2.0 * GB, 20_000.0)), [""; 0]);
    assert_eq!(with(grown(1.4 * GB, 10_000.0)), [""; 0]);
}
