//! A small HTTP server for `--metrics`: GET and HEAD of one page, a connection at a time for each.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The longest head of a request.
const MAX_HEAD: usize = 16 * 1024;
/// How long a client may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most clients at a time.
const MAX_CLIENTS: usize = 8;

/// The page, of a client's header `Accept`: its media type and content.
pub type Page = Arc<dyn Fn(&str) -> (&'static str, Vec<u8>) + Send + Sync>;

/// Serves until it is dropped.
pub struct Server {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves at an address; `names` are those, beside addresses and `localhost`, by which clients may know this machine.
    pub fn start(listener: TcpListener, names: Vec<String>, page: Page) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let names: Arc<[String]> = names.into();
        let thread = thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            let clients = Arc::new(AtomicUsize::new(0));
            for client in listener.incoming() {
                if seen.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(client) = client else { continue };
                if clients.fetch_add(1, Ordering::Relaxed) >= MAX_CLIENTS {
                    clients.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let (names, page, clients) = (Arc::clone(&names), Arc::clone(&page), Arc::clone(&clients));
                let served = thread::Builder::new().name("scrape".to_owned()).spawn({
                    let clients = Arc::clone(&clients);
                    move || {
                        // A client that is gone does not matter.
                        let _ = serve(&client, &names, &page);
                        clients.fetch_sub(1, Ordering::Relaxed);
                    }
                });
                if served.is_err() {
                    clients.fetch_sub(1, Ordering::Relaxed);
                }
            }
        })?;
        Ok(Self { address, over, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Ends the wait for a client.
        let mut to = self.address;
        if to.ip().is_unspecified() {
            to.set_ip(if to.is_ipv4() { IpAddr::from([127, 0, 0, 1]) } else { IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]) });
        }
        if TcpStream::connect_timeout(&to, Duration::from_secs(1)).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn serve(client: &TcpStream, names: &[String], page: &Page) -> io::Result<()> {
    let head = read_head(client)?;
    let Some(request) = Request::parse(&head) else {
        return answer(client, "400 Bad Request", "text/plain", b"", false);
    };
    let is_head = request.method == "HEAD";
    let refuse = |status: &str, why: &str| answer(client, status, "text/plain; charset=utf-8", why.as_bytes(), is_head);
    match request.host {
        None => return refuse("400 Bad Request", "a header Host is missing\n"),
        Some(host) if !is_known(host, names) => {
            return refuse("403 Forbidden", "this host name is not known here: use an address or localhost\n");
        }
        Some(_) => {}
    }
    if !matches!(request.method, "GET" | "HEAD") {
        return refuse("405 Method Not Allowed", "only GET and HEAD\n");
    }
    match request.path {
        "/metrics" => {
            let (media_type, content) = page(request.accept);
            answer(client, "200 OK", media_type, &content, is_head)
        }
        "/" => refuse("200 OK", "iosonar: see /metrics\n"),
        _ => refuse("404 Not Found", "see /metrics\n"),
    }
}

/// Up to the empty line, which ends it.
fn read_head(mut client: &TcpStream) -> io::Result<String> {
    let (begun, mut head, mut part) = (Instant::now(), Vec::new(), [0; 1024]);
    client.set_write_timeout(Some(PATIENCE))?;
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = PATIENCE.checked_sub(begun.elapsed()).filter(|left| !left.is_zero());
        client.set_read_timeout(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
        let length = client.read(&mut part)?;
        head.extend(&part[..length]);
        if length == 0 || head.len() > MAX_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    String::from_utf8(head).map_err(|_| io::ErrorKind::InvalidData.into())
}

fn answer(mut client: &TcpStream, status: &str, media_type: &str, content: &[u8], is_head: bool) -> io::Result<()> {
    let mut all = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        content.len()
    )
    .into_bytes();
    if !is_head {
        all.extend(content);
    }
    client.write_all(&all)
}

/// What matters of a request.
struct Request<'a> {
    method: &'a str,
    path: &'a str,
    host: Option<&'a str>,
    accept: &'a str,
}

impl<'a> Request<'a> {
    fn parse(head: &'a str) -> Option<Self> {
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if !version.starts_with("HTTP/1.") || words.next().is_some() {
            return None;
        }
        let path = target.split('?').next()?;
        let mut request = Self { method, path, host: None, accept: "" };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            match name.to_ascii_lowercase().as_str() {
                // Several would let a proxy and this server see different ones.
                "host" if request.host.is_some() => return None,
                "host" => request.host = Some(value.trim()),
                "accept" => request.accept = value.trim(),
                _ => {}
            }
        }
        Some(request)
    }
}

/// Whether a client may call this machine so. A page in a browser may make its own name lead here, but not an address.
fn is_known(host: &str, names: &[String]) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let is_address = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_ok(),
        None => name.parse::<std::net::Ipv4Addr>().is_ok(),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    is_address || name == "localhost" || names.iter().any(|known| known.eq_ignore_ascii_case(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_known_names_are_hosts() {
        let names = ["db7".to_owned(), "db7.example.org".to_owned()];
        for host in [
            "127.0.0.1:9464",
            "127.0.0.1",
            "[::1]:9464",
            "[::1]",
            "localhost:1",
            "LOCALHOST",
            "db7:9464",
            "DB7.example.org",
        ] {
            assert!(is_known(host, &names), "{host}");
        }
        let unknown = [
            "evil.example",
            "127.0.0.1.evil.example:9464",
            "localhost.evil.example",
            "",
            "[::1",
            "db8",
            "[evil]:1",
            "127.0.0.1:x",
        ];
        for host in unknown {
            assert!(!is_known(host, &names), "{host}");
        }
    }

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn requests_get_the_page_or_the_reason_why_not() {
        let page: Page = Arc::new(|accept| ("text/x", format!("page for {accept}\n").into_bytes()));
        let server = Server::start(TcpListener::bind("127.0.0.1:0").unwrap(), Vec::new(), page).unwrap();
        let ask = |request: &str| ask(server.address(), request);
        let good = ask("GET /metrics?x HTTP/1.1\r\nhost: 127.0.0.1:1\r\nACCEPT: a/b\r\n\r\n");
        assert!(
            good.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/x\r\n") && good.ends_with("\r\n\r\npage for a/b\n"),
            "{good}"
        );
        let head = ask("HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(head.contains("Content-Length: 10\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        for (request, status) in [
            ("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403"),
            ("GET /metrics HTTP/1.1\r\n\r\n", "400"),
            ("GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", "400"),
            ("GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"),
            ("nonsense\r\n\r\n", "400"),
        ] {
            assert!(ask(request).starts_with(&format!("HTTP/1.1 {status} ")), "{request}");
        }
    }
}
