//! Issues the calls of a trace below a root, in a stated order at a stated time.
