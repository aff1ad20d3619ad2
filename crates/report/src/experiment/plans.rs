//! Plans of a statement that both sides executed, and not in the same way.

use std::collections::{BTreeMap, BTreeSet};

use bench_questions::statements::plan_forms;
use bench_results::Document;
use schemars::JsonSchema;
use serde::Serialize;

/// A statement of both sides with other plans: the same text at the same place of both sides' scripts. Plans differ if
/// their nodes, tables or indexes differ; conditions do not count, because those of custom plans contain parameter
/// values. Custom plans on a partitioned table may show different partitions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct PlanDifference {
    /// Index of the script in the mix, from 0.
    pub script: u32,
    /// Its place in the script, from 1.
    pub command: u32,
    /// The command as written.
    pub statement: String,
    /// Its plans in the baseline's runs, one for each form, as `plan` in the report of a run.
    pub baseline: Vec<String>,
    /// Its plans in the candidate's runs.
    pub candidate: Vec<String>,
}

/// The script, the place in it and the text of a statement.
type StatementPlace = (u32, u32, String);

/// The plans of a side by statement: the forms that it was executed in by a run, with the first plan of these.
#[derive(Clone, Debug, Default)]
pub struct SidePlans(BTreeMap<StatementPlace, Plans>);

type Plans = BTreeMap<BTreeSet<String>, String>;

impl SidePlans {
    /// Adds those of a run.
    pub fn add(&mut self, document: &Document) {
        for statement in &document.statements {
            let Some(plan) = &statement.plan else { continue };
            let place = (statement.script, statement.command, statement.statement.clone());
            self.0.entry(place).or_default().entry(plan_forms(plan)).or_insert_with(|| plan.clone());
        }
    }
}

/// The statements of both sides with a form on one that the other has not.
pub fn plan_differences(baseline: &SidePlans, candidate: &SidePlans) -> Vec<PlanDifference> {
    let both = baseline.0.iter().filter_map(|(place, forms)| Some((place, forms, candidate.0.get(place)?)));
    let differ = both.filter(|(_, baseline, candidate)| !baseline.keys().eq(candidate.keys()));
    let plans = |forms: &Plans| forms.values().cloned().collect();
    differ
        .map(|((script, command, statement), baseline, candidate)| PlanDifference {
            script: *script,
            command: *command,
            statement: statement.clone(),
            baseline: plans(baseline),
            candidate: plans(candidate),
        })
        .collect()
}
