//! Where the values of a statement's parameters come from, and what takes the parameters' places.

use bench_capture::statements::with_values;

use super::columns::SampledRelation;
use super::sampling::FeederShape;
use crate::driver::parameters::{Analysed, How, Wrap};

/// A value for each parameter of the statement, as text.
pub type ParameterValues = Vec<Option<String>>;

/// What takes a parameter's place in the script.
#[derive(Clone, Debug)]
pub enum ParameterSource {
    /// A column of a feeder.
    Feeder,
    /// SQL.
    Sql(String),
    /// As many as the feeders' shape says.
    Limit,
    /// As [`Self::Limit`], of a part of the statement.
    InnerLimit,
    /// 0, unless the feeders' shape has pages.
    Offset,
    /// A number that is compared with what is no column's: as the feeders' shape says, of this type.
    Compared(String),
}

/// Where a parameter's value comes from.
pub struct ReplayPlan<'a> {
    pub text: &'a str,
    pub analysed: &'a Analysed,
    pub relations: Vec<SampledRelation>,
    pub values: Vec<ParameterSource>,
}

/// The name of a column of a feeder.
pub fn column(index: usize) -> String {
    bench_capture::statements::variable(index as u32 + 1)
}

impl ReplayPlan<'_> {
    /// A parameter's value in SQL, made of a value of a relation's row. Other parameters in it are constants.
    pub fn wrapped(&self, wrap: &Wrap, value: &str, shape: &FeederShape) -> String {
        with_values(&wrap.around(value), |number| sql_of(self, shape, number, |_| "NULL".to_owned()))
    }

    /// The parameters, from 0, that an occurrence's rows give values to.
    pub fn parameters(&self, occurrence: usize) -> Vec<usize> {
        (0..self.values.len())
            .filter(|&index| {
                let meeting = self.analysed.parameters[index].meeting.as_ref();
                matches!(self.values[index], ParameterSource::Feeder)
                    && meeting.is_some_and(|m| m.occurrence == occurrence)
            })
            .collect()
    }

    /// Names and types of the columns of an occurrence's feeder.
    pub fn columns(&self, occurrence: usize) -> Vec<(String, String)> {
        let one = |index: usize| (column(index), self.analysed.parameters[index].sql_type.clone());
        self.parameters(occurrence).into_iter().map(one).collect()
    }
}

/// A parameter's place in SQL, by what is to stand there.
pub fn sql_of(
    plan: &ReplayPlan,
    shape: &FeederShape,
    number: u32,
    fed: impl FnOnce(usize) -> String,
) -> String {
    let index = number as usize - 1;
    match plan.values.get(index) {
        Some(ParameterSource::Limit) => shape.limit.to_string(),
        Some(ParameterSource::InnerLimit) => shape.inner_limit.to_string(),
        Some(ParameterSource::Compared(sql_type)) => format!("'{}'::{sql_type}", shape.compared),
        Some(ParameterSource::Offset) if !shape.is_paged => "0".to_owned(),
        Some(ParameterSource::Sql(sql)) => sql.clone(),
        _ => fed(index),
    }
}

/// Whether a parameter meets something so.
pub fn has(plan: &ReplayPlan, how: How) -> bool {
    plan.analysed.parameters.iter().any(|p| p.meeting.as_ref().is_some_and(|meeting| meeting.how == how))
}
