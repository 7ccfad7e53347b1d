//! What was typed: options with values in the form in which a person would type them.

use std::any::Any;
use std::ffi::OsStr;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use iosonar_trace::params::format_time;
use iosonar_trace::transforms::Pipeline;
use iosonar_trace::{Nanos, path_text};
use serde_json::{Map, Value};

/// The options of `command` that were typed and differ from their defaults, by their long names: true where they take no
/// value, a list where they may be repeated.
pub fn typed(command: &Command, matches: &ArgMatches) -> Map<String, Value> {
    let options = command.get_arguments().filter_map(|option| Some((option.get_long()?, option)));
    options.filter_map(|(name, option)| Some((name.to_owned(), value(option, matches)?))).collect()
}

fn value(option: &Arg, matches: &ArgMatches) -> Option<Value> {
    let id = option.get_id().as_str();
    if matches.value_source(id) != Some(ValueSource::CommandLine) {
        return None;
    }
    if matches!(option.get_action(), ArgAction::SetTrue) {
        return Some(true.into());
    }
    let values = shown(matches, id, |time: &Nanos| format_time(*time))
        .or_else(|| shown(matches, id, f64::to_string))
        // A pipeline may hold a secret, which its text leaves out.
        .or_else(|| shown(matches, id, Pipeline::to_string))
        .unwrap_or_else(|| raw(option, matches));
    if option.get_default_values().iter().map(path_text).eq(values.iter().cloned()) {
        return None;
    }
    Some(match option.get_action() {
        ArgAction::Append => values.into(),
        _ => values.concat().into(),
    })
}

/// The values of an option of that type.
fn shown<T: Any + Clone + Send + Sync>(matches: &ArgMatches, id: &str, show: fn(&T) -> String) -> Option<Vec<String>> {
    Some(matches.try_get_many(id).ok()??.map(show).collect())
}

/// The words themselves; of a few words with other names, the first name.
fn raw(option: &Arg, matches: &ArgMatches) -> Vec<String> {
    let possible = option.get_possible_values();
    let words = matches.get_raw(option.get_id().as_str()).into_iter().flatten();
    let one = |word: &OsStr| {
        let text = path_text(word);
        possible.iter().find(|value| value.matches(&text, false)).map_or(text, |value| value.get_name().to_owned())
    };
    words.map(one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::config::options::Options;

    fn typed(words: &str) -> Value {
        Options::of(&format!("a.load.gz {words}")).typed.options().clone().into()
    }

    #[test]
    fn what_was_not_typed_is_left_out() {
        assert_eq!(typed("-t /dev/sdb -o b"), json!({"target": ["/dev/sdb"], "output": "b"}));
        let defaults = "--fit wrap --start 0s --end 0 --speedup 1.0 --seed 1 --strong 1 --data random --depth 512 \
                        --ahead-time 1000ms --grace 0.2 --verify off --verify-memory 1024 --output-offset 0";
        assert_eq!(typed(&format!("--fake-io -o b {defaults}")), json!({"fake-io": true, "output": "b"}));
    }

    #[test]
    fn values_are_as_they_are_typed() {
        let words = "-o b --start 600 --end 900.5 --depth each=16 --ahead 100 --ahead-time 1.5ms --speedup 2.50 \
                     --closed=no-think --wait work --compressible 30 --simulate constant=200us --force \
                     --isolate=workers,awake --strong 0 --buffers 64";
        let expected = json!({
            "output": "b", "start": "10m", "end": "900500ms", "depth": "each=16", "ahead": "100",
            "ahead-time": "1500us", "speedup": "2.5", "closed": "no-think", "wait": "inline", "compressible": "30",
            "simulate": "constant=200us", "force": true, "isolate": ["workers", "awake"], "strong": "0", "buffers": "64",
        });
        assert_eq!(typed(words), expected);
        assert_eq!(typed("--fake-io -o b --closed")["closed"], "think");
    }

    #[test]
    fn no_secret_is_kept() {
        let words = ["a.load", "--fake-io", "-o", "b", "--edit", "anonymise key=sesame"];
        let options = Options::parse(words).unwrap();
        assert!(!json!(options.typed.options()).to_string().contains("sesame"), "{:?}", options.typed);
        assert!(options.typed.options()["edit"].as_str().unwrap().starts_with("anonymise"));
    }
}
