//! What is found of a statement and of its parameters.

use pgrx::pg_sys;

use super::objects::Object;

/// How a parameter meets what is beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// `=`, or an element of IN.
    Equal,
    /// An array: `= ANY ($1)`.
    Array,
    /// `<>`.
    Unequal,
    /// `>` or `>=`: the column is above the parameter.
    Above,
    /// `<` or `<=`.
    Below,
    /// LIKE and ILIKE.
    Like,
    /// A value of INSERT.
    Insert,
    /// A value of SET.
    Set,
    /// Words that a full text search looks for: the expression is a tsvector.
    Words,
    /// Another operator that returns a boolean.
    Operator,
}

/// SQL around a value of a relation's row that makes it the parameter's: `now() - column` for `column > now() - $1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrap {
    pub before: String,
    /// May mention other parameters.
    pub after: String,
    /// The type of the relation's value.
    pub sql_type: String,
}

impl Wrap {
    /// Around a value of its type.
    pub fn around(&self, value: &str) -> String {
        format!("{}{value}{}", self.before, self.after)
    }
}

/// What a parameter meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// Which of the statement's [`Occurrence`]s.
    pub occurrence: usize,
    /// The value that the parameter would have for a row of that relation, as SQL over its columns.
    pub expression: String,
    /// What makes the parameter's value of it, where it is not that itself.
    pub wrap: Option<Wrap>,
    /// The column, where the expression is one.
    pub column: Option<i16>,
    pub how: How,
    /// Of a list of rows that are to be different: which.
    pub row: usize,
}

/// Where a parameter stands that meets nothing.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ParameterPlace {
    #[default]
    Elsewhere,
    /// LIMIT of the whole statement.
    Limit,
    /// LIMIT of a part of it.
    InnerLimit,
    Offset,
    /// The argument of a function, counted from 0.
    Argument(String, usize),
    /// Beside an operator of arithmetic.
    Arithmetic,
    /// Beside a comparison, such as with an aggregate.
    Compared,
}

/// A parameter of a statement.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// As the server writes it; empty where the statement does not mention the parameter.
    pub sql_type: String,
    pub type_oid: u32,
    pub meeting: Option<Meeting>,
    pub place: ParameterPlace,
    /// The modifier of the interval that the statement cuts it to, if that does not have all fields.
    pub interval_fields: Option<i32>,
}

/// A relation's place in a statement: a table named twice has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    pub relation: pg_sys::Oid,
    /// The relation of a write.
    pub is_target: bool,
}

/// What the server asks of a role that executes a statement, for one of its relations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeededPrivileges {
    pub relation: pg_sys::Oid,
    /// SELECT, INSERT, UPDATE and DELETE.
    pub mode: pg_sys::AclMode,
}

/// A statement, as far as its replay is concerned.
#[derive(Clone, Debug, Default)]
pub struct Analysed {
    /// `$1` is the first.
    pub parameters: Vec<Parameter>,
    pub occurrences: Vec<Occurrence>,
    /// A utility command.
    pub is_utility: bool,
    /// It inserts, updates, deletes or locks rows, or calls a volatile function other than `set_config`, which may do so.
    pub writes: bool,
    /// It calls `set_config`.
    pub sets: bool,
    /// It inserts with ON CONFLICT.
    pub takes_back: bool,
    /// It uses functions or tables of this extension or of pg_stat_statements.
    pub calls_us: bool,
    /// It calls functions that did not come with the server and are not immutable: they may do anything.
    pub calls_others: bool,
    /// It calls functions by which the server is administered.
    pub administers: bool,
    /// Rows are counted or grouped: how many a call returns says nothing of how many it reads.
    pub aggregates: bool,
    /// All relations that it names.
    pub relations: Vec<pg_sys::Oid>,
    /// What their use takes.
    pub privileges: Vec<NeededPrivileges>,
    /// All objects that it uses itself, these relations among them.
    pub objects: Vec<Object>,
}
