//! Reads the footers of all versions of the tables. `docs/schema.md` lists what each version renamed.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::model::metadata::{Metadata, SCHEMA_VERSION};

/// Keys of `run.statistics` in version 1, and their new names.
const STATISTICS: [(&str, &str); 5] = [
    ("issue_error_us", "delay_us"),
    ("issue_error_free_us", "delay_not_held_back_us"),
    ("within_free_pct", "within_not_held_back_pct"),
    ("latency_intended_us", "latency_from_scheduled_us"),
    ("recorder_stalls", "completion_log_stalls"),
];
/// The same for the elements of `run.findings`.
const FINDING: [(&str, &str); 2] =
    [("expected_generation", "expected_sequence_number"), ("found_generation", "found_sequence_number")];
/// A cause of delay in `run.statistics.verdict`, and its new name.
const CAUSE: (&str, &str) = ("recorder", "completion_log");

/// A value of `--wait`, and its new name.
const WAIT: (&str, &str) = ("work", "inline");
/// Options of version 1 that became values of `engine`.
const ENGINES: [(&str, &str); 2] = [("fake_io", "null"), ("dry_run", "dry_run")];

/// Why a footer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FooterError {
    /// A newer version of the tables; any key may have changed.
    #[error("has version {0} of the tables; this iosonar reads versions up to {SCHEMA_VERSION}: use a newer iosonar")]
    TooNew(u64),
    /// Not an object as described in `docs/schema.md`.
    #[error("{}", invalid(.0))]
    Invalid(#[from] serde_json::Error),
}

/// What is wrong, in our words if it is not a value.
fn invalid(error: &serde_json::Error) -> String {
    if error.is_data() { error.to_string() } else { "it is no valid JSON".to_owned() }
}

impl Metadata {
    /// Parses a footer of this or an earlier version of the tables, and renames keys to those of this version.
    /// `schema_version` keeps the value in the footer.
    pub fn from_json(json: &[u8]) -> Result<Self, FooterError> {
        parse_footer(json, |version, footer| {
            if version < 2 {
                rename_version_1(footer);
            }
        })
    }
}

/// Parses a footer. `rename` gets its version, if that is not the newest, and renames its keys.
pub fn parse_footer<M: DeserializeOwned>(json: &[u8], rename: impl Fn(u64, &mut Value)) -> Result<M, FooterError> {
    let mut footer: Value = serde_json::from_slice(json)?;
    let newest = SCHEMA_VERSION.into();
    match footer["schema_version"].as_u64() {
        Some(version) if version > newest => return Err(FooterError::TooNew(version)),
        Some(version) if version < newest => rename(version, &mut footer),
        _ => {}
    }
    Ok(serde_json::from_value(footer)?)
}

/// Renames keys of an object of any value.
pub fn rename_keys(object: &mut Value, names: &[(&str, &str)]) {
    let Some(object) = object.as_object_mut() else { return };
    for (old, new) in names {
        if let Some(value) = object.remove(*old) {
            object.insert((*new).to_owned(), value);
        }
    }
}

fn rename_version_1(footer: &mut Value) {
    for wait in ["/run/wait", "/run/options/wait", "/run/typed/wait"] {
        if let Some(wait) = footer.pointer_mut(wait).filter(|wait| **wait == WAIT.0) {
            *wait = WAIT.1.into();
        }
    }
    if let Some(options) = footer.pointer_mut("/run/options").and_then(Value::as_object_mut) {
        for (old, engine) in ENGINES {
            // In a classic result these options have other types and keep their names.
            if let Some(is_set) = options.get(old).and_then(Value::as_bool) {
                options.remove(old);
                if is_set {
                    options.insert("engine".into(), engine.into());
                }
            }
        }
    }
    if let Some(statistics) = footer.pointer_mut("/run/statistics") {
        rename_keys(statistics, &STATISTICS);
    }
    for finding in elements(footer, "/run/findings") {
        rename_keys(finding, &FINDING);
    }
    for list in ["/run/statistics/verdict/late", "/run/statistics/verdict/worst"] {
        for cause in elements(footer, list).filter_map(|each| each.get_mut("cause")).filter(|cause| **cause == CAUSE.0)
        {
            *cause = CAUSE.1.into();
        }
    }
}

