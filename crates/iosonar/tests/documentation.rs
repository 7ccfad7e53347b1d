//! What the documentation shows can be typed: every subcommand and option in its examples exists.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;

/// The documents whose examples are checked.
const DOCUMENTS: [&str; 13] = [
    "README.md",
    "CONTRIBUTING.md",
    "docs/data.md",
    "docs/devices.md",
    "docs/formats.md",
    "docs/guide.md",
    "docs/loads.md",
    "docs/pitfalls.md",
    "docs/recording.md",
    "docs/reports.md",
    "docs/running.md",
    "docs/transforms.md",
    "docs/verify.md",
];

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// One use of the command: where it stands, and its words from the subcommand on.
struct Example {
    place: String,
    words: Vec<String>,
}

fn examples_of_document(name: &str) -> Vec<Example> {
    examples(name, &fs::read_to_string(top().join(name)).expect("the document"))
}

/// The lines of code blocks, or of a help's examples, that run `iosonar`, continued lines joined.
fn examples(document: &str, text: &str) -> Vec<Example> {
    let mut examples = Vec::new();
    let mut in_code = false;
    let mut continued = String::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            in_code = !in_code;
        } else if in_code || line.starts_with("  ") {
            if let Some(start) = line.strip_suffix('\\') {
                continued.push_str(start);
                continue;
            }
            let line = std::mem::take(&mut continued) + line;
            // What stands far to the right explains the command.
            let command = line.split(" #").next().and_then(|line| line.trim_start().split("   ").next());
            let command = command.unwrap_or_default();
            for stage in
                command.split(" | ").flat_map(|stage| stage.split(" && ")).flat_map(|stage| stage.split(" -- "))
            {
                let mut words = stage.split_whitespace().skip_while(|word| matches!(*word, "sudo" | "$"));
                if words.next().is_some_and(|word| word == "iosonar" || word.ends_with("/iosonar")) {
                    let place = format!("{document}:{}", index + 1);
                    examples.push(Example { place, words: words.map(str::to_owned).collect() });
                }
            }
        }
    }
    examples
}

fn is_python(name: &str) -> bool {
    top().join(format!("packaging/scripts/iosonar-{name}")).is_file()
}

/// What `--help` prints, each asked for once.
#[derive(Default)]
struct Helps(BTreeMap<Vec<String>, String>);

impl Helps {
    /// The help that applies to these words: those of the command, and of its own subcommand if the next is one.
    fn of(&mut self, words: &[String]) -> Option<&str> {
        let names: Vec<String> = words.iter().take_while(|word| !word.starts_with('-')).take(2).cloned().collect();
        if !self.0.contains_key(&names) {
            let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
            let output = command.args(&names).arg("--help").output().expect("it runs");
            let text = output.status.success().then(|| String::from_utf8(output.stdout).expect("UTF-8"));
            self.0.insert(names.clone(), text?);
        }
        self.0.get(&names).map(String::as_str)
    }
}

fn check(example: &Example, helps: &mut Helps) {
    let Some(name) = example.words.first() else { return };
    if name.starts_with('-') || is_python(name) {
        return;
    }
    let Some(help) = helps.of(&example.words) else { panic!("{}: there is no subcommand `{name}`", example.place) };
    for word in &example.words[1..] {
        let option = word.split('=').next().unwrap_or_default();
        let mut known = help.split(|c: char| c.is_whitespace() || ",[]=<".contains(c));
        assert!(
            !option.starts_with('-') || option == "-" || known.any(|word| word == option),
            "{}: `iosonar {name}` has no option {option}",
            example.place
        );
    }
}

#[test]
fn every_example_in_the_documents_can_be_typed() {
    let mut helps = Helps::default();
    let examples: Vec<Example> = DOCUMENTS.iter().flat_map(|name| examples_of_document(name)).collect();
    assert!(examples.len() > 10, "few examples were found: is this test still reading the documents rightly?");
    examples.iter().for_each(|example| check(example, &mut helps));
}

#[test]
fn every_example_in_the_help_can_be_typed() {
    let mut helps = Helps::default();
    let main = Command::new(env!("CARGO_BIN_EXE_iosonar")).arg("--help").output().expect("it runs");
    let main = String::from_utf8(main.stdout).expect("UTF-8");
    let list = main.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = list.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    // The Python half's commands may not be installed; its own tests type their examples.
    let elsewhere = ["help", "report", "compare", "sql"];
    for name in names.filter(|name| !elsewhere.contains(name)) {
        let help = helps.of(&[name.to_owned()]).expect("a subcommand of the list").to_owned();
        let shown = examples(&format!("iosonar {name} --help"), &help);
        assert!(!shown.is_empty(), "`iosonar {name} --help` shows no example");
        shown.iter().for_each(|example| check(example, &mut helps));
    }
}
