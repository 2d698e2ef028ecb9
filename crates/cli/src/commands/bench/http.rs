//! A cheap load generator, so that it does not measure itself: one socket, one request at a time. It
//! scans the head of the answer for status and length only.

use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// The bytes of a POST.
pub(super) fn post(path: &str, body: &str) -> Vec<u8> {
    post_as(None, path, body)
}

/// The same with a token.
pub(super) fn post_as(token: Option<&str>, path: &str, body: &str) -> Vec<u8> {
    let token = token.map(|token| format!("authorization: Bearer {token}\r\n"));
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{}\
         content-length: {}\r\n\r\n",
        token.unwrap_or_default(),
        body.len()
    );
    let mut request = head.into_bytes();
    request.extend_from_slice(body.as_bytes());
    request
}

/// The bytes of a GET.
pub(super) fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes()
}

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("cannot reach the server")?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(16 * 1024) })
    }

    /// Sends a request and reads the whole answer, whose body it returns; anything but 200 and 201
    /// is an error.
    pub(super) async fn send(&mut self, request: &[u8]) -> anyhow::Result<&[u8]> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let body = loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("the server closed the connection");
            }
            let Some(head) = find(&self.buffer, b"\r\n\r\n") else { continue };
            let length = content_length(&self.buffer[..head])?;
            if self.buffer.len() >= head + 4 + length {
                break head + 4;
            }
        };
        if !matches!(self.buffer.get(..12), Some(b"HTTP/1.1 200" | b"HTTP/1.1 201")) {
            bail!("unexpected answer: {}", String::from_utf8_lossy(&self.buffer));
        }
        Ok(&self.buffer[body..])
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

fn content_length(head: &[u8]) -> anyhow::Result<usize> {
    let name = b"content-length: ";
    let start = find(head, name).context("an answer without a length")? + name.len();
    let digits = head[start..].iter().take_while(|byte| byte.is_ascii_digit());
    Ok(digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0')))
}
