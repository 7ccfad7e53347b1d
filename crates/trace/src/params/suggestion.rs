//! What a mistyped name is likely to mean.

/// The name among `known` that `typed` is likely to mean, as a question to append to a message; else what there is.
pub fn did_you_mean<'a>(typed: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let likeness = |name: &str| strsim::jaro_winkler(&typed.to_lowercase(), name);
    let nearest = known.clone().max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    match nearest.filter(|name| likeness(name) >= 0.75) {
        Some(name) => format!("did you mean {name}?"),
        None => format!("there are: {}", known.collect::<Vec<_>>().join(" ")),
    }
}
