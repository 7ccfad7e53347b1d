//! The sizes of a job's requests.

use super::job::Job;
use crate::conversion::Sizes;

/// The sizes of a direction, and the least one, fio's unit of positions.
#[derive(Clone, Debug)]
pub(super) struct DirectionSizes {
    pub sizes: Sizes,
    pub least: u64,
}

impl DirectionSizes {
    fn of(sizes: Sizes) -> Self {
        Self { least: sizes.smallest(), sizes }
    }
}

/// The sizes for reads, writes and discards. fio takes bs if there is no other option; bssplit also sets the least and the
/// largest size, and a later bsrange sets these again.
pub(super) fn sizes(job: &Job) -> Result<[DirectionSizes; 3], String> {
    let one = |text: &str| Sizes::new(vec![(job.number_of(text)?, 1.0)]);
    let ends = match job.has("bsrange") {
        true => {
            // Reads, writes and discards may also be separated by slashes.
            let text = job.text("bsrange").unwrap_or_default().replace('/', ",");
            let all = super::values::triple(&text).and_then(|parts| {
                let [read, write, discard] = parts.map(|part| part.map(|text| ends(job, &text)).transpose());
                Ok([read?, write?, discard?])
            });
            all.map_err(|why| job.error("bsrange", &why))?
        }
        false => [None; 3],
    };
    let ranges = ends.map(|ends| ends.map(range).transpose());
    let [read, write, discard] = match (job.has("bssplit"), job.has("bsrange")) {
        (true, has_range) => {
            let is_bounded = has_range && job.is_later("bsrange", "bssplit");
            let [read, write, discard] = job.triple("bssplit", |text| split(job, text))?;
            let bounded = |split: Option<Vec<(u64, f64)>>, ends: Option<(u64, u64)>| {
                split.map(|split| bounded(split, ends.filter(|_| is_bounded))).transpose()
            };
            [bounded(read, ends[0]), bounded(write, ends[1]), bounded(discard, ends[2])]
                .map(|sizes| sizes.map_err(|why| job.error("bssplit", &why)))
        }
        (false, true) => {
            ranges.map(|sizes| Ok(sizes.map_err(|why| job.error("bsrange", &why))?.map(DirectionSizes::of)))
        }
        (false, false) => job.triple("bs", one)?.map(|sizes| Ok(sizes.map(DirectionSizes::of))),
    };
    let or_default = |sizes: Option<DirectionSizes>| sizes.unwrap_or_else(|| DirectionSizes::of(Sizes::one(4096)));
    Ok([or_default(read?), or_default(write?), or_default(discard?)])
}

/// Sizes as fio issues them: multiples of the least one, up to the largest one.
fn bounded(mut split: Vec<(u64, f64)>, ends: Option<(u64, u64)>) -> Result<DirectionSizes, String> {
    // In fio's order, in the place of a size that does not fit comes the next one that does.
    split.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let drawn = || split.iter().filter(|(_, weight)| *weight > 0.0).map(|(size, _)| *size);
    // Those that are never drawn count as well.
    let all = || split.iter().map(|(size, _)| *size);
    let of_split = (all().min().unwrap_or(4096), all().max().unwrap_or(4096));
    let (least, largest) = ends.unwrap_or(of_split);
    if least == largest {
        return Ok(DirectionSizes::of(Sizes::new(vec![(least, 1.0)])?));
    }
    if least == 0 {
        return Err("a size is 0".into());
    }
    if let Some(small) = drawn().find(|size| *size < least) {
        return Err(format!("{small} bytes are less than the least size of bsrange, with which fio ends the job"));
    }
    let as_issued = |size: u64| (size / least * least).min(largest);
    let sizes = Sizes::new(split.into_iter().map(|(size, weight)| (as_issued(size), weight)).collect())?;
    Ok(DirectionSizes { sizes, least })
}

/// fio's largest size of all directions, in bytes.
pub(super) fn largest(job: &Job) -> Result<u64, String> {
    Ok(sizes(job)?.iter().map(|of| of.sizes.largest()).max().unwrap_or(4096))
}

/// More sizes than this would make the text too long to read.
const MAX_SIZES: u64 = 4096;

/// The ends of `4k-64k`.
fn ends(job: &Job, text: &str) -> Result<(u64, u64), String> {
    let Some((one, other)) = text.split_once(['-', ':']) else {
        return Err(format!("`{text}` is not a range like 4k-64k"));
    };
    let (one, other) = (job.number_of(one.trim())?, job.number_of(other.trim())?);
    if one.min(other) == 0 { Err("the smallest size is 0".into()) } else { Ok((one.min(other), one.max(other))) }
}

/// Multiples of the smallest size, each as often.
fn range((smallest, largest): (u64, u64)) -> Result<Sizes, String> {
    let count = largest.div_ceil(smallest);
    if count > MAX_SIZES {
        return Err(format!("{count} sizes, more than {MAX_SIZES}; use a larger smallest size, or bssplit"));
    }
    // fio draws from the smallest to the sum of both, and rounds down; what is above the largest becomes it.
    let weight = |number: u64| (smallest.min(largest - (number - 1) * smallest)) as f64 / smallest as f64;
    Sizes::new((1..=count).map(|number| ((number * smallest).min(largest), weight(number))).collect())
}

/// `4k/10:64k/50:32k`: sizes with percentages; those without one share the rest.
fn split(job: &Job, text: &str) -> Result<Vec<(u64, f64)>, String> {
    let (mut all, mut open, mut total) = (Vec::new(), 0_u32, 0.0);
    for part in text.split(':').filter(|part| !part.is_empty()) {
        let (size, percent) = part.split_once('/').unwrap_or((part, ""));
        let size = job.number_of(size.trim())?;
        let percent = match percent.trim() {
            "" => None,
            text => Some(
                text.parse::<f64>()
                    .ok()
                    .filter(|p| (0.0..=100.0).contains(p))
                    .ok_or_else(|| format!("`{text}` is not a percentage"))?,
            ),
        };
        total += percent.unwrap_or(0.0);
        open += u32::from(percent.is_none());
        all.push((size, percent));
    }
    if total > 100.0 + 1e-9 {
        return Err(format!("the percentages add up to {total}"));
    }
    if open == 0 && total < 100.0 - 1e-9 {
        return Err(format!("the percentages add up to {total}, not 100"));
    }
    let rest = (100.0 - total) / f64::from(open.max(1));
    Ok(all.into_iter().map(|(size, percent)| (size, percent.unwrap_or(rest))).collect())
}
