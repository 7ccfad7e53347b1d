//! From the lines of a converted program back to those of the job file.

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

/// What errors call the program.
pub fn program_name(file: &str) -> String {
    format!("{file}, as a program")
}

impl Origins {
    /// An error about the program as one about the job file.
    pub fn located(&self, error: String) -> String {
        let Some(rest) = error.strip_prefix(&program_name(&self.file)) else { return error };
        let rest = rest.strip_prefix(':').unwrap_or(rest);
        let numbered = rest.split_once(": ").and_then(|(line, rest)| Some((line.trim().parse::<usize>().ok()?, rest)));
        let Some((line, rest)) = numbered else { return format!("{}:{rest}", self.file) };
        let (what, why) = rest.split_once(": ").unwrap_or(("", rest));
        let Some((_, origin)) = self.streams.iter().rev().find(|(first, _)| *first <= line) else {
            return format!("{}: {rest}", self.file);
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
    use super::*;

    #[test]
    fn an_error_names_the_line_of_the_job_file() {
        let origin = |job: &str| Origin { job: job.into(), options: vec![("sizes", format!("{job}, bs=4k"))] };
        let streams = vec![(5, origin("a.fio:1: job a")), (9, origin("a.fio:7: job b"))];
        let origins = Origins { file: "a.fio".into(), streams };
        for (error, expected) in [
            ("a.fio, as a program:10: stream b, sizes: too large", "a.fio:7: job b, bs=4k: too large"),
            ("a.fio, as a program:6: stream a, step 2, region: 349525B: odd", "a.fio:1: job a: region: 349525B: odd"),
            ("a.fio, as a program:5: stream: too much", "a.fio:1: job a: too much"),
            ("a.fio, as a program:3: devices, x: too large", "a.fio: devices, x: too large"),
            ("a.fio, as a program: stream b: wrong", "a.fio: stream b: wrong"),
            ("another error", "another error"),
        ] {
            assert_eq!(origins.located(error.into()), expected);
        }
    }
}
