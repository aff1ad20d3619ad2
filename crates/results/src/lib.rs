//! Everything that is known of one run, apart from where it is stored: findings are drawn from it, every report shows
//! it, and written down as JSON it is the schema of `bench.report(run_id, 'json')`. [`experiment`] has the document of a sweep or
//! a comparison.

#![forbid(unsafe_code)]

pub mod compared;
mod document;
pub mod duel;
pub mod experiment;
mod finding;
pub mod rehearsal;
mod run;
mod samples;
mod server;

pub use bench_model::spec::plain;
pub use bench_model::views::ServerSetting;
pub use compared::{ComparisonLine, StatementFigures, StatementLine};
pub use document::{
    Document, DocumentChunk, FidelityPart, RowRange, SCHEMA_VERSION, Unreplayed, UnreplayedStatement, chunks,
    whole,
};
pub use duel::{Duel, DuelBatch, DuelCommand, DuelMeasured, DuelWait, UsedAlone};
pub use finding::{Finding, Severity, Topic};
pub use run::{Bucket, CommandSummary, Run, ScriptSummary, Summary, UnwrittenParts};
pub use samples::{Samples, Series, bins};
pub use server::{AuditLine, Environment, ErrorLine, Event, Node, NodeSamples, Relation, Wait};
