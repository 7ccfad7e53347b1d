//! Requests as bytes of constant length, for temporary files.

use std::io;

use crate::error::{Error, temporary_file};
use crate::model::request::{Comm, DeviceId, Flags, Op, Request};
use crate::model::units::{Nanos, Sector, Sectors};

/// An I/O error on a temporary file.
pub fn error(source: io::Error) -> Error {
    Error::io(temporary_file(), source)
}

/// Bytes of a request.
pub const PACKED_BYTES: usize = 72;

/// Converts a request into bytes.
pub fn pack(request: &Request) -> [u8; PACKED_BYTES] {
    let mut bytes = [0; PACKED_BYTES];
    let known = u8::from(request.latency.is_some())
        | u8::from(request.queued.is_some()) << 1
        | u8::from(request.pid.is_some()) << 2;
    bytes[0..8].copy_from_slice(&request.at.0.to_le_bytes());
    bytes[8..16].copy_from_slice(&request.sector.0.to_le_bytes());
    bytes[16..24].copy_from_slice(&request.sectors.0.to_le_bytes());
    bytes[24..32].copy_from_slice(&request.latency.unwrap_or_default().0.to_le_bytes());
    bytes[32..40].copy_from_slice(&request.queued.unwrap_or_default().0.to_le_bytes());
    bytes[40..44].copy_from_slice(&request.pid.unwrap_or_default().to_le_bytes());
    bytes[44..46].copy_from_slice(&request.device.0.to_le_bytes());
    bytes[46..48].copy_from_slice(&request.flags.0.to_le_bytes());
    bytes[48..64].copy_from_slice(&request.comm.0);
    bytes[64] = request.op as u8;
    bytes[65] = known;
    bytes
}

/// Converts bytes into a request; `None` if they are damaged.
pub fn unpack(bytes: &[u8; PACKED_BYTES]) -> Option<Request> {
    let eight = |at: usize| <[u8; 8]>::try_from(&bytes[at..at + 8]).unwrap_or_default();
    let known = |bit: u8| bytes[65] & bit != 0;
    let time = |at| Nanos(i64::from_le_bytes(eight(at)));
    Some(Request {
        at: time(0),
        sector: Sector(u64::from_le_bytes(eight(8))),
        sectors: Sectors(u64::from_le_bytes(eight(16))),
        latency: known(1).then(|| time(24)),
        queued: known(2).then(|| time(32)),
        pid: known(4).then(|| u32::from_le_bytes([bytes[40], bytes[41], bytes[42], bytes[43]])),
        device: DeviceId(u16::from_le_bytes([bytes[44], bytes[45]])),
        flags: Flags(u16::from_le_bytes([bytes[46], bytes[47]])),
        comm: Comm(bytes[48..64].try_into().ok()?),
        op: Op::from_number(bytes[64])?,
    })
}

#[cfg(test)]
pub mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any request, with a time below 50 ns, so that equal times are frequent.
    pub fn request() -> impl Strategy<Value = Request> {
        (0_i64..50, 0_usize..5, any::<u64>(), any::<u64>(), any::<(u16, u16)>(), any::<[Option<u32>; 3]>(), ".{0,15}")
            .prop_map(|(at, op, sector, sectors, (device, flags), [latency, queued, pid], comm)| Request {
                device: DeviceId(device),
                flags: Flags(flags),
                latency: latency.map(|x| Nanos(x.into())),
                queued: queued.map(|x| Nanos(x.into())),
                pid,
                comm: Comm::new(&comm),
                ..Request::new(Nanos(at), Op::ALL[op], Sector(sector), Sectors(sectors))
            })
    }

    proptest! {
        #[test]
        fn packing_keeps_everything(request in request()) {
            prop_assert_eq!(unpack(&pack(&request)), Some(request));
        }
    }
}
