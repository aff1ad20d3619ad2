//! Which plan a prepared statement's executions get.

use bench_script::Prng;

/// Sessions that are looked at.
const SESSIONS: u32 = 40;

/// The share of the executions that get the generic plan, by the rule of choose_custom_plan (utils/cache/plancache.c): five
/// times a plan for the values at hand; then the generic one, as soon as it costs less than those did on average. Values come
/// with these costs and weights, `calls` times in a session.
pub fn generic_share(generic_cost: f64, costs: &[f64], weights: &[f64], calls: u32) -> f64 {
    let mut sums = Vec::with_capacity(weights.len());
    let mut total = 0.0;
    for weight in weights {
        total += weight;
        sums.push(total);
    }
    if calls == 0 || costs.is_empty() || total.is_nan() || total <= 0.0 {
        return 0.0;
    }
    let mut random = Prng::from_seed(1);
    let mut generic = 0;
    for _ in 0..SESSIONS {
        let mut spent = 0.0;
        for call in 0..calls {
            if call >= 5 && generic_cost < spent / f64::from(call) {
                generic += calls - call;
                break;
            }
            let drawn = random.uint64_range(0, u64::from(u32::MAX)) as f64 / 4_294_967_296.0 * total;
            let place = sums.partition_point(|&sum| sum <= drawn).min(costs.len() - 1);
            spent += costs[place];
        }
    }
    f64::from(generic) / f64::from(SESSIONS * calls)
}
