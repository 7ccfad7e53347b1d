use iosonar_trace::{Reader, Sector};

use super::*;
use crate::Recipe;

fn sample(arrivals: &str, positions: &str, change: impl FnOnce(&mut Recipe)) -> (Sample, Vec<Device>) {
    let mut recipe = Recipe::new(arrivals, positions).unwrap();
    (recipe.requests, recipe.duration) = (Some(20_000), Nanos::MAX);
    recipe.seed = 7;
    change(&mut recipe);
    let mut load = recipe.generate().unwrap();
    let mut sample = Sample::default();
    while let Some(request) = load.next().unwrap() {
        sample.add(&request);
    }
    let devices = load.metadata().devices.clone();
    (sample, devices)
}

fn choices() -> Choices {
    let (name, of) = ("x".to_owned(), "a load".to_owned());
    Choices { name, of, split: Some(false), arrivals: None, positions: None, seed: 1 }
}

fn fitted(arrivals: &str, positions: &str, change: impl FnOnce(&mut Recipe)) -> Fitted {
    let (sample, devices) = sample(arrivals, positions, change);
    fit(&sample, &devices, &choices()).unwrap()
}

fn chosen(of: &[Candidate]) -> &Candidate {
    of.iter().find(|candidate| candidate.is_chosen).unwrap()
}

/// The value of a setting, without its unit, in seconds if it is a time.
fn setting(text: &str, name: &str) -> f64 {
    let start = format!(" {name}=");
    let value = text.split_once(&start).unwrap_or_else(|| panic!("{name} in {text}")).1.split(' ').next().unwrap();
    iosonar_trace::params::parse_time(value).map(Nanos::as_secs).unwrap()
}

#[track_caller]
fn close(found: f64, expected: f64, tolerance: f64) {
    assert!((found / expected - 1.0).abs() <= tolerance, "{found} instead of {expected}");
}

#[test]
fn poisson_arrivals_and_zipf_positions_are_found() {
    let found = fitted("poisson rate=500", "zipf exponent=1.1 ranks=sorted", |recipe| {
        (recipe.sizes, recipe.mix) = ("4k:70,64k:30".parse().unwrap(), "read=70,write=25,flush=5".parse().unwrap());
        recipe.span = Sectors(1 << 15);
    });
    let stream = &found.streams[0];
    let arrivals = chosen(&stream.arrivals);
    assert_eq!(arrivals.kind(), "poisson", "{:?}", stream.arrivals);
    close(setting(&arrivals.text, "rate"), 500.0, 0.03);
    let zipf = stream.positions.iter().find(|candidate| candidate.kind() == "zipf").unwrap();
    close(setting(&zipf.text, "exponent"), 1.1, 0.03);
    assert!(stream.sizes.contains("4k:") && stream.sizes.contains("64k:"), "{}", stream.sizes);
    assert!(stream.mix.contains("read=") && stream.mix.contains("flush="), "{}", stream.mix);
    assert_eq!(stream.align, 8);
}

#[test]
fn scattered_zipf_positions_are_a_zipf_stream() {
    let found = fitted("poisson rate=500", "zipf exponent=1.2", |recipe| recipe.span = Sectors(1 << 17));
    let positions = chosen(&found.streams[0].positions);
    assert_eq!(positions.kind(), "zipf", "{:?}", found.streams[0].positions);
    close(setting(&positions.text, "exponent"), 1.2, 0.03);
}

#[test]
fn sequential_requests_at_even_intervals_are_found() {
    let found = fitted("uniform rate=200", "sequential", |recipe| recipe.sizes = "64k".parse().unwrap());
    let stream = &found.streams[0];
    assert_eq!(chosen(&stream.arrivals).kind(), "uniform", "{:?}", stream.arrivals);
    close(setting(&chosen(&stream.arrivals).text, "rate"), 200.0, 0.001);
    assert_eq!(chosen(&stream.positions).kind(), "sequential", "{:?}", stream.positions);
    assert_eq!(stream.align, 128);
    assert!(found.comparison.mean() < 0.01, "{:?}", found.comparison);
}

