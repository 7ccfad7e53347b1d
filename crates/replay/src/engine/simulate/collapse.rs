//! Queue collapse: with more than `beyond` requests in the device, the service time of each arriving one is multiplied by
//! 1 + growth × (requests in the device − beyond). With s servers, the throughput is best at a depth from s to `beyond`.

use iosonar_trace::params::{Key, Section, Takes};

use super::law::{Arrival, Law, Passage};
use super::values::{Count, Factor};

/// Settings of the collapse.
#[derive(Clone, Debug, PartialEq)]
pub struct CollapseSettings {
    /// The highest number of requests in the device without a loss.
    pub beyond: Count,
    /// What each further request adds to the factor.
    pub growth: Factor,
}

impl CollapseSettings {
    pub const KEYS: &[Key] = &[
        Key::new("beyond", Takes::Number, "The highest number of requests in the device without a loss").required(),
        Key::new("growth", Takes::Number, "What each further request adds to the factor of the service time")
            .required(),
    ];

    /// Reads its table.
    ///
    /// # Errors
    /// With the line and the key.
    pub fn read(section: &Section<'_, '_>) -> Result<Self, String> {
        let (beyond, growth) = (section.required("beyond", Count::parse)?, section.required("growth", Factor::parse)?);
        Ok(Self { beyond, growth })
    }
}

/// Multiplies service times.
#[derive(Debug)]
pub struct Collapse(pub CollapseSettings);

impl Law for Collapse {
    fn apply(&mut self, request: &Arrival, passage: &mut Passage) {
        let excess = request.in_device.saturating_sub(self.0.beyond.0 as usize);
        passage.factor *= 1.0 + self.0.growth.0 * excess as f64;
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::Op;

    use super::super::testing::{arrival, pass};
    use super::*;

    #[test]
    fn service_times_grow_beyond_the_depth() {
        let mut law = Collapse(CollapseSettings { beyond: Count(8), growth: Factor(0.5) });
        let mut factor = |in_device| pass(&mut law, &Arrival { in_device, ..arrival(0, Op::Read, 0) }).factor;
        assert_eq!([1, 8, 9, 10, 12].map(&mut factor), [1.0, 1.0, 1.5, 2.0, 3.0]);
    }
}
