//! Sizes of requests in bytes, with weights.

/// Sizes and their weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes(Vec<(u64, f64)>);

impl Sizes {
    pub fn one(bytes: u64) -> Self {
        Self(vec![(bytes, 1.0)])
    }

    /// # Errors
    /// If there is none, a size is not a number of sectors, or a weight is not above zero.
    pub fn new(mut all: Vec<(u64, f64)>) -> Result<Self, String> {
        all.retain(|(_, weight)| *weight != 0.0);
        for (size, weight) in &all {
            if *size == 0 || size % 512 != 0 {
                return Err(format!("{size} bytes are not a multiple of 512, the size of a sector; use such sizes"));
            }
            if !(*weight > 0.0 && weight.is_finite()) {
                return Err(format!("the share of {} is {weight}; set it above zero", bytes_text(*size)));
            }
        }
        if all.is_empty() { Err("it has no size".into()) } else { Ok(Self(all)) }
    }

    pub fn is_one(&self) -> bool {
        self.0.iter().all(|(size, _)| *size == self.0[0].0)
    }

    /// In bytes.
    pub fn mean(&self) -> f64 {
        let total: f64 = self.0.iter().map(|(_, weight)| weight).sum();
        self.0.iter().map(|(size, weight)| *size as f64 * weight).sum::<f64>() / total
    }

    pub fn smallest(&self) -> u64 {
        self.0.iter().map(|(size, _)| *size).min().unwrap_or(512)
    }

    pub fn largest(&self) -> u64 {
        self.0.iter().map(|(size, _)| *size).max().unwrap_or(512)
    }

    /// The largest length of which all sizes are multiples.
    pub fn unit(&self) -> u64 {
        self.0.iter().fold(0, |unit, (size, _)| greatest_common_divisor(unit, *size))
    }

    /// As in a program: `4k`, `4k:70,64k:30`.
    pub fn text(&self) -> String {
        if self.is_one() {
            return bytes_text(self.0[0].0);
        }
        let parts = self.0.iter().map(|(size, weight)| format!("{}:{weight}", bytes_text(*size)));
        parts.collect::<Vec<_>>().join(",")
    }

    /// For people: `4k`, `4k (70 %) and 64k (30 %)`, `4k to 64k`.
    pub fn phrase(&self) -> String {
        let total: f64 = self.0.iter().map(|(_, weight)| weight).sum();
        match self.0.len() {
            _ if self.is_one() => bytes_text(self.0[0].0),
            2..=4 => {
                let share = |weight: f64| (weight / total * 1000.0).round() / 10.0;
                let parts = self.0.iter().map(|(size, weight)| format!("{} ({} %)", bytes_text(*size), share(*weight)));
                parts.collect::<Vec<_>>().join(", ")
            }
            count => {
                let mean = bytes_text(self.mean().round() as u64);
                format!(
                    "{count} sizes from {} to {} (mean {mean})",
                    bytes_text(self.smallest()),
                    bytes_text(self.largest())
                )
            }
        }
    }
}

pub fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A number of bytes as a program has it, in the largest unit in which it is whole: `4k`, `1G`, `512B`.
pub fn bytes_text(bytes: u64) -> String {
    let units = [(1_u64 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1 << 10, "k")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_mean_and_a_unit() {
        let sizes = Sizes::new(vec![(4096, 3.0), (65536, 1.0), (1024, 0.0)]).unwrap();
        assert_eq!((sizes.mean(), sizes.unit(), sizes.smallest()), (19456.0, 4096, 4096));
        assert_eq!((sizes.text(), sizes.phrase()), ("4k:3,64k:1".into(), "4k (75 %), 64k (25 %)".into()));
        assert!(Sizes::new(vec![(100, 1.0)]).unwrap_err().contains("100 bytes are not a multiple of 512"));
        assert!(Sizes::new(vec![]).is_err() && Sizes::new(vec![(512, -1.0)]).is_err());
    }

    #[test]
    fn bytes_are_written_in_the_largest_whole_unit() {
        for (bytes, text) in
            [(512, "512B"), (0, "0B"), (4096, "4k"), (1536, "1536B"), (3 << 29, "1536M"), (1 << 40, "1T")]
        {
            assert_eq!(bytes_text(bytes), text);
        }
    }
}
