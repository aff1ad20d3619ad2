//! The names of variants.

use bench_results::experiment::ExperimentDocument;

use crate::content::Table;
use crate::experiment::results::variants;
use crate::sanitize::{cut, one_line};

/// How many columns a variant's name may take where it stands for the variant.
const NAME: usize = 60;

/// A variant's name where it stands for the variant.
pub fn label(variant: &str) -> String {
    match cut(&one_line(variant), NAME) {
        name if name.is_empty() => "unnamed".to_owned(),
        name => name,
    }
}

/// Takes the column of variants away where there are none.
pub fn without_variants(table: Table, document: &ExperimentDocument) -> Table {
    if variants(document) == [""] { table.without("variant") } else { table }
}
