//! `--map`: other names for files of the trace, below the root.

use std::path::Path;

use iosonar_trace::{Error, Result, small_file};

/// Where paths of the trace are below the root: the longest matching prefix is replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathMap {
    /// Old and new prefix, absolute, without a slash at the end; the longest old ones first.
    rules: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What a map's right side may contain: the number of the concurrent instance.
const INSTANCE: &[u8] = b"{instance}";

impl PathMap {
    /// Reads a file of lines `OLD NEW`.
    pub fn read(file: &Path) -> Result<Self> {
        let text = small_file::read(file).map_err(|error| Error::io(file, error))?;
        Self::parse(&text).map_err(|problem| Error::format(file, problem))
    }

    /// Parses lines `OLD NEW`. A path with blanks stands in double quotes, where a backslash quotes the next byte. `#` at
    /// the start of a line begins a comment.
    pub fn parse(text: &[u8]) -> std::result::Result<Self, String> {
        let mut rules: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for (number, line) in (1..).zip(text.split(|&byte| byte == b'\n')) {
            let words = words(line).map_err(|problem| format!("line {number}: {problem}"))?;
            match words.as_slice() {
                [] => {}
                [old, new] => {
                    let (old, new) = (trimmed(old), trimmed(new));
                    if !old.is_empty() && old[0] != b'/' {
                        return Err(format!("line {number}: the old path must be absolute"));
                    }
                    if old.split(|&byte| byte == b'/').chain(new.split(|&byte| byte == b'/')).any(is_dots) {
                        return Err(format!("line {number}: `.` and `..` are not allowed in a map"));
                    }
                    if rules.iter().any(|(other, _)| *other == old) {
                        return Err(format!("line {number}: the old path occurs twice"));
                    }
                    rules.push((old, absolute(&new)));
                }
                words => return Err(format!("line {number}: {} paths, but a line has two: OLD NEW", words.len())),
            }
        }
        rules.sort_by_key(|(old, _)| std::cmp::Reverse(old.len()));
        Ok(Self { rules })
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The map of a concurrent instance: `{instance}` on the right side becomes its number.
    pub fn for_instance(&self, instance: u32) -> Self {
        let number = instance.to_string();
        let rules = self.rules.iter().map(|(old, new)| (old.clone(), replaced(new, INSTANCE, number.as_bytes())));
        Self { rules: rules.collect() }
    }

    /// Whether instances have files of their own.
    pub fn has_instances(&self) -> bool {
        self.rules.iter().any(|(_, new)| new.windows(INSTANCE.len()).any(|window| window == INSTANCE))
    }

    /// The path below the root to which the rules map it; `None` if none does.
    pub fn apply(&self, path: &[u8]) -> Option<Vec<u8>> {
        let (old, new) = self.rules.iter().find(|(old, _)| is_prefix(old, path))?;
        let mut mapped = [new.as_slice(), &path[old.len()..]].concat();
        if mapped.is_empty() {
            mapped.push(b'/');
        }
        Some(mapped)
    }
}

/// Whether `prefix` is `path` or a directory above it. A path of the root is empty.
fn is_prefix(prefix: &[u8], path: &[u8]) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
}

fn is_dots(component: &[u8]) -> bool {
    matches!(component, b"." | b"..")
}

/// Without slashes at the end, and without repeated ones, which mean the same as one.
fn trimmed(path: &[u8]) -> Vec<u8> {
    let mut kept = path.to_vec();
    kept.dedup_by(|next, before| *next == b'/' && *before == b'/');
    if kept.last() == Some(&b'/') {
        kept.pop();
    }
    kept
}

fn absolute(path: &[u8]) -> Vec<u8> {
    match path.first() {
        None | Some(b'/') => path.to_vec(),
        Some(_) => [b"/", path].concat(),
    }
}

fn replaced(text: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.windows(old.len()).position(|window| window == old) {
        result.extend_from_slice(&rest[..at]);
        result.extend_from_slice(new);
        rest = &rest[at + old.len()..];
    }
    result.extend_from_slice(rest);
    result
}

fn words(line: &[u8]) -> std::result::Result<Vec<Vec<u8>>, &'static str> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let mut rest = line.trim_ascii();
    if rest.first() == Some(&b'#') {
        return Ok(words);
    }
    while let Some(&first) = rest.first() {
        let mut word = Vec::new();
        if first == b'"' {
            let mut at = 1;
            loop {
                match rest.get(at) {
                    None => return Err("a quote is not closed"),
                    Some(b'"') => break,
                    Some(b'\\') => {
                        at += 1;
                        word.push(*rest.get(at).ok_or("a quote is not closed")?);
                    }
                    Some(&byte) => word.push(byte),
                }
                at += 1;
            }
            rest = &rest[at + 1..];
        } else {
            let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
            word.extend_from_slice(&rest[..end]);
            rest = &rest[end..];
        }
        words.push(word);
        rest = rest.trim_ascii_start();
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(map: &str, path: &str) -> Option<String> {
        PathMap::parse(map.as_bytes()).unwrap().apply(path.as_bytes()).map(|path| String::from_utf8(path).unwrap())
    }

    #[test]
    fn a_map_is_a_small_regular_file() {
        assert!(PathMap::read(Path::new("/dev/zero")).unwrap_err().to_string().contains("it is a device"));
    }

    #[test]
    fn the_longest_prefix_at_a_component_border_is_replaced() {
        let map = "# data\n/home/u data\n/home/u/deep /other/\n\"/with blank\" \"a \\\"b\"\n";
        for (path, expected) in [
            ("/home/u", Some("/data")),
            ("/home/u/x", Some("/data/x")),
            ("/home/u/deep/x", Some("/other/x")),
            ("/home/user", None),
            ("/with blank/x", Some("/a \"b/x")),
            ("/home", None),
        ] {
            assert_eq!(apply(map, path).as_deref(), expected, "{path}");
        }
        assert_eq!(apply("//x// //y//z/", "/x/a").as_deref(), Some("/y/z/a"));
        assert_eq!(apply("/// /top", "/x").as_deref(), Some("/top/x"));
        assert_eq!(apply("/ /top", "/x").as_deref(), Some("/top/x"));
        assert_eq!(apply("/a /", "/a").as_deref(), Some("/"));
        assert_eq!(apply("/a /", "/a/b").as_deref(), Some("/b"));
    }

    #[test]
    fn wrong_maps_are_refused_with_the_line() {
        for (map, problem) in [
            ("\n/a", "line 2: 1 paths"),
            ("/a b c", "line 1: 3 paths"),
            ("a b", "must be absolute"),
            ("/a ../b", "not allowed"),
            ("/a /b/./c", "not allowed"),
            ("/a \"b", "not closed"),
            ("/a b\n/a/ c", "twice"),
            ("/a/b c\n/a//b d", "twice"),
        ] {
            let error = PathMap::parse(map.as_bytes()).unwrap_err();
            assert!(error.contains(problem), "{map}: {error}");
        }
    }

    #[test]
    fn instances_have_files_of_their_own() {
        let map = PathMap::parse(b"/data i{instance}/data").unwrap();
        assert!(map.has_instances());
        assert_eq!(map.for_instance(7).apply(b"/data/x").unwrap(), b"/i7/data/x");
    }
}
