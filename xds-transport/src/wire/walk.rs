//! Walking the fields of an encoded message without decoding it.
//!
//! A relay that opens no payload needs two things of a response: where each field starts, and how long it is. What it
//! keeps is a slice of the buffer it arrived in ([`Bytes::slice_ref`](bytes::Bytes::slice_ref)).

use std::fmt;

use bytes::{Buf, BufMut};

/// One field of an encoded message: its number and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The field's number.
    pub number: u32,
    /// The field's value, not interpreted.
    pub value: FieldValue<'a>,
}

/// The value of a [`Field`], by wire type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldValue<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1.
    Fixed64(u64),
    /// Wire type 2: a part of the walked message.
    Bytes(&'a [u8]),
    /// Wire type 5.
    Fixed32(u32),
}

/// Why a walk stopped: the message is not protobuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkError {
    remaining: usize,
}

impl WalkError {
    /// How many bytes of the message were left when it stopped making sense.
    pub fn remaining(&self) -> usize {
        self.remaining
    }
}

impl fmt::Display for WalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a protobuf message, {} bytes before its end", self.remaining)
    }
}

impl std::error::Error for WalkError {}

/// The fields of an encoded message, in wire order. The walk ends at the first error.
///
/// ```
/// use xds_transport::wire::walk::{Fields, FieldValue};
///
/// let message = b"\x0a\x02v1\x20\x07";
/// let fields: Vec<_> = Fields::of(message).collect::<Result<_, _>>().unwrap();
/// assert_eq!(fields[0].value, FieldValue::Bytes(b"v1"));
/// assert_eq!((fields[1].number, &fields[1].value), (4, &FieldValue::Varint(7)));
/// ```
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Walks `message`.
    pub fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// The next field, and how it is encoded: to be passed on byte for byte.
    pub fn next_encoded(&mut self) -> Option<Result<(Field<'a>, &'a [u8]), WalkError>> {
        let before = self.rest;
        let field = self.next()?;
        let encoded = before.get(..before.len().saturating_sub(self.rest.len())).unwrap_or_default();
        Some(field.map(|field| (field, encoded)))
    }

    #[inline(never)]
    fn step(&mut self) -> Option<Field<'a>> {
        let key = varint(&mut self.rest)?;
        let number = u32::try_from(key >> 3).ok().filter(|n| *n != 0 && *n < 1 << 29)?;
        let value = match key & 7 {
            0 => FieldValue::Varint(varint(&mut self.rest)?),
            1 => FieldValue::Fixed64(self.rest.try_get_u64_le().ok()?),
            2 => {
                let length = usize::try_from(varint(&mut self.rest)?).ok()?;
                FieldValue::Bytes(self.rest.split_off(..length)?)
            }
            5 => FieldValue::Fixed32(self.rest.try_get_u32_le().ok()?),
            _ => return None, // groups have been gone since proto2
        };
        Some(Field { number, value })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, WalkError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let remaining = self.rest.len();
        // Most fields of a long message are short texts in a list.
        if let [key, length, rest @ ..] = self.rest
            && *key < 0x80
            && key & 7 == 2
            && *key > 7
            && *length < 0x80
            && let Some((value, rest)) = rest.split_at_checked(usize::from(*length))
        {
            self.rest = rest;
            return Some(Ok(Field { number: u32::from(*key >> 3), value: FieldValue::Bytes(value) }));
        }
        match self.step() {
            Some(field) => Some(Ok(field)),
            None => {
                self.rest = &[];
                Some(Err(WalkError { remaining }))
            }
        }
    }
}

/// The text at a field path of an encoded message, such as `[3, 2]` for field 2 of field 3.
/// As protobuf has it, the last occurrence of a field counts. `None` when a step is missing or not text.
///
/// ```
/// use xds_transport::wire::walk::text_at;
///
/// let cluster = b"\x0a\x01c\x1a\x05\x12\x03eds";
/// assert_eq!(text_at(cluster, &[3, 2]), Some("eds"));
/// assert_eq!(text_at(cluster, &[9]), None);
/// ```
pub fn text_at<'a>(message: &'a [u8], path: &[u32]) -> Option<&'a str> {
    let mut found = message;
    for number in path {
        let mut at = None;
        for field in Fields::of(found) {
            let field = field.ok()?;
            if let (true, FieldValue::Bytes(value)) = (field.number == *number, field.value) {
                at = Some(value);
            }
        }
        found = at?;
    }
    std::str::from_utf8(found).ok()
}

fn varint(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..70).step_by(7) {
        let byte = from.try_get_u8().ok()?;
        // The tenth byte holds one bit.
        if shift == 63 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Appends a varint. This and what follows is most of what is written for an update: where it is called, numbers are known.
#[inline]
pub(crate) fn put_varint(into: &mut impl BufMut, mut value: u64) {
    while value >= 0x80 {
        into.put_u8((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    into.put_u8(value as u8);
}

/// The length of a varint in bytes.
pub(crate) fn varint_len(value: u64) -> usize {
    ((70 - (value | 1).leading_zeros()) / 7) as usize
}

/// Appends the key and length of a length-delimited field; its value follows.
#[inline]
pub(crate) fn put_delimited(into: &mut impl BufMut, number: u32, length: usize) {
    put_varint(into, u64::from(number) << 3 | 2);
    put_varint(into, length as u64);
}

/// Appends a length-delimited field, unless it is empty: proto3 leaves defaults out.
#[inline]
pub(crate) fn put_bytes(into: &mut impl BufMut, number: u32, value: &[u8]) {
    if !value.is_empty() {
        put_delimited(into, number, value.len());
        into.put_slice(value);
    }
}

/// The length of what [`put_bytes`] appends for a value of `length` bytes.
pub(crate) fn bytes_len(number: u32, length: usize) -> usize {
    if length == 0 { 0 } else { delimited_len(number, length) }
}

/// The encoded length of a length-delimited field with a value of `length` bytes.
pub(crate) fn delimited_len(number: u32, length: usize) -> usize {
    varint_len(u64::from(number) << 3) + varint_len(length as u64) + length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varint_lengths_are_what_is_written() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out.len(), varint_len(value), "{value}");
            assert_eq!(varint(&mut out.as_slice()), Some(value));
        }
    }

    #[test]
    fn a_length_past_the_end_is_an_error_not_a_panic() {
        let walked: Vec<_> = Fields::of(b"\x0a\x05ab").collect();
        assert_eq!(walked, [Err(WalkError { remaining: 4 })]);
    }
}
