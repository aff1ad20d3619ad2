//! Connections to servers: where they listen, and bytes to and from them.

mod link;
mod route;
mod session;

pub use link::{Done, Link};
pub use route::{Route, candidates, failed, failed_by};
pub use session::{BlockingSession, CancelRequest, PolledSession};
