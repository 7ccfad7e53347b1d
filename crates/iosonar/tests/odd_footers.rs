//! Parquet files with a JSON footer that iosonar would not write: each command succeeds, or refuses them with an error.

use crate::replaying;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::replaying::{Bench, MIB, adjacent_requests};

/// Spare bytes in the footer, so that a changed one fits in place.
const ROOM: usize = 200;

/// JSON pointers of a value and of all values within it.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    let deeper: Vec<_> = match value {
        Value::Object(all) => all.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(all) => all.iter().take(1).enumerate().map(|(key, value)| (key.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    deeper.into_iter().for_each(|(key, value)| places(value, &format!("{at}/{key}"), found));
}

fn odd() -> [Value; 9] {
    let deep = json!([[7]]);
    [
        json!(null),
        json!(true),
        json!(-1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1e300),
        json!("x"),
        deep,
        json!({"x": 1}),
    ]
}

/// The byte range of the footer's text in the file.
fn footer_of(file: &[u8]) -> std::ops::Range<usize> {
    let begin = b"{\"schema_version\"";
    let from = file.windows(begin.len()).position(|window| window == begin).expect("a footer");
    let mut values = serde_json::Deserializer::from_slice(&file[from..]).into_iter::<Value>();
    values.next().expect("a value").expect("JSON");
    from..from + values.byte_offset()
}

#[test]
fn odd_footers_are_refused_or_read_without_a_panic() {
    let bench = Bench::new();
    let text = replaying::text(&adjacent_requests(20, 8));
    let load = bench.text("a.load", &format!("{}\n{text}", "x".repeat(ROOM)));
    bench.replay(&load, &bench.target(MIB), &[]).with_code(0);
    let whole = fs::read(bench.path("r.replay.parquet")).unwrap();
    let range = footer_of(&whole);
    let mut footer: Value = serde_json::from_slice(&whole[range.clone()]).unwrap();
    assert!(footer["source"]["preamble"].as_str().is_some_and(|text| text.len() >= ROOM), "{footer:#}");
    footer["source"]["preamble"] = "".into();
    let mut all = Vec::new();
    places(&footer, "", &mut all);
    let (mut read, mut refused) = (0, 0);
    let odd = odd();
    let commands = ["info", "limit", "check", "convert"];
    for (number, place) in all.iter().enumerate() {
        // Top-level keys get every odd value; deeper ones get one each, in rotation.
        let depth = place.matches('/').count();
        let few = number % odd.len();
        for value in if depth < 2 { &odd[..] } else { &odd[few..=few] } {
            let mut changed = footer.clone();
            *changed.pointer_mut(place).unwrap() = value.clone();
            let mut text = changed.to_string().into_bytes();
            assert!(text.len() <= range.len(), "{place}: there is room");
            text.resize(range.len(), b' ');
            let mut file = whole.clone();
            file[range.clone()].copy_from_slice(&text);
            fs::write(bench.path("odd.replay.parquet"), file).unwrap();
            for command in if depth < 2 { &commands[..] } else { &commands[number % 4..=number % 4] } {
                let mut iosonar = Command::new(env!("CARGO_BIN_EXE_iosonar"));
                iosonar.current_dir(bench.path("")).arg(command).arg("odd.replay.parquet");
                match *command {
                    "check" => drop(iosonar.arg("a.load")),
                    "convert" => drop(iosonar.args(["odd.replay.gz", "--overwrite"])),
                    _ => {}
                }
                let output = iosonar.output().unwrap();
                let message = String::from_utf8_lossy(&output.stderr);
                let is_answer = matches!(output.status.code(), Some(0..=5));
                assert!(is_answer && !message.contains("panicked"), "{command}, {place} = {value}: {output:?}");
                if output.status.success() { read += 1 } else { refused += 1 }
            }
        }
    }
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
}
