"""Bytes of protobuf, for messages that mean something else in the draft than what their generated classes say."""


def field(number, value):
    """A field of bytes, text or a message."""
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value):
    """A number of any length."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def fields(message):
    """Number and value of each field: bytes, or an integer."""
    at = 0
    while at < len(message):
        key, at = read_varint(message, at)
        value, at = read_varint(message, at)
        if key & 7 == 2:
            value, at = message[at : at + value], at + value
        elif key & 7 != 0:
            raise ValueError(f"a field of wire type {key & 7}")
        yield key >> 3, value


def read_varint(message, at):
    """A number, and where the rest begins."""
    value, shift = 0, 0
    while True:
        byte = message[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at


def all_of(message, number):
    """The values of a repeated field."""
    return [value for found, value in fields(message) if found == number]


def text_of(message, number):
    """The last value of a field of text, or the empty one."""
    return next(iter(all_of(message, number)[::-1]), b"").decode()
