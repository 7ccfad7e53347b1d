//! The kinds of tables, and how messages call them.

/// The kinds of tables, as in their footer.
const KINDS: &[(&str, &str)] = &[
    ("load", "a load of requests"),
    ("replay", "a run of requests"),
    ("calls", "a trace of calls to files"),
    ("calls_run", "a run of calls to files"),
    ("scale", "the times of several instances"),
    ("tree", "a snapshot of a tree of files"),
];

/// The table of a kind, for messages; `None` for an unknown kind.
pub fn described(kind: &str) -> Option<&'static str> {
    KINDS.iter().find(|known| known.0 == kind).map(|known| known.1)
}

/// Why a table is refused.
pub fn another_table(found: &str, expected: &[&str]) -> String {
    let expected: Vec<&str> = expected.iter().filter_map(|kind| described(kind)).take(2).collect();
    let advice = match found {
        "calls" => "; `iosonar files --help` lists the commands for it",
        "tree" => "; `iosonar sql` reads it as the view tree",
        "scale" => "; `iosonar report` draws it",
        "load" => "; `iosonar --help` lists the commands for it",
        _ => "",
    };
    format!("{}, not {}{advice}", described(found).unwrap_or(found), expected.join(" or "))
}
