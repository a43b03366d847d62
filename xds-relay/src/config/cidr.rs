//! Ranges of addresses.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A range of addresses: `10.0.0.0/8`, `fd00::/8`, or one address alone.
///
/// ```
/// use xds_relay::config::Cidr;
///
/// let range: Cidr = "10.0.0.0/8".parse()?;
/// assert!(range.contains("10.1.2.3".parse()?));
/// assert!(range.contains("::ffff:10.1.2.3".parse()?));
/// assert!(!range.contains("11.0.0.1".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    first: IpAddr,
    bits: u8,
}

impl Cidr {
    /// Whether an address is one of these. One of IPv4 that is written as one of IPv6 is one of IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let differ = first.to_bits() ^ address.to_bits();
                differ.leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let differ = first.to_bits() ^ address.to_bits();
                differ.leading_zeros() >= u32::from(self.bits)
            }
            _ => false,
        }
    }
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("`{text}`: expected a range of addresses, such as 10.0.0.0/8 or fd00::/8");
        let (first, bits) = match text.split_once('/') {
            Some((first, bits)) => (first, Some(bits)),
            None => (text, None),
        };
        let first: IpAddr = first.parse().map_err(|_| expected())?;
        if first != first.to_canonical() {
            return Err(format!("`{text}`: expected the address of IPv4 that this is"));
        }
        let most = if first.is_ipv4() { 32 } else { 128 };
        let is_number = |bits: &&str| bits.bytes().all(|byte| byte.is_ascii_digit());
        let bits = match bits {
            None => most,
            Some(bits) => {
                let bits = Some(bits).filter(is_number).and_then(|bits| bits.parse().ok());
                bits.filter(|bits| *bits <= most).ok_or_else(expected)?
            }
        };
        Ok(Self { first, bits })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_the_addresses_that_begin_as_it_does() {
        let range = |text: &str| text.parse::<Cidr>().unwrap();
        let has = |text: &str, address: &str| range(text).contains(address.parse().unwrap());
        assert!(has("0.0.0.0/0", "255.1.2.3") && !has("0.0.0.0/0", "::1"));
        assert!(has("::/0", "fe80::1") && !has("::/0", "1.2.3.4") && !has("::/0", "::ffff:1.2.3.4"));
        assert!(has("10.1.2.3", "10.1.2.3") && !has("10.1.2.3", "10.1.2.2"));
        assert!(has("10.1.2.3/31", "10.1.2.2") && !has("10.1.2.3/31", "10.1.2.4"));
        assert!(has("fd00::/8", "fdff::1") && !has("fd00::/8", "fe00::1"));
        assert_eq!(range("10.0.0.1").to_string(), "10.0.0.1/32");
        for bad in ["", "a", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/+8", "::/129", "10.0.0/8", "::ffff:1.2.3.4/96"] {
            assert!(bad.parse::<Cidr>().is_err(), "{bad}");
        }
    }
}
