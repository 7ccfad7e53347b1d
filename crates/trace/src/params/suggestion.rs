//! Suggestions for mistyped names.

/// The known name most similar to `typed`, as a question to append to a message; if none is similar, all known names.
pub fn did_you_mean<'a>(typed: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let similarity = |name: &str| strsim::jaro_winkler(&typed.to_lowercase(), name);
    let nearest = known.clone().max_by(|one, other| similarity(one).total_cmp(&similarity(other)));
    match nearest.filter(|name| similarity(name) >= 0.8) {
        Some(name) => format!("did you mean {name}?"),
        None => format!("known: {}", known.collect::<Vec<_>>().join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_names_are_suggested() {
        let of = |typed| did_you_mean(typed, ["ahead", "depth", "reads-only"].into_iter());
        assert_eq!(of("Depht"), "did you mean depth?");
        assert_eq!(of("threads"), "known: ahead depth reads-only");
        assert_eq!(of("treads"), "known: ahead depth reads-only");
    }
}
