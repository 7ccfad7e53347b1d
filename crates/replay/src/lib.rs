//! Issues the requests of a load at their time, and records what happened.
