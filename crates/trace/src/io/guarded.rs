//! Calls into libraries that panic on some kinds of damage, which then is an error as any other.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic on this thread, now, is one that becomes an error: a panic hook need not say or do anything.
pub fn is_guarded() -> bool {
    IS_GUARDED.get()
}

/// What `call` returns, or `None` if it panics. What it changes is not looked at afterwards: readers are spent after errors.
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
    fn a_panic_is_no_more_than_nothing() {
        assert_eq!(guarded(|| is_guarded().then_some(1).expect("it is")), Some(1));
        assert_eq!(guarded(|| panic!("damage")), None::<()>);
        assert!(!is_guarded());
    }
}
