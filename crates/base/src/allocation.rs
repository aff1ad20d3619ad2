//! Memory for what others have written: there may be none, which is an error and not the end of the server.

use crate::error::{UserError, sqlstate};

/// Room for so many further elements.
///
/// # Errors
/// 53200.
pub fn reserve<T>(list: &mut Vec<T>, more: usize) -> Result<(), UserError> {
    list.try_reserve(more).map_err(|_| out_of_memory(more.saturating_mul(size_of::<T>())))
}

/// A copy of a text.
///
/// # Errors
/// 53200.
pub fn copied(text: &str) -> Result<Box<str>, UserError> {
    let mut copy = String::new();
    copy.try_reserve_exact(text.len()).map_err(|_| out_of_memory(text.len()))?;
    copy.push_str(text);
    Ok(copy.into_boxed_str())
}

/// As the server says it.
pub fn out_of_memory(bytes: usize) -> UserError {
    UserError::new(sqlstate::OUT_OF_MEMORY, "out of memory")
        .detail(format!("Failed on request of size {bytes}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_an_error() {
        let mut list: Vec<u64> = Vec::new();
        assert_eq!(reserve(&mut list, usize::MAX / 16).map_err(|e| e.sqlstate), Err("53200".to_owned()));
        assert_eq!(reserve(&mut list, 10), Ok(()));
        assert_eq!(copied("naïve").as_deref(), Ok("naïve"));
    }
}
