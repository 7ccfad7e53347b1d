//! docs/transforms.md, generated from the descriptions of the transforms.

use crate::params::ParamSpec;

use super::{Needs, TRANSFORMS};

const HEAD: &str = "\
# Transforms

<!-- Generated from the descriptions in crates/trace/src/transforms/ (UPDATE_DOCS=1 cargo test -p iosonar-trace documentation). -->

`iosonar edit IN OUT 'PIPELINE'` transforms a load and writes the result; `iosonar replay --edit 'PIPELINE'` transforms
the load it replays. A pipeline is one or more transforms, separated by `|` and applied from left to right:

    iosonar edit mysql.load.gz short.load.parquet 'select from=0 to=300 | slip every=32768 increase=128k'

- Settings are `name=value`, without spaces around the `=`. Quote a value that contains spaces or `|`.
- **Times** are seconds (`300`, `0.5`) or have a unit: `ns` `us` `ms` `s` `m` `h` `d`.
- **Lengths and positions** are bytes (`4096`), also with a unit: `4k` `64M` `2G` (powers of 1024), or sectors of 512
  bytes: `8s`.
- **Counts** may have a `k` or `M` (powers of 1000). **Shares** are `0.7` or `70%`.
- Everything streams. A transform that needs the whole load keeps it in a temporary file in the folder TMPDIR, 72 bytes
  per request.
- Other columns of a request, such as its original latency, are kept unless stated otherwise below. The file records its
  pipeline.
- `merge`, `append` and `adjacent` read files of the machine and folder where the command runs. `iosonar replay --edit`
  reads them twice, so they cannot be pipes.
- `iosonar replay --loop` reads and transforms the load again for each iteration. Transforms that need the whole load
  (`dense`, `derived`, `reverse`, `adjacent`, `anonymise`) then take time in the middle of the run: use
  `--edit 'dense | repeat'` instead.
";

/// The text of docs/transforms.md.
pub fn documentation() -> String {
    let mut text = HEAD.to_owned();
    text += "\n| transform | what it does |\n|---|---|\n";
    for transform in TRANSFORMS {
        let form = &transform.form;
        text += &format!("| [`{0}`](#{0}) | {1} |\n", form.name, cell(form.about));
    }
    for transform in TRANSFORMS {
        let form = &transform.form;
        text += &format!("\n## {}\n\n{}.", form.name, form.about);
        if !form.details.is_empty() {
            text += &format!(" {}", form.details.replace('\n', " "));
        }
        if transform.needs == Needs::Whole {
            text += " Needs the whole load.";
        }
        text += "\n\n";
        if !form.params.is_empty() {
            text += "| setting | default | meaning |\n|---|---|---|\n";
            form.params.iter().for_each(|param| text += &row(param));
            text.push('\n');
        }
        text += &format!("    {}\n", form.example);
    }
    text
}

fn row(param: &ParamSpec) -> String {
    use crate::params::ParamDefault::{Described, Required, Value};
    let default = match param.default {
        Value(value) => format!("`{value}`"),
        Required => "required".into(),
        Described(what) => what.into(),
    };
    format!("| `{}` | {default} | {} |\n", cell(&param.usage()), cell(param.help))
}

/// Escapes the separator of cells.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
