//! Replaces an operation.

use crate::model::request::{Flags, Op};
use crate::model::units::{Sector, Sectors};
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings, did_you_mean};

use super::counted::{Counted, PerRow, Step};
use super::{Built, Needs, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "subst",
        about: "Replaces one operation with another, for example reads with writes",
        details: "R and W stand for read and write. A request that becomes a flush loses its position and length; a\n\
                  flush cannot become anything else. Of the flags only `sync` and `metadata` are kept.",
        params: &[
            ParamSpec {
                name: "from",
                takes: ParamType::Text,
                default: ParamDefault::Value("R"),
                help: "operation to replace",
            },
            ParamSpec {
                name: "to",
                takes: ParamType::Text,
                default: ParamDefault::Value("W"),
                help: "its replacement",
            },
        ],
        example: "subst from=write to=read",
    },
    needs: Needs::Rows,
    length: kept,
    build,
};

fn build(settings: &Settings) -> Built {
    let (from, to) = (op(settings.text("from"))?, op(settings.text("to"))?);
    if from == Op::Flush && to != Op::Flush {
        return Err(format!("a flush cannot become a {}: it has no position and no length", to.name()));
    }
    Ok(Box::new(move |rows| {
        Ok(Counted::on_same_devices(PerRow::new(rows, move |mut request| {
            if request.op == from && from != to {
                request.op = to;
                request.flags = Flags(request.flags.0 & Flags::SYNC.with(Flags::META).0);
                if to == Op::Flush {
                    (request.sector, request.sectors) = (Sector(0), Sectors(0));
                }
            }
            Step::Emit(request)
        })))
    }))
}

fn op(name: &str) -> Result<Op, String> {
    match name {
        "R" | "r" => Ok(Op::Read),
        "W" | "w" => Ok(Op::Write),
        _ => Op::from_name(name).ok_or_else(|| {
            format!("there is no operation `{name}`; {}", did_you_mean(name, Op::ALL.into_iter().map(Op::name)))
        }),
    }
}
