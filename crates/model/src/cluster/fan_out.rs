//! How the statements of a run are spread over nodes, as Citus plans them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a statement is spread over nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FanOut {
    /// The most tasks on one node of any step; 0 for a statement that Citus has nothing to do with.
    pub tasks: u32,
    /// Tasks of all steps, on all nodes.
    pub all: u32,
    /// Steps that are done one after the other.
    pub steps: u32,
}

impl FanOut {
    /// Of a statement by `EXPLAIN (FORMAT JSON)` with `citus.explain_all_tasks`. Where the plan does not list a step's tasks, or
    /// where each is done on several nodes (`has_copies`), all of them may be on one.
    pub fn of_plan(plan: &Value, has_copies: bool) -> Self {
        let mut sum = Self::default();
        sum.add(plan, has_copies);
        sum
    }

    fn add(&mut self, plan: &Value, has_copies: bool) {
        match plan {
            Value::Array(parts) => parts.iter().for_each(|part| self.add(part, has_copies)),
            Value::Object(members) => {
                let count = |name: &str| members.get(name).and_then(Value::as_u64).unwrap_or(0);
                let counted =
                    ["Task Count", "Map Task Count", "Merge Task Count"].map(count).into_iter().max();
                let counted = u32::try_from(counted.unwrap_or(0)).unwrap_or(u32::MAX);
                let own = match members.get("Tasks").and_then(Value::as_array) {
                    Some(tasks) if !has_copies => most_on_a_node(tasks, counted),
                    _ => counted,
                };
                self.tasks = self.tasks.max(own);
                self.all = self.all.saturating_add(counted);
                self.steps += u32::from(counted > 0);
                // A task's own plan is the other node's business.
                let others = members.iter().filter(|(name, _)| *name != "Tasks");
                others.for_each(|(_, part)| self.add(part, has_copies));
            }
            _ => {}
        }
    }

    /// Of an INSERT of several rows, which Citus puts into one shard after the other (ShouldRunTasksSequentially,
    /// executor/adaptive_executor.c).
    pub fn one_by_one(self) -> Self {
        Self { tasks: self.tasks.min(1), steps: self.all, ..self }
    }
}

/// Those that are not listed, or of which no node has told, may be on any.
fn most_on_a_node(tasks: &[Value], counted: u32) -> u32 {
    let mut nodes: BTreeMap<&str, u32> = BTreeMap::new();
    for node in tasks.iter().filter_map(|task| task.get("Node")?.as_str()) {
        *nodes.entry(node).or_default() += 1;
    }
    let unknown = counted.saturating_sub(nodes.values().sum());
    nodes.into_values().max().unwrap_or(0) + unknown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(count: u32, nodes: &[&str]) -> Value {
        let tasks: Vec<Value> = nodes
            .iter()
            .map(|node| json!({ "Node": node, "Remote Plan": [[{ "Plan": { "Node Type": "Insert" } }]] }))
            .collect();
        json!({ "Task Count": count, "Tasks Shown": "All", "Tasks": tasks })
    }

    fn plan(job: Value) -> Value {
        json!([{ "Plan": { "Node Type": "Custom Scan", "Distributed Query": { "Job": job } } }])
    }

    fn of(plan: &Value) -> (u32, u32, u32) {
        let FanOut { tasks, all, steps } = FanOut::of_plan(plan, false);
        (tasks, all, steps)
    }

    #[test]
    fn tasks_count_by_the_node_that_they_are_on() {
        assert_eq!(of(&plan(job(5, &["a", "b", "a", "a", "b"]))), (3, 5, 1));
        assert_eq!(of(&plan(job(1, &["a"]))), (1, 1, 1));
        assert_eq!(of(&json!([{ "Plan": { "Node Type": "Result" } }])), (0, 0, 0));
        assert_eq!(of(&Value::Null), (0, 0, 0));
    }

    #[test]
    fn what_a_plan_does_not_show_may_be_on_one_node() {
        assert_eq!(of(&plan(job(9, &["a", "b"]))), (8, 9, 1));
        assert_eq!(of(&plan(json!({ "Task Count": 4, "Tasks": [{ "Error": "no plan" }] }))), (4, 4, 1));
        let repartition = json!({
            "Task Count": 4, "Tasks Shown": "None, not supported for re-partition queries",
            "Dependent Jobs": [{ "Map Task Count": 32, "Merge Task Count": 4 }]
        });
        assert_eq!(of(&plan(repartition)), (32, 36, 2));
        let copies = FanOut::of_plan(&plan(job(5, &["a", "b", "a", "a", "b"])), true);
        assert_eq!(copies.tasks, 5, "each is on two nodes");
    }

    #[test]
    fn the_largest_step_of_a_statement_counts() {
        let both = json!([{ "Plan": { "Distributed Query": {
            "Subplans": [{ "PlannedStmt": [{ "Plan": { "Distributed Query": { "Job": job(4, &["a", "a", "a", "b"]) } } }] }],
            "Job": job(2, &["a", "b"])
        } } }]);
        assert_eq!(of(&both), (3, 6, 2));
    }

    #[test]
    fn an_insert_of_several_rows_takes_one_at_a_time() {
        let rows = FanOut::of_plan(&plan(job(9, &["a", "b", "a", "b", "a", "b", "a", "b", "a"])), false)
            .one_by_one();
        assert_eq!(rows, FanOut { tasks: 1, all: 9, steps: 9 });
        assert_eq!(FanOut::default().one_by_one(), FanOut::default());
    }
}
