//! The names of the files of a recording: `NAME-20261126T151154Z.calls.parquet`, so that their order is that of time.

use std::path::{Path, PathBuf};

const ENDING: &str = ".calls.parquet";

/// Makes and finds the names of parts.
#[derive(Clone)]
pub struct PartNames {
    directory: PathBuf,
    /// What all begin with.
    stem: String,
    /// The time and number of the last name: its file may not have the name yet.
    last: Option<(String, u32)>,
}

impl PartNames {
    /// Of an output `NAME.calls.parquet`.
    pub fn new(output: &Path) -> Self {
        let directory = output.parent().unwrap_or(Path::new(""));
        let name = output.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.strip_suffix(ENDING).unwrap_or(&name);
        Self { directory: directory.to_owned(), stem: format!("{stem}-"), last: None }
    }

    /// The name of a part that begins at this time. A second part of the same second has a number.
    pub fn free(&mut self, unix_ns: i64) -> PathBuf {
        let moment = iosonar_trace::human::moment(unix_ns);
        let digits: String = moment.chars().filter(char::is_ascii_digit).collect();
        let (date, time) = digits.split_at(digits.len().saturating_sub(6));
        let begin = format!("{}{date}T{time}Z", self.stem);
        let first = match &self.last {
            Some((last, number)) if *last == begin => number + 1,
            _ => 1,
        };
        let name = |number: u32| {
            let number = if number == 1 { String::new() } else { format!("-{number:03}") };
            self.directory.join(format!("{begin}{number}{ENDING}"))
        };
        let number = (first..).find(|&number| !name(number).exists()).expect("numbers do not end");
        let path = name(number);
        self.last = Some((begin, number));
        path
    }

    /// The parts in the directory, the oldest first, also those of earlier recordings of this name.
    pub fn existing(&self) -> Vec<PathBuf> {
        let here = Path::new(".");
        let directory = if self.directory.as_os_str().is_empty() { here } else { &self.directory };
        let entries = directory.read_dir().into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| self.is_part(name));
        // Without the ending, so that the first part of a second comes before its second one.
        names.sort_by(|a, b| a.trim_end_matches(ENDING).cmp(b.trim_end_matches(ENDING)));
        names.iter().map(|name| self.directory.join(name)).collect()
    }

    fn is_part(&self, name: &str) -> bool {
        let middle = name.strip_prefix(&self.stem).and_then(|rest| rest.strip_suffix(ENDING));
        let Some((date, rest)) = middle.and_then(|middle| middle.split_once('T')) else { return false };
        let Some((time, number)) = rest.split_once('Z') else { return false };
        let are_digits = |text: &str, least: usize, most: usize| {
            (least..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        let number = number.strip_prefix('-').map_or(number.is_empty(), |number| are_digits(number, 3, 9));
        are_digits(date, 8, 8) && are_digits(time, 6, 6) && number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_time_of_their_beginning_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let mut names = PartNames::new(&directory.path().join("web.calls.parquet"));
        let mut paths = Vec::new();
        let expected = ["web-20120504T140000Z", "web-20120504T140000Z-002", "web-20120504T140001Z"];
        for (unix_ns, name) in
            [1_336_140_000_000_000_000, 1_336_140_000_900_000_000, 1_336_140_001_000_000_000].into_iter().zip(expected)
        {
            let path = names.free(unix_ns);
            assert_eq!(path, directory.path().join(format!("{name}.calls.parquet")), "none of them has its name yet");
            paths.push(path);
        }
        paths.iter().for_each(|path| std::fs::write(path, "").unwrap());
        for other in [
            "web.calls.parquet",
            "web-old.calls.parquet",
            "web-20120504T140000Z.tree.parquet",
            "mail-20120504T140000Z.calls.parquet",
            ".web-20120504T140000Z.calls.parquet.x.partial",
        ] {
            std::fs::write(directory.path().join(other), "").unwrap();
        }
        let found: Vec<_> =
            names.existing().iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
        assert_eq!(found, expected.map(|name| format!("{name}.calls.parquet")));
    }
}
