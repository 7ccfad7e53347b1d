//! docs/transforms.md, written from the transforms' own descriptions.

use crate::params::ParamSpec;

use super::{Needs, TRANSFORMS};

const HEAD: &str = "\
# Transforms

<!-- Written from the descriptions in crates/trace/src/transforms/ (UPDATE_DOCS=1 cargo test -p iosonar-trace documentation). -->

`iosonar edit IN OUT 'PIPELINE'` changes a load and writes it; `iosonar replay --edit 'PIPELINE'` changes it on its way.
A pipeline is one transform or several, separated by bars; the first comes first:

    iosonar edit mysql.load.gz short.load.parquet 'select from=0 to=300 | slip every=32768 increase=256'

- Settings are `name=value`, without spaces around the `=`; a value with spaces or bars stands in quotes.
- **Times** are seconds (`300`, `0.5`) or have a unit: `ns` `us` `ms` `s` `m` `h` `d`.
- **Lengths and positions** are sectors of 512 bytes (`256`), or bytes with a unit: `4k` `64M` `2G` (powers of 1024).
- **Counts** may have a `k` or `M` (powers of 1000). **Shares** are `0.7` or `70%`.
- Everything streams. A transform that needs the load as a whole keeps it in a temporary file, 72 bytes for each request,
  in the folder that TMPDIR names.
- What is known of the original stays with a request, its latency for example, unless said otherwise below. The file that
  is written says how it was made.
- Files that `merge`, `append` and `adjacent` name are those of the machine and folder where the command runs. `iosonar replay
  --edit` reads them twice, so that they can be no pipes.
- `iosonar replay --loop` reads and changes the load anew for each iteration. What needs it as a whole (`dense`, `derived`, `reverse`,
  `adjacent`, `anonymise`) takes its time then, in the midst of the run: say `--edit 'dense | repeat'` instead.
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
            text += " It needs the load as a whole.";
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
    use crate::params::ParamDefault::{Default, Means, Refused};
    let default = match param.unset {
        Default(value) => format!("`{value}`"),
        Refused => "must be set".into(),
        Means(what) => what.into(),
    };
    format!("| `{}` | {default} | {} |\n", cell(&param.usage()), cell(param.help))
}

/// Bars end cells.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
