//! The content of a resource for whoever may see a page, and not its secrets.

use serde_json::Value;

use super::secrets::is_sensitive;

const HIDDEN: &str = "(hidden)";
/// What JSON calls bytes whose meaning is not known: [`Descriptors::to_json`](super::Descriptors::to_json).
const UNKNOWN: &str = "@unknown";

/// The JSON of a resource without the values of fields that are secret or may be, and without bytes whose meaning is not
/// known. `None` if that is all of it: of a `Secret`, and of a type that is not known.
pub(crate) fn without_secrets(mut json: Value) -> Option<Value> {
    (!is_secret(&json) && !is_opaque(&json)).then(|| {
        hide_in(&mut json);
        json
    })
}

fn hide_in(json: &mut Value) {
    match json {
        Value::Array(items) => items.iter_mut().for_each(hide_in),
        Value::Object(fields) => {
            // A header's value is where its key does not say that it is.
            let is_header = fields.get("key").and_then(Value::as_str).is_some_and(is_secret_header);
            for (name, value) in fields {
                let is_scalar = !matches!(value, Value::Array(_) | Value::Object(_));
                let hides = name == UNKNOWN || is_sensitive(name) || (is_header && name.contains("value"));
                if (is_scalar && hides) || is_secret(value) || is_opaque(value) {
                    *value = HIDDEN.into();
                } else {
                    hide_in(value);
                }
            }
        }
        _ => {}
    }
}

fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("auth") || name.contains("cookie") || name.contains("key") || is_sensitive(&name)
}

fn is_secret(json: &Value) -> bool {
    json.get("@type").and_then(Value::as_str).is_some_and(xds_transport::is_secret)
}

/// An `Any` of a type that is not known: its bytes, in letters.
fn is_opaque(json: &Value) -> bool {
    json.as_object().is_some_and(|fields| {
        fields.len() == 2 && fields.contains_key("@type") && fields.get("value").is_some_and(Value::is_string)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_secret_is_not_shown_and_what_is_around_it_is() {
        let shown = without_secrets(json!({
            "@type": "x/envoy.config.listener.v3.Listener",
            "name": "web",
            "transport_socket": { "typed_config": { "@type": "x/Tls", "common_tls_context": {
                "tls_certificates": [{ "private_key": { "inline_string": "s3cret" }, "password": { "filename": "/p" } }],
                "tls_certificate_sds_secret_configs": [{ "name": "cert" }],
            } } },
            "headers": [{ "header": { "key": "Authorization", "value": "Bearer s3cret" } }, { "key": "a", "value": "b" }],
            "nested": { "@type": "x/T.Secret", "name": "s3cret" },
            "listed": { "@type": "x/T.SecretCollection", "entries": ["s3cret"] },
            "list": [{ "inner": { "@type": "x/who.Knows", "value": "czNjcmV0" } }],
            "json_key": "s3cret",
            "@unknown": "czNjcmV0",
        }));
        let shown = shown.unwrap();
        assert!(!shown.to_string().contains("s3cret") && !shown.to_string().contains("czNjcmV0"), "{shown}");
        assert_eq!(
            shown["transport_socket"]["typed_config"]["common_tls_context"]["tls_certificates"][0]["password"]["filename"],
            "/p"
        );
        assert_eq!(
            shown["transport_socket"]["typed_config"]["common_tls_context"]["tls_certificate_sds_secret_configs"][0]["name"],
            "cert"
        );
        assert_eq!(shown["headers"][1]["value"], "b");
    }

    #[test]
    fn a_secret_and_what_is_not_known_are_not_shown_at_all() {
        let secret = json!({ "@type": "x/envoy.extensions.transport_sockets.tls.v3.Secret", "name": "a" });
        assert_eq!(without_secrets(secret), None);
        assert_eq!(without_secrets(json!({ "@type": "x/who.Knows", "value": "CAE=" })), None);
    }
}
