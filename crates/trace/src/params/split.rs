//! Takes a line apart: phrases between bars, in each a name and its settings.

/// A name, and what was set behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phrase {
    /// The name.
    pub name: String,
    /// `name=value`, in the order in which they were typed.
    pub settings: Vec<(String, String)>,
}

/// Takes a line apart. Bars separate phrases, spaces separate settings; both lose that meaning in quotes, single or
/// double. There is no escape: a text that needs one kind of quote is put into the other.
///
/// # Errors
/// If a quote is not closed, a phrase is empty, or something behind the name is not of the form `name=value`.
pub fn split(line: &str) -> Result<Vec<Phrase>, String> {
    let mut phrases = Vec::new();
    for words in words(line)? {
        let mut words = words.into_iter();
        let name = words.next().ok_or("there is nothing between two bars, or nothing at all")?;
        if name.contains('=') {
            return Err(format!("`{name}` stands where a name is expected: settings follow the name"));
        }
        let settings = words.map(|word| match word.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => Err(format!("`{word}` is not of the form name=value (no spaces around the `=`)")),
        });
        phrases.push(Phrase { name, settings: settings.collect::<Result<_, _>>()? });
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
        return Err(format!("a quote ({open}) is opened and not closed"));
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
    fn bars_spaces_and_quotes() {
        assert_eq!(
            split(" select from=0  to=300|slip every=32768\tincrease=256 ").unwrap(),
            [
                phrase("select", &[("from", "0"), ("to", "300")]),
                phrase("slip", &[("every", "32768"), ("increase", "256")])
            ]
        );
        assert_eq!(
            split("cmd command=\"grep -v '^#' | sort\" | reverse").unwrap(),
            [phrase("cmd", &[("command", "grep -v '^#' | sort")]), phrase("reverse", &[])]
        );
        assert_eq!(split("cmd command=''").unwrap(), [phrase("cmd", &[("command", "")])]);
    }

    #[test]
    fn what_is_no_pipeline_is_refused() {
        for (line, said) in [
            ("", "nothing"),
            ("select | | slip", "nothing between two bars"),
            ("select from = 0", "name=value"),
            ("from=0", "where a name is expected"),
            ("cmd command='x", "not closed"),
        ] {
            let error = split(line).unwrap_err();
            assert!(error.contains(said), "{line}: {error}");
        }
    }
}
