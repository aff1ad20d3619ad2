//! Special rights: those that a session which executes users' text, or touches users' tables, must not be able to come by.

use bench_base::error::UserError;
use pgrx::pg_sys;

use crate::server::roles;
use crate::server::spi::fetch;

/// Predefined roles without special rights, by OID (pg_authid.dat). Those that a later version brings are special until they are
/// listed here.
const HARMLESS: [u32; 9] = [
    3373, // pg_monitor
    3374, // pg_read_all_settings
    3375, // pg_read_all_stats
    3377, // pg_stat_scan_tables
    4200, // pg_signal_backend
    4544, // pg_checkpoint
    4550, // pg_use_reserved_connections, from 16 on
    6171, // pg_database_owner
    6392, // pg_signal_autovacuum_worker, from 18 on
];

/// Whether a role has special rights, or a chain of memberships to a role that has them, which SET ROLE in a script would use:
/// superuser, an attribute that lets it past checks, a predefined role that is not harmless, or the privilege to set a
/// superusers' parameter. A membership with the ADMIN option alone counts, for it can grant itself the others.
///
/// # Errors
/// The server's.
pub fn is_special(role: pg_sys::Oid) -> Result<bool, UserError> {
    if roles::is_superuser(role) {
        return Ok(true);
    }
    let sql = "SELECT /* pgbench_ext */ (WITH RECURSIVE reached (oid) AS ( \
                   SELECT $1 UNION SELECT m.roleid FROM reached r JOIN pg_auth_members m ON m.member = r.oid) \
               SELECT bool_or(r.rolsuper OR r.rolcreaterole OR r.rolreplication OR r.rolbypassrls \
                       OR r.oid < '16384'::oid AND r.oid <> ALL ($2)) \
                   OR EXISTS (SELECT FROM pg_parameter_acl p CROSS JOIN LATERAL aclexplode(p.paracl) AS a \
                              WHERE a.grantee = 0 OR a.grantee IN (SELECT oid FROM reached)) \
               FROM reached JOIN pg_roles r USING (oid))";
    let harmless: Vec<pg_sys::Oid> = HARMLESS.into_iter().map(pg_sys::Oid::from).collect();
    // A role that has gone has no rights to lose, and whatever is done as it fails.
    Ok(fetch::<bool>(sql, &[role.into(), harmless.into()])?.unwrap_or(true))
}
