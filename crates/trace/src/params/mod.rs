//! What people type to name a thing and set its values: `select from=0 to=5m`.
//!
//! Whatever can be named so is described once, by a [`Definition`]: the command line, its help, the documentation and the
//! messages about what was mistyped all come from there.

mod quantity;
mod settings;
mod spec;
mod split;
mod suggestion;

pub use quantity::{
    parse_count, parse_duration, parse_positive, parse_positive_duration, parse_rate, parse_sectors, parse_share,
    parse_time, time_typed,
};
pub use settings::{Setting, Settings, Value};
pub use spec::{Definition, ParamDefault, ParamSpec, ParamType};
pub use split::{Phrase, split};
pub use suggestion::did_you_mean;
