//! Reports as files, to be looked at: `REPORT_DIR=/tmp/reports cargo test -p bench_report report_files -- --ignored`.

use std::path::Path;
use std::time::Instant;

use super::example::{believable, of_one_sample};
use super::hostile::hostile;
use super::nodes::on_three_nodes;
use bench_results::Document;

use crate::{Format, render};

#[test]
#[ignore = "writes files"]
fn report_files() {
    let directory = std::env::var("REPORT_DIR").expect("REPORT_DIR");
    let documents = [
        ("short", believable(60)),
        ("run", believable(600)),
        ("soak", believable(28_800)),
        ("one", of_one_sample()),
        ("empty", Document::default()),
        ("nodes", on_three_nodes()),
        ("hostile", hostile()),
    ];
    for (name, document) in documents {
        for (format, ending) in
            [(Format::Text, "txt"), (Format::Markdown, "md"), (Format::Json, "json"), (Format::Html, "html")]
        {
            let begin = Instant::now();
            let report = render(&document, format);
            println!("{name}.{ending}: {} bytes in {:?}", report.len(), begin.elapsed());
            std::fs::write(Path::new(&directory).join(format!("{name}.{ending}")), report).unwrap();
        }
    }
}
