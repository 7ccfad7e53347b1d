//! The definitions that `sd=` and `wd=` name: names, numbered ranges and wildcards, alone or in a list.

use std::collections::BTreeSet;

use super::definitions::Definition;

/// What a name of a list stands for.
enum Pattern<'a> {
    Name(&'a str),
    /// `*` stands for any characters, `?` for one.
    Wildcard(&'a str),
    Range(Range<'a>),
}

/// `sd1-sd9`: names with the same base and the numbers from `first` to `last`.
struct Range<'a> {
    base: &'a str,
    first: u64,
    last: u64,
}

/// Positions in `all` of the definitions that the parameter `key` of `by` names, in the order of the file. `None` if `by`
/// has no such parameter. `kind` is what the definitions are, for errors.
///
/// # Errors
/// With file, line and parameter, if a name, range or wildcard names nothing, a range is malformed or has gaps, or a
/// definition is named twice.
pub fn named(by: &Definition, key: &'static str, all: &[Definition], kind: &str) -> Result<Option<Vec<usize>>, String> {
    let Some(list) = by.values(key) else { return Ok(None) };
    let mut chosen = BTreeSet::new();
    for text in list {
        let found = positions(text, all, kind).map_err(|why| by.error(key, &why))?;
        for position in found {
            if !chosen.insert(position) {
                return Err(by.error(key, &format!("{} is named twice", all[position].name)));
            }
        }
    }
    Ok(Some(chosen.into_iter().collect()))
}

fn positions(text: &str, all: &[Definition], kind: &str) -> Result<Vec<usize>, String> {
    let pattern = Pattern::new(text, all)?;
    let found: Vec<usize> = (0..all.len()).filter(|&position| pattern.matches(&all[position].name)).collect();
    if found.is_empty() {
        return Err(match pattern {
            Pattern::Name(name) => format!("no {kind} above has this name: {name}"),
            Pattern::Wildcard(_) => format!("no {kind} above has a name like {text}"),
            Pattern::Range(_) => format!("no {kind} above is in the range {text}"),
        });
    }
    if let Pattern::Range(range) = pattern {
        let numbers: BTreeSet<u64> = found.iter().filter_map(|&position| range.number(&all[position].name)).collect();
        if let Some(missing) = (range.first..=range.last).find(|number| !numbers.contains(number)) {
            return Err(format!("{}{missing} of the range {text} is not defined above", range.base));
        }
    }
    Ok(found)
}

impl<'a> Pattern<'a> {
    fn new(text: &'a str, all: &[Definition]) -> Result<Self, String> {
        if all.iter().any(|definition| definition.name == text) {
            return Ok(Self::Name(text));
        }
        if text.contains(['*', '?']) {
            return Ok(Self::Wildcard(text));
        }
        if !text.contains('-') {
            return Ok(Self::Name(text));
        }
        let Some(range) = Range::new(text) else {
            return Err(format!(
                "{text} is neither a name nor a range; a range is from a numbered name to another, as in sd1-sd9"
            ));
        };
        let Range { base, first, last } = range;
        if first > last {
            return Err(format!("the range {text} ends before it starts; write {base}{last}-{base}{first}"));
        }
        Ok(Self::Range(range))
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => *own == name,
            Self::Wildcard(pattern) => is_like(name, pattern),
            Self::Range(range) => range.number(name).is_some(),
        }
    }
}

impl<'a> Range<'a> {
    /// The base may contain `-` itself.
    fn new(text: &'a str) -> Option<Self> {
        text.match_indices('-').find_map(|(at, _)| {
            let ((base, first), (other, last)) = (numbered(&text[..at])?, numbered(&text[at + 1..])?);
            (base == other).then_some(Self { base, first, last })
        })
    }

    /// The number of a name in this range.
    fn number(&self, name: &str) -> Option<u64> {
        let (base, number) = numbered(name)?;
        (base == self.base && (self.first..=self.last).contains(&number)).then_some(number)
    }
}

/// A name without its number at the end, and the number.
fn numbered(name: &str) -> Option<(&str, u64)> {
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
    Some((base, name[base.len()..].parse().ok()?)).filter(|(base, _)| !base.is_empty())
}

