//! What servers of each version logged of the same statements comes out the same.

use crate::log::*;
use crate::options::ThinkTimes;

const SAMPLES: [(&str, &str, &str); 4] = [
    ("15", include_str!("../samples/15.csv"), include_str!("../samples/15.json")),
    ("16", include_str!("../samples/16.csv"), include_str!("../samples/16.json")),
    ("17", include_str!("../samples/17.csv"), include_str!("../samples/17.json")),
    ("18", include_str!("../samples/18.csv"), include_str!("../samples/18.json")),
];

fn csv(text: &str) -> Vec<LogEntry> {
    let mut log = CsvLog::new(text.as_bytes());
    let mut entries = Vec::new();
    while let Some(entry) = log.read().expect("readable") {
        entries.push(entry.expect("a line of the log"));
    }
    entries
}

fn json(text: &str) -> Vec<LogEntry> {
    text.lines().map(|line| from_json(line).expect("a line of the log")).collect()
}

fn options(database: &str) -> LogOptions {
    let given = serde_json::json!({ "writes": true, "max_rows": 100 });
    LogOptions::new(database.to_owned(), &given).expect("known options")
}

fn captured(entries: &[LogEntry], options: LogOptions) -> CapturedLog {
    let mut capture = LogCapture::new(options);
    for entry in entries {
        capture.take(entry.clone()).expect("within the limits");
    }
    capture.finish().expect("within the limits")
}

/// A shape's script, how often it was there, and its rows.
type FoundStatement = (String, u64, Vec<Vec<Option<String>>>);

fn scripts(captured: &CapturedLog) -> Vec<FoundStatement> {
    let values = |shape: &Replayable| {
        let value = |row: &ShapeRow| {
            let columns = shape.columns.iter().filter(|column| !column.is_number());
            columns.map(|column| column.value(row)).collect()
        };
        shape.rows.iter().map(value).collect()
    };
    captured.shapes.iter().map(|shape| (shape.script.clone(), shape.transactions, values(shape))).collect()
}

#[test]
fn both_forms_say_the_same() {
    for (version, in_csv, in_json) in SAMPLES {
        assert_eq!(csv(in_csv), json(in_json), "{version}");
    }
}

/// What each of the sample's databases logs: all but `cut` the same.
fn expected(database: &str) -> Vec<FoundStatement> {
    let row = |values: &[&str]| values.iter().map(|&value| Some(value.to_owned())).collect::<Vec<_>>();
    let transfer = |from: &str, to: &str, third: &str, fourth: &str| {
        format!(
            "BEGIN;\nUPDATE account SET balance = balance - {from} WHERE id = {to};\n\\sleep :p_sleep2 us\n\
             UPDATE account SET balance = balance + {third} WHERE id = {fourth};\nCOMMIT;\n"
        )
    };
    let mut expected = vec![
        (
            transfer(":p1", ":p2", ":p3", ":p4"),
            3,
            vec![
                row(&["200", "969", "200", "412"]),
                row(&["185", "181", "185", "352"]),
                row(&["145", "719", "145", "831"]),
            ],
        ),
        (
            transfer(":p1::integer", ":p2::integer", ":p3::integer", ":p4::integer"),
            3,
            vec![
                row(&["101", "806", "101", "656"]),
                row(&["166", "603", "166", "810"]),
                row(&["123", "679", "123", "43"]),
            ],
        ),
        (
            "SELECT balance, 'it''s' AS note FROM account WHERE id = :p2 AND owner <> 'Ann: \"A\"';\n"
                .to_owned(),
            3,
            vec![row(&["740"]), row(&["937"]), row(&["272"])],
        ),
        (
            "BEGIN;\nSELECT 1;\nSELECT balance FROM account WHERE id = -1 LIMIT 2;\nROLLBACK;\n".to_owned(),
            1,
            Vec::new(),
        ),
        ("BEGIN;\nSELECT 5;\nSELECT 6;\nCOMMIT;\n".to_owned(), 1, Vec::new()),
        ("SELECT 'a:b\nc', $$d$$ AS d;\n".to_owned(), 1, Vec::new()),
    ];
    if database != "cut" {
        expected.push(("SELECT :p1::text, :p2::int;\n".to_owned(), 1, vec![row(&["it's a long text", "7"])]));
    }
    expected
}

