//! Which addresses and ports are dialled. No test dials a private network: loopback stands in for it,
//! with 127.0.0.2 as what is allowed and 127.0.0.1 as what is not.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use duly_worker::handlers::Http;
use duly_worker::{Guard, HandlerError};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use serde_json::{Value, json};

use crate::support::{NO_CONTENT, Server, code, exchange, run};

/// Answers look-ups from a list, each once, and then not at all.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<VecDeque<Vec<IpAddr>>>>);

impl Names {
    fn of(answers: &[&[&str]]) -> Self {
        let ip = |text: &&str| text.parse().unwrap();
        let answers = answers.iter().map(|answer| answer.iter().map(ip).collect());
        Self(Arc::new(Mutex::new(answers.collect())))
    }

    fn left(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Resolve for Names {
    fn resolve(&self, _: Name) -> Resolving {
        let answer = self.0.lock().unwrap().pop_front();
        Box::pin(async move {
            let answer = answer.ok_or("asked more than once")?.into_iter();
            let addresses: Addrs = Box::new(answer.map(|ip| SocketAddr::new(ip, 0)));
            Ok(addresses)
        })
    }
}

/// Dials 127.0.0.2 and nothing else of this machine.
fn guard() -> Guard {
    Guard::new(vec!["127.0.0.2/32".parse().unwrap()])
}

/// A server on the allowed address, and one on the same port of the address that is not.
async fn neighbours() -> (Server, Server, u16) {
    loop {
        let allowed = Server::on("127.0.0.2:0").await;
        let port = allowed.listener.local_addr().unwrap().port();
        if let Ok(listener) = tokio::net::TcpListener::bind(("127.0.0.1", port)).await {
            let url = format!("http://127.0.0.1:{port}");
            return (allowed, Server { listener, url }, port);
        }
    }
}

fn assert_refused(result: Result<Value, HandlerError>, case: &str) {
    let (decision, reason, message) = code(result);
    assert_eq!((decision, reason.as_str()), ("fail", "ADDRESS_REFUSED"), "{case}: {message}");
}

#[tokio::test]
async fn s12_refused_addresses_are_never_dialled() {
    let server = Server::start().await;
    let port = server.listener.local_addr().unwrap().port();
    let http = Http::new(Guard::new(vec![]));
    for host in [
        "127.0.0.1",
        "127.0.0.1.",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0x7f.1",
        "127.1",
        "0",
        "１２７.0.0.1",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "10.0.0.1",
        "192.168.1.1",
        "224.0.0.1",
        "255.255.255.255",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "localhost",
        "LOCALHOST",
        "ｌocalhost",
    ] {
        let url = format!("http://{host}:{port}/");
        let (decision, reason, message) = code(run(&http, json!({"url": url})).await);
        assert_eq!((decision, reason.as_str()), ("fail", "ADDRESS_REFUSED"), "{host}: {message}");
        assert!(message.contains("--allow-net"), "{message}");
    }
    assert!(!server.was_dialled());
}

#[tokio::test]
async fn a_name_leads_to_the_addresses_that_are_permitted() {
    let nets = ["127.0.0.0/8", "::1/128"].map(|net| net.parse().unwrap());
    let (server, http) = (Server::start().await, Http::new(Guard::new(nets.into())));
    let url = server.url.replace("127.0.0.1", "localhost");
    let (_, result) =
        tokio::join!(server.answer(NO_CONTENT.as_bytes()), run(&http, json!({"url": url})));
    assert_eq!(result.unwrap()["status"], 204);
}

#[tokio::test]
async fn s13_an_address_is_checked_at_every_connection() {
    let (allowed, private, port) = neighbours().await;
    let names = Names::of(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let http = Http::resolving(guard(), Arc::new(names.clone()));
    let payload = json!({"url": format!("http://rebound.example:{port}/")});
    let close = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
    let (_, first) = tokio::join!(allowed.answer(close.as_bytes()), run(&http, payload.clone()));
    assert_eq!(first.unwrap()["status"], 204);
    assert_eq!(names.left(), 1, "what was checked was dialled without another look-up");
    assert_refused(run(&http, payload).await, "the second answer");
    assert_eq!(names.left(), 0);
    assert!(!private.was_dialled());
}

#[tokio::test]
async fn s13_names_with_any_refused_address_are_not_called() {
    let (allowed, private, port) = neighbours().await;
    for answer in [
        &["127.0.0.2", "127.0.0.1"][..],
        &["127.0.0.1", "127.0.0.2"],
        &["127.0.0.2", "::1"],
        &["127.0.0.1"],
        &["::ffff:127.0.0.1"],
        &["::ffff:127.0.0.2", "127.0.0.1"],
        &["64:ff9b::127.0.0.1"],
        &["127.0.0.2", "169.254.169.254"],
    ] {
        for scheme in ["http", "https"] {
            let http = Http::resolving(guard(), Arc::new(Names::of(&[answer])));
            let url = format!("{scheme}://mixed.example:{port}/");
            assert_refused(run(&http, json!({"url": url})).await, &format!("{scheme} {answer:?}"));
        }
    }
    assert!(!allowed.was_dialled() && !private.was_dialled());
}

#[tokio::test]
async fn s13_a_name_for_a_private_host_is_refused_on_every_port() {
    let (_, private, port) = neighbours().await;
    // The listed ports have a client of their own.
    for ports in [vec![port], vec![80]] {
        let names = Names::of(&[&["127.0.0.1"]]);
        let http = Http::resolving(guard().with_ports(ports), Arc::new(names));
        let url = format!("http://alias.example:{port}/");
        assert_refused(run(&http, json!({"url": url})).await, "an alias");
    }
    assert!(!private.was_dialled());
}

#[tokio::test]
async fn s14_ports_of_public_addresses_are_those_of_the_list() {
    for port in [21, 22, 25, 587, 6379, 11211] {
        let names = Names::of(&[&["8.8.8.8", "2606:4700::1111"]]);
        let http = Http::resolving(Guard::new(vec![]), Arc::new(names));
        for host in ["public.example", "8.8.8.8", "[2606:4700::1111]"] {
            let (decision, reason, message) =
                code(run(&http, json!({"url": format!("http://{host}:{port}/")})).await);
            assert_eq!((decision, reason.as_str()), ("fail", "ADDRESS_REFUSED"), "{message}");
            assert!(message.contains("--allow-port"), "{message}");
        }
    }
}

#[tokio::test]
async fn s14_a_redirect_is_not_followed() {
    let target = Server::start().await;
    for to in [&target.url, "file:///etc/passwd", "gopher://127.0.0.1/", "//127.0.0.1:1/", "/again"]
    {
        let answer = format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
        let (_, result) = exchange(json!({}), &answer).await;
        let expected = ("fail", "HTTP_STATUS".to_owned(), "the answer was 302 Found".to_owned());
        assert_eq!(code(result), expected, "{to}");
    }
    assert!(!target.was_dialled());
}
