//! Any text as the document of a run that somebody imports: it may be refused; what is read is judged, and shown in each
//! format. Texts of others stay what they are: no page has a script of theirs.

#![no_main]

use bench_base::words::Word;
use bench_results::Document;
use bench_findings::findings;
use bench_report::{ExportFormat, Format, closing, export, render};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(mut document) = serde_json::from_str::<Document>(text) else { return };
    document.findings = findings(&document);
    let _ = closing(&document);
    for (_, format) in Format::WORDS {
        let report = render(&document, *format);
        if *format == Format::Json {
            serde_json::from_str::<Document>(&report).expect("a report is a document");
        }
    }
    for (_, format) in ExportFormat::WORDS {
        let _ = export(&document, *format);
    }
});
