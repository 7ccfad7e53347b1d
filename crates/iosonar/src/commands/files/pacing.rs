//! The options of pacing, in the words of calls.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, ValueEnum};
use iosonar_pacing::wait::Wait;

/// Heading of options in the help.
const TIME: &str = "Order and time";

/// An option of pacing, with what differs for calls.
pub fn pacing_of_calls(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "speedup" => option.help("Divide all times and gaps of the trace by this: 10, 0.5").help_heading(TIME),
        "asap" => {
            let help = "Issue calls as soon as the order allows, regardless of their times";
            option.help(help).conflicts_with_all(["timing", "speedup"]).help_heading(TIME)
        }
        "run_for" => {
            let help = "Replay only calls scheduled within this time of the run: 90, 10m, 2h. With another --timing than exact, \
                        issue no more calls after this time";
            option.help(help).help_heading(TIME)
        }
        "perturb" => option.help(
            "Degrade the issue times on purpose, to see the effect: quantize=10ms delays each call to the next multiple of \
             10 ms, delay=1ms delays it by a random time with a mean of 1 ms (uniform from 0 to 2 ms)",
        ),
        "seed" => option.help("Random seed of --perturb delay"),
        "repeat" => option.help(
            "Run the replay this many times, with numbered results (tar.1.calls-run.parquet, …), to see the variance between \
             runs. Later runs find the files as the earlier ones left them; `iosonar files prepare --reset` restores them",
        ),
        "depth" => option
            .help("Queue depth: the most calls that are executed at the same time, each in a thread (1 to 4096)")
            .alias("pool")
            .value_name("N")
            .default_value("64"),
        "wait" => option.value_parser(waits_of_calls()).help(
            "How to wait for the time of a call [default: spin; hybrid with one processor, or if other programs need more \
             processors than there are]",
        ),
        "isolate" => option
            .help(
                "Give the threads that issue calls priority over other programs and keep idle processors awake, or do only \
                 what is listed; restore the settings at the end (needs root)",
            )
            .default_missing_value("priority,awake"),
        _ => option,
    }
}

/// All but `inline`: other threads read and record calls.
fn waits_of_calls() -> impl TypedValueParser<Value = Wait> {
    let waits = Wait::value_variants().iter().filter(|wait| **wait != Wait::Inline);
    PossibleValuesParser::new(waits.filter_map(ValueEnum::to_possible_value))
        .map(|name| Wait::from_str(&name, false).expect("a possible value"))
}
