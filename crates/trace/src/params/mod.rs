//! Names with settings, as typed on the command line: `select from=0 to=5m`.
//!
//! Each name is described once, by a [`Definition`]. Parsing, help, documentation and error messages all use it.

mod quantity;
pub mod secret;
mod settings;
mod spec;
mod split;
mod suggestion;
mod toml_keys;
mod toml_text;

pub use quantity::{
    format_time, parse_bytes, parse_count, parse_duration, parse_memory, parse_positive, parse_positive_duration,
    parse_rate, parse_sectors, parse_share, parse_speed, parse_time, whole_number,
};
pub use settings::{Setting, Settings, Value};
pub use spec::{Definition, ParamDefault, ParamSpec, ParamType};
pub use split::{Phrase, split};
pub use suggestion::did_you_mean;
pub use toml_keys::{Key, Takes, schema_of};
pub use toml_text::{Origins, Section, Text};
