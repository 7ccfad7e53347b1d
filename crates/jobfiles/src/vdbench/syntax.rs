//! The syntax of vdbench's parameter files.

use std::path::Path;
use std::sync::Arc;

use crate::conversion::{Outside, Place};

/// A parameter as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub place: Place,
    pub name: String,
    /// One, or those of a list in parentheses.
    pub values: Vec<String>,
}

impl Setting {
    /// As it was written.
    pub fn shown(&self) -> String {
        match &self.values[..] {
            [one] => format!("{}={one}", self.name),
            values => format!("{}=({})", self.name, values.join(",")),
        }
    }
}

/// Included files include no more than this deep.
const MAX_DEEP: usize = 8;

/// The most parameters of a file, with those that it includes.
const MAX_SETTINGS: usize = 100_000;

/// The definitions of a file, each with its parameters in order.
///
/// # Errors
/// If a line is neither a definition nor a comment; with the line.
pub fn parse(file: &str, source: &str, outside: &Outside<'_>) -> Result<Vec<Vec<Setting>>, String> {
    let mut all = Vec::new();
    add(&mut all, file, source, outside, 0)?;
    Ok(all)
}

fn add(
    all: &mut Vec<Vec<Setting>>,
    file: &str,
    source: &str,
    outside: &Outside<'_>,
    depth: usize,
) -> Result<(), String> {
    let name: Arc<str> = file.into();
    // A line that ends with a comma continues.
    let mut continued: Vec<Setting> = Vec::new();
    for (line, number) in source.lines().zip(1..) {
        let place = Place { file: Arc::clone(&name), line: number };
        if line.trim().is_empty() || line.starts_with(['*', '#', '/']) {
            continue;
        }
        if line.trim() == "eof" {
            break;
        }
        let wrong = |why: String| format!("{place}: {why}");
        let text = without_comment(line);
        let (settings, continues) = settings(&text, &place).map_err(wrong)?;
        continued.extend(settings);
        if continues {
            continue;
        }
        let settings = std::mem::take(&mut continued);
        if let [included, rest @ ..] = &settings[..]
            && included.name.len() > 1
            && "include".starts_with(&included.name)
        {
            if let Some(other) = rest.first() {
                return Err(wrong(format!("{}: include has a line of its own; write this on the next", other.shown())));
            }
            if depth == MAX_DEEP {
                return Err(wrong("too many files include each other".into()));
            }
            let path = Path::new(file).parent().unwrap_or(Path::new("")).join(&included.values[0]);
            let source = (outside.read)(&path).map_err(wrong)?;
            add(all, &path.to_string_lossy(), &source, outside, depth + 1)?;
        } else if !settings.is_empty() {
            all.push(settings);
        }
        if all.len() > MAX_SETTINGS || all.last().is_some_and(|last| last.len() > MAX_SETTINGS) {
            return Err(format!("{name}: more than {MAX_SETTINGS} parameters; write a smaller file"));
        }
    }
    match continued.first() {
        Some(first) => Err(format!("{}: {}: the line ends with a comma, but none follows", first.place, first.shown())),
        None => Ok(()),
    }
}

/// The line up to the first blank that is not behind a comma, in parentheses, or in quotes.
fn without_comment(line: &str) -> String {
    let (mut text, mut depth, mut in_quotes) = (String::new(), 0_i32, false);
    for c in line.trim().chars() {
        match c {
            '"' => in_quotes = !in_quotes,
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if c.is_whitespace() && !in_quotes {
            if depth <= 0 && !text.ends_with(',') {
                break;
            }
            continue;
        }
        text.push(c);
    }
    text
}

/// `name=value,name=(value,value)`, and whether a comma follows.
fn settings(text: &str, place: &Place) -> Result<(Vec<Setting>, bool), String> {
    let (mut parts, mut depth, mut in_quotes) = (vec![String::new()], 0_i32, false);
    for c in text.chars() {
        match c {
            '"' => in_quotes = !in_quotes,
            '(' if !in_quotes => depth += 1,
            ')' if !in_quotes => depth -= 1,
            ',' if depth == 0 && !in_quotes => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    if depth != 0 || in_quotes {
        return Err(format!("`{text}`: a parenthesis or a quote is not closed"));
    }
    let continues = parts.last().is_some_and(String::is_empty);
    let settings = parts.iter().filter(|part| !part.is_empty()).map(|part| {
        let wrong = || format!("`{part}` is not a parameter; write NAME=VALUE");
        let (name, value) = part.split_once('=').ok_or_else(wrong)?;
        let list = value.strip_prefix('(').and_then(|value| value.strip_suffix(')'));
        let plain = |value: &str| value.trim_matches('"').to_owned();
        let values = match list {
            Some(list) => list.split(',').filter(|value| !value.is_empty()).map(plain).collect(),
            None => vec![plain(value)],
        };
        if values.is_empty() || name.is_empty() {
            return Err(wrong());
        }
        let is_variable = |(before, after): (&str, &str)| {
            // An escaped dollar, or the name of a file on Windows.
            !before.ends_with('\\') && after.starts_with(|c: char| c.is_ascii_alphabetic() || c == '{')
        };
        if values.iter().any(|value| value.split_once('$').is_some_and(is_variable)) {
            return Err(format!(
                "{part}: a variable, whose value vdbench takes from its command line, as in lun=/dev/sdb; write the value \
                 in its place"
            ));
        }
        Ok(Setting { place: place.clone(), name: name.to_ascii_lowercase(), values })
    });
    Ok((settings.collect::<Result<_, _>>()?, continues))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(source: &str) -> Result<Vec<Vec<String>>, String> {
        let outside = Outside { read: &|_| Ok("sd=s,lun=/dev/x".into()), ..Outside::NOTHING };
        let all = parse("p.vdb", source, &outside)?;
        Ok(all.iter().map(|settings| settings.iter().map(Setting::shown).collect()).collect())
    }

    #[test]
    fn definitions_have_lists_comments_and_further_lines() {
        let source = "* a comment\nsd=sd1,lun=/dev/sdb,size=10g  the first disk\n\nwd=w,sd=(sd1, sd2),\n   xfersize=(4k,50,8k,50),rdpct=70\n";
        let expected = [
            vec!["sd=sd1", "lun=/dev/sdb", "size=10g"],
            vec!["wd=w", "sd=(sd1,sd2)", "xfersize=(4k,50,8k,50)", "rdpct=70"],
        ];
        assert_eq!(parsed(source).unwrap(), expected);
        for line in ["include=other\n", "incl=other\n"] {
            assert_eq!(parsed(line).unwrap(), [["sd=s", "lun=/dev/x"]]);
        }
        assert_eq!(parsed("sd=\"a, b\",lun=x").unwrap(), [["sd=a, b", "lun=x"]]);
    }

    #[test]
    fn lines_that_are_no_parameters_are_refused() {
        for (source, why) in [
            ("sd", "p.vdb:1: `sd` is not a parameter"),
            ("sd=(a", "p.vdb:1: `sd=(a`: a parenthesis"),
            ("\nsd=a,", "p.vdb:2: sd=a: the line ends with a comma"),
            ("sd=()", "p.vdb:1: `sd=()` is not"),
            ("include=other,compratio=2", "p.vdb:1: compratio=2: include has a line of its own"),
        ] {
            assert!(parsed(source).unwrap_err().starts_with(why), "{source}: {:?}", parsed(source));
        }
    }
}
