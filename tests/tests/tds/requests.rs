//! What a client sends, decoded.

use crate::wire::{Reader, utf16};

/// A login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Login {
    /// Which connection, counted from 0.
    pub(crate) connection: usize,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) program: String,
    pub(crate) server: String,
    pub(crate) database: String,
    /// An access token in place of user and password.
    pub(crate) token: Option<String>,
}

impl Login {
    pub(crate) fn decode(connection: usize, payload: &[u8]) -> Self {
        let text = |place: usize| {
            let mut field = Reader(&payload[place..]);
            let (offset, units) = (usize::from(field.u16()), usize::from(field.u16()));
            payload[offset..offset + 2 * units].to_vec()
        };
        let password: Vec<u8> = text(44).iter().map(|byte| (byte ^ 0xA5).rotate_left(4)).collect();
        Self {
            connection,
            user: utf16(&text(40)),
            password: utf16(&password),
            program: utf16(&text(48)),
            server: utf16(&text(52)),
            database: utf16(&text(68)),
            token: token(payload),
        }
    }
}

/// The federated authentication feature, to which the extension field points in two steps.
fn token(payload: &[u8]) -> Option<String> {
    let mut field = Reader(&payload[56..]);
    let (offset, length) = (usize::from(field.u16()), field.u16());
    if length == 0 {
        return None;
    }
    let features = Reader(&payload[offset..]).u32();
    let mut features = Reader(&payload[usize::try_from(features).expect("an offset")..]);
    assert_eq!(features.u8(), 2, "the only feature is federated authentication");
    features.u32();
    features.u8();
    let length = features.u32();
    Some(utf16(features.bytes(usize::try_from(length).expect("a length"))))
}

/// A statement or a batch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    pub(crate) connection: usize,
    pub(crate) program: String,
    pub(crate) sql: String,
    pub(crate) form: Form,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Form {
    /// A text that stands alone.
    Batch,
    /// The procedure `sp_executesql`.
    Procedure {
        name: String,
        /// The names of the first two values as they were sent.
        leading_names: Vec<String>,
        declarations: Option<String>,
        values: Vec<Sent>,
    },
}

/// A value of a procedure call: its name, its type on the wire, and itself.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sent {
    pub(crate) name: String,
    pub(crate) wire_type: String,
    pub(crate) value: Wire,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wire {
    Null,
    Int(i64),
    Float(f64),
    Text(String),
    /// As stored: the first three groups little-endian.
    Guid([u8; 16]),
    /// Days since the year 1, and the time of day in its scale.
    DateTime2 {
        days: u32,
        increments: u64,
    },
}

impl Request {
    /// The `name` of `/* chokaq:name */` at the beginning of the text.
    pub(crate) fn name(&self) -> &str {
        let mark = self.sql.strip_prefix("/* chokaq:").and_then(|rest| rest.split_once(" */"));
        mark.map_or("", |(name, _)| name)
    }

    /// What a claim takes at most.
    pub(crate) fn take(&self) -> i64 {
        let Wire::Int(take) = self.value("@take") else { panic!("a number") };
        *take
    }

    /// The `Seq` of every row that the call names.
    pub(crate) fn seqs(&self) -> impl Iterator<Item = i64> + use<> {
        let Wire::Text(json) = self.value("@items") else { panic!("a text") };
        let items: Vec<serde_json::Value> = serde_json::from_str(json).expect("a JSON array");
        items.into_iter().map(|item| item["s"].as_i64().expect("a Seq"))
    }

    fn value(&self, name: &str) -> &Wire {
        let Form::Procedure { values, .. } = &self.form else { panic!("a procedure call") };
        &values.iter().find(|sent| sent.name == name).expect("the parameter").value
    }

    pub(crate) fn batch(connection: usize, program: &str, payload: &[u8]) -> Self {
        let text = utf16(after_headers(payload).0);
        Self { connection, program: program.to_owned(), sql: text, form: Form::Batch }
    }

    pub(crate) fn procedure(connection: usize, program: &str, payload: &[u8]) -> Self {
        let mut reader = after_headers(payload);
        let name = match reader.u16() {
            0xFFFF => format!("#{}", reader.u16()),
            units => utf16(reader.bytes(2 * usize::from(units))),
        };
        reader.u16();
        let mut values = Vec::new();
        while !reader.is_empty() {
            values.push(sent(&mut reader));
        }
        let leading = values.drain(..values.len().min(2)).collect::<Vec<_>>();
        let text = |sent: &Sent| match &sent.value {
            Wire::Text(text) => text.clone(),
            other => panic!("the statement and its declarations are texts: {other:?}"),
        };
        let form = Form::Procedure {
            name,
            leading_names: leading.iter().map(|sent| sent.name.clone()).collect(),
            declarations: leading.get(1).map(text),
            values,
        };
        Self { connection, program: program.to_owned(), sql: text(&leading[0]), form }
    }
}

fn after_headers(payload: &[u8]) -> Reader<'_> {
    let length = usize::try_from(Reader(payload).u32()).expect("a length");
    Reader(&payload[length..])
}

fn sent(reader: &mut Reader<'_>) -> Sent {
    let name = reader.short_text();
    assert_eq!(reader.u8(), 0, "no output parameters");
    let (wire_type, value) = match reader.u8() {
        0x1F => ("null".to_owned(), Wire::Null),
        0x26 => (format!("int({})", reader.u8()), int(reader)),
        0x68 => (format!("bit({})", reader.u8()), int(reader)),
        0x6D => (format!("float({})", reader.u8()), float(reader)),
        0x24 => (format!("guid({})", reader.u8()), guid(reader)),
        0x2A => (format!("datetime2({})", reader.u8()), datetime2(reader)),
        0xE7 => text(reader),
        other => panic!("a type that chokaq does not send: {other:#x}"),
    };
    Sent { name, wire_type, value }
}

fn int(reader: &mut Reader<'_>) -> Wire {
    match reader.u8() {
        0 => Wire::Null,
        1 => Wire::Int(reader.u8().into()),
        4 => Wire::Int(i32::from_le_bytes(reader.array()).into()),
        8 => Wire::Int(i64::from_le_bytes(reader.array())),
        other => panic!("an integer of {other} bytes"),
    }
}

fn float(reader: &mut Reader<'_>) -> Wire {
    if reader.u8() == 0 { Wire::Null } else { Wire::Float(f64::from_le_bytes(reader.array())) }
}

fn guid(reader: &mut Reader<'_>) -> Wire {
    if reader.u8() == 0 { Wire::Null } else { Wire::Guid(reader.array()) }
}

fn datetime2(reader: &mut Reader<'_>) -> Wire {
    let length = usize::from(reader.u8());
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let increments = number(reader.bytes(length - 3));
    let days = u32::try_from(number(reader.bytes(3))).expect("three bytes");
    Wire::DateTime2 { days, increments }
}

fn text(reader: &mut Reader<'_>) -> (String, Wire) {
    let length = reader.u16();
    reader.bytes(5);
    if length != 0xFFFF {
        let kind = format!("nvarchar({})", length / 2);
        return match reader.u16() {
            0xFFFF => (kind, Wire::Null),
            bytes => (kind, Wire::Text(utf16(reader.bytes(bytes.into())))),
        };
    }
    let kind = "nvarchar(max)".to_owned();
    if reader.u64() == u64::MAX {
        return (kind, Wire::Null);
    }
    let mut bytes = Vec::new();
    loop {
        match usize::try_from(reader.u32()).expect("a length") {
            0 => return (kind, Wire::Text(utf16(&bytes))),
            chunk => bytes.extend_from_slice(reader.bytes(chunk)),
        }
    }
}
