//! Test support for several crates; a dev-dependency only.
//!
//! A test with requirements on the machine checks them first:
//!
//! ```no_run
//! use iosonar_testing::{LoopDevice, Need, left_out};
//!
//! # fn test() {
//! if left_out(Need::Loop) {
//!     return;
//! }
//! let device = LoopDevice::new(64 << 20);
//! // … device.path() is /dev/loopN until `device` is dropped
//! # }
//! ```

mod loop_device;
mod mount;
mod needs;
mod settings;
mod signals;
mod waits;

pub use loop_device::LoopDevice;
pub use mount::Mount;
pub use needs::{Need, left_out, loads};
pub use settings::settings_of_the_machine;
pub use signals::default_signals;
pub use waits::{Limit, ended, output_of, process_tree, wait_until};
