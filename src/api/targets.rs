//! The validator of foreign-data wrapper bench_wire.

use bench_base::error::UserError;
use bench_protocol::foreign_server::{OptionOf, check_options as check_all};
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::error::OrRaise;
use crate::server::roles::superuser;

/// Checks the options of a foreign server or a user mapping. See the COMMENT ON.
#[pg_extern(sql = false)]
fn check_options(options: Option<Vec<Option<String>>>, catalog: Option<pg_sys::Oid>) {
    check(&options.unwrap_or_default(), catalog.unwrap_or(pg_sys::InvalidOid)).or_raise();
}

fn check(options: &[Option<String>], catalog: pg_sys::Oid) -> Result<(), UserError> {
    let of = match catalog {
        pg_sys::ForeignServerRelationId => OptionOf::Server,
        pg_sys::UserMappingRelationId => OptionOf::UserMapping,
        pg_sys::ForeignTableRelationId => OptionOf::ForeignTable,
        _ => OptionOf::Wrapper,
    };
    let options: Vec<(String, String)> = options
        .iter()
        .flatten()
        .map(|option| {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            (name.to_owned(), value.to_owned())
        })
        .collect();
    check_all(of, &options, superuser())
}
