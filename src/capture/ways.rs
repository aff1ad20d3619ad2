//! The ways in which values can be drawn from a relation's rows.

use bench_core::captured::Call;

use super::feeders::{Plan, Source};
use crate::engine::parameters::How;

/// Which values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Drawn {
    /// Those of rows: values that many rows have come often.
    #[default]
    Rows,
    /// Each distinct one as often as another.
    Distinct,
    /// Each parameter's of another row.
    Apart,
    /// Such as no row has.
    Missing,
}

/// One way to draw values.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    pub drawn: Drawn,
    /// Rows between the two ends of a range.
    pub width: u64,
    /// Rows beyond a value that bounds a column to one side.
    pub beyond: Option<u64>,
    /// Characters of a pattern.
    pub pattern: u32,
    /// Whether a pattern has a % before its characters, too.
    pub infix: bool,
    /// Elements of an array.
    pub array: u32,
    /// Words of a full text search.
    pub words: u32,
    /// Pages that OFFSET leaves out.
    pub page: u64,
}

impl Default for Way {
    fn default() -> Self {
        Self {
            drawn: Drawn::Rows,
            width: 10,
            beyond: None,
            pattern: 3,
            infix: false,
            array: 5,
            words: 1,
            page: 0,
        }
    }
}

impl Way {
    /// Those beside it: with ranges and arrays of other sizes.
    pub fn neighbours(&self, plan: &Plan, factor: f64) -> Vec<Self> {
        let times = |size: u64| ((size as f64 * factor).round() as u64).max(1);
        let scaled = Self {
            width: if is_range(plan) { times(self.width) } else { self.width },
            beyond: self.beyond.map(times),
            array: if has(plan, How::Array) { times(self.array.into()) as u32 } else { self.array },
            ..self.clone()
        };
        if scaled == *self { Vec::new() } else { vec![scaled] }
    }
}

/// What a statement's feeders can be made to do, so that its calls take as many rows and blocks as were captured.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Rows that LIMIT lets through.
    pub limit: u64,
    /// Rows that LIMIT lets through in a part of the statement.
    pub inner_limit: u64,
    /// What numbers are that are compared with what is no column's, such as an aggregate.
    pub compared: u64,
    /// Whether OFFSET is a parameter; otherwise it is 0.
    pub is_paged: bool,
    /// How values are drawn, each with its share of the calls.
    pub ways: Vec<(f64, Way)>,
}

impl Default for Shape {
    fn default() -> Self {
        Self { limit: 10, inner_limit: 10, compared: 1, is_paged: false, ways: vec![(1.0, Way::default())] }
    }
}

/// Whether a parameter meets something so.
pub fn has(plan: &Plan, how: How) -> bool {
    plan.analysed.parameters.iter().any(|p| p.meeting.as_ref().is_some_and(|meeting| meeting.how == how))
}

fn is_range(plan: &Plan) -> bool {
    has(plan, How::Above) && has(plan, How::Below)
}

/// Limits that return so many rows per call: exactly so many, where it is a whole number; or sizes of pages that not all calls
/// fill.
pub fn limits(captured: &Call) -> Vec<u64> {
    const PAGES: [u64; 10] = [5, 10, 20, 25, 30, 50, 100, 200, 1000, 10_000];
    let exact = (captured.rows.ceil() as u64).max(1);
    if (captured.rows - captured.rows.round()).abs() < 0.005 && captured.rows > 0.5 {
        return vec![exact];
    }
    let pages = PAGES.into_iter().filter(|&page| page >= exact).take(3);
    pages.chain([exact]).collect()
}

/// Limits of a part of a statement that are worth a trial.
pub const INNER_LIMITS: [u64; 8] = [10, 1, 3, 5, 20, 50, 100, 1000];

/// Numbers to compare with what is no column's that are worth a trial.
pub const COMPARED: [u64; 8] = [1, 0, 2, 3, 5, 10, 100, 1000];

/// Ways that are worth a trial, the first one being that without a choice.
pub fn ways(plan: &Plan, captured: &Call) -> Vec<Way> {
    let first = Way::default();
    let mut all = vec![first.clone()];
    let add = |all: &mut Vec<Way>, way: Way| {
        if !all.contains(&way) {
            all.push(way);
        }
    };
    let rows = plan.relations.iter().map(|relation| relation.rows).fold(0.0, f64::max) as u64;
    let near = (captured.rows.round() as u64).max(1);
    // Others are between those that come near.
    let sizes: Vec<u64> = [near, 1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000]
        .into_iter()
        .filter(|&size| size <= rows.max(2))
        .collect();
    let (above, below) = (has(plan, How::Above), has(plan, How::Below));
    if above && below {
        sizes.iter().for_each(|&width| add(&mut all, Way { width, ..first.clone() }));
    }
    if above || below {
        sizes.iter().for_each(|&beyond| add(&mut all, Way { beyond: Some(beyond), ..first.clone() }));
    }
    if has(plan, How::Array) {
        for array in [near.min(100) as u32, 0, 1, 2, 3, 8, 10, 20, 50, 100] {
            add(&mut all, Way { array, ..first.clone() });
        }
    }
    if has(plan, How::Like) {
        for pattern in [1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 100] {
            add(&mut all, Way { pattern, ..first.clone() });
        }
        for pattern in [2, 3, 4, 6, 10] {
            add(&mut all, Way { pattern, infix: true, ..first.clone() });
        }
    }
    if has(plan, How::Words) {
        [2, 3].into_iter().for_each(|words| add(&mut all, Way { words, ..first.clone() }));
    }
    if plan.values.iter().any(|value| matches!(value, Source::Offset)) {
        [1, 2, 3, 4, 6, 10, 20].into_iter().for_each(|page| add(&mut all, Way { page, ..first.clone() }));
    }
    let others = if plan.analysed.occurrences.is_empty() {
        &[][..]
    } else {
        &[Drawn::Distinct, Drawn::Apart, Drawn::Missing]
    };
    for &drawn in others {
        let is_worth = match drawn {
            Drawn::Apart => is_apart(plan),
            Drawn::Missing => has(plan, How::Equal),
            _ => true,
        };
        if is_worth {
            add(&mut all, Way { drawn, ..first.clone() });
        }
    }
    all
}

/// Whether several expressions over one relation meet parameters.
fn is_apart(plan: &Plan) -> bool {
    (0..plan.analysed.occurrences.len()).any(|occurrence| {
        let indexes = plan.parameters(occurrence);
        let expression = |&index: &usize| {
            plan.analysed.parameters[index].meeting.as_ref().map(|meeting| &meeting.expression)
        };
        let mut all = indexes.iter().filter_map(expression);
        all.next().is_some_and(|first| all.any(|other| other != first))
    })
}
