//! What `docs/report-json.md` says of the JSON report is written by hand; here it is held against the document
//! that the report is made of: each object has its section, and each section's table names the object's keys.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use bench_core::findings::{Finding, Severity};
use bench_core::report::document::*;
use serde_json::{Map, Value};

/// Keys by the path of their object, as `environment.server_settings[]`; that of the document is empty.
type Keys = BTreeMap<String, BTreeSet<String>>;

/// A document with an element in every list. Its fields are all named, so that a new one is not forgotten here.
fn filled() -> Document {
    let mut samples = Samples::default();
    samples.columns_mut().into_iter().for_each(|column| column.push(None));
    Document {
        schema_version: SCHEMA_VERSION,
        run: Run::default(),
        summary: Summary::default(),
        samples: samples.clone(),
        warmup_samples: samples,
        latencies: vec![Bucket::default()],
        scripts: vec![Script::default()],
        statements: vec![Statement::default()],
        waits: vec![Wait::default()],
        events: vec![Event::default()],
        relations: vec![Relation::default()],
        errors: vec![ErrorLine::default()],
        audit: vec![AuditLine::default()],
        environment: Environment {
            server_settings: vec![ServerSetting::default()],
            unserved_defaults: vec![String::new()],
            ..Environment::default()
        },
        findings: vec![Finding {
            severity: Severity::Notice,
            topic: String::new(),
            finding: String::new(),
            figures: Map::new(),
            advice: String::new(),
        }],
    }
}

/// Adds the keys of an object and of those within it. Objects without keys are those whose keys are data.
fn collect(path: &str, value: &Value, found: &mut Keys) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            found.insert(path.to_owned(), fields.keys().cloned().collect());
            for (key, field) in fields {
                let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                collect(&inner, field, found);
            }
        }
        Value::Array(elements) => {
            let first = elements.first().unwrap_or_else(|| panic!("{path} needs an element in this test"));
            collect(&format!("{path}[]"), first, found);
        }
        _ => {}
    }
}

fn keys_of(document: &Document) -> Keys {
    let mut found = Keys::new();
    collect("", &serde_json::to_value(document).expect("JSON"), &mut found);
    found
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The keys in the first columns of a text's tables, by the objects that the heading above names; one that names
/// none is about the whole.
fn keys_in(text: &str) -> Keys {
    let mut found = Keys::new();
    let mut objects = vec![String::new()];
    let mut in_code = false;
    for line in text.lines() {
        in_code ^= line.starts_with("```");
        if in_code {
            continue;
        }
        if line.starts_with('#') {
            objects = quoted(line).map(str::to_owned).collect();
            if objects.is_empty() {
                objects.push(String::new());
            }
        } else if let Some(row) = line.strip_prefix('|') {
            for key in quoted(row.split('|').next().unwrap_or_default()) {
                for object in &objects {
                    let is_new = found.entry(object.clone()).or_default().insert(key.to_owned());
                    assert!(is_new, "`{key}` is told twice of `{object}`");
                }
            }
        }
    }
    found
}

/// What is in one of the two and not in the other, as sentences.
fn differences(document: &Keys, text: &Keys) -> Vec<String> {
    let none = BTreeSet::new();
    let paths: BTreeSet<&String> = document.keys().chain(text.keys()).collect();
    let mut found = Vec::new();
    for path in paths {
        let theirs = document.get(path).unwrap_or(&none);
        let told = text.get(path).unwrap_or(&none);
        found.extend(theirs.difference(told).map(|key| format!("`{key}` of `{path}` is not documented")));
        found.extend(told.difference(theirs).map(|key| format!("`{key}` of `{path}` does not exist")));
    }
    found
}

fn documentation() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report-json.md");
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn the_documentation_and_the_document_have_the_same_keys() {
    let found = differences(&keys_of(&filled()), &keys_in(&documentation()));
    assert!(found.is_empty(), "docs/report-json.md:\n{}", found.join("\n"));
}

#[test]
fn the_documentation_is_of_this_version() {
    let title = format!("# The JSON report, schema version {SCHEMA_VERSION}");
    assert_eq!(documentation().lines().next(), Some(title.as_str()));
}

#[test]
fn differences_are_found() {
    let document = keys_of(&filled());
    assert!(document["environment.server_settings[]"].contains("source"), "{document:?}");
    let text = documentation();
    for (was, becomes, expected) in [
        ("| `tps_avg` |", "| tps_avg |", vec!["`tps_avg` of `summary` is not documented"]),
        (
            "| `tps_avg` |",
            "| `tps_mean` |",
            vec!["`tps_avg` of `summary` is not documented", "`tps_mean` of `summary` does not exist"],
        ),
        (
            "## `waits[]`",
            "## `wait[]`",
            vec![
                "`share` of `wait[]` does not exist",
                "`wait_event` of `wait[]` does not exist",
                "`wait_event_type` of `wait[]` does not exist",
                "`share` of `waits[]` is not documented",
                "`wait_event` of `waits[]` is not documented",
                "`wait_event_type` of `waits[]` is not documented",
            ],
        ),
        (
            "| `wal_fpi` |",
            "| |",
            vec![
                "`wal_fpi` of `samples` is not documented",
                "`wal_fpi` of `warmup_samples` is not documented",
            ],
        ),
    ] {
        let changed = text.replacen(was, becomes, 1);
        assert_ne!(changed, text, "{was}");
        assert_eq!(differences(&document, &keys_in(&changed)), expected, "{was} → {becomes}");
    }
}
