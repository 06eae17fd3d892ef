//! A load generator: clients that send images to the server over connections that they keep.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::{Failure, PIXELS, digits};

/// A connection to the server that is kept between requests.
struct Connection(BufReader<TcpStream>);

impl Connection {
    fn open(server: SocketAddr) -> Result<Connection, Failure> {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        Ok(Connection(BufReader::new(stream)))
    }

    /// The status and the body of the answer.
    fn post(&mut self, path: &str, body: &str) -> Result<(u16, String), Failure> {
        let head = "Host: localhost\r\nContent-Type: application/json";
        let request =
            format!("POST {path} HTTP/1.1\r\n{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        self.0.get_mut().write_all(request.as_bytes())?;
        let (mut line, mut length) = (String::new(), 0);
        self.0.read_line(&mut line)?;
        let status = line.split(' ').nth(1).ok_or("no status")?.parse()?;
        while !line.trim().is_empty() {
            line.clear();
            self.0.read_line(&mut line)?;
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok((status, String::from_utf8(body)?))
    }
}

/// What one connection has seen.
#[derive(Default)]
struct Seen {
    latencies: Vec<Duration>,
    right: usize,
    errors: usize,
}

/// Sends one image after the other until the time is over. After an error it goes on with a new connection.
fn visit(server: SocketAddr, images: &[(String, u8)], until: Instant) -> Result<Seen, Failure> {
    let mut connection = Connection::open(server)?;
    let mut seen = Seen::default();
    for (image, label) in images.iter().cycle() {
        let start = Instant::now();
        if start >= until {
            break;
        }
        match connection.post("/predict", image) {
            Ok((200, body)) => {
                seen.latencies.push(start.elapsed());
                let answer: serde_json::Value = serde_json::from_str(&body)?;
                seen.right += usize::from(answer["digit"] == *label);
            }
            other => {
                eprintln!("{other:?}");
                seen.errors += 1;
                connection = Connection::open(server)?;
            }
        }
    }
    Ok(seen)
}

/// Visits the server over several connections, and prints what they saw.
pub fn run(server: SocketAddr, connections: usize, time: Duration) -> Result<(), Failure> {
    let (images, labels) = digits()?;
    let image = |row: &[u8]| serde_json::json!({ "image": row }).to_string();
    let images = images.to_vec::<u8>()?.chunks_exact(PIXELS).map(image).zip(labels.to_vec::<u8>()?).collect();
    let images: Arc<Vec<(String, u8)>> = Arc::new(images);

    let mut connection = Connection::open(server)?;
    for (kind, body) in [("3 pixels", r#"{"image": [1, 2, 3]}"#), ("a word", r#"{"image": "seven"}"#)] {
        let (status, reason) = connection.post("/predict", body)?;
        println!("an image of {kind}: status {status}, {reason}");
    }
    let (start, until) = (Instant::now(), Instant::now() + time);
    let visitors: Vec<_> = (0..connections)
        .map(|_| {
            let images = images.clone();
            thread::spawn(move || visit(server, &images, until))
        })
        .collect();
    let mut all = Seen::default();
    for visitor in visitors {
        let seen = visitor.join().map_err(|_| "a visitor panicked")??;
        all.latencies.extend(seen.latencies);
        all.right += seen.right;
        all.errors += seen.errors;
    }
    let Seen { mut latencies, right, errors } = all;
    let seconds = start.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let count = latencies.len();
    let at = |share: f64| match latencies.get((share * count as f64) as usize).or(latencies.last()) {
        Some(latency) => format!("{:.2} ms", 1e3 * latency.as_secs_f64()),
        None => "none".to_owned(),
    };
    println!("{count} requests over {connections} connections, {:.0} a second", count as f64 / seconds);
    println!("latency: p50 {}, p99 {}, max {}", at(0.5), at(0.99), at(1.0));
    println!("{:.1}% of the digits are right, {errors} errors", 100.0 * right as f64 / count.max(1) as f64);
    if errors > 0 || count == 0 { Err("the load was not served".into()) } else { Ok(()) }
}
