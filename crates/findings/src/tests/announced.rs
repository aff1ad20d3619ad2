//! Events that the server announced: told with the size of what followed them, and not told where nothing did. The seeds
//! are fixed, so that the rates are too.

use super::*;
use crate::dips;
use crate::intervals::Intervals;

/// Lowers throughput from a time on for so many seconds, intervals at the edges by their part.
fn fall(document: &mut Document, at: f64, secs: f64, depth: f64) {
    for index in 0..document.samples.len() {
        let (end, length) = (document.samples.elapsed[index].unwrap(), document.samples.secs[index].unwrap());
        let within = (end.min(at + secs) - (end - length).max(at)).max(0.0) / length;
        lower(document, index..index + 1, depth * within);
    }
}

/// Whether anything is told of the events.
fn is_told(document: &Document) -> bool {
    let intervals = Intervals::of(&document.samples);
    !dips::effects(document, &intervals, &dips::detect(&intervals)).is_empty()
}

/// How often an effect is told in runs of so many intervals, and an event that did nothing: moved to another place of
/// the same run.
fn rates(seeds: u64, (count, secs): (usize, f64), noise: Noise, (depth, length): (f64, f64)) -> (f64, f64) {
    let (mut right, mut wrong) = (0, 0);
    for seed in 0..seeds {
        let mut random = Random::new(seed ^ 0x5eed);
        let measured = count as f64 * secs;
        let mut place = || 1.5 + random.uniform() * (measured - 4.0);
        let at = place();
        let elsewhere =
            std::iter::repeat_with(place).take(99).find(|other| (other - at).abs() > length + 1.5);
        let mut document = quiet(seed * 7919 + count as u64, count, secs, noise);
        fall(&mut document, at, length, depth);
        document.events.push(event("checkpoint", at, at + 2.0));
        right += u64::from(is_told(&document));
        let Some(elsewhere) = elsewhere else { continue };
        document.events[0].started = elsewhere;
        wrong += u64::from(is_told(&document));
    }
    (right as f64 / seeds as f64, wrong as f64 / seeds as f64)
}

#[test]
fn most_falls_of_a_second_are_told_and_other_places_are_not() {
    for (cv, effect) in [(0.02, (0.15, 1.0)), (0.05, (0.15, 1.5)), (0.05, (0.3, 1.3))] {
        let rates = [(40, 0.25), (80, 0.25)].map(|run| rates(300, run, Noise { cv, ..WHITE }, effect));
        assert!(
            rates.iter().all(|(right, wrong)| *right >= 0.95 && *wrong <= 0.02),
            "{cv}, {effect:?}: {rates:?}"
        );
    }
}

#[test]
fn a_checkpoint_is_told_with_its_size() {
    let mut document = quiet(1, 60, 0.25, WHITE);
    fall(&mut document, 8.0, 1.5, 0.18);
    document.samples.latency_p99_ms = vec![Some(14.0); 60];
    set(&mut document.samples.latency_p99_ms, 32..38, 22.0);
    set(&mut document.samples.wal_fpi, 34..38, 10_000.0);
    set(&mut document.samples.wal_bytes, 34..38, 100e6);
    document.events.push(event("checkpoint", 8.02, 9.0));
    let found = of_topic(&document, "dip");
    assert_eq!(found.len(), 1, "{found:#?}");
    let text = &found[0].finding;
    assert!(text.starts_with("A checkpoint began at 8.0 s: throughput was "), "{text}");
    assert!(text.contains(", 99th percentile 22 ms instead of 14 ms; 40,"), "{text}");
    assert_eq!(found[0].severity, Severity::Notice);
    let depth = found[0].figures["depth"].as_f64().unwrap();
    assert!((depth - 0.18).abs() < 0.05, "{depth}");
    assert!(found[0].figures["depth_low"].as_f64().unwrap() < depth);
}

#[test]
fn events_of_a_kind_are_told_together_and_small_ones_as_notice() {
    let mut document = quiet(2, 160, 0.25, WHITE);
    for at in [8.0, 18.0, 28.0] {
        fall(&mut document, at, 2.0, 0.12);
        let relation = Some("pk".to_owned());
        document.events.push(Event { relation, ..event("autoanalyze", at, at + 2.0) });
    }
    let found = of_topic(&document, "dip");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].finding.starts_with("3 autoanalyzes of pk began (at 8.0 s, 18 s and 28 s): "),
        "{found:#?}"
    );
    assert_eq!((found[0].severity, &found[0].figures["count"]), (Severity::Notice, &3.into()));
}

#[test]
fn what_was_under_way_before_is_judged_by_its_end() {
    let mut document = quiet(3, 60, 0.25, WHITE);
    fall(&mut document, -1.0, 6.0, 0.3);
    document.events.push(event("backup", -10.0, 5.0));
    let found = of_topic(&document, "dip");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].finding.starts_with("A base backup ended at 5.0 s: throughput was "), "{found:#?}");
    assert_eq!((found[0].severity, &found[0].figures["until"][0]), (Severity::Warning, &5.0.into()));
}

#[test]
fn a_lock_beside_an_event_is_the_cause() {
    let mut document = quiet(4, 100, 0.2, WHITE);
    lower(&mut document, 50..60, 0.6);
    wait_for(&mut document, 50..60, "Lock:relation", 0.98);
    document.events.push(event("reload", 10.0, 10.0));
    let found = of_topic(&document, "dip");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].figures["coincide"][0]["cause"], "Lock:relation");
}

/// The rates over the whole grid; to be read, so it is run by hand:
/// `cargo test --release findings::tests::announced -- --ignored --nocapture`.
#[test]
#[ignore = "prints a table"]
fn announced_rates() {
    for (count, secs) in [(40, 0.25), (80, 0.25), (60, 0.5), (120, 1.0)] {
        for (cv, rho, wild) in [
            (0.02, 0.0, 0.0),
            (0.02, 0.3, 0.03),
            (0.05, 0.0, 0.0),
            (0.05, 0.3, 0.0),
            (0.05, 0.6, 0.0),
            (0.05, 0.0, 0.03),
            (0.1, 0.0, 0.0),
            (0.1, 0.3, 0.0),
        ] {
            print!("{count} of {secs} s, cv {cv}, rho {rho}, wild {wild}:");
            for effect in
                [(0.0, 1.0), (0.15, 1.0), (0.15, 1.5), (0.2, 1.0), (0.3, 1.3), (0.5, 1.3), (0.2, 4.0)]
            {
                let (right, wrong) = rates(300, (count, secs), Noise { cv, rho, wild }, effect);
                print!("  {:.0} % {} s: {right:.2} {wrong:.3}", effect.0 * 100.0, effect.1);
            }
            println!();
        }
    }
}
