//! Tests of the repository's sources and documents. They are one program because each program links all of the reports.

mod documents;
mod rooms;
mod sources;
mod sql;
