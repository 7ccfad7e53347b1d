//! Each kind against its law on a hundred thousand draws, and the first draws of each kind against known ones.
//! `acceptance_distributions` has the same on ten million.

mod fit;

use iosonar_trace::params::Definition;
use iosonar_trace::{Nanos, Reader};
use iosonar_workload::{Recipe, Rng, arrivals, distributions, positions, sizes};
use rand::SeedableRng;

const DRAWS: usize = 100_000;

#[test]
fn continuous_distributions_fit() {
    fit::continuous(DRAWS);
}

#[test]
fn means_are_those_of_the_distribution_functions() {
    fit::means();
}

#[test]
fn zipf_distributions_fit() {
    fit::zipf(DRAWS);
}

#[test]
fn times_between_arrivals_fit() {
    fit::renewals(DRAWS);
}

#[test]
fn mean_rates_are_those_asked_for() {
    fit::rates(20_000, 0.032);
}

#[test]
fn self_similar_arrivals_have_their_hurst_parameter() {
    fit::hurst(DRAWS, &[0.8], 0.2);
}

#[test]
fn positions_fit() {
    fit::positions(DRAWS);
}

#[test]
fn sizes_and_operations_fit() {
    fit::sizes_and_operations(DRAWS);
}

/// FNV-1a of the numbers.
fn hash(numbers: impl Iterator<Item = u64>) -> u64 {
    let bytes = numbers.flat_map(u64::to_le_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn hash_of_load(recipe: Recipe) -> u64 {
    let mut load = Recipe { duration: Nanos::MAX, requests: Some(1000), ..recipe }.generate().unwrap();
    let requests = std::iter::from_fn(|| load.next().unwrap());
    hash(requests.flat_map(|r| [r.at.0 as u64, r.op as u64, u64::from(r.flags.0), r.sector.0, r.sectors.0]))
}

/// The hashes of the first thousand draws of each kind, and of loads with each size and mix. They are the same on every
/// machine; a change of one changes the loads of all users.
#[test]
fn the_first_draws_of_each_kind_are_known() {
    let mut lines = Vec::new();
    for kind in distributions::KINDS {
        let law = distributions::build(&distributions::parse(kind.form.example).unwrap()).unwrap();
        let mut rng = Rng::seed_from_u64(1);
        lines.push(format!("{}: {:016x}", kind.form.example, hash((0..1000).map(|_| law.draw(&mut rng).to_bits()))));
    }
    for kind in arrivals::KINDS {
        let recipe = Recipe::new(kind.form.example, "sequential").unwrap();
        lines.push(format!("arrivals {}: {:016x}", kind.form.example, hash_of_load(recipe)));
    }
    for kind in positions::KINDS {
        let recipe = Recipe::new("uniform", kind.form.example).unwrap();
        lines.push(format!("positions {}: {:016x}", kind.form.example, hash_of_load(recipe)));
    }
    for sizes in ["4k:70,64k:30", "lognormal mean=16k sigma=1"] {
        let recipe = Recipe { sizes: sizes.parse().unwrap(), ..Recipe::new("uniform", "uniform").unwrap() };
        lines.push(format!("sizes {sizes}: {:016x}", hash_of_load(recipe)));
    }
    let mix = "read=70,write=20,flush=5,fua=4,discard=1";
    let recipe = Recipe { mix: mix.parse().unwrap(), ..Recipe::new("uniform", "uniform").unwrap() };
    lines.push(format!("mix {mix}: {:016x}", hash_of_load(recipe)));
    let found = lines.join("\n");
    assert_eq!(found, include_str!("first_draws.txt").trim_end(), "\n{found}");
}

/// The text of docs/distributions.md.
fn documentation() -> String {
    let mut text = HEAD.to_owned();
    let mut section = |title: &str, level: &str, forms: Vec<&Definition>| {
        text += title;
        for form in forms {
            text += &format!("\n{level} {}\n\n{}.", form.name, form.about);
            if !form.details.is_empty() {
                text += &format!(" {}", form.details.replace('\n', " "));
            }
            text += "\n\n";
            if !form.params.is_empty() {
                text += "| setting | default | meaning |\n|---|---|---|\n";
            }
            for param in form.params {
                let (usage, default) = (param.usage().replace('|', "\\|"), param.default.described());
                let default = default.trim_start_matches("default: ").trim_start_matches("default ");
                text += &format!("| `{usage}` | {default} | {} |\n", param.help);
            }
            text += if form.params.is_empty() { "" } else { "\n" };
            text += &format!("    {}\n", form.example);
        }
    };
    let of = |forms: &mut dyn Iterator<Item = &'static Definition>| forms.collect::<Vec<_>>();
    section("\n## Arrivals\n", "###", of(&mut arrivals::KINDS.iter().map(|kind| &kind.form)));
    section("\n## Positions\n", "###", of(&mut positions::KINDS.iter().map(|kind| &kind.form)));
    section(SIZES, "###", vec![&sizes::LOGNORMAL]);
    section(DISTRIBUTIONS, "###", of(&mut distributions::KINDS.iter().map(|kind| &kind.form)));
    text
}

const HEAD: &str = "\
# Distributions of artificial loads

<!-- Generated from the descriptions in crates/workload/src/ (UPDATE_DOCS=1 cargo test --workspace docs_distributions). -->

`iosonar generate KIND` makes a load ([loads.md](loads.md)). KIND is one of the arrivals below; their settings are options
(`--rate 500`). Positions, sizes and operations are values of options: `--positions 'normal centre=25%'`.

- **Rates** are requests per second. **Times** are seconds (`0.5`) or have a unit (`20ms`, `5m`). **Lengths** are bytes
  (`4096`, `4k`, `2G`), or sectors of 512 bytes (`8s`). **Shares** are `0.7` or `70%`.
- **The mean rate** does not depend on sizes, positions or operations: each has a random sequence of its own. The mean of
  each distribution is exact. The rate of n requests differs from it by chance, by about c / √n, where c is the coefficient
  of variation of the times between arrivals: with `poisson` 0.03 % after ten million requests. The tests demand 0.1 % after
  twenty million, for each kind with a c² up to 1.8. For `pareto` without `largest` up to shape 2, c is infinite, and the
  rate converges as n^(1/shape − 1); for `self-similar` it does so only in loads much longer than the longest phase.
- **The same seed** gives the same bytes on every machine: all functions are those of the crate `libm`, compiled into the
  program.
- **Tests** compare ten million draws of each kind with its law, by the tests of Kolmogorov and Smirnov and by chi-squared
  tests at a level of 0.001 (`make acceptance`).
";

const SIZES: &str = "
## Sizes

One size (`64k`), sizes with weights (`4k:70,64k:25,1M:5`), or a distribution:
";

const DISTRIBUTIONS: &str = "
## Distributions

The distributions that arrivals draw from. Numbers without a unit are seconds where a time is drawn.
";

#[test]
fn docs_distributions_md_is_up_to_date() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/distributions.md");
    let expected_text = documentation();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(file, &expected_text).unwrap();
    }
    let found = std::fs::read_to_string(file).unwrap_or_default();
    assert!(found == expected_text, "docs/distributions.md is out of date: run this test with UPDATE_DOCS=1");
}
