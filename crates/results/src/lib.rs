//! Everything that is known of one run, apart from where it is stored: findings are drawn from it, every report shows
//! it, and written down as JSON it is the schema of `bench.report(run_id, 'json')`. [`experiment`] has the document of a sweep or
//! a comparison.

#![forbid(unsafe_code)]

pub mod capacity;
pub mod chunks;
pub mod compared;
mod document;
mod duel;
mod environment;
pub mod experiment;
mod fidelity;
mod finding;
pub mod index_worth;
mod merged;
mod node;
mod run;
mod samples;
pub mod screen;
mod server;
mod summary;
pub mod unwritten_parts;

pub use bench_model::spec::plain;
pub use bench_model::views::ServerSetting;
pub use compared::{ComparisonLine, StatementFigures, StatementLine};
pub use document::{Document, SCHEMA_VERSION};
pub use duel::{Duel, DuelBatch, DuelCommand, DuelMeasured, DuelWait, UsedAlone};
pub use environment::Environment;
pub use fidelity::{FidelityPart, Unreplayed, whole};
pub use finding::{Finding, Severity, Topic};
pub use merged::weighted_mean;
pub use node::{Node, NodeSamples};
pub use run::Run;
pub use samples::{Samples, Series, bins};
pub use server::{AuditLine, ErrorLine, Event, Relation, Wait};
pub use summary::{Bucket, CommandSummary, ScriptSummary, Summary};
