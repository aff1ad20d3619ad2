//! Any bytes as a server's log, as csvlog and as jsonlog: lines that no server writes are left out. What is made of the
//! others is a script, or, where a statement is none that a server executes, refused as one.

#![no_main]

use bench_base::error::UserError;
use bench_capture::log::{CsvLog, LogCapture, LogEntry, from_json};
use bench_capture::options::LogOptions;
use bench_script::{Symbols, parse};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fn capture(entries: &[LogEntry], mask: bool) -> Result<(), UserError> {
    let given = json!({ "writes": true, "max_rows": 10, "mask": mask });
    let mut capture = LogCapture::new(LogOptions::new("shop".to_owned(), &given)?);
    for entry in entries {
        capture.take(entry.clone())?;
    }
    for shape in capture.finish()?.shapes {
        let _ = parse("log", &shape.script, &mut Symbols::new());
        for row in &shape.rows {
            shape.columns.iter().for_each(|column| drop(column.value(row)));
        }
    }
    Ok(())
}

fuzz_target!(|bytes: &[u8]| {
    let mut entries = Vec::new();
    let mut log = CsvLog::new(bytes);
    while let Ok(Some(line)) = log.read() {
        entries.extend(line);
    }
    entries.extend(String::from_utf8_lossy(bytes).lines().filter_map(from_json));
    if entries.is_empty() {
        return;
    }
    // Of whichever database they are.
    entries.iter_mut().for_each(|entry| entry.database = "shop".to_owned());
    for mask in [false, true] {
        let _ = capture(&entries, mask);
    }
});
