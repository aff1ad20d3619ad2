//! How a client's transactions are executed: in a session of this server, by its executor, or over a connection.

pub mod connection;
pub mod parameters;
pub mod session;
