//! How many connections there are at a time.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use common::Place;

/// As many as the server accepts.
const MOST: usize = 128;

#[test]
fn one_connection_too_many_waits_for_its_turn() {
    let place = Place::empty();
    let served = place.serve("");
    let mut others: Vec<_> = (0..MOST).map(|_| served.connect()).collect();
    let mut last = served.connect();
    let request =
        format!("GET /viewer.css HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n", served.port);
    last.write_all(request.as_bytes()).unwrap();
    last.set_read_timeout(Some(Duration::from_millis(700))).unwrap();
    let mut first = [0; 12];
    let waits = last.read_exact(&mut first).unwrap_err();
    assert!(matches!(waits.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{waits}");
    // Somebody leaves.
    others.pop();
    last.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    last.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
}
