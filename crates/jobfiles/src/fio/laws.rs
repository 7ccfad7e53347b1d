//! The distributions of random positions.

use super::job::Job;

/// The distribution of random positions of a direction, as in a program; `None` if it is uniform.
pub(super) fn law(job: &Job, direction: usize) -> Result<Option<String>, String> {
    let Some(text) = job.text("random_distribution") else { return Ok(None) };
    let parts: Vec<&str> = text.split(',').collect();
    let part = parts[direction.min(parts.len() - 1)].trim();
    let (kind, values) = part.split_once(':').unwrap_or((part, ""));
    let wrong = |why: &str| Err(job.error("random_distribution", why));
    let number = || values.parse::<f64>().ok().filter(|value| *value > 0.0 && value.is_finite());
    if values.contains(':') && kind != "zoned" && kind != "zoned_abs" {
        return wrong("a centre (the second number); remove it");
    }
    match (kind, number()) {
        ("random", _) | ("zoned" | "zoned_abs", _) => Ok(None),
        ("zipf", Some(theta)) => Ok(Some(format!("zipf exponent={theta} ranks=hashed"))),
        ("zipf", None) => wrong("its theta is missing or not above zero, as in zipf:1.2"),
        ("pareto", Some(power)) if power < 1.0 => {
            // The share of requests that the share `power` of the positions does not have.
            let percent = |share: f64| (share * 1e11).round() / 1e9;
            Ok(Some(format!("self-similar share={}% space={}% ranks=hashed", percent(1.0 - power), percent(power))))
        }
        ("pareto", _) => wrong("its power is missing or not between 0 and 1, as in pareto:0.2"),
        ("normal" | "gauss", Some(percent)) if percent <= 100.0 => {
            // fio adds the mean of twelve uniform numbers, whose deviation is a twelfth, and a uniform number whose width is
            // the percentage.
            let deviation = (1.0 / 144.0 + (percent / 100.0).powi(2) / 12.0).sqrt();
            Ok(Some(format!("normal deviation={}% placement=hashed", (deviation * 1e5).round() / 1e3)))
        }
        ("normal" | "gauss", _) => wrong("its deviation is missing or not a percentage, as in normal:10"),
        _ => wrong("unknown; it is random, zipf:THETA, pareto:POWER, normal:PERCENT, zoned:... or zoned_abs:..."),
    }
}

/// Zones of a job's region, in order: the share of requests, and the zone's share or its bytes.
pub(super) enum Zones {
    None,
    Shares(Vec<(f64, f64)>),
    Bytes(Vec<(f64, f64)>),
}

/// `zoned:60/10:30/20:8/30:2/40`: percentages of requests and of the region, or with `zoned_abs` its bytes.
pub(super) fn zones(job: &Job, direction: usize) -> Result<Zones, String> {
    let text = job.text("random_distribution").unwrap_or_default();
    let Some((kind @ ("zoned" | "zoned_abs"), list)) = text.split_once(':') else { return Ok(Zones::None) };
    let is_bytes = kind == "zoned_abs";
    let wrong = |why: &str| Err(job.error("random_distribution", why));
    let lists: Vec<&str> = list.split(',').collect();
    let list = lists[direction.min(lists.len() - 1)];
    let mut zones = Vec::new();
    for part in list.split(':').filter(|part| !part.is_empty()) {
        let (access, size) = part.split_once('/').unwrap_or((part, ""));
        let percent = |text: &str| text.trim().parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p));
        let size = match (size.trim(), is_bytes) {
            ("", _) => None,
            (size, true) => Some(job.number_of(size).map_err(|why| job.error("random_distribution", &why))? as f64),
            (size, false) => match percent(size) {
                None => return wrong(&format!("`{part}` is not a share of the requests and of the size, as in 60/10")),
                share => share.map(|share| share / 100.0),
            },
        };
        let access = match access.trim() {
            "" => None,
            text => match percent(text) {
                None => return wrong(&format!("`{part}` is not a share of the requests and a size, as in 60/10")),
                access => access,
            },
        };
        zones.push((access, size));
    }
    let (known, open) =
        (zones.iter().filter_map(|zone| zone.0).sum::<f64>(), zones.iter().filter(|zone| zone.0.is_none()).count());
    let rest = ((100.0 - known) / open.max(1) as f64).max(0.0);
    let (size, open_size) =
        (zones.iter().filter_map(|zone| zone.1).sum::<f64>(), zones.iter().filter(|zone| zone.1.is_none()).count());
    if zones.is_empty() || known > 100.0 + 1e-9 || (!is_bytes && size > 1.0 + 1e-9) {
        return wrong("no zones, or more than 100 %");
    }
    if is_bytes && open_size > 0 {
        return wrong("a zone without its size; write it");
    }
    let rest_size = ((1.0 - size) / open_size.max(1) as f64).max(0.0);
    let zones = zones.into_iter().map(|(access, size)| (access.unwrap_or(rest), size.unwrap_or(rest_size))).collect();
    Ok(if is_bytes { Zones::Bytes(zones) } else { Zones::Shares(zones) })
}
