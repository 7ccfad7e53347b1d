//! Each kind against its law on a hundred thousand draws, and the first draws of each kind against known ones.
//! `acceptance_distributions` has the same on ten million.

mod fit;

use iosonar_trace::params::{Definition, ParamSpec};
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

/// Settings that the introductions describe.
fn is_common(param: &ParamSpec) -> bool {
    param.name == "ranks" || ["mean requests per second", "mean, in seconds or with a unit"].contains(&param.help)
}

/// Whether the times between these arrivals have a distribution that the document describes.
fn is_renewal(form: &Definition) -> bool {
    let starts_with = |form: &Definition, name: &str| form.params.first().is_some_and(|param| param.name == name);
    let mut kinds = distributions::KINDS.iter().map(|kind| &kind.form);
    starts_with(form, "rate") && kinds.any(|kind| kind.name == form.name && starts_with(kind, "mean"))
}

/// The text of docs/distributions.md.
fn documentation() -> String {
    let mut text = HEAD.to_owned();
    let mut section = |title: &str, forms: Vec<&Definition>| {
        text += title;
        for form in forms {
            text += &format!("\n### {}\n\n{}.", form.name, form.about);
            if !form.details.is_empty() {
                text += &format!(" {}", form.details.replace('\n', " "));
            }
            text += "\n";
            let described: Vec<_> = form.params.iter().filter(|param| !is_common(param)).collect();
            text += if described.is_empty() { "" } else { "\n" };
            for param in described {
                let default = param.default.described();
                let default = default.trim_start_matches("default: ").trim_start_matches("default ");
                text += &format!("- `{}` ({default}): {}\n", param.usage(), param.help);
            }
        }
    };
    let (renewals, others): (Vec<_>, Vec<_>) =
        arrivals::KINDS.iter().map(|kind| &kind.form).partition(|form| is_renewal(form));
    let renewals: Vec<_> = renewals.iter().map(|form| format!("`{}`", form.name)).collect();
    section(&ARRIVALS.replace("RENEWALS", &renewals.join(", ")), others);
    section(POSITIONS, positions::KINDS.iter().map(|kind| &kind.form).collect());
    section(SIZES, vec![&sizes::LOGNORMAL]);
    section(DISTRIBUTIONS, distributions::KINDS.iter().map(|kind| &kind.form).collect());
    text
}

const HEAD: &str = "\
# Distributions of artificial loads

<!-- Generated from the descriptions in crates/workload/src/ (UPDATE_DOCS=1 cargo test -p iosonar-workload docs_distributions). -->

Settings of arrivals are options of [`iosonar generate`](loads.md): `--rate 500`. Positions and sizes are values of options:
`--positions 'normal centre=25%'`. Defaults are in brackets; [units](loads.md#units) are those of loads.

The rate of n requests differs from the mean by chance, by about c / √n, where c is the coefficient of variation (CV) of the times between
arrivals: with `poisson` 0.03 % after ten million. With `pareto` up to shape 2 without `largest`, it converges as n^(1/shape − 1).
";

const ARRIVALS: &str = "
## Arrivals

`rate=RATE` is the mean number of requests per second (100). RENEWALS draw independent times between arrivals from the
[distribution](#distributions) of that name, with its settings and mean 1/rate.
";

const POSITIONS: &str = "
## Positions

`ranks=scattered|sorted|hashed` (scattered) places the frequent positions of `zipf` and `self-similar`: scattered, the most
frequent first, or by fio's hash, which puts several at the same position.
";

const SIZES: &str = "
## Sizes

One size (`64k`), sizes with weights (`4k:70,64k:25,1M:5`), or:
";

const DISTRIBUTIONS: &str = "
## Distributions

`mean=TIME` must be set.
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