fn elements<'a>(footer: &'a mut Value, pointer: &str) -> impl Iterator<Item = &'a mut Value> {
    footer.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::metadata::{Kind, RequestTime};

    /// Reads a footer of this version with this `run`, and returns `run` as it is written again.
    fn footer(version: u32, run: Value) -> Value {
        let mut footer = serde_json::to_value(Metadata::new(Kind::Replay, "test")).unwrap();
        (footer["schema_version"], footer["run"]) = (version.into(), run);
        serde_json::to_value(Metadata::from_json(footer.to_string().as_bytes()).unwrap().run).unwrap()
    }

    #[test]
    fn keys_and_causes_of_version_1_get_their_new_names() {
        let old = json!({
            "load": "a.load",
            "findings": [{"expected_generation": 3, "found_generation": null, "sector": 8}],
            "statistics": {
                "issue_error_us": {"p50": 1.0}, "issue_error_free_us": null, "within_pct": {"50": 99.0},
                "within_free_pct": {"50": 100.0}, "latency_intended_us": {"p50": 2.0}, "recorder_stalls": 4,
                "verdict": {
                    "late": [{"cause": "recorder", "requests": 1}, {"cause": "depth", "requests": 2}],
                    "worst": [{"cause": "recorder", "at_s": 1.0}],
                },
            },
        });
        let new = json!({
            "load": "a.load",
            "findings": [{"expected_sequence_number": 3, "found_sequence_number": null, "sector": 8}],
            "statistics": {
                "delay_us": {"p50": 1.0}, "delay_not_held_back_us": null, "within_pct": {"50": 99.0},
                "within_not_held_back_pct": {"50": 100.0}, "latency_from_scheduled_us": {"p50": 2.0},
                "completion_log_stalls": 4,
                "verdict": {
                    "late": [{"cause": "completion_log", "requests": 1}, {"cause": "depth", "requests": 2}],
                    "worst": [{"cause": "completion_log", "at_s": 1.0}],
                },
            },
        });
        assert_eq!(footer(1, old.clone()), new.clone());
        assert_eq!(footer(2, new.clone()), new);
        // Not version 1: unknown keys stay.
        assert_eq!(footer(2, old.clone()), old);
    }

    #[test]
    fn words_of_version_2_get_their_new_names() {
        assert_eq!(footer(2, json!({"company": {"ready": 0.5}})), json!({"contention": {"ready": 0.5}}));
        let mut old = serde_json::to_value(Metadata::new(Kind::Load, "test")).unwrap();
        old["request_time"] = "asked".into();
        assert_eq!(Metadata::from_json(old.to_string().as_bytes()).unwrap().request_time, RequestTime::Queued);
    }

    #[test]
    fn options_of_version_1_get_their_new_names() {
        let run = json!({
            "wait": "work", "options": {"wait": "work", "engine": null, "fake_io": false, "dry_run": true},
            "typed": {"wait": "work", "dry-run": true},
        });
        let expected = json!({
            "wait": "inline", "options": {"wait": "inline", "engine": "dry_run"},
            "typed": {"wait": "inline", "dry-run": true},
        });
        assert_eq!(footer(1, run), expected);
        let classic = json!({"options": {"fake_io": "0", "dry_run": "1"}});
        assert_eq!(footer(1, classic.clone()), classic);
    }

    #[test]
    fn values_of_unexpected_types_in_a_footer_of_version_1_are_kept() {
        for run in [
            json!({"statistics": 1, "findings": {"expected_generation": 1}}),
            json!({"statistics": {"verdict": [1]}, "findings": [1, null]}),
            json!({"statistics": {"verdict": {"late": [1, {"cause": 1}], "worst": "x"}}, "findings": null}),
        ] {
            assert_eq!(footer(1, run.clone()), run);
        }
    }

    #[test]
    fn a_newer_version_is_refused() {
        let error = Metadata::from_json(br#"{"schema_version": 4, "wholly": "different"}"#).unwrap_err();
        let text = "has version 4 of the tables; this iosonar reads versions up to 3: use a newer iosonar";
        assert_eq!(error.to_string(), text);
    }
}
