//! The syntax of fio's job files: sections of options.

use std::path::Path;
use std::sync::Arc;

use crate::conversion::{Outside, Place};

/// An option as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub place: Place,
    pub name: String,
    /// After `=`.
    pub value: Option<String>,
}

/// A section: a job, or `[global]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    pub place: Place,
    pub name: String,
    pub settings: Vec<Setting>,
}

/// The sections of a file, and the environment variables that it has used, with their values.
#[derive(Debug, Default)]
pub struct JobFile {
    pub sections: Vec<Section>,
    pub variables: Vec<(String, String)>,
}

/// Included files include no more than this deep.
const MAX_DEEP: usize = 8;

/// The most options of a file, with those that it includes.
const MAX_SETTINGS: usize = 100_000;

impl JobFile {
    /// # Errors
    /// If a line is neither a section, an option, nor a comment; with the line.
    pub fn parse(file: &str, source: &str, outside: &Outside<'_>) -> Result<Self, String> {
        let mut whole = Self::default();
        whole.add(file, source, outside, 0)?;
        Ok(whole)
    }

    fn add(&mut self, file: &str, source: &str, outside: &Outside<'_>, depth: usize) -> Result<(), String> {
        let name: Arc<str> = file.into();
        for (line, number) in source.lines().zip(1..) {
            let place = Place { file: Arc::clone(&name), line: number };
            // Comments begin anywhere.
            let line = line.split([';', '#']).next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let wrong = |why: &str| format!("{place}: {why}");
            if let Some(name) = line.strip_prefix('[') {
                let name = name.strip_suffix(']').ok_or_else(|| wrong("a section ends with ], as in [job]"))?;
                self.sections.push(Section { place, name: name.to_owned(), settings: Vec::new() });
            } else if let Some(included) = line.strip_prefix("include ") {
                if depth == MAX_DEEP {
                    return Err(wrong("too many files include each other"));
                }
                let directory = Path::new(file).parent().unwrap_or(Path::new(""));
                let path = directory.join(included.trim());
                let source = (outside.read)(&path).map_err(|why| wrong(&why))?;
                self.add(&path.to_string_lossy(), &source, outside, depth + 1)?;
            } else {
                let line = self.with_variables(line, outside).map_err(|why| wrong(&why))?;
                let Some(section) = self.sections.last_mut() else {
                    return Err(wrong("an option before the first section; begin with [global] or [JOB]"));
                };
                let (option, value) = match line.split_once('=') {
                    Some((option, value)) => {
                        let is_word = value.trim_start().starts_with(|c: char| !c.is_ascii_digit());
                        if value.starts_with(char::is_whitespace) && is_word && option.trim() != "description" {
                            let why = "fio takes a blank behind = as part of the value; remove it";
                            return Err(wrong(&format!("{}: {why}", line.trim())));
                        }
                        (option.trim(), Some(value.trim().to_owned()))
                    }
                    None => (line.as_str(), None),
                };
                section.settings.push(Setting { place, name: option.to_owned(), value });
            }
            let settings: usize = self.sections.last().map_or(0, |section| section.settings.len());
            if settings > MAX_SETTINGS || self.sections.len() > MAX_SETTINGS {
                return Err(format!("{name}: more than {MAX_SETTINGS} options; write a smaller file"));
            }
        }
        Ok(())
    }

    /// The line with the values of environment variables: `${NAME}`.
    fn with_variables(&mut self, line: &str, outside: &Outside<'_>) -> Result<String, String> {
        let mut parts = line.split("${");
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, rest) = part.split_once('}').ok_or("`${` without `}`")?;
            let value = (outside.variable)(name)
                .ok_or_else(|| format!("the environment has no variable {name}; set it: {name}=VALUE iosonar ..."))?;
            whole += &value;
            whole += rest;
            let used = (name.to_owned(), value);
            if !self.variables.contains(&used) {
                self.variables.push(used);
            }
        }
        for keyword in ["$pagesize", "$mb_memory", "$ncpus"] {
            if whole.contains(keyword) {
                return Err(format!("{keyword} depends on the machine; write the number"));
            }
        }
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(source: &str) -> Result<JobFile, String> {
        let outside = Outside {
            read: &|path| match path.to_str() {
                Some("jobs/common.fio") => Ok("[global]\nbs=8k".into()),
                Some("jobs/loop.fio") => Ok("include loop.fio".into()),
                _ => Err(format!("cannot read {}", path.display())),
            },
            variable: &|name| (name == "SIZE").then(|| "4g".into()),
        };
        JobFile::parse("jobs/a.fio", source, &outside)
    }

    fn settings(file: &JobFile) -> Vec<(&str, Option<&str>)> {
        let all = file.sections.iter().flat_map(|section| &section.settings);
        all.map(|setting| (setting.name.as_str(), setting.value.as_deref())).collect()
    }

    #[test]
    fn sections_have_options_with_and_without_values() {
        let file =
            parsed("; a comment\n# another\n[ a b ]\n rw =randread ; how\nthread\nbs=4k\t# size\n\n[c]\n").unwrap();
        assert_eq!(settings(&file), [("rw", Some("randread")), ("thread", None), ("bs", Some("4k"))]);
        let names: Vec<_> = file.sections.iter().map(|section| (section.name.as_str(), section.place.line)).collect();
        assert_eq!(names, [(" a b ", 3), ("c", 8)]);
        assert_eq!(file.sections[0].settings[2].place.to_string(), "jobs/a.fio:6");
    }

    #[test]
    fn variables_come_from_the_environment() {
        let file = parsed("[a]\nsize=${SIZE}").unwrap();
        assert_eq!(settings(&file), [("size", Some("4g"))]);
        assert_eq!(file.variables, [("SIZE".to_owned(), "4g".to_owned())]);
        assert!(parsed("[a]\nsize=${NO}").unwrap_err().starts_with("jobs/a.fio:2: the environment has no variable NO"));
        assert!(parsed("[a]\nsize=${NO").is_err());
        assert!(parsed("[a]\nbs=$pagesize").unwrap_err().contains("depends on the machine"));
    }

    #[test]
    fn included_files_are_relative_to_the_file() {
        let file = parsed("include common.fio\n[a]\nrw=read").unwrap();
        assert_eq!(settings(&file), [("bs", Some("8k")), ("rw", Some("read"))]);
        assert_eq!(file.sections[0].place.to_string(), "jobs/common.fio:1");
        assert_eq!(parsed("include no.fio").unwrap_err(), "jobs/a.fio:1: cannot read jobs/no.fio");
        assert!(parsed("include loop.fio").unwrap_err().contains("too many files include each other"));
    }

    #[test]
    fn a_blank_behind_the_equals_sign_is_refused_before_words() {
        let file = parsed("[a]\nsize = 4k\nbssplit= 4k/50:8k\ndescription= a b").unwrap();
        assert_eq!(settings(&file)[..2], [("size", Some("4k")), ("bssplit", Some("4k/50:8k"))]);
        for line in ["rw = read", "filename= /dev/x", "ioengine=\tpsync"] {
            let why = format!("jobs/a.fio:2: {line}: fio takes a blank behind = as part of the value; remove it");
            assert_eq!(parsed(&format!("[a]\n{line}")).unwrap_err(), why);
        }
    }

    #[test]
    fn lines_outside_of_sections_are_refused() {
        assert!(parsed("rw=read").unwrap_err().starts_with("jobs/a.fio:1: an option before the first section"));
        assert!(parsed("[a\nrw=read").unwrap_err().starts_with("jobs/a.fio:1: a section ends with ]"));
    }
}