#[test]
fn every_version_and_setting_gives_the_same_scripts() {
    for (version, in_csv, _) in SAMPLES {
        let entries = csv(in_csv);
        for database in ["durations", "statements", "transactions", "cut"] {
            let captured = captured(&entries, options(database));
            let (mut found, mut expected) = (scripts(&captured), expected(database));
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{version} {database}");
            let mut reasons: Vec<(&str, u64)> = captured
                .skipped
                .iter()
                .map(|(reason, skipped)| (reason.as_str(), skipped.transactions))
                .collect();
            reasons.sort_unstable();
            let mut skipped = vec![
                ("COPY", 1),
                ("PREPARE or EXECUTE in SQL", 2),
                ("a cursor", 1),
                ("aborted by error 22012", 1),
                ("aborted by error 42703", 1),
                ("parameters are cut (log_parameter_max_length)", 1),
            ];
            if database != "cut" {
                skipped.pop();
            }
            assert_eq!(reasons, skipped, "{version} {database}");
        }
    }
}

#[test]
fn times_are_those_of_the_clients() {
    for (version, in_csv, _) in SAMPLES {
        let entries = csv(in_csv);
        for database in ["durations", "statements", "transactions"] {
            let captured = captured(&entries, options(database));
            let figures = &captured.figures;
            assert_eq!((figures.transactions, figures.sessions), (19, 5), "{version} {database}");
            // A second may have ended meanwhile.
            assert!((2..=5).contains(&figures.clients), "{version} {database}: {}", figures.clients);
            assert!(figures.secs > 0.01 && figures.secs < 10.0, "{figures:?}");
            let rate = figures.rate.expect("time has passed");
            assert!((rate - 19.0 / figures.secs).abs() < 1e-9);
            assert!(figures.is_timed, "{version} {database}");
            for shape in captured.shapes.iter().filter(|shape| shape.script.contains("\\sleep")) {
                let pause = shape.columns.iter().find(|column| column.is_number()).expect("a pause");
                for row in &shape.rows {
                    // pgbench slept 3 ms, and the log's times have milliseconds.
                    let pause_us: u64 = pause.value(row).expect("known").parse().expect("a number");
                    assert!((2000..20_000).contains(&pause_us), "{version} {database}: {pause_us}");
                }
            }
        }
    }
}

#[test]
fn options_choose() {
    let entries = csv(SAMPLES[0].1);
    let reading = captured(&entries, LogOptions { writes: false, ..options("durations") });
    assert_eq!(reading.shapes.len(), 5);
    let changing = &reading.skipped[0];
    assert_eq!((changing.0.as_str(), changing.1.transactions), ("changes data (option writes)", 6));
    assert!(changing.1.example.starts_with("UPDATE account SET balance = balance - $1"));

    let mine = captured(&entries, LogOptions { application: Some("pgbench".into()), ..options("durations") });
    assert_eq!(mine.figures.transactions, 10);
    let nobody =
        captured(&entries, LogOptions { roles: Some(vec!["nobody".into()]), ..options("durations") });
    assert_eq!((nobody.figures.transactions, nobody.figures.rate), (0, None));

    // What two roles have executed are two shapes.
    let by_both = entries.iter().chain(&entries).zip(0..).map(|(entry, at)| {
        let (user, session) =
            (if at < entries.len() { "a" } else { "b" }, format!("{} {}", at < entries.len(), entry.session));
        LogEntry { user: user.to_owned(), session, ..entry.clone() }
    });
    let by_both = captured(&by_both.collect::<Vec<_>>(), options("durations"));
    let shapes_of = |role: &str| by_both.shapes.iter().filter(|shape| shape.role == role).count();
    assert_eq!((shapes_of("a"), shapes_of("b")), (by_both.shapes.len() / 2, by_both.shapes.len() / 2));

    let sampled = captured(&entries, LogOptions { sample_rate: 0.1, ..options("durations") });
    let all = captured(&entries, options("durations")).figures;
    let LogFigures { rate, secs, transactions, .. } = sampled.figures;
    assert!((rate.unwrap() * 0.1 * secs - transactions as f64).abs() < 1e-6);
    // An error by itself is logged of all transactions, and stands for itself.
    assert!(transactions < all.transactions, "{transactions} of {}", all.transactions);

    let still = captured(&entries, LogOptions { think_times: ThinkTimes::None, ..options("durations") });
    assert!(still.shapes.iter().all(|shape| !shape.script.contains("\\sleep")));
    let mean = captured(&entries, LogOptions { think_times: ThinkTimes::Mean, ..options("durations") });
    let pauses: Vec<u32> = (mean.shapes.iter())
        .filter_map(|shape| shape.script.split_once("\\sleep ")?.1.split_once(" us"))
        .map(|(number, _)| number.parse().expect("a constant"))
        .collect();
    assert!(pauses.len() == 2 && pauses.iter().all(|pause| (2000..20_000).contains(pause)), "{pauses:?}");

    let found: Vec<u64> =
        mean.shapes.iter().map(|shape| ScriptPauses::of(&shape.script).constant_us).collect();
    assert_eq!(found.iter().sum::<u64>(), pauses.iter().map(|&pause| u64::from(pause)).sum::<u64>());

    let few = captured(&entries, LogOptions { max_rows: 2, ..options("durations") });
    assert!(few.shapes.iter().all(|shape| shape.rows.len() <= 2));
    assert_eq!(few.shapes[0].transactions, 3);
}

