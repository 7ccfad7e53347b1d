//! What keeps times, for requests and for calls: clocks and waiting, the memory and data of writes, the host, and whether the
//! times were kept.

mod args_as;
pub mod backoff;
pub mod buffers;
pub mod clock;
pub mod demand;
pub mod depth;
mod error;
pub mod fidelity;
pub mod histogram;
pub mod host;
pub mod ideal;
pub mod idle;
pub mod in_flight;
pub mod live;
pub mod options;
pub mod path_text;
pub mod payload;
pub mod perturb;
pub mod progress;
pub mod stalls;
pub mod start;
pub mod stop;
pub mod wait;

pub use error::{Error, Result};
pub use stop::Stop;
