//! Packets and the little-endian values in them.

use std::io;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

pub(crate) const BATCH: u8 = 1;
pub(crate) const RPC: u8 = 3;
const RESPONSE: u8 = 4;
pub(crate) const LOGIN: u8 = 16;
pub(crate) const PRELOGIN: u8 = 18;

const HEADER: usize = 8;
const PACKET: usize = 4096;

/// A message of one or more packets: its type and its payload. `None`: the peer has closed the connection.
pub(crate) async fn read_message(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut payload = Vec::new();
    loop {
        let mut header = [0; HEADER];
        stream.read_exact(&mut header).await.ok()?;
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let start = payload.len();
        payload.resize(start + length - HEADER, 0);
        stream.read_exact(&mut payload[start..]).await.ok()?;
        if header[1] & 1 == 1 {
            return Some((header[0], payload));
        }
    }
}

/// Whether more of the message follows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Message,
    MoreFollows,
}

/// In one write: a packet that waits for the acknowledgement of the one before would make every test slow.
pub(crate) async fn write_message(
    stream: &mut TcpStream,
    payload: &[u8],
    end: End,
) -> io::Result<()> {
    let mut out = Vec::with_capacity(payload.len() + HEADER);
    let mut packets = payload.chunks(PACKET - HEADER).peekable();
    let mut number = 0_u8;
    loop {
        let packet = packets.next().unwrap_or_default();
        let is_last = packets.peek().is_none();
        let ends_the_message = u8::from(is_last && end == End::Message);
        number = number.wrapping_add(1);
        let length =
            u16::try_from(packet.len() + HEADER).expect("below the packet's size").to_be_bytes();
        out.extend([RESPONSE, ends_the_message, length[0], length[1], 0, 0, number, 0]);
        out.extend(packet);
        if is_last {
            return stream.write_all(&out).await;
        }
    }
}

/// Reads values from a payload; a payload that ends too early is a broken test, and panics.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(count);
        self.0 = rest;
        bytes
    }

    pub(crate) fn u8(&mut self) -> u8 {
        self.bytes(1)[0]
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        self.bytes(N).try_into().expect("as many as asked for")
    }

    /// UTF-16 with its length, in units, in one byte.
    pub(crate) fn short_text(&mut self) -> String {
        let units = usize::from(self.u8());
        utf16(self.bytes(2 * units))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

pub(crate) fn utf16(bytes: &[u8]) -> String {
    let units: Vec<u16> =
        bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    String::from_utf16(&units).expect("UTF-16 on the wire")
}

pub(crate) fn to_utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Text with its length, in units, in one byte.
pub(crate) fn put_short_text(out: &mut Vec<u8>, text: &str) {
    let text = to_utf16(text);
    out.push(u8::try_from(text.len() / 2).expect("a short text"));
    out.extend(text);
}

/// Text with its length, in units, in two bytes.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    let text = to_utf16(text);
    out.extend(u16::try_from(text.len() / 2).expect("a text of one packet").to_le_bytes());
    out.extend(text);
}
