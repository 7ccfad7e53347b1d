//! Splits a line into phrases at bars, and each phrase into a name and its settings.

/// A name and its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phrase {
    /// The word that the phrase begins with.
    pub name: String,
    /// Pairs `name=value`, in the order typed. A word without `=` has an empty name.
    pub settings: Vec<(String, String)>,
}

/// Splits a line. Bars separate phrases, and spaces separate settings, except in single or double quotes. There is no
/// escape character: a text that contains one kind of quote goes into the other.
///
/// # Errors
/// If a quote is not closed or a phrase is empty.
pub fn split(line: &str) -> Result<Vec<Phrase>, String> {
    let mut phrases = Vec::new();
    for words in words(line)? {
        let mut words = words.into_iter();
        let name = words.next().ok_or("the line is empty, or there is nothing between two bars")?;
        if name.contains('=') {
            return Err(format!("expected a name, found `{name}`: settings follow the name"));
        }
        let settings = words.map(|word| match word.split_once('=') {
            Some((name, value)) if !name.is_empty() => (name.to_owned(), value.to_owned()),
            _ => (String::new(), word),
        });
        phrases.push(Phrase { name, settings: settings.collect() });
    }
    Ok(phrases)
}

/// The words of each phrase, without their quotes.
fn words(line: &str) -> Result<Vec<Vec<String>>, String> {
    let mut phrases = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '|') => {
                phrases.last_mut().into_iter().for_each(|phrase: &mut Vec<_>| phrase.extend(word.take()));
                phrases.push(Vec::new());
            }
            (None, c) if c.is_whitespace() => {
                phrases.last_mut().into_iter().for_each(|phrase| phrase.extend(word.take()));
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if let Some(open) = quote {
        return Err(format!("a quote ({open}) is not closed"));
    }
    phrases.last_mut().into_iter().for_each(|phrase| phrase.extend(word.take()));
    Ok(phrases)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrase(name: &str, settings: &[(&str, &str)]) -> Phrase {
        let settings = settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        Phrase { name: name.to_owned(), settings }
    }

    #[test]
    fn lines_are_split_at_bars_and_spaces_but_not_in_quotes() {
        assert_eq!(
            split(" select from=0  to=300|slip every=32768\tincrease=128k ").unwrap(),
            [
                phrase("select", &[("from", "0"), ("to", "300")]),
                phrase("slip", &[("every", "32768"), ("increase", "128k")])
            ]
        );
        assert_eq!(
            split("cmd command=\"grep -v '^#' | sort\" | reverse").unwrap(),
            [phrase("cmd", &[("command", "grep -v '^#' | sort")]), phrase("reverse", &[])]
        );
        assert_eq!(split("cmd command=''").unwrap(), [phrase("cmd", &[("command", "")])]);
    }

    #[test]
    fn malformed_lines_are_refused() {
        for (line, expected) in [
            ("", "empty"),
            ("select | | slip", "nothing between two bars"),
            ("from=0", "expected a name"),
            ("cmd command='x", "not closed"),
        ] {
            let error = split(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
