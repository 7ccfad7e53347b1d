//! `iosonar help TOPIC`: the tutorials, which are part of the program, so that a host without a network has them.

use std::ffi::OsString;

/// Each is a file of docs/tutorials, by its name.
const TOPICS: [(&str, &str); 5] = [
    ("choose-storage", include_str!("../tutorials/choose-storage.md")),
    ("find-a-stall", include_str!("../tutorials/find-a-stall.md")),
    ("size-a-cache", include_str!("../tutorials/size-a-cache.md")),
    ("gate-in-ci", include_str!("../tutorials/gate-in-ci.md")),
    ("read-diagrams", include_str!("../tutorials/read-diagrams.md")),
];

/// The tutorial that a command line `iosonar help TOPIC` names.
pub fn asked(words: &[OsString]) -> Option<&'static str> {
    match words {
        [_, help, topic] if help == "help" => TOPICS.iter().find(|(name, _)| topic == *name).map(|(_, text)| *text),
        _ => None,
    }
}

/// Whether `iosonar help NAME` prints a tutorial.
pub fn has(name: &str) -> bool {
    TOPICS.iter().any(|(topic, _)| *topic == name)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_tutorial_is_a_topic_that_the_help_names() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorials");
        let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let mut topics = TOPICS.map(|(name, _)| name);
        topics.sort_unstable();
        assert_eq!(files.iter().map(|file| file.file_stem().unwrap().to_str().unwrap()).collect::<Vec<_>>(), topics);
        for (name, text) in TOPICS {
            assert_eq!(asked(&["iosonar".into(), "help".into(), name.into()]), Some(text));
            assert!(crate::commands::AFTER_HELP.contains(name), "{name}");
            assert!(crate::command_line().find_subcommand(name).is_none(), "{name} is a command");
            assert!(text.split_whitespace().count() <= 900, "{name}");
        }
        assert_eq!(asked(&["iosonar".into(), "help".into(), "replay".into()]), None);
    }
}
