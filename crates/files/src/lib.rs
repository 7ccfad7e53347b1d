//! Files: what programs do to them, recorded as a table of system calls, and replayed in a stated order at a stated time.
//!
//! ```text
//!  strace text ─▶ strace ─┐                        ┌─▶ order ─▶ replay ─▶ run ─▶ verify
//!  tracepoints ─▶ record ─┼─▶ Call ─▶ table ─▶ state┤
//!                         │         (docs/schema.md)└─▶ check, prepare
//!  edited      ─▶ transforms
//! ```
//!
//! A [`Call`] is one system call as recorded. `state` follows the processes' descriptors and the names of the tree, and says
//! what each call uses and changes. `order` derives from that which calls must precede it. Everything streams: memory is
//! bounded by what is open, named and in flight, not by the length of the trace.

mod checkpoints;
mod ids;
mod model;
pub mod nfsdump;
mod open;
pub mod order;
pub mod patterns;
pub mod record;
pub mod replay;
mod snapshot;
pub mod state;
pub mod strace;
pub mod table;
pub mod transforms;
pub mod tree;
pub mod verify;

pub use model::call::{AT_FDCWD, Call, Name};
pub use model::kind::{CallKind, Family};
pub use model::metadata::{CallCounts, Container, InitialDescriptor, InitialProcess, Metadata, Part, Recorder};
pub use model::resolved::{Access, DescriptionId, NameId, ObjectId, Resolved, Resource, Skip, Touch};
pub use model::result_row::{CallOutcome, CallResult, DelayReason};
pub use model::run::{CallsRun, RunRoot};
pub use model::unreplayable::{Unreplayable, list as list_unreplayable};
pub use open::{FileKind, OpenOptions, Opened, open, open_input, open_several, recognise};