#[test]
fn on_off_arrivals_are_found_with_their_phases() {
    let found = fitted("on-off rate=2000 on=50ms off=500ms", "uniform", |_| ());
    let arrivals = chosen(&found.streams[0].arrivals);
    assert_eq!(arrivals.kind(), "on-off", "{:?}", found.streams[0].arrivals);
    close(setting(&arrivals.text, "rate"), 2000.0, 0.03);
    close(setting(&arrivals.text, "on"), 0.05, 0.2);
    close(setting(&arrivals.text, "off"), 0.5, 0.2);
    assert_eq!(chosen(&found.streams[0].positions).kind(), "uniform", "{:?}", found.streams[0].positions);
}

#[test]
fn shapes_of_independent_times_are_found() {
    for (text, name, shape) in [
        ("lognormal rate=300 sigma=1.2", "sigma", 1.2),
        ("weibull rate=300 shape=0.6", "shape", 0.6),
        ("gamma rate=300 shape=3", "shape", 3.0),
    ] {
        let (sample, _) = sample(text, "uniform", |_| ());
        let times: Vec<Nanos> = sample.requests().map(|request| request.at).collect();
        let found = arrivals::fit(&times, sample.duration(), &choices()).unwrap();
        let chosen = chosen(&found);
        assert_eq!(chosen.kind(), text.split(' ').next().unwrap(), "{found:?}");
        close(setting(&chosen.text, name), shape, 0.05);
    }
}

#[test]
fn chains_have_the_dispersion_that_independent_times_have_not() {
    let (sample, _) = sample("mmpp rate=500 states=1:2s,20:200ms", "uniform", |recipe| recipe.requests = Some(5000));
    let times: Vec<Nanos> = sample.requests().map(|request| request.at).collect();
    let found = arrivals::fit(&times, sample.duration(), &choices()).unwrap();
    let chosen = chosen(&found);
    assert!(["mmpp", "hidden-markov"].contains(&chosen.kind()), "{found:?}");
    assert!(chosen.distance < 0.1 && chosen.dispersion.unwrap() < 0.3, "{chosen:?}");
    let mmpp = found.iter().find(|candidate| candidate.kind() == "mmpp").unwrap();
    let independent = found.iter().find(|candidate| candidate.kind() == "lognormal").unwrap();
    assert!(mmpp.dispersion < independent.dispersion && mmpp.aic < independent.aic, "{found:?}");
}

#[test]
fn the_number_of_sequential_streams_is_found() {
    let found = fitted("poisson rate=500", "streams count=6 run=3", |_| ());
    let streams = found.streams[0].positions.iter().find(|candidate| candidate.kind() == "streams").unwrap();
    assert_eq!(streams.text, "streams count=6 run=3");
}

#[test]
fn reads_with_places_of_their_own_get_their_own_stream() {
    let mut both = Sample::default();
    let (one, _) = sample("poisson rate=100", "sequential", |recipe| {
        (recipe.mix, recipe.requests) = ("write=1".parse().unwrap(), Some(3000));
    });
    let (two, _) = sample("poisson rate=100", "zipf exponent=1.3", |recipe| {
        (recipe.mix, recipe.requests, recipe.seed) = ("read=1".parse().unwrap(), Some(3000), 8);
    });
    let mut all: Vec<Request> = one.requests().chain(two.requests()).collect();
    all.sort_by_key(|request| request.at);
    all.iter().for_each(|request| both.add(request));
    let devices = [Device { name: "sda".into(), sectors: Some(1 << 22) }, Device { name: "sdb".into(), sectors: None }];
    let found = fit(&both, &devices, &Choices { split: None, ..choices() }).unwrap();
    assert_eq!(found.tried.len(), 2);
    assert_eq!(found.streams.len(), 2, "{:?}", found.tried);
    assert_eq!(chosen(&found.streams[0].positions).kind(), "sequential");
    assert!(found.text.contains("name = \"reads\"") && found.text.contains("name = \"writes\""), "{}", found.text);
    assert_eq!(found.devices, [Sectors(1 << 22)]);

    let mut apart = Sample::default();
    let on_second = |request: &Request| Request { device: DeviceId(u16::from(request.op == Op::Read)), ..*request };
    all.iter().for_each(|request| apart.add(&on_second(request)));
    let found = fit(&apart, &devices, &choices()).unwrap();
    let names: Vec<&str> = found.streams.iter().map(|stream| stream.name.as_str()).collect();
    assert_eq!(names, ["sda-0-all", "sdb-1-all"]);
    assert!(found.comparison.mean() < 0.1, "{:?}", found.comparison);
}

