//! Reports as files, to be looked at: `REPORT_DIR=/tmp/reports cargo test -p bench_report experiment_files -- --ignored`.

use std::path::Path;

use super::{comparisons, documents, render};
use crate::tests::ALL;

#[test]
#[ignore = "writes files"]
fn experiment_files() {
    let directory = std::env::var("REPORT_DIR").expect("REPORT_DIR");
    for (name, document) in documents() {
        for (format, ending) in ALL.into_iter().zip(["txt", "md", "json", "html"]) {
            let file = format!("sweep-{}.{ending}", name.replace(' ', "-"));
            std::fs::write(Path::new(&directory).join(file), render(&document, format)).unwrap();
        }
    }
    for (name, report) in comparisons::reports() {
        for (format, ending) in ALL.into_iter().zip(["txt", "md", "json", "html"]) {
            let file = format!("compare-{}.{ending}", name.replace(' ', "-"));
            let text = crate::experiment::render(&report, format);
            std::fs::write(Path::new(&directory).join(file), text).unwrap();
        }
    }
}
