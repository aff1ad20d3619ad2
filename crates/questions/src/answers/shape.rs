//! The columns of an answer, and the order of its rows.

/// How far a statement's top-level clauses determine the order and the choice of its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Indexes of ORDER BY's keys among the fields of a row, possibly after the columns that a client gets. `None`: any order.
    pub keys: Option<Vec<usize>>,
    /// OFFSET may begin, and LIMIT may end, in the middle of rows with equal sort keys.
    pub is_cut: [bool; 2],
    /// DISTINCT ON takes one of several rows.
    pub takes_one_of_several: bool,
    /// Columns of a row that a client gets; `None`: all.
    pub width: Option<usize>,
}

/// A result column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub type_oid: u32,
    /// Of a type whose OID has no meaning on another server.
    pub type_name: Option<String>,
}

impl Column {
    /// Returns what identifies the type.
    pub fn shown_type(&self) -> String {
        self.type_name.clone().unwrap_or_else(|| self.type_oid.to_string())
    }

    /// Returns whether its values are floating-point numbers.
    pub fn is_float(&self) -> bool {
        // float4 and float8 (catalog/pg_type.dat).
        matches!(self.type_oid, 700 | 701)
    }
}
