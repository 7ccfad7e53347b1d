//! Copying of rows.

use std::sync::{Arc, Mutex};

use iosonar_trace::{Device, DeviceId, Kind, Metadata, Nanos, Op, Request, Sector, Sectors};

use super::*;

/// A load with a request for each device, where each device appears with its request.
struct Late(u16, Metadata);

impl Reader<Request> for Late {
    fn next(&mut self) -> iosonar_trace::Result<Option<Request>> {
        let device = self.1.counts.requests as u16;
        if device == self.0 {
            return Ok(None);
        }
        if device > 0 {
            self.1.devices.push(Device { name: device.to_string(), sectors: None });
        }
        let request = Request::new(Nanos::ZERO, Op::Read, Sector(0), Sectors(8));
        self.1.count_request(&request);
        Ok(Some(Request { device: DeviceId(device), ..request }))
    }

    fn metadata(&self) -> &Metadata {
        &self.1
    }
}

/// Collects the name under which the writer knows each request's device.
struct Noting(Vec<String>, Arc<Mutex<Vec<String>>>);

impl Writer<Request> for Noting {
    fn write(&mut self, row: &Request) -> iosonar_trace::Result<()> {
        self.1.lock().unwrap().push(self.0[usize::from(row.device.0)].clone());
        Ok(())
    }

    fn learn(&mut self, known: &Metadata) {
        self.0 = known.devices.iter().map(|device| device.name.clone()).collect();
    }

    fn checkpoint(&mut self, _: &Metadata) -> iosonar_trace::Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>, _: &Metadata) -> iosonar_trace::Result<ConversionLoss> {
        Ok(ConversionLoss::default())
    }
}

#[test]
fn writers_learn_devices_before_their_rows() {
    let noted = Arc::default();
    let writer = Noting(Vec::new(), Arc::clone(&noted));
    let devices = 3 * (BATCH_BYTES / size_of::<Request>()) as u16;
    let metadata = Metadata::new(Kind::Load, "test");
    let first = metadata.devices[0].name.clone();
    let rows = Late(devices, metadata);
    copy("a test", Box::new(rows), Box::new(writer), |_| Ok(())).unwrap();
    let expected = (0..devices).map(|device| if device == 0 { first.clone() } else { device.to_string() });
    assert!(expected.eq(noted.lock().unwrap().iter().cloned()));
}
