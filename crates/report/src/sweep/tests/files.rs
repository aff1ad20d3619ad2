//! Reports as files, to be looked at: `REPORT_DIR=/tmp/reports cargo test -p bench_report sweep_files -- --ignored`.

use std::path::Path;

use super::{documents, render};
use crate::tests::ALL;

#[test]
#[ignore = "writes files"]
fn sweep_files() {
    let directory = std::env::var("REPORT_DIR").expect("REPORT_DIR");
    for (name, document) in documents() {
        for (format, ending) in ALL.into_iter().zip(["txt", "md", "json", "html"]) {
            let file = format!("sweep-{}.{ending}", name.replace(' ', "-"));
            std::fs::write(Path::new(&directory).join(file), render(&document, format)).unwrap();
        }
    }
}
