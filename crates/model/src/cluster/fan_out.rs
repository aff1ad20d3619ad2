//! How many connections to other nodes a run's statements take, as Citus plans them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Limits;

/// What a run's statements need of the connections to each other node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Whether a client keeps a connection to one node while it waits for one to another: in a block of several statements, and
    /// in a statement of several steps.
    pub holds: bool,
    /// The most tasks that a statement has on one node at once.
    pub tasks: u32,
    /// The script with that statement, where a plan has told it.
    pub script: Option<String>,
}

impl Demand {
    /// Whatever the statements may be.
    pub fn most() -> Self {
        Self { holds: true, tasks: u32::MAX, script: None }
    }

    /// Connections to each other node for which a client waits until it has them, and which it does not give back before it
    /// ends: Citus waits for a statement's first connection to a node, and for others as long as the session keeps fewer than
    /// `citus.max_cached_conns_per_worker` (ShouldWaitForConnection, connection/shared_connection_stats.c); what it keeps stays
    /// open after the transaction (ShouldShutdownConnection, connection/connection_management.c). Without any that stay open,
    /// clients take turns, for a step of a statement takes those to all nodes in one order (AssignTasksToConnectionsOrWorkerPool,
    /// executor/adaptive_executor.c); but not where they hold some from one step to the next.
    pub fn connections(&self, limits: &Limits) -> u32 {
        match limits.cached_connections {
            0 => u32::from(self.holds),
            cached => cached.min(limits.executor_pool.max(1)).min(self.tasks).max(1),
        }
    }
}

/// How a statement is spread over nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

    fn limits(cached_connections: u32, executor_pool: u32) -> Limits {
        Limits { cached_connections, executor_pool, ..Limits::default() }
    }

    fn demand(holds: bool, tasks: u32) -> Demand {
        Demand { holds, tasks, script: None }
    }

    #[test]
    fn a_client_keeps_a_connection_for_each_task_up_to_what_its_session_caches() {
        assert_eq!(demand(false, 1).connections(&limits(1, 16)), 1);
        assert_eq!(demand(false, 9).connections(&limits(1, 16)), 1, "the others are optional");
        assert_eq!(demand(false, 9).connections(&limits(4, 16)), 4);
        assert_eq!(demand(false, 5).connections(&limits(32, 16)), 5);
        assert_eq!(demand(false, 40).connections(&limits(32, 16)), 16, "no more than the executor opens");
        assert_eq!(Demand::most().connections(&limits(32, 16)), 16);
        assert_eq!(demand(false, 0).connections(&limits(1, 16)), 1);
    }

    #[test]
    fn without_a_cache_a_client_holds_one_where_it_waits_for_another() {
        assert_eq!(demand(false, 9).connections(&limits(0, 16)), 0);
        assert_eq!(demand(true, 9).connections(&limits(0, 16)), 1);
    }

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
