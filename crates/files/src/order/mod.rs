//! Which calls must precede a call.
