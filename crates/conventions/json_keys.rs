//! The keys of a JSON document, and those that a text says it has.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::sources::{root, text};

/// Keys by the path of their object, as `environment.server_settings[]`; that of the document is empty.
pub type Keys = BTreeMap<String, BTreeSet<String>>;

/// Adds the keys of an object and of those within it. Objects without keys are those whose keys are data.
pub fn collect(path: &str, value: &Value, found: &mut Keys) {
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

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The keys in the first columns of a text's tables, by the objects that the heading above names; one that names
/// none is about the whole.
pub fn keys_in(text: &str) -> Keys {
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
pub fn differences(document: &Keys, text: &Keys) -> Vec<String> {
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

/// A file of the directory docs.
pub fn documentation(name: &str) -> String {
    text(root().join("docs").join(name))
}

/// Sees that a file of the directory docs tells of these keys and of no other.
pub fn assert_documented(name: &str, keys: &Keys) {
    let found = differences(keys, &keys_in(&documentation(name)));
    assert!(found.is_empty(), "docs/{name}:\n{}", found.join("\n"));
}

/// Sees that a file of the directory docs begins with this title.
pub fn assert_title(name: &str, title: &str) {
    assert_eq!(documentation(name).lines().next(), Some(title));
}
