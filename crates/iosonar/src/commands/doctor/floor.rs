//! The timer latency of this machine without any I/O: no replay here can be more precise.
//!
//! It is a step of `replay --calibrate` at a low rate, with each of two ways of waiting.

use clap::Parser;
use iosonar_pacing::host::isolation::Isolation;
use iosonar_pacing::wait::Wait;
use iosonar_pacing::{Result, Stop};
use iosonar_replay::config::options::Options;
use iosonar_replay::config::plan::{Expected, Plan};
use iosonar_replay::run::calibrate::measure;
use serde::Serialize;

/// Requests per second. Many more than a second has, so that quantiles are known after a short time.
const RATE: f64 = 2000.0;
const SECONDS: f64 = 0.5;
/// So many that none is pushed back: after a pause of the whole loop all are late.
const DEPTH: &str = "1024";

/// How late an issuing loop without I/O was.
#[derive(Clone, Debug, Serialize)]
pub struct Floor {
    pub wait: Wait,
    pub times: u64,
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub max_us: Option<f64>,
    pub within_50_us_pct: Option<f64>,
}

/// The ways of waiting that are measured.
pub const WAITS: [Wait; 2] = [Wait::Spin, Wait::Sleep];

/// Options of `replay` without a command line.
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

/// Measures each way of waiting for half a second.
pub fn measure_all(isolation: Option<&Isolation>, stop: &Stop) -> Result<Vec<Floor>> {
    WAITS.into_iter().map(|wait| one(wait, isolation, stop)).collect()
}

fn one(wait: Wait, isolation: Option<&Isolation>, stop: &Stop) -> Result<Floor> {
    let name = wait.name();
    let options =
        Line::parse_from(["replay", "--calibrate", "--grace", "1ms", "--depth", DEPTH, "--wait", &name]).options;
    let plan = Plan::new(options, Expected::default());
    let verdict = measure(RATE, SECONDS, &plan, isolation, stop)?.verdict;
    let delay = verdict.own.delay_us;
    Ok(Floor {
        wait,
        times: verdict.own.requests,
        p50_us: delay.and_then(|delay| delay.p50),
        p99_us: delay.and_then(|delay| delay.p99),
        max_us: delay.map(|delay| delay.max),
        within_50_us_pct: verdict.own.within_pct.map(|within| within.us50),
    })
}
