//! From the lines of a converted program back to those of the job file.

use iosonar_trace::params;

/// Where a stream comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The job: file, line and name.
    pub job: String,
    /// For keys of the stream: file, line, and the option as it was written.
    pub options: Vec<(&'static str, String)>,
}

/// Where the streams of a program come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    /// The job file.
    pub file: String,
    /// The line of the program at which each stream begins, in order.
    pub streams: Vec<(usize, Origin)>,
}

impl params::Origins for Origins {
    fn error(&self, line: usize, _column: usize, what: &str, why: &str) -> String {
        let Some((_, origin)) = self.streams.iter().rev().find(|(first, _)| *first <= line) else {
            return format!("{}: {what}: {why}", self.file);
        };
        let key = what.rsplit(", ").next().unwrap_or_default();
        match origin.options.iter().find(|(known, _)| *known == key) {
            Some((_, option)) => format!("{option}: {why}"),
            None if what.contains(", ") => format!("{}: {key}: {why}", origin.job),
            None => format!("{}: {why}", origin.job),
        }
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::params::Origins as _;

    use super::*;

    #[test]
    fn an_error_names_the_line_of_the_job_file() {
        let origin = |job: &str| Origin { job: job.into(), options: vec![("sizes", format!("{job}, bs=4k"))] };
        let streams = vec![(5, origin("a.fio:1: job a")), (9, origin("a.fio:7: job b"))];
        let origins = Origins { file: "a.fio".into(), streams };
        for (line, what, why, expected) in [
            (10, "stream b, sizes", "too large", "a.fio:7: job b, bs=4k: too large"),
            (6, "stream a, step 2, region", "349525B: odd", "a.fio:1: job a: region: 349525B: odd"),
            (5, "stream", "too much", "a.fio:1: job a: too much"),
            (3, "devices, x", "too large", "a.fio: devices, x: too large"),
        ] {
            assert_eq!(origins.error(line, 1, what, why), expected);
        }
    }
}
