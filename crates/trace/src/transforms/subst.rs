//! Writes for reads, or the other way round.

use crate::model::request::{Flags, Op};
use crate::model::units::{Sector, Sectors};
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings, did_you_mean};

use super::counted::{Counted, PerRow, Step};
use super::{Built, Needs, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "subst",
        about: "Replaces one operation by another: reads by writes, for example",
        details: "R and W stand for read and write. What becomes a flush loses its place and length. A flush has none, and\n\
                  becomes nothing else. Of the flags only `sync` and `metadata` are kept: the others belong to\n\
                  the operation that is replaced.",
        params: &[
            ParamSpec {
                name: "from",
                takes: ParamType::Text,
                unset: ParamDefault::Default("R"),
                help: "the operation to replace",
            },
            ParamSpec {
                name: "to",
                takes: ParamType::Text,
                unset: ParamDefault::Default("W"),
                help: "what it becomes",
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
        return Err(format!("a flush has no place and no length that a {} could have", to.name()));
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
