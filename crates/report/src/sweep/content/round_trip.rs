//! What a round trip costs, of a sweep whose variants differ in nothing but the driver.

use bench_base::number::finite;
use bench_base::sentence::counted;
use bench_results::sweep::VariantDescription;

use crate::round_trip::RoundTrip;
use crate::sweep::results::{Computed, RungResult};

/// A sentence on the fewest clients of a pair of variants of which both have figures, those without a queue in front of the
/// server: there the difference is nearest to a round trip.
pub fn sentence(computed: &Computed) -> Option<String> {
    let variants = &computed.document.sweep.variants;
    let (engine, wire) = variants.iter().find_map(|wire| {
        let engine = variants.iter().find(|engine| differ_in_driver(engine, wire))?;
        Some((engine, wire))
    })?;
    let of = |variant: &VariantDescription, clients: u32| {
        let is_it = |result: &&RungResult| result.variant == variant.name && result.clients == clients;
        computed.results.iter().find(is_it).filter(|result| result.latency_avg_ms.is_some())
    };
    let pairs = computed.results.iter().filter_map(|r| Some((of(engine, r.clients)?, of(wire, r.clients)?)));
    let (engine, wire) = pairs.min_by_key(|(engine, _)| engine.clients)?;
    let more = |figure: fn(&RungResult) -> Option<f64>| Some(finite(figure(wire))? - finite(figure(engine))?);
    let round_trip = RoundTrip {
        latency_ms: more(|result| result.latency_avg_ms)?,
        server_cpu_us: more(|result| result.server_cpu_us),
        driver_cpu_us: finite(wire.driver_cpu_us),
    };
    let clients = counted(engine.clients as u64, "client");
    Some(format!("With {clients}: {}", round_trip.sentence()))
}

/// Whether the first runs inside the server what the second sends over connections to the same one.
fn differ_in_driver(engine: &VariantDescription, wire: &VariantDescription) -> bool {
    let driver = |variant: &VariantDescription| {
        variant.run.get("driver").and_then(|driver| driver.as_str()).unwrap_or("engine").to_owned()
    };
    let rest = |variant: &VariantDescription| {
        let mut rest = VariantDescription { name: String::new(), ..variant.clone() };
        rest.run.retain(|argument, _| argument != "driver" && argument != "jobs");
        rest
    };
    driver(engine) == "engine" && driver(wire) == "wire" && rest(engine) == rest(wire)
}
