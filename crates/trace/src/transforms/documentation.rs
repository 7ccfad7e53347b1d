//! docs/transforms.md, generated from the descriptions of the transforms.

use crate::params::ParamSpec;

use super::{Needs, TRANSFORMS};

const HEAD: &str = "\
# Transforms

<!-- Generated from the descriptions in crates/trace/src/transforms/ (UPDATE_DOCS=1 cargo test -p iosonar-trace documentation). -->

`iosonar edit IN OUT 'PIPELINE'` transforms a load and writes the result; `iosonar replay --edit 'PIPELINE'` transforms
the load it replays. A pipeline is one or more transforms, separated by `|` and applied from left to right:

    iosonar edit mysql.load.gz short.load.parquet 'select from=0 to=300 | slip every=32768 increase=128k'

- Settings are `name=value`; below, their defaults are in brackets. Quote a value that contains spaces or `|`. Units are
  [those of generated loads](loads.md#units).
- A transform that needs the whole load keeps it in a temporary file in `TMPDIR`, 72 bytes per request.
- Other columns of a request, such as its original latency, are kept unless stated otherwise. The file records its pipeline.
- `merge`, `append` and `adjacent` read files where the command runs. `iosonar replay --edit` reads them twice, so they cannot
  be pipes.
- `iosonar replay --loop` reads and transforms the load again for each iteration. Transforms that need the whole load then
  take time in the middle of the run: use `--edit 'dense | repeat'` instead.
";

/// The text of docs/transforms.md.
pub fn documentation() -> String {
    let mut text = HEAD.to_owned();
    for transform in TRANSFORMS {
        let form = &transform.form;
        text += &format!("\n## {}\n\n{}.", form.name, form.about);
        if !form.details.is_empty() {
            text += &format!(" {}", form.details.replace('\n', " "));
        }
        if transform.needs == Needs::Whole {
            text += " Needs the whole load.";
        }
        text += &format!("\n\n    {}\n", form.example);
        if !form.params.is_empty() {
            text.push('\n');
            form.params.iter().for_each(|param| text += &item(param));
        }
    }
    text
}

fn item(param: &ParamSpec) -> String {
    use crate::params::ParamDefault::{Described, Required, Value};
    let default = match param.default {
        Value(value) => format!("`{value}`"),
        Required => "required".into(),
        Described(what) => what.into(),
    };
    format!("- `{}` ({default}): {}\n", param.usage(), param.help)
}
