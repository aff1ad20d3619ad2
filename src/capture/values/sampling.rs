//! How values are drawn from the rows of relations.

/// Which values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SampledValues {
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
pub struct SamplingStrategy {
    pub drawn: SampledValues,
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

impl Default for SamplingStrategy {
    fn default() -> Self {
        Self {
            drawn: SampledValues::Rows,
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

/// What a statement's feeders can be made to do, so that its calls take as many rows and blocks as were captured.
#[derive(Clone, Debug, PartialEq)]
pub struct FeederShape {
    /// Rows that LIMIT lets through.
    pub limit: u64,
    /// Rows that LIMIT lets through in a part of the statement.
    pub inner_limit: u64,
    /// What numbers are that are compared with what is no column's, such as an aggregate.
    pub compared: u64,
    /// Whether OFFSET is a parameter; otherwise it is 0.
    pub is_paged: bool,
    /// How values are drawn, each with its share of the calls.
    pub strategies: Vec<(f64, SamplingStrategy)>,
}

impl Default for FeederShape {
    fn default() -> Self {
        Self {
            limit: 10,
            inner_limit: 10,
            compared: 1,
            is_paged: false,
            strategies: vec![(1.0, SamplingStrategy::default())],
        }
    }
}
