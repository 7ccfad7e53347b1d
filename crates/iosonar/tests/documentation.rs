//! The examples in the documentation work: every subcommand and option in them exists.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The documents, relative to the top of the repository.
fn documents() -> Vec<PathBuf> {
    let directories = ["", "docs", "loads", "bench/results"].map(|directory| top().join(directory));
    let files = directories.iter().flat_map(|directory| fs::read_dir(directory).expect("a directory of documents"));
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    assert!(files.len() > 10, "few documents were found: {files:?}");
    files
}

/// Those whose code blocks show commands of today, not of former versions: neither changes nor dated measurements.
fn documents_with_examples() -> impl Iterator<Item = PathBuf> {
    let is_dated = |file: &PathBuf| file.ends_with("CHANGELOG.md") || file.parent().unwrap().ends_with("bench/results");
    documents().into_iter().filter(move |file| !is_dated(file))
}

/// One use of the command: its document and line, and its words from the subcommand on.
struct Example {
    place: String,
    words: Vec<String>,
}

fn examples_of_document(file: &Path) -> Vec<Example> {
    examples(&file.display().to_string(), &fs::read_to_string(file).expect("the document"))
}

/// The lines of code blocks, or of examples in a help text, that run `iosonar`, with continued lines joined.
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
            // Text far to the right explains the command.
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

/// Outputs of `--help`, cached.
#[derive(Default)]
struct Helps(BTreeMap<Vec<String>, String>);

impl Helps {
    /// The help of the command that these words call, or of its subcommand.
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
fn every_example_in_the_documents_is_valid() {
    let mut helps = Helps::default();
    let examples: Vec<Example> = documents_with_examples().flat_map(|file| examples_of_document(&file)).collect();
    assert!(examples.len() > 10, "found only {} examples; does this test still parse the documents?", examples.len());
    examples.iter().for_each(|example| check(example, &mut helps));
}

#[test]
fn every_example_in_the_help_is_valid() {
    let mut helps = Helps::default();
    let main = Command::new(env!("CARGO_BIN_EXE_iosonar")).arg("--help").output().expect("it runs");
    let main = String::from_utf8(main.stdout).expect("UTF-8");
    let list = main.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = list.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    // The Python half may not be installed; its own tests check its examples.
    let elsewhere = ["help", "report", "compare", "ab", "sql", "sweep", "sensitivity", "campaign"];
    for name in names.filter(|name| !elsewhere.contains(name)) {
        let help = helps.of(&[name.to_owned()]).expect("a subcommand of the list").to_owned();
        let shown = examples(&format!("iosonar {name} --help"), &help);
        assert!(!shown.is_empty(), "`iosonar {name} --help` shows no example");
        shown.iter().for_each(|example| check(example, &mut helps));
    }
}

/// The text without its code blocks.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// The anchors that GitHub makes of the headings.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
    headings.map(|heading| heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

#[test]
fn every_link_between_documents_leads_to_a_file_and_a_heading() {
    let mut links = 0;
    for document in documents() {
        let text = prose(&fs::read_to_string(&document).expect("the document"));
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            links += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = if path.is_empty() { document.clone() } else { document.with_file_name(path) };
            assert!(file.exists(), "{}: no file for the link {link}", document.display());
            if !anchor.is_empty() {
                let headings = anchors(&prose(&fs::read_to_string(&file).expect("a document")));
                assert!(headings.contains(&anchor.to_owned()), "{}: no heading for {link}", document.display());
            }
        }
    }
    assert!(links > 50, "only {links} links were found");
}
