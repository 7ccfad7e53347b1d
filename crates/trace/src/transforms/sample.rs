//! A random part of the requests.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};

use super::counted::{Counted, PerRow, Step};
use super::{Built, Needs, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "sample",
        about: "Keeps a random part of the requests",
        details: "by=region keeps all requests of some regions and none of the others: data that is written is still\n\
                  read back, and working sets shrink in proportion. Requests without a length are drawn one by one.",
        params: &[
            ParamSpec {
                name: "share",
                takes: ParamType::Share,
                default: ParamDefault::Value("10%"),
                help: "how much to keep",
            },
            ParamSpec {
                name: "by",
                takes: ParamType::Word(&["request", "region"]),
                default: ParamDefault::Value("request"),
                help: "draw single requests, or whole regions",
            },
            ParamSpec {
                name: "region",
                takes: ParamType::Sectors,
                default: ParamDefault::Value("1M"),
                help: "size of a region",
            },
            ParamSpec { name: "seed", takes: ParamType::Count, default: ParamDefault::Value("1"), help: "random seed" },
        ],
        example: "sample share=5% by=region",
    },
    needs: Needs::Rows,
    length: kept,
    build,
};

fn build(settings: &Settings) -> Built {
    let (share, seed, region) = (settings.number("share"), settings.count("seed"), settings.sectors("region").0);
    if region == 0 {
        return Err("a region must have at least one sector".into());
    }
    let by_region = settings.text("by") == "region";
    Ok(Box::new(move |rows| {
        let mut number = 0;
        Ok(Counted::on_same_devices(PerRow::new(rows, move |request| {
            let has_region = by_region && !request.is_empty();
            let subject = if has_region { request.sector.0 / region } else { number };
            number += 1;
            let mut hasher = SipHasher13::new_with_keys(seed, u64::from(request.device.0));
            hasher.write_u64(subject);
            if by_region && !has_region {
                // Independent of the draw for the region with the same number.
                hasher.write_u8(1);
            }
            // The upper 53 bits, as a number in [0, 1).
            let chance = (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64;
            if chance < share { Step::Emit(request) } else { Step::Skip }
        })))
    }))
}
