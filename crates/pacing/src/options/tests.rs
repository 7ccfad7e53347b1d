use clap::Args;
use serde_json::json;

use super::*;

fn parsed(line: &str) -> PacingOptions {
    PacingOptions::parse(line.split_whitespace()).unwrap()
}

#[test]
fn a_line_of_the_list_has_the_name_that_clap_knows() {
    let command = PacingOptions::augment_args(Command::new("pacing"));
    command.clone().debug_assert();
    let fields: Vec<_> = PacingOptions::all().into_iter().map(|option| option.id).collect();
    let ids: Vec<_> = command.get_arguments().map(|option| option.get_id().to_string()).collect();
    assert_eq!(fields, ids, "each option has one definition");
    for id in ids {
        let help = |option: &Arg| option.get_help().map(ToString::to_string);
        let option = command.get_arguments().find(|option| *option.get_id() == id).unwrap();
        let of_calls = help(&PacingOptions::for_calls(option.clone()));
        let names_requests = help(option).is_some_and(|help| help.contains("request"));
        assert!(!names_requests || of_calls != help(option), "{id}: requests in the help for calls");
    }
}

#[test]
fn times_of_the_load_become_times_of_the_run_and_back() {
    let options = parsed("--speedup 4");
    assert_eq!([0, 4, 9, 40].map(|at| options.scheduled(Nanos(at)).0), [0, 1, 2, 10]);
    for scheduled in [1, 2, 1_000_000, i64::MAX] {
        let at = options.time_in_load(Nanos(scheduled));
        assert!(options.scheduled(at) >= Nanos(scheduled) || at == Nanos::MAX);
        assert!(options.scheduled(at - Nanos(1)) < Nanos(scheduled));
    }
    assert_eq!(parsed("").time_in_load(Nanos(7)), Nanos(7));
}

#[test]
fn options_at_their_default_change_nothing() {
    assert!(parsed("--speedup 1").changed(Changes::Load).is_empty());
    assert_eq!(parsed("--speedup 2").changed(Changes::Load), ["speedup"]);
    assert_eq!(parsed("--asap").changed(Changes::Load), ["asap"]);
    assert_eq!(parsed("--perturb delay=1ms").changed(Changes::IssueTimes), ["perturb"]);
}

#[test]
fn the_python_half_has_the_options() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/iosonar/pacing_options.json");
    let defaults = json!(parsed(""));
    let line = |OptionInfo { key, changes, is_time, .. }: OptionInfo| {
        format!("  {key:?}: {}", json!({"changes": changes, "default": defaults[&key], "is_time": is_time}))
    };
    let lines: Vec<_> = PacingOptions::all().into_iter().map(line).collect();
    let text = format!("{{\n{}\n}}\n", lines.join(",\n"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(file, &text).unwrap();
    }
    let found = std::fs::read_to_string(file).unwrap_or_default();
    assert!(found == text, "pacing_options.json is out of date: run this test with UPDATE_DOCS=1");
}
