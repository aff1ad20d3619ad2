//! Risks of the run's tables.

use bench_model::spec::Before;

use super::super::{BlockingLock, Situation, TableStatistics};
use super::{GB, session, table, with};

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
