//! `--wait`. Without it, each replay chooses.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args, ValueEnum};
use serde::Serialize;

use super::option::{Changes, PacingOption};
use crate::wait::Wait;

#[derive(Clone, Debug, Args, Serialize)]
pub struct WaitOption {
    /// How to wait for the scheduled time of the next request [default: spin; inline with two or three processors from
    /// 30,000 requests/s on; hybrid with one processor, or if other programs need more processors than there are. With
    /// --asap or --closed=no-think: inline with two or three processors, else hybrid]
    #[arg(long, value_enum, help_heading = "Issuing")]
    pub wait: Option<Wait>,
}

impl PacingOption for WaitOption {
    const CHANGES: Changes = Changes::Measurement;

    fn for_calls(option: Arg) -> Arg {
        option.value_parser(waits_of_calls()).help(
            "How to wait for the time of a call [default: spin; hybrid with one processor, or if other programs need more \
             processors than there are]",
        )
    }
}

/// All but `inline`: other threads read and record calls.
fn waits_of_calls() -> impl TypedValueParser<Value = Wait> {
    let waits = Wait::value_variants().iter().filter(|wait| **wait != Wait::Inline);
    PossibleValuesParser::new(waits.filter_map(ValueEnum::to_possible_value))
        .map(|name| Wait::from_str(&name, false).expect("a possible value"))
}
