//! What a run shows, once it is over.

use crate::device::Device;
use crate::feeder::Fed;
use crate::options::Options;
use crate::statistics::Statistics;

/// The manual's advice, as far as a run shows that it was not followed.
pub fn after(options: &Options, device: &Device, fed: &Fed, s: &Statistics) -> Vec<String> {
    let mut all = Vec::new();
    let mut say = |when: bool, text: String| all.extend(when.then_some(text));
    let reads = s.reads.max(1) as f64;
    say(
        s.wrap_factor >= 2.0 || (s.wrap_factor < 0.5 && s.requests > 0),
        format!(
            "the load reaches over {:.3} times the target's size; a target of about the original's size gives other results",
            s.wrap_factor
        ),
    );
    say(s.wrap_factor > 1.0, format!("sectors beyond the end of {} wrapped around", device.path.display()));
    say(s.bad_lines > 0, format!("{} lines of the load could not be understood", s.bad_lines));
    say(!fed.load_complete, "the load itself was cut short".into());
    say(options.speedup != 1.0, format!("a speed-up of {} distorts a natural load", options.speedup));
    say(
        s.dropped as f64 > 0.05 * s.requests as f64,
        "more than 5 % of the requests were dropped; --conflicts partial or ordering keeps them".into(),
    );
    say(
        s.zero_reads as f64 > 0.01 * reads,
        format!(
            "{} of {} reads came back all zero: areas that were never written answer too fast; fill the target with data first",
            s.zero_reads, s.reads
        ),
    );
    say(
        s.skipped.too_large > 0,
        format!("{} requests exceed the memory for buffers; raise --buffers", s.skipped.too_large),
    );
    all
}
