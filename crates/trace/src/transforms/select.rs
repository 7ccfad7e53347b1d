//! A window of time.

use crate::model::units::Nanos;
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};

use super::counted::{Counted, PerRow, Step};
use super::{Built, Length, Needs, Transform};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "select",
        about: "Keeps the requests of a window of time: from ≤ t < to",
        details: "Times stay as they are unless base=zero.",
        params: &[
            ParamSpec {
                name: "from",
                takes: ParamType::Time,
                default: ParamDefault::Value("0"),
                help: "start of the window",
            },
            ParamSpec {
                name: "to",
                takes: ParamType::Time,
                default: ParamDefault::Value("300"),
                help: "end of the window",
            },
            ParamSpec {
                name: "base",
                takes: ParamType::Word(&["keep", "zero"]),
                default: ParamDefault::Value("keep"),
                help: "keep the times, or count them from the start of the window",
            },
        ],
        example: "select from=1h to=65m base=zero",
    },
    needs: Needs::Rows,
    length: |_| Length::Ended,
    build,
};

fn build(settings: &Settings) -> Built {
    let (from, to) = (settings.time("from"), settings.time("to"));
    if to <= from {
        return Err("to (default 300 s) must be later than from".into());
    }
    let base = if settings.text("base") == "zero" { from } else { Nanos::ZERO };
    Ok(Box::new(move |rows| {
        let window = PerRow::new(rows, move |mut request| {
            if request.at >= to {
                return Step::End;
            }
            if request.at < from {
                return Step::Skip;
            }
            let Some(at) = request.at.0.checked_sub(base.0) else { return Step::Outside("select", "base=") };
            request.at = Nanos(at);
            Step::Emit(request)
        });
        Ok(Counted::with_metadata(window, |metadata| {
            // Time zero has moved by `base`.
            metadata.epoch_unix_ns = metadata.epoch_unix_ns.and_then(|epoch| epoch.checked_add(base.0));
        }))
    }))
}
