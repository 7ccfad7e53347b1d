//! Shares the requests of a run among several issuing loops (`--issuers`).
//!
//! ```text
//!                      ┌─ requests of loop 0 ──▶ loop 0 ─┐
//!  prepare ─ Outputs ──┼─ requests of loop 1 ──▶ loop 1 ─┼── Merge ──▶ completion log
//!                      └─ requests of loop 2 ──▶ loop 2 ─┘
//! ```
//! [`Shards`] assigns each part of a target to one loop, so that requests that overlap meet in the conflict tracking of one
//! loop. A request that touches parts of several loops is *shared*: its owner issues it, and each of the other loops gets a
//! *guard*, a copy without data, at the same place in its order. A guard takes part in the conflict tracking of its loop, as
//! the request itself would, and is never issued. [`SharedRequests`] has what owner and guards tell each other.
//!
//! Closed clients and programs wait for completions, so the order of their requests is not known before: each loop has clients
//! and streams of its own. Conflicts between loops are not kept apart then, and requests of a load go where there is room.
//!
//! **No deadlock.** All queues keep the order of sequence numbers, and a request waits only for requests before it: for
//! overlaps, for the depth of its dispatch queue, and for guards, which have its own sequence number and wait for no depth.
//! So the first request that is not complete never waits.

pub mod outputs;
pub mod shards;
pub mod shared;

pub use outputs::Outputs;
pub use shards::Shards;
pub use shared::SharedRequests;
