//! META.json against version 1 of PGXN's specification (<https://pgxn.org/meta/spec.txt>), whose server refuses an archive
//! without a valid one: the required fields, no others than it knows, and files that are there.

use std::fs;

use serde_json::{Map, Value};

use crate::sources::root;

const REQUIRED: [&str; 7] = ["name", "version", "abstract", "maintainer", "license", "provides", "meta-spec"];
const OPTIONAL: [&str; 7] =
    ["description", "generated_by", "no_index", "prereqs", "release_status", "resources", "tags"];

fn metadata() -> Map<String, Value> {
    let text = fs::read_to_string(root().join("META.json")).expect("META.json");
    serde_json::from_str(&text).expect("an object")
}

/// What is wrong with required and unknown fields of an object. Custom fields begin with `x_`.
fn wrong_fields(object: &Map<String, Value>, required: &[&str], optional: &[&str]) -> Vec<String> {
    let absent = required
        .iter()
        .filter(|name| object.get(**name).is_none_or(is_empty))
        .map(|name| format!("no {name}"));
    let unknown = object
        .keys()
        .filter(|name| {
            !name.to_lowercase().starts_with("x_") && !required.iter().chain(optional).any(|k| k == name)
        })
        .map(|name| format!("unknown: {name}"));
    absent.chain(unknown).collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        _ => value.is_null(),
    }
}

/// Three numbers without leading zeros, as Semantic Versioning has them; this project makes no pre-releases.
fn is_version(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    let numbers: Vec<_> = text.split('.').collect();
    numbers.len() == 3
        && numbers.iter().all(|n| {
            !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()) && (*n == "0" || !n.starts_with('0'))
        })
}

#[test]
fn metadata_has_the_fields_of_the_specification_and_no_others() {
    let meta = metadata();
    assert_eq!(wrong_fields(&meta, &REQUIRED, &OPTIONAL), [""; 0]);
    let spec = meta["meta-spec"].as_object().expect("an object");
    assert_eq!(wrong_fields(spec, &["version"], &["url"]), [""; 0]);
    assert!(spec["version"].as_str().is_some_and(|version| version.starts_with("1.0.")));
    assert!(["stable", "testing", "unstable"].contains(&meta["release_status"].as_str().expect("a text")));
    assert_eq!(meta["license"], "postgresql");
    // Names and tags are parts of addresses.
    let tags = meta["tags"].as_array().expect("a list").iter().map(|tag| tag.as_str().expect("a text"));
    for term in tags.chain([meta["name"].as_str().expect("a text")]) {
        assert!(term.len() >= 2 && !term.contains(['/', '\\', ' ']), "{term}");
    }
}

#[test]
fn metadata_provides_files_that_are_there_at_the_version_of_the_crates() {
    let meta = metadata();
    assert_eq!(meta["version"], env!("CARGO_PKG_VERSION"));
    for (name, extension) in meta["provides"].as_object().expect("an object") {
        let extension = extension.as_object().expect("an object");
        assert_eq!(
            wrong_fields(extension, &["file", "version"], &["abstract", "docfile"]),
            [""; 0],
            "{name}"
        );
        assert_eq!(extension["version"], meta["version"], "{name}");
        for file in [&extension["file"], &extension["docfile"]] {
            assert!(root().join(file.as_str().expect("a text")).is_file(), "{name}: {file}");
        }
    }
}

#[test]
fn metadata_has_prerequisites_by_phase_and_relation() {
    let meta = metadata();
    for (phase, relations) in meta["prereqs"].as_object().expect("an object") {
        assert!(["configure", "build", "test", "runtime", "develop"].contains(&phase.as_str()), "{phase}");
        for (relation, versions) in relations.as_object().expect("an object") {
            assert!(
                ["requires", "recommends", "suggests", "conflicts"].contains(&relation.as_str()),
                "{relation}"
            );
            for (name, version) in versions.as_object().expect("an object") {
                assert!(version == "0" || is_version(version), "{name}: {version}");
            }
        }
    }
}

#[test]
fn fields_that_are_missing_empty_or_unknown_are_seen() {
    let object = serde_json::json!({"version": "", "colour": "red", "x_own": 1});
    let object = object.as_object().expect("an object");
    assert_eq!(
        wrong_fields(object, &["version", "file"], &["abstract"]),
        ["no version", "no file", "unknown: colour"]
    );
    assert!(is_version(&"0.2.0".into()) && !is_version(&"0.02.0".into()) && !is_version(&"0.2".into()));
}
