use proptest::prelude::*;

use super::*;

fn standby(ms: Option<f64>, bytes: Option<i64>) -> Standby {
    Standby { replay_lag_ms: ms, replay_lag_bytes: bytes, ..Standby::default() }
}

#[test]
fn a_standby_is_behind_by_what_it_has_received_and_not_replayed() {
    let of = |behind_bytes, replayed_ms| {
        Replication { is_standby: true, behind_bytes, replayed_ms, standbys: None }.lag()
    };
    assert_eq!(of(Some(4096), Some(1500.0)), Lag { ms: Some(1500.0), bytes: Some(4096) });
    // An idle primary commits nothing: the last commit grows old, and nobody is behind.
    assert_eq!(of(Some(0), Some(3_600_000.0)), Lag { ms: Some(0.0), bytes: Some(0) });
    // It has replayed more than was streamed: from an archive.
    assert_eq!(of(Some(-512), Some(20.0)), Lag { ms: Some(0.0), bytes: Some(0) });
    // A clock that is behind the primary's.
    assert_eq!(of(Some(1), Some(-3.0)), Lag { ms: Some(0.0), bytes: Some(1) });
    assert_eq!(of(Some(1), None), Lag { ms: None, bytes: Some(1) });
    assert_eq!(of(None, Some(20.0)), Lag::default());
}

#[test]
fn a_primary_has_the_lag_of_the_standby_that_is_furthest_behind() {
    let of = |standbys| Replication { standbys: Some(standbys), ..Replication::default() }.lag();
    assert_eq!(of(vec![]), Lag::default());
    assert_eq!(
        of(vec![standby(Some(3.0), Some(10)), standby(Some(7.5), Some(5)), standby(None, None)]),
        Lag { ms: Some(7.5), bytes: Some(10) }
    );
    assert_eq!(of(vec![standby(None, Some(0))]), Lag { ms: Some(0.0), bytes: Some(0) });
    // It has never replayed: for how long it is behind nobody knows.
    assert_eq!(of(vec![standby(None, Some(9))]), Lag { ms: None, bytes: Some(9) });
}

#[test]
fn answers_are_read_and_what_is_none_is_not() {
    let answer = ViewsAnswer::parse(
        r#"{"counters": [1, null, 3], "waits": {"CPU": 2, "Lock:tuple": 1},
            "replication": {"is_standby": false, "behind_bytes": null, "replayed_ms": null,
                "standbys": [{"pid": 7, "name": "walreceiver", "state": "streaming", "sync_state": "async",
                    "write_lag_ms": 0.5, "flush_lag_ms": null, "replay_lag_ms": 2.25, "replay_lag_bytes": 64}]}}"#,
    )
    .unwrap();
    let counters = answer.server_counters().unwrap();
    assert_eq!((counters.wal_bytes, counters.wal_records, counters.wal_fpi), (Some(1), None, Some(3)));
    assert_eq!(counters.buffers_backend, None);
    assert_eq!(answer.waits.unwrap()["CPU"], 2);
    assert_eq!(answer.replication.unwrap().lag(), Lag { ms: Some(2.25), bytes: Some(64) });
    let few = ViewsAnswer::parse(r#"{"waits": null}"#).unwrap();
    assert!(few.waits.is_none() && few.replication.is_none() && few.server_counters().is_none());
    for wrong in ["", "{", "[1]x", r#"{"counters": "many"}"#] {
        assert!(ViewsAnswer::parse(wrong).is_none(), "{wrong}");
    }
}

#[test]
fn each_version_is_asked_for_the_views_that_it_has() {
    for (version, has, lacks) in [
        (130_000, "checkpoints_req", "pg_stat_wal"),
        (150_000, "buffers_backend", "pg_stat_io"),
        (160_000, "i.extends)", "buffers_backend"),
        (170_000, "pg_stat_checkpointer", "checkpoints_req"),
        (180_000, "extend_bytes", "i.extends)"),
    ] {
        let query = counters_query(version, &[]);
        assert!(query.contains(has) && !query.contains(lacks), "{version}: {query}");
    }
    let unreadable = ["pg_stat_wal".to_owned(), "pg_stat_io".to_owned()];
    let query = counters_query(160_000, &unreadable);
    assert!(unreadable.iter().all(|view| !query.contains(view.as_str())), "{query}");
    assert!(query.starts_with("SELECT ARRAY[NULL, NULL, NULL, NULL, "), "{query}");
}

#[test]
fn only_what_may_be_seen_is_asked() {
    let all = ViewsQuery::new(&Views { version: 150_000, ..Views::default() }, "'pgbench_ext'");
    let text = all.text(false, &[3, 14]).unwrap();
    assert!(text.contains("'{3,14}'") && !text.contains("counters"), "{text}");
    assert_eq!(all.text(false, &[]), None);
    assert!(all.text(true, &[]).is_some_and(|text| !text.contains("pg_stat_activity")));
    assert!(all.text(true, &[1]).is_some_and(|text| text.contains("pg_stat_activity")));
    let unreadable = ["pg_stat_activity", "pg_stat_replication"].map(str::to_owned).to_vec();
    let few = ViewsQuery::new(&Views { version: 150_000, unreadable }, "''");
    assert_eq!(few.text(false, &[1]), None);
    assert!(few.text(true, &[1]).is_some_and(|text| !text.contains("pg_stat_replication")));
}

proptest! {
    #[test]
    fn counters_between_readings_add_up(
        readings in proptest::collection::vec(proptest::collection::vec(0i64..1 << 40, 13), 2..6),
    ) {
        let mut readings = readings;
        readings.sort();
        // Counters grow together.
        for place in 1..readings.len() {
            let (before, after) = readings.split_at_mut(place);
            for (value, last) in after[0].iter_mut().zip(&before[place - 1]) {
                *value = (*value).max(*last);
            }
        }
        let of = |values: &Vec<i64>| ServerCounters::new(values.iter().copied().map(Some));
        let mut sum = ServerCounters::default();
        for pair in readings.windows(2) {
            sum.merge(of(&pair[1]).since(of(&pair[0])));
        }
        prop_assert_eq!(sum, of(&readings[readings.len() - 1]).since(of(&readings[0])));
    }
}
