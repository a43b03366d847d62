//! By which methods of a server its resources are asked for.

use xds_transport::TypeService;

use super::Endpoint;

#[derive(Clone, Debug, Default)]
pub(crate) enum Methods {
    /// One has all types (ADS).
    #[default]
    Aggregated,
    /// That of one type, and nothing else is asked for.
    OfType(TypeService),
    /// Each type has one.
    PerType,
}

impl Endpoint {
    /// Asks by the methods of one type, where the server has no aggregated ones: nothing else is to be asked for there.
    #[must_use]
    pub fn with_type_service(self, service: TypeService) -> Self {
        Self { methods: Methods::OfType(service), ..self }
    }

    /// Asks for each type by the method of its [service](xds_transport::TypeRules::service_of), where the server has no aggregated one (ADS): what
    /// would be one stream is one for each type that is asked for, on one connection. One that ends is opened again by itself, by a
    /// backoff of its own; all are when the last ends, or the connection, or once each has ended and none was answered. What is wanted
    /// of a type without a service, or of one that the server says twice to have no method for while it has others, is among an
    /// update's [errors](xds_transport::client::Update::errors), by [`Unasked`](xdstp_cache::Cause::Unasked). A token is read for all
    /// of them at once, and anew when one is turned away with it after five minutes.
    ///
    /// ```
    /// use xds_transport::Protocol;
    /// use xdstp_client::Endpoint;
    ///
    /// let endpoint = Endpoint::new("127.0.0.1:18000")?.with_protocol(Protocol::Sotw).with_per_type_methods();
    /// # Ok::<(), xdstp_client::EndpointError>(())
    /// ```
    #[must_use]
    pub fn with_per_type_methods(self) -> Self {
        Self { methods: Methods::PerType, ..self }
    }

    /// How many streams of its connection may stand for one that asks for everything.
    pub(crate) fn streams_each(&self) -> usize {
        match self.methods {
            Methods::Aggregated | Methods::OfType(_) => 1,
            Methods::PerType => self.rules.methods(self.protocol).max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use xds_transport::Protocol;

    use super::*;

    #[test]
    fn as_many_streams_stand_for_one_as_there_are_types_that_have_a_method() {
        let endpoint = Endpoint::new("a:1").unwrap();
        assert_eq!(endpoint.streams_each(), 1);
        let of_type = endpoint.clone().with_type_service(TypeService::new("A", "B"));
        assert_eq!(of_type.streams_each(), 1);
        let per_type = endpoint.with_per_type_methods();
        assert_eq!(per_type.streams_each(), 11);
        assert_eq!(per_type.with_protocol(Protocol::Sotw).streams_each(), 9);
    }
}
