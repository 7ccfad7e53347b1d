//! What messages call the kinds of tables. A kind that is not listed is called by its name.

/// The kinds of tables as in their footer, what they hold, and where to use them instead.
const KINDS: &[(&str, &str, &str)] = &[
    ("load", "a load of requests", "; `iosonar --help` lists the commands for it"),
    ("replay", "a run of requests", ""),
    ("calls", "a trace of calls to files", "; `iosonar files --help` lists the commands for it"),
    ("calls_run", "a run of calls to files", ""),
    ("scale", "the times of several instances", "; `iosonar report` draws it"),
    ("tree", "a snapshot of a tree of files", "; `iosonar sql` reads it as the view tree"),
];

/// Why a table is refused.
pub fn another_table(found: &str, expected: &[&str]) -> String {
    let words = |kind: &str| KINDS.iter().find(|(name, ..)| *name == kind).copied();
    let expected: Vec<&str> = expected.iter().filter_map(|kind| words(kind)).map(|(_, held, _)| held).take(2).collect();
    let unlisted = format!("a table of the kind `{found}`");
    let (_, held, advice) = words(found).unwrap_or((found, &unlisted, "; `iosonar info` says what is in it"));
    format!("{held}, not {}{advice}", expected.join(" or "))
}
