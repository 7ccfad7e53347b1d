//! The options that the user typed, with values as a person would type them.

use std::any::Any;
use std::ffi::OsStr;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use iosonar_pacing::options::configured::is_configured;
use iosonar_trace::params::format_time;
use iosonar_trace::run_info::{OpenMap, OptionValue};
use iosonar_trace::transforms::Pipeline;
use iosonar_trace::{Nanos, path_text};

/// The options of `command` that were typed, or are defaults of the user, and differ from their defaults, by long name. The value of a flag is true, that of
/// an option that can be repeated is a list, and all others are text.
pub fn typed_options(command: &Command, matches: &ArgMatches) -> OpenMap {
    let mut typed = OpenMap::default();
    for option in command.get_arguments() {
        if let (Some(name), Some(value)) = (option.get_long(), value(option, matches)) {
            typed.insert(name, value);
        }
    }
    typed
}

fn value(option: &Arg, matches: &ArgMatches) -> Option<OptionValue> {
    let id = option.get_id().as_str();
    let is_typed = matches.value_source(id) == Some(ValueSource::CommandLine);
    if !is_typed && !is_configured(option, matches) {
        return None;
    }
    if matches!(option.get_action(), ArgAction::SetTrue) {
        return Some(true.into());
    }
    let values = formatted(matches, id, |time: &Nanos| format_time(*time))
        .or_else(|| formatted(matches, id, f64::to_string))
        // The text of a pipeline omits secrets.
        .or_else(|| formatted(matches, id, <Pipeline>::to_string))
        .unwrap_or_else(|| raw(option, matches));
    if option.get_default_values().iter().map(path_text).eq(values.iter().cloned()) {
        return None;
    }
    Some(match option.get_action() {
        ArgAction::Append => OptionValue::List(values.into_iter().map(OptionValue::Text).collect()),
        _ => OptionValue::Text(values.concat()),
    })
}

/// The values of an option, if they are of type `T`.
fn formatted<T: Any + Clone + Send + Sync>(
    matches: &ArgMatches,
    id: &str,
    format: fn(&T) -> String,
) -> Option<Vec<String>> {
    Some(matches.try_get_many(id).ok()??.map(format).collect())
}

/// The values as typed, with aliases replaced by the names that they stand for.
fn raw(option: &Arg, matches: &ArgMatches) -> Vec<String> {
    let possible = option.get_possible_values();
    let words = matches.get_raw(option.get_id().as_str()).into_iter().flatten();
    let canonical = |word: &OsStr| {
        let text = path_text(word);
        possible.iter().find(|value| value.matches(&text, false)).map_or(text, |value| value.get_name().to_owned())
    };
    words.map(canonical).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::config::options::Options;

    fn typed(words: &str) -> Value {
        json!(Options::of(&format!("a.load.gz {words}")).typed.options())
    }

    #[test]
    fn options_not_typed_or_at_their_default_are_left_out() {
        assert_eq!(typed("-t /dev/sdb -o b"), json!({"target": ["/dev/sdb"], "output": "b"}));
        let defaults = "--fit wrap --start 0s --end 0 --speedup 1.0 --seed 1 --strong 1 --data random --depth 512 \
                        --ahead-time 1000ms --grace 0.2 --verify off --verify-memory 1G --output-offset 0";
        assert_eq!(typed(&format!("--fake-io -o b {defaults}")), json!({"fake-io": true, "output": "b"}));
    }

    #[test]
    fn values_are_as_a_person_would_type_them() {
        let words = "-o b --start 600 --end 900.5 --depth each=16 --ahead 100 --ahead-time 1.5ms --speedup 2.50 \
                     --closed=no-think --wait work --compressible 30 --simulate constant=200us --force \
                     --isolate=workers,awake --strong 0 --buffers 64M";
        let expected = json!({
            "output": "b", "start": "10m", "end": "900500ms", "depth": "each=16", "ahead": "100",
            "ahead-time": "1500us", "speedup": "2.5", "closed": "no-think", "wait": "inline", "compressible": "30",
            "simulate": "constant=200us", "force": true, "isolate": ["workers", "awake"], "strong": "0", "buffers": "64M",
        });
        assert_eq!(typed(words), expected);
        assert_eq!(typed("--fake-io -o b --closed")["closed"], "think");
    }

    #[test]
    fn secrets_are_left_out() {
        let words = ["a.load", "--fake-io", "-o", "b", "--edit", "anonymise key=sesame"];
        let options = Options::parse(words).unwrap();
        assert!(!json!(options.typed.options()).to_string().contains("sesame"), "{:?}", options.typed);
        assert!(options.typed.options().get("edit").text().unwrap().starts_with("anonymise"));
    }
}