/// Whether the name is like the pattern. Time grows with the product of their lengths.
fn is_like(name: &str, pattern: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    // Whether the pattern so far is like the first n characters of the name.
    let mut so_far = vec![false; name.len() + 1];
    so_far[0] = true;
    for wanted in pattern.chars() {
        let mut next = vec![false; name.len() + 1];
        for end in 0..=name.len() {
            let before = end > 0 && so_far[end - 1];
            next[end] = match wanted {
                '*' => so_far[end] || (end > 0 && next[end - 1]),
                '?' => before,
                c => before && name[end - 1] == c,
            };
        }
        so_far = next;
    }
    so_far[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversion::Outside;
    use crate::vdbench::definitions::Definitions;
    use crate::vdbench::syntax::parse;

    /// Names of the storage definitions that `sd=list` means among these.
    fn chosen(names: &str, list: &str) -> Result<String, String> {
        let storages: String = names.split(' ').map(|name| format!("sd={name},lun=/dev/{name}\n")).collect();
        let all =
            Definitions::new(&parse("p.vdb", &format!("{storages}wd=w,sd={list}\n"), &Outside::NOTHING)?).unwrap();
        let found = named(&all.workloads[0], "sd", &all.storages, "storage definition")?.unwrap();
        Ok(found.into_iter().map(|position| &*all.storages[position].name).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn lists_ranges_and_wildcards_name_definitions() {
        for (names, list, expected) in [
            ("sd1 sd2 sd3", "sd2", "sd2"),
            ("sd1 sd2 sd3", "(sd3,sd1)", "sd1 sd3"),
            ("sd1 sd2 sd10", "sd1", "sd1"),
            ("a1 a2 b1 a3 a4", "(a1-a3)", "a1 a2 a3"),
            ("a1 a2 b1 a3 a4", "a2-a4", "a2 a3 a4"),
            ("sd1 sd2 sd3 sd4 sd5", "(sd1-sd3, sd5)", "sd1 sd2 sd3 sd5"),
            ("sd8 sd9 sd10 sd11", "(sd9-sd10)", "sd9 sd10"),
            ("sd01 sd02 sd03", "(sd01-sd02)", "sd01 sd02"),
            ("sd1 sd2", "(sd2-sd2)", "sd2"),
            ("a-1 a-2 a-3", "(a-1-a-2)", "a-1 a-2"),
            ("a-b c", "a-b", "a-b"),
            ("sd1 sd2 xsd", "sd*", "sd1 sd2"),
            ("sd1 sd2 xsd", "*", "sd1 sd2 xsd"),
            ("log_a data_a log_b", "*_a", "log_a data_a"),
            ("sd1 sd2 sd10", "sd?", "sd1 sd2"),
            ("a1b a2b a2c", "(a*b,a2c)", "a1b a2b a2c"),
        ] {
            assert_eq!(chosen(names, list).as_deref(), Ok(expected), "{names}: {list}");
        }
    }

    #[test]
    fn what_names_nothing_is_refused_with_line_and_parameter() {
        for (list, why) in [
            ("sd4", "sd=sd4: no storage definition above has this name: sd4"),
            ("(sd1,sd4)", "sd=(sd1,sd4): no storage definition above has this name: sd4"),
            ("x*", "sd=x*: no storage definition above has a name like x*"),
            ("(sd7-sd9)", "sd=sd7-sd9: no storage definition above is in the range sd7-sd9"),
            ("(sd2-sd5)", "sd=sd2-sd5: sd4 of the range sd2-sd5 is not defined above"),
            ("(sd1-sd18446744073709551615)", "sd=sd1-sd18446744073709551615: sd4 of the range"),
            ("(sd3-sd1)", "sd=sd3-sd1: the range sd3-sd1 ends before it starts; write sd1-sd3"),
            ("(sd1-3)", "sd=sd1-3: sd1-3 is neither a name nor a range"),
            ("(sd1-xd3)", "sd=sd1-xd3: sd1-xd3 is neither"),
            ("(sd1-)", "sd=sd1-: sd1- is neither"),
            ("(-sd1)", "sd=-sd1: -sd1 is neither"),
            ("(sd1-sd99999999999999999999)", "sd=sd1-sd99999999999999999999: sd1-sd99999999999999999999 is neither"),
            ("(sd1-sd3,sd2)", "sd=(sd1-sd3,sd2): sd2 is named twice"),
            ("(sd*,sd1)", "sd=(sd*,sd1): sd1 is named twice"),
        ] {
            let found = chosen("sd1 sd2 sd3", list).unwrap_err();
            assert!(found.starts_with(&format!("p.vdb:4: {why}")), "{list}: {found}");
        }
    }
}
