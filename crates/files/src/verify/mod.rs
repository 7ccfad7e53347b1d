//! Proves from the result of a replay that it kept its order. Shares no code with `order` and `replay`.
