//! Other extensions: found at run time, never required.

pub mod pg_cron;
