//! What the server answers: steps of a script, and the tokens they become.

use std::time::Duration;

use crate::wire::{put_short_text, put_text, to_utf16};

/// One step of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A result set.
    Rows(Vec<(&'static str, Column)>, Vec<Vec<Cell>>),
    /// A row count without a result set.
    Count(u64),
    /// An error; the answer goes on after it.
    Error(ServerError),
    /// A message that is no error.
    Info(&'static str),
    /// What came before goes out, and nothing for a while.
    Pause(Duration),
    /// What came before goes out, and nothing ever after.
    Stall,
    /// What came before goes out, and the connection is closed.
    Close,
}

#[derive(Debug, Clone)]
pub(crate) struct ServerError {
    pub(crate) number: u32,
    pub(crate) severity: u8,
    pub(crate) state: u8,
    pub(crate) message: String,
}

/// An error of severity 16.
pub(crate) fn error(number: u32) -> Step {
    severe(number, 16)
}

pub(crate) fn severe(number: u32, severity: u8) -> Step {
    Step::Error(ServerError { number, severity, state: 1, message: format!("message {number}") })
}

/// A result set with one column and one row.
pub(crate) fn one(name: &'static str, column: Column, cell: Cell) -> Step {
    Step::Rows(vec![(name, column)], vec![vec![cell]])
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Column {
    /// A column that cannot be NULL has a form of its own on the wire.
    IntNotNull,
    TinyInt,
    Int,
    BigInt,
    Bit,
    Float,
    NVarChar(u16),
    NVarCharMax,
    UniqueIdentifier,
    DateTime2(u8),
    VarBinary(u16),
}

#[derive(Debug, Clone)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Float(f64),
    Text(String),
    Units(Vec<u16>),
    /// As stored.
    Guid([u8; 16]),
    DateTime2 {
        days: u32,
        increments: u64,
    },
    Bytes(Vec<u8>),
}

pub(crate) fn text(text: impl Into<String>) -> Cell {
    Cell::Text(text.into())
}

/// Which tokens end the statements and the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Batch,
    Procedure,
}

const MORE: u16 = 1;
const FAILED: u16 = 2;
const COUNT: u16 = 16;

impl Step {
    /// The tokens of the step; nothing for steps that are acts.
    pub(crate) fn tokens(&self, ending: Ending, out: &mut Vec<u8>) {
        let token = if ending == Ending::Batch { 0xFD } else { 0xFF };
        match self {
            Self::Rows(columns, rows) => {
                put_columns(out, columns);
                for row in rows {
                    out.push(0xD1);
                    for (cell, (_, column)) in row.iter().zip(columns) {
                        cell.put(*column, out);
                    }
                }
                put_done(out, token, MORE | COUNT, rows.len() as u64);
            }
            Self::Count(count) => put_done(out, token, MORE | COUNT, *count),
            Self::Error(error) => {
                put_message(out, 0xAA, error);
                put_done(out, token, MORE | FAILED, 0);
            }
            Self::Info(message) => {
                let info = ServerError {
                    number: 5701,
                    severity: 10,
                    state: 1,
                    message: (*message).to_owned(),
                };
                put_message(out, 0xAB, &info);
            }
            Self::Pause(_) | Self::Stall | Self::Close => {}
        }
    }
}

/// What ends an answer.
pub(crate) fn put_end(out: &mut Vec<u8>, ending: Ending, failed: bool) {
    let status = if failed { FAILED } else { 0 };
    if ending == Ending::Batch {
        put_done(out, 0xFD, status, 0);
    } else {
        out.push(0x79);
        out.extend(0_u32.to_le_bytes());
        put_done(out, 0xFE, status, 0);
    }
}

pub(crate) fn put_done(out: &mut Vec<u8>, token: u8, status: u16, rows: u64) {
    out.push(token);
    out.extend(status.to_le_bytes());
    out.extend(0_u16.to_le_bytes());
    out.extend(rows.to_le_bytes());
}

pub(crate) fn put_message(out: &mut Vec<u8>, token: u8, error: &ServerError) {
    let mut body = Vec::new();
    body.extend(error.number.to_le_bytes());
    body.push(error.state);
    body.push(error.severity);
    put_text(&mut body, &error.message);
    put_short_text(&mut body, "scripted");
    put_short_text(&mut body, "");
    body.extend(7_u32.to_le_bytes());
    put_block(out, token, &body);
}

/// A token with its length in two bytes.
pub(crate) fn put_block(out: &mut Vec<u8>, token: u8, body: &[u8]) {
    out.push(token);
    out.extend(u16::try_from(body.len()).expect("a token of one packet").to_le_bytes());
    out.extend(body);
}

fn put_columns(out: &mut Vec<u8>, columns: &[(&'static str, Column)]) {
    const COLLATION: [u8; 5] = [9, 4, 208, 0, 52];
    out.push(0x81);
    out.extend(u16::try_from(columns.len()).expect("few columns").to_le_bytes());
    for (name, column) in columns {
        out.extend([0, 0, 0, 0, 9, 0]);
        match column {
            Column::IntNotNull => out.push(0x38),
            Column::TinyInt => out.extend([0x26, 1]),
            Column::Int => out.extend([0x26, 4]),
            Column::BigInt => out.extend([0x26, 8]),
            Column::Bit => out.extend([0x68, 1]),
            Column::Float => out.extend([0x6D, 8]),
            Column::UniqueIdentifier => out.extend([0x24, 16]),
            Column::DateTime2(scale) => out.extend([0x2A, *scale]),
            Column::NVarChar(units) => {
                out.push(0xE7);
                out.extend((units * 2).to_le_bytes());
                out.extend(COLLATION);
            }
            Column::NVarCharMax => {
                out.extend([0xE7, 0xFF, 0xFF]);
                out.extend(COLLATION);
            }
            Column::VarBinary(bytes) => {
                out.push(0xA5);
                out.extend(bytes.to_le_bytes());
            }
        }
        put_short_text(out, name);
    }
}

impl Cell {
    fn put(&self, column: Column, out: &mut Vec<u8>) {
        match (self, column) {
            (Self::Null, Column::NVarChar(_) | Column::VarBinary(_)) => out.extend([0xFF, 0xFF]),
            (Self::Null, Column::NVarCharMax) => out.extend([0xFF; 8]),
            (Self::Null, _) => out.push(0),
            (Self::Int(v), Column::IntNotNull) => out.extend(&v.to_le_bytes()[..4]),
            (Self::Int(v), Column::TinyInt | Column::Bit) => out.extend([1, v.to_le_bytes()[0]]),
            (Self::Int(v), Column::Int) => {
                out.push(4);
                out.extend(&v.to_le_bytes()[..4]);
            }
            (Self::Int(v), Column::BigInt) => {
                out.push(8);
                out.extend(v.to_le_bytes());
            }
            (Self::Float(v), Column::Float) => {
                out.push(8);
                out.extend(v.to_le_bytes());
            }
            (Self::Guid(bytes), Column::UniqueIdentifier) => {
                out.push(16);
                out.extend(bytes);
            }
            (Self::DateTime2 { days, increments }, Column::DateTime2(scale)) => {
                let size = match scale {
                    0..=2 => 3,
                    3..=4 => 4,
                    _ => 5,
                };
                out.push(size + 3);
                out.extend(&increments.to_le_bytes()[..usize::from(size)]);
                out.extend(&days.to_le_bytes()[..3]);
            }
            (Self::Text(text), column) => put_units(out, &to_utf16(text), column),
            (Self::Units(units), column) => {
                let bytes: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
                put_units(out, &bytes, column);
            }
            (Self::Bytes(bytes), Column::VarBinary(_)) => put_units(out, bytes, column),
            (cell, column) => panic!("{cell:?} does not stand in a column of {column:?}"),
        }
    }
}

/// A (max) value comes in chunks of any size.
fn put_units(out: &mut Vec<u8>, bytes: &[u8], column: Column) {
    if !matches!(column, Column::NVarCharMax) {
        out.extend(u16::try_from(bytes.len()).expect("a short value").to_le_bytes());
        out.extend(bytes);
        return;
    }
    out.extend((bytes.len() as u64).to_le_bytes());
    for chunk in bytes.chunks(8_001) {
        out.extend(u32::try_from(chunk.len()).expect("a chunk").to_le_bytes());
        out.extend(chunk);
    }
    out.extend([0; 4]);
}
