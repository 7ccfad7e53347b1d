//! Suggestions for mistyped names.

/// The known name most similar to `typed`, as a question to append to a message; if none is similar, all known names.
pub fn did_you_mean<'a>(typed: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let similarity = |name: &str| strsim::jaro_winkler(&typed.to_lowercase(), name);
    let nearest = known.clone().max_by(|one, other| similarity(one).total_cmp(&similarity(other)));
    match nearest.filter(|name| similarity(name) >= 0.75) {
        Some(name) => format!("did you mean {name}?"),
        None => format!("known: {}", known.collect::<Vec<_>>().join(" ")),
    }
}
