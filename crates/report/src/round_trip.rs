//! What it costs to send a transaction over a connection, in one sentence.

use bench_base::number::{ms, us};

/// What a run over connections has more than one inside the server, for each transaction.
pub struct RoundTrip {
    /// Milliseconds of the mean latency.
    pub latency_ms: f64,
    /// Microseconds of processor time of the sessions.
    pub server_cpu_us: Option<f64>,
    /// Microseconds of processor time of the driver, of which the engine has none.
    pub driver_cpu_us: Option<f64>,
}

impl RoundTrip {
    /// The sentence, up to its full stop.
    pub fn sentence(&self) -> String {
        let compared =
            |difference: f64, unit: &str, more: &str, less: &str, shown: fn(Option<f64>) -> String| {
                let word = if difference < 0.0 { less } else { more };
                format!("{} {unit} {word}", shown(Some(difference.abs())))
            };
        let latency = compared(self.latency_ms, "ms", "longer", "shorter", ms);
        let server = self.server_cpu_us.map(|cpu| {
            format!("{} of processor time in the server", compared(cpu, "µs", "more", "less", us))
        });
        let driver = self.driver_cpu_us.map(|cpu| format!("{} µs in the driver", us(Some(cpu))));
        let costs: Vec<String> = server.into_iter().chain(driver).collect();
        let costs =
            if costs.is_empty() { String::new() } else { format!(", and takes {}", costs.join(" and ")) };
        format!("Over a connection a transaction is {latency} on average{costs}.")
    }
}
