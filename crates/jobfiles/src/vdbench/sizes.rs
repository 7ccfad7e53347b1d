//! The sizes of requests.

use super::definitions::bytes;
use crate::conversion::Sizes;

/// One size, sizes with percentages, or `(smallest,largest,multiple)`.
pub fn sizes(values: &[String]) -> Result<Sizes, String> {
    match values {
        [one] => Sizes::new(vec![(bytes(one)?, 1.0)]),
        [smallest, largest, multiple] => {
            let (smallest, largest, multiple) = (bytes(smallest)?, bytes(largest)?, bytes(multiple)?);
            let count = largest.saturating_sub(smallest).checked_div(multiple).unwrap_or(u64::MAX).saturating_add(1);
            if smallest > largest || count > 4096 {
                return Err("(smallest, largest, multiple) with at most 4096 sizes".into());
            }
            Sizes::new((0..count).map(|n| (smallest + n * multiple, 1.0)).collect())
        }
        pairs if pairs.len().is_multiple_of(2) => {
            let pair = |pair: &[String]| {
                let percent = pair[1]
                    .trim_end_matches('%')
                    .parse::<f64>()
                    .map_err(|_| format!("`{}` is not a percentage", pair[1]))?;
                Ok((bytes(&pair[0])?, percent))
            };
            let all = pairs.chunks(2).map(pair).collect::<Result<Vec<_>, String>>()?;
            let total: f64 = all.iter().map(|(_, percent)| percent).sum();
            if (total - 100.0).abs() > 1e-6 {
                return Err(format!("the percentages add up to {total}, not 100"));
            }
            Sizes::new(all)
        }
        _ => Err("a size, (size,percent,size,percent ...), or (smallest,largest,multiple)".into()),
    }
}
