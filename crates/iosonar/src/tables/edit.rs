//! Pipelines of transforms, of which the input decides what they transform.

use iosonar_trace::params::Definition;
use iosonar_trace::transforms::{Pipeline, Transformed, has_transforms};

/// The transforms of the rows of a family.
pub struct Edits {
    /// What they transform: `a load`.
    pub of: &'static str,
    /// What precedes their list.
    pub heading: &'static str,
    /// What precedes an explanation of one.
    pub prefix: &'static str,
    forms: fn() -> Vec<&'static Definition>,
    check: fn(&str) -> Result<(), String>,
    has: fn(&str) -> bool,
}

impl Edits {
    /// The transforms of these rows.
    pub const fn of<R: Transformed>(of: &'static str, heading: &'static str, prefix: &'static str) -> Self {
        let forms = || R::transforms().iter().map(|transform| &transform.form).collect();
        let check = |text: &str| text.parse::<Pipeline<R>>().map(drop).map_err(|error| error.to_string());
        Self { of, heading, prefix, forms, check, has: has_transforms::<R> }
    }

    /// Their definitions.
    pub fn forms(&self) -> Vec<&'static Definition> {
        (self.forms)()
    }
}

/// Checks that a pipeline is valid for the rows of a family.
pub fn checked(text: &str, all: impl Iterator<Item = &'static Edits>) -> Result<String, String> {
    let mut problems = Vec::new();
    for edits in all {
        match (edits.check)(text) {
            Ok(()) => return Ok(text.to_owned()),
            Err(problem) => problems.push((edits, problem)),
        }
    }
    // With an unknown transform, a pipeline is for others.
    let meant: Vec<_> = problems.iter().filter(|(edits, _)| (edits.has)(text)).collect();
    match meant[..] {
        [] => Err(problems.swap_remove(0).1),
        [(_, first), ref others @ ..] if others.iter().all(|(_, problem)| problem == first) => Err(first.clone()),
        _ => Err(meant
            .iter()
            .map(|(edits, problem)| format!("of {}: {problem}", edits.of))
            .collect::<Vec<_>>()
            .join("; ")),
    }
}
