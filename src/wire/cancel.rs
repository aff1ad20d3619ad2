//! Requests to cancel a statement, each over a connection of its own.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use bench_core::spec::{Address, Candidate};
use bench_core::wire::cancel_request;

/// How long the server has to answer at all.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Asks the server to cancel what one of its backends, known by its pid and its secret, is executing. Nothing tells whether
/// it does. As by libpq's PQcancel, the request is not encrypted.
pub fn cancel(to: &Candidate, backend: (i32, i32)) {
    let request = cancel_request(backend);
    match &to.address {
        Address::Tcp(address) => {
            if let Ok(mut socket) = TcpStream::connect_timeout(address, TIMEOUT) {
                let _ = socket.write_all(&request);
            }
        }
        // One whose queue is full is not waited for.
        Address::Unix(path) => {
            if let Ok(mut socket) = mio::net::UnixStream::connect(path) {
                let _ = socket.write_all(&request);
            }
        }
    }
}
