//! Context parameters that a client computes: the well-known attributes of a resource's type (TP1).

use xdstp_uri::{ContextParams, ResourceName};

use super::key_value::KeyValue;

/// The name as a client with these attributes asks for it.
///
/// # Errors
/// It has no parameters, or it would be too long.
pub(super) fn add(name: ResourceName, attributes: &[KeyValue]) -> Result<ResourceName, String> {
    if attributes.is_empty() {
        return Ok(name);
    }
    let locator = name.locator().ok_or("only xdstp: names have attributes")?;
    let attributes = attributes.iter().map(|KeyValue { key, value }| (key.as_str(), value.as_str()));
    let params = ContextParams::compose(&ContextParams::default(), &locator.context_params(), [], attributes)
        .map_err(|error| error.to_string())?;
    let computed = locator.with_context_params(&params).map_err(|error| error.to_string())?;
    ResourceName::parse(&computed.to_canonical()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_a_parameter_that_goes_before_what_the_name_says() {
        let attributes = ["vip=1.2.3.4", "port=80&x"].map(|text| text.parse::<KeyValue>().unwrap());
        for (name, with) in [
            ("xdstp://a/T/x", "xdstp://a/T/x?xds.resource.port=80%26x&xds.resource.vip=1.2.3.4"),
            ("xdstp://a/T/d/*?k=v", "xdstp://a/T/d/*?k=v&xds.resource.port=80%26x&xds.resource.vip=1.2.3.4"),
            (
                "xdstp://a/T/x?xds.resource.vip=9&z=1",
                "xdstp://a/T/x?xds.resource.port=80%26x&xds.resource.vip=1.2.3.4&z=1",
            ),
        ] {
            assert_eq!(add(name.parse().unwrap(), &attributes).unwrap().as_str(), with);
        }
        assert!(add("web".parse().unwrap(), &attributes).is_err());
        assert_eq!(add("web".parse().unwrap(), &[]).unwrap().as_str(), "web");
        assert!("vip".parse::<KeyValue>().is_err() && "=x".parse::<KeyValue>().is_err());
    }
}
