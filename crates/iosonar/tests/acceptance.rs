//! The tests that need the natural loads, and slow ones.

mod acceptance_convert;
mod acceptance_files_hostile;
mod acceptance_files_orders;
mod acceptance_files_recording;
mod acceptance_replay;
mod hostile;
#[path = "../../files/tests/orders/mod.rs"]
mod orders;
#[allow(dead_code, reason = "the other test program uses the rest")]
mod replaying;