#[test]
fn a_fitted_load_that_is_fitted_again_stays_close() {
    let found = fitted("hidden-markov rate=500", "measured", |recipe| recipe.requests = Some(5000));
    assert!(found.comparison.mean() < 0.12, "{:#?}", found.comparison);
}

#[test]
fn too_few_requests_and_impossible_kinds_are_refused() {
    let (few, devices) = sample("poisson rate=100", "uniform", |recipe| recipe.requests = Some(50));
    assert!(fit(&few, &devices, &choices()).unwrap_err().contains("50 usable requests"));
    let (all, devices) = sample("poisson rate=100", "uniform", |recipe| recipe.requests = Some(500));
    let wrong = Choices { arrivals: Some("ramp".into()), ..choices() };
    assert!(fit(&all, &devices, &wrong).unwrap_err().contains("ramp"));
    let one_time =
        Sample { requests: all.requests.iter().map(|r| SampledRequest { at: Nanos(5), ..*r }).collect(), ..all };
    assert!(fit(&one_time, &devices, &choices()).unwrap_err().contains("same time"));
}

#[test]
fn the_names_of_a_load_cannot_break_the_text() {
    let (sample, _) = sample("poisson rate=100", "uniform", |recipe| recipe.requests = Some(500));
    let devices = [Device { name: "a \"b\"\n$c = 1".into(), sectors: None }];
    let choices = Choices { name: "$x\"\n".into(), of: "\\ \u{7} $y".into(), ..choices() };
    let found = fit(&sample, &devices, &choices).unwrap();
    assert!(Program::parse("x.toml", &found.text).is_ok(), "{}", found.text);
}

#[test]
fn statistics_have_their_known_values() {
    let profile = |arrivals: &str| {
        let (sample, _) = sample(arrivals, "uniform", |recipe| recipe.requests = Some(50_000));
        Profile::of(sample.requests(), sample.duration(), sample.page())
    };
    let (poisson, even) = (profile("poisson rate=500"), profile("uniform rate=500"));
    let comparison = compare(&poisson, &even, &even);
    let row = |what: &str| comparison.rows.iter().find(|row| row.what == what).unwrap();
    // Variance over mean is 1 for Poisson, and 0 for even arrivals.
    close(row("dispersion in 1 s").original.unwrap(), 1.0, 0.4);
    assert!(row("dispersion in 1 s").fitted.unwrap() < 0.05);
    // 1 − 1/e below the mean of an exponential distribution, where all times of the other are.
    close(row("times between arrivals").difference, 1.0 - (-1.0_f64).exp(), 0.05);
    assert!((poisson.counts.hurst().unwrap() - 0.5).abs() < 0.1);
    assert_eq!((row("times between arrivals").by_chance, row("positions").difference), (0.0, 0.0));
    assert!(row("requests").difference < 1e-9);
}

/// The end of the last window of each length would be beyond the greatest time.
#[test]
fn windows_up_to_the_greatest_time_are_counted() {
    let arrivals = 400;
    let mut sample = Sample::default();
    for n in 0..arrivals {
        let at = Nanos(i64::MAX / arrivals * n);
        sample.add(&Request::new(at, Op::Write, Sector(64 * n as u64), Sectors(8)));
    }
    let profile = Profile::of(sample.requests(), Nanos::MAX, sample.page());
    // One arrival in each of the longest windows but for rounding.
    assert!(profile.counts.dispersion().iter().all(|index| index.is_some_and(|index| (0.9..=1.0).contains(&index))));
}

/// Fifty years between two requests: their windows are not counted one by one.
#[test]
fn long_gaps_and_long_requests_need_no_more_memory() {
    let mut sample = Sample::default();
    let tib = 1 << 31;
    for n in 0..2000_i64 {
        let at = if n < 1000 { Nanos(n * n * 1000) } else { Nanos(50 * 365 * 86_400 * 1_000_000_000 + n * n * 777) };
        sample.add(&Request::new(at, Op::Write, Sector((n as u64 * 7919 % 64) * tib), Sectors(tib - 8)));
    }
    let choices = Choices { arrivals: Some("hidden-markov".into()), ..choices() };
    let fitted = fit(&sample, &[], &choices).unwrap();
    assert!(fitted.text.contains("hidden-markov"), "{}", fitted.text);
}
