//! Calls into libraries that panic on some damaged files. The panic becomes an error.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic on this thread will be caught and turned into an error. Panic hooks should ignore it.
pub fn is_guarded() -> bool {
    IS_GUARDED.get()
}

/// Returns the result of `call`, or `None` if it panics. This is unwind safe, because readers are not used after an error.
pub(crate) fn guarded<T>(call: impl FnOnce() -> T) -> Option<T> {
    IS_GUARDED.set(true);
    let returned = catch_unwind(AssertUnwindSafe(call));
    IS_GUARDED.set(false);
    returned.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_none() {
        assert_eq!(guarded(|| is_guarded().then_some(1).expect("it is")), Some(1));
        assert_eq!(guarded(|| panic!("damage")), None::<()>);
        assert!(!is_guarded());
    }
}
