//! Texts for clients whose encoding lacks some of our characters: the server would refuse the whole with 22P05.

use bench_base::untrusted::in_ascii;
use pgrx::pg_sys;

/// The text as this session's client can show it.
pub fn for_client(text: String) -> String {
    // SAFETY: reads a variable of the process's, which is set from its start on.
    let encoding = unsafe { pg_sys::pg_get_client_encoding() };
    let has_all = [pg_sys::pg_enc::PG_UTF8, pg_sys::pg_enc::PG_SQL_ASCII].contains(&encoding.cast_unsigned());
    if has_all { text } else { in_ascii(&text).into_owned() }
}
