//! `--ignore`: files whose calls are not replayed.

use std::path::Path;

use iosonar_trace::{Error, Result, small_file};

/// Patterns of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignore {
    patterns: Vec<Pattern>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    components: Vec<Vec<u8>>,
}

impl Ignore {
    /// Reads a file with a pattern on each line.
    pub fn read(file: &Path) -> Result<Self> {
        let text = small_file::read(file).map_err(|error| Error::io(file, error))?;
        Ok(Self::parse(&text))
    }

    /// Parses patterns, one on each line. `#` at the start of a line begins a comment. A pattern matches a path and all that
    /// is below it. `*` and `?` match within a component, `**` any number of components. A pattern that does not begin with
    /// a slash matches in every directory.
    pub fn parse(text: &[u8]) -> Self {
        let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        let patterns = lines.filter(|line| !matches!(line.first(), None | Some(b'#'))).map(|line| {
            let mut components = Vec::new();
            if line[0] != b'/' {
                components.push(b"**".to_vec());
            }
            let given = line.split(|&byte| byte == b'/').filter(|component| !component.is_empty());
            components.extend(given.map(<[u8]>::to_vec));
            // Two in a row match the same as one.
            components.dedup_by(|a, b| a == b && a == b"**");
            Pattern { components }
        });
        Self { patterns: patterns.collect() }
    }

    /// Whether there are no patterns.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether a pattern matches the absolute path in the trace, or a directory above it.
    pub fn matches(&self, path: &[u8]) -> bool {
        if self.patterns.is_empty() {
            return false;
        }
        let components: Vec<&[u8]> = path.split(|&byte| byte == b'/').filter(|part| !part.is_empty()).collect();
        self.patterns.iter().any(|pattern| matches_prefix(&pattern.components, &components))
    }
}

/// Whether the pattern matches the path or a prefix of it: the set of positions in the pattern that each component reaches.
fn matches_prefix(pattern: &[Vec<u8>], path: &[&[u8]]) -> bool {
    let mut reached = vec![false; pattern.len() + 1];
    reached[0] = true;
    let skip_stars = |reached: &mut Vec<bool>| {
        for at in 0..pattern.len() {
            if reached[at] && pattern[at] == b"**" {
                reached[at + 1] = true;
            }
        }
    };
    skip_stars(&mut reached);
    for component in path {
        if reached[pattern.len()] && pattern.last().is_none_or(|last| last != b"**") {
            return true;
        }
        let mut next = vec![false; pattern.len() + 1];
        for at in (0..pattern.len()).filter(|&at| reached[at]) {
            if pattern[at] == b"**" {
                next[at] = true;
            } else if matches_component(&pattern[at], component) {
                next[at + 1] = true;
            }
        }
        skip_stars(&mut next);
        reached = next;
    }
    reached[pattern.len()]
}

/// `*`, `?` and plain bytes, in time proportional to the product of both lengths.
fn matches_component(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from, mut star) = (0, 0, None);
    while from < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[from] => {
                at += 1;
                from += 1;
            }
            _ => match star {
                Some((star_at, star_from)) => {
                    at = star_at + 1;
                    from = star_from + 1;
                    star = Some((star_at, from));
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_in_a_small_regular_file() {
        assert!(Ignore::read(Path::new("/dev/zero")).unwrap_err().to_string().contains("it is a device"));
    }

    #[test]
    fn a_pattern_matches_a_path_and_all_below_it() {
        let ignore = Ignore::parse(b"# libraries\n/usr/lib\n\n/etc/*.conf\n*.pyc\n/a/**/z\n/b/?\n");
        for path in ["/usr/lib", "/usr/lib/x/y", "/etc/ld.conf", "/x/y.pyc", "/y.pyc/z", "/a/z", "/a/b/c/z/d", "/b/x"] {
            assert!(ignore.matches(path.as_bytes()), "{path}");
        }
        for path in ["/usr/lib64", "/usr", "/", "/etc/x/ld.conf", "/etc/conf", "/x/pyc", "/a/b", "/b/xy", "/b"] {
            assert!(!ignore.matches(path.as_bytes()), "{path}");
        }
        assert!(!Ignore::default().matches(b"/"));
        assert!(Ignore::parse(b"/").matches(b"/x"));
        assert!(Ignore::parse(b"/a/**").matches(b"/a/x"));
    }
}
