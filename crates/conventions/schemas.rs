//! The files in `docs/schema` are the schemas of the documents, and describe every key.

use serde_json::Value;

use crate::sources::root;

fn schemas() -> [(&'static str, String); 2] {
    [("report", bench_report::schema()), ("experiment", bench_report::experiment::schema())]
}

#[test]
fn the_files_have_the_schemas_of_the_documents() {
    for (name, schema) in schemas() {
        let path = root().join(format!("docs/schema/{name}.json"));
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::write(&path, format!("{schema}\n")).expect("the folder can be written");
        }
        let file = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            file,
            format!("{schema}\n"),
            "UPDATE_SCHEMAS=1 cargo test -p conventions schemas writes {path:?}"
        );
    }
}

#[test]
fn every_key_is_described() {
    for (name, schema) in schemas() {
        let schema: Value = serde_json::from_str(&schema).expect("JSON");
        let definitions = schema["$defs"].as_object().expect("definitions");
        for (kind, object) in definitions.iter().chain([(&name.to_owned(), &schema)]) {
            for (key, property) in object["properties"].as_object().into_iter().flatten() {
                assert!(property["description"].is_string(), "{key} of {kind} in the schema of {name}");
            }
        }
    }
}
