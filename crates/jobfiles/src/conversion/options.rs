//! What becomes of each option of a job file.

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// The program says it.
    Converted,
    /// It does not change which requests are made; with the reason.
    Ignored(&'static str),
    /// The program cannot say it; with the reason, or the way to get it.
    Refused(&'static str),
}

/// An option.
#[derive(Debug, PartialEq, Eq)]
pub struct JobOption {
    /// Its name, then its aliases.
    pub names: &'static [&'static str],
    /// What becomes of it.
    pub treatment: Treatment,
}

pub(crate) const fn converted(names: &'static [&'static str]) -> JobOption {
    JobOption { names, treatment: Treatment::Converted }
}

pub(crate) const fn ignored(names: &'static [&'static str], reason: &'static str) -> JobOption {
    JobOption { names, treatment: Treatment::Ignored(reason) }
}

pub(crate) const fn refused(names: &'static [&'static str], reason: &'static str) -> JobOption {
    JobOption { names, treatment: Treatment::Refused(reason) }
}

/// The first or second column of a table in the documentation: names, and the reason.
pub fn described(options: &[JobOption]) -> String {
    let names = |option: &JobOption| option.names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ");
    let with =
        |is: &dyn Fn(&JobOption) -> bool| options.iter().filter(|option| is(option)).map(names).collect::<Vec<_>>();
    let mut text = format!("**Converted**: {}.\n", with(&|option| option.treatment == Treatment::Converted).join(", "));
    for (title, head) in [("**Ignored**", "why it does not matter"), ("**Refused**", "why, or what to do")] {
        text += &format!("\n{title}:\n\n| options | {head} |\n|---|---|\n");
        let mut reasons = Vec::<&str>::new();
        let reason = |option: &JobOption| match option.treatment {
            Treatment::Ignored(why) if title.contains("Ignored") => Some(why),
            Treatment::Refused(why) if title.contains("Refused") => Some(why),
            _ => None,
        };
        for why in options.iter().filter_map(reason) {
            if !reasons.contains(&why) {
                reasons.push(why);
            }
        }
        for why in reasons {
            let names = with(&|option| reason(option) == Some(why)).join(", ");
            text += &format!("| {names} | {} |\n", why.replace('|', "\\|"));
        }
    }
    text
}
