//! What holds of any sweep.

use bench_results::experiment::{ExperimentRun, Variant};
use proptest::prelude::*;

use super::*;
use crate::experiment::results;
use crate::sanitize::width;
use crate::tests::{ALL, html, markdown, shows_no_number, text};

prop_compose! {
    fn any_run(clients: Vec<u32>, variants: Vec<String>)(
        round in 0..4u32,
        client in any::<prop::sample::Index>(),
        variant in any::<prop::sample::Index>(),
        run_id in any::<Option<i64>>(),
        status in prop::option::of("completed|failed|\\PC{0,8}"),
        error in prop::option::of(".{0,200}"),
        figures in prop::array::uniform5(prop::option::of(any::<f64>())),
        failed in any::<u64>(),
    ) -> ExperimentRun {
        let [tps, tps_min, tps_max, latency_avg_ms, latency_p99_ms] = figures;
        ExperimentRun {
            round, clients: *client.get(&clients), variant: variant.get(&variants).clone(), run_id, status, error,
            tps, tps_min, tps_max, latency_avg_ms, latency_p99_ms, failed, ..ExperimentRun::default()
        }
    }
}

fn any_document() -> impl Strategy<Value = ExperimentDocument> {
    let clients =
        prop_oneof![prop::collection::vec(any::<u32>(), 1..8), prop::collection::vec(1..300u32, 1..8)];
    let name = prop_oneof![Just(String::new()), "[a-z]{1,12}", ".{0,120}", "[ \n\u{202e}数🐘<|]{1,60}"];
    let variants = prop::collection::vec(name, 1..6);
    (clients, variants, ".{0,150}")
        .prop_flat_map(|(clients, variants, workload)| {
            let runs = prop::collection::vec(any_run(clients.clone(), variants.clone()), 0..30);
            (Just(clients), Just(variants), Just(workload), runs)
        })
        .prop_map(|(clients, variants, workload, runs)| {
            let mut document = small();
            document.sweep.workload = workload;
            document.sweep.clients = clients;
            document.sweep.variants =
                variants.into_iter().map(|name| Variant { name, ..Variant::default() }).collect();
            document.runs = runs;
            document
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_sweep_is_rendered_harmlessly(document in any_document()) {
        text::check_lines("any", &render(&document, Format::Text));
        markdown::check_tables("any", &render(&document, Format::Markdown));
        let page = render(&document, Format::Html);
        html::check_page("any", &page);
        html::check_plots(&page);
        for format in ALL {
            prop_assert!(!shows_no_number(&render(&document, format).replace(&document.sweep.workload, "")));
        }
    }

    #[test]
    fn every_rung_of_every_variant_has_one_result(document in any_document()) {
        let results = results(&document);
        let cells = |clients: u32, variant: &str| {
            results.iter().filter(|result| result.clients == clients && result.variant == variant).count()
        };
        for variant in &document.sweep.variants {
            for clients in &document.sweep.clients {
                prop_assert_eq!(cells(*clients, &variant.name), 1);
            }
        }
        let completed = document.runs.iter().filter(|run| run.status.as_deref() == Some("completed")).count();
        prop_assert_eq!(results.iter().map(|result| result.rounds as usize).sum::<usize>(), completed);
    }

    #[test]
    fn every_rung_has_one_row_for_each_of_so_many_variants(rungs in 2..30usize, variants in 1..30usize) {
        let mut document = small();
        document.sweep.clients = (1..=rungs as u32).map(|rung| rung * 1_001).collect();
        let named = |index| Variant { name: format!("v{index}"), ..Variant::default() };
        document.sweep.variants = (0..variants).map(named).collect();
        document.runs.clear();
        let text = render(&document, Format::Text);
        let table = text.split("Throughput, tps\n").nth(1).and_then(|rest| rest.split("avg is").next()).unwrap();
        let is_whole = table.contains("v0 avg");
        let word = |wanted: String| table.split_whitespace().filter(|word| *word == wanted).count();
        for rung in &document.sweep.clients {
            prop_assert_eq!(word(rung.to_string()), if is_whole { 1 } else { variants });
        }
        // Beside the heading, two variants are named in that of their ratio.
        let expected = if is_whole && variants == 2 { 2 } else { 1 };
        for index in 0..variants {
            prop_assert_eq!(word(format!("v{index}")), expected);
        }
        prop_assert!(table.lines().all(|line| width(line) <= 100));
    }
}