#[test]
fn pauses_of_one_branch_count() {
    let script = "BEGIN;\n\\sleep :p_sleep2 us\nSELECT '\n\\sleep x';\n\\if :p_table2 = 1\n\\sleep 2500 us\nSELECT 1;\n\
        \\elif :p_table2 = 2\n\\sleep 2500 us\nSELECT 2;\n\\endif\n\\sleep 3000 us\nCOMMIT;\n";
    let pauses = ScriptPauses { constant_us: 5500, variables: vec!["p_sleep2".to_owned()] };
    assert_eq!(ScriptPauses::of(script), pauses);
    assert_eq!(ScriptPauses::of("SELECT 1;\n"), ScriptPauses::default());
}

#[test]
fn scripts_are_scripts() {
    for (_, in_csv, _) in SAMPLES {
        let entries = csv(in_csv);
        for shape in captured(&entries, options("durations")).shapes {
            let mut symbols = bench_script::Symbols::new();
            let script = bench_script::parse("x", &shape.script, &mut symbols).expect("pgbench's language");
            let is_assigned = |id| shape.columns.iter().any(|column| column.name == symbols.name(id));
            script
                .check_parameterized(&symbols, &is_assigned, &|_| false)
                .expect("parameters are where values can be");
        }
    }
}

#[test]
fn other_files_are_not_logs() {
    assert_eq!(from_json("{}"), None);
    assert_eq!(from_json("2026-11-24 21:57:00.605 UTC [1] LOG:  x"), None);
    let mut log = CsvLog::new(&b"2026-11-24 21:57:00.605 UTC,\"a\nb"[..]);
    assert_eq!(log.read().unwrap(), Some(None));
    assert_eq!(log.read().unwrap(), None);
}

#[test]
fn unsuitable_options_are_refused() {
    let message = |given: serde_json::Value| {
        let error = LogOptions::new("d".to_owned(), &given).expect_err("unsuitable");
        assert_eq!(error.sqlstate, "22023");
        assert!(error.hint.is_some() || given.is_array(), "{given}");
        error.message
    };
    for (key, value) in [
        ("writes", "1"),
        ("mask", "\"x\""),
        ("roles", "1"),
        ("think_times", "\"all\""),
        ("sample_rate", "0"),
        ("sample_rate", "1.5"),
        ("max_rows", "0"),
        ("max_rows", "100001"),
    ] {
        let given = serde_json::from_str(&format!("{{\"{key}\": {value}}}")).expect("JSON");
        assert_eq!(message(given), format!("invalid value {value} for option \"{key}\" of a capture"));
    }
    assert_eq!(message(serde_json::json!({ "write": true })), "unknown option \"write\" of a capture");
    assert_eq!(message(serde_json::json!([])), "options must be a JSON object");
}

#[test]
fn masked_scripts_hold_no_constants() {
    let entries = csv(SAMPLES[0].1);
    let masked = captured(&entries, LogOptions { mask: true, ..options("durations") });
    assert!(masked.shapes.iter().all(|shape| !shape.script.contains('\'')), "{:?}", scripts(&masked));
    assert!(scripts(&masked).iter().any(|(script, ..)| script.contains("LIMIT :p3::integer")));
}
