//! `--metrics`: the numbers of a run for Prometheus, while it goes on.

mod families;
mod formats;
mod protobuf;
mod run;
mod server;
#[cfg(test)]
mod tests;

use std::net::{TcpListener, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};

use self::families::families;
use self::formats::Format;
pub use self::run::Run;
use self::server::{Page, Server};
use crate::console::status;

/// Where to serve: a port of this machine alone, or of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// As given, without brackets; `None` for this machine alone.
    host: Option<String>,
    port: u16,
}

impl std::str::FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is no address: give a port like 9464, or an address with a port like 127.0.0.1:9464");
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (Some(host), port),
            None => (None, text),
        };
        let port = port.parse().map_err(|_| wrong())?;
        let host = match host {
            None | Some("") => None,
            Some(host) => match host.strip_prefix('[').map(|host| host.strip_suffix(']')) {
                Some(inner) => Some(inner.ok_or_else(wrong)?),
                None if host.contains(':') => return Err(wrong()),
                None => Some(host),
            },
        };
        Ok(Self { host: host.map(str::to_owned), port })
    }
}

/// Serves the numbers of one run after the other.
pub struct Metrics {
    run: Arc<Mutex<Option<Run>>>,
    _server: Server,
}

impl Metrics {
    /// Begins to serve, and says where.
    pub fn start(address: &Address) -> Result<Self> {
        let host = address.host.as_deref().unwrap_or("127.0.0.1");
        let what = || format!("--metrics: cannot listen at port {} of {host}", address.port);
        let places: Vec<_> = (host, address.port).to_socket_addrs().with_context(what)?.collect();
        let is_open = !places.iter().all(|place| place.ip().is_loopback());
        let listener = TcpListener::bind(&*places).with_context(what)?;
        let run = Arc::new(Mutex::new(None));
        let shown: Arc<Mutex<Option<Run>>> = Arc::clone(&run);
        let page: Page = Arc::new(move |accept| {
            let format = Format::accepted(accept);
            let families = shown.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(families);
            (format.media_type(), format.encode(families.unwrap_or_default()).unwrap_or_default())
        });
        let mut names: Vec<String> = address.host.iter().cloned().collect();
        if is_open {
            names.extend(host_names());
        }
        let server = Server::start(listener, names, page).with_context(what)?;
        status!("metrics at http://{}/metrics", server.address());
        if is_open {
            status!("warning: the metrics are open to other machines: they name devices and files");
        }
        Ok(Self { run, _server: server })
    }

    /// Shows this run from now on.
    pub fn show(&self, run: Run) {
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = Some(run);
    }
}

/// The name of this machine, with and without its domain.
fn host_names() -> Vec<String> {
    let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let short = node.split('.').next().unwrap_or_default().to_owned();
    [node, short].into_iter().filter(|name| !name.is_empty()).collect()
}
