//! What is asked of a page, by its query.

use axum::extract::{FromRequestParts, Query};
use axum::http::StatusCode;
use axum::http::Uri;
use axum::http::request::Parts;
use axum::response::Response;
use serde::de::DeserializeOwned;

use super::frame::failure;
use crate::api::query;

/// The query of a page, which the JSON beside it takes, too; without what a form left empty.
#[derive(Clone, Debug)]
pub(super) struct Asked<T> {
    pub(super) query: T,
    /// As it is written, with `?` where there is anything.
    text: String,
}

impl<T> Asked<T> {
    /// The same of another path.
    pub(super) fn at(&self, path: &str) -> String {
        format!("{path}{}", self.text)
    }

    /// The page that is behind this one.
    pub(super) fn behind(&self, path: &str, next: &str) -> String {
        let fields = self.text.trim_start_matches('?').split('&').filter(|field| !field.is_empty() && !is_after(field));
        let next = query(&[("after", Some(next))]);
        let fields: Vec<_> = fields.chain([next.trim_start_matches('?')]).collect();
        format!("{path}?{}", fields.join("&"))
    }
}

fn is_after(field: &str) -> bool {
    field.starts_with("after=")
}

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let fields = parts.uri.query().unwrap_or_default().split('&');
        let given: Vec<_> =
            fields.filter(|field| field.split_once('=').is_none_or(|(_, value)| !value.is_empty())).collect();
        let text = given.iter().filter(|field| !field.is_empty()).copied().collect::<Vec<_>>().join("&");
        let text = if text.is_empty() { text } else { format!("?{text}") };
        let bad = |reason: String| failure(StatusCode::BAD_REQUEST, "That cannot be asked", &reason);
        let uri = format!("/{text}").parse::<Uri>().map_err(|error| bad(error.to_string()))?;
        let Query(query) = Query::try_from_uri(&uri).map_err(|error| bad(error.body_text()))?;
        Ok(Self { query, text })
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;
    use crate::api::ClientQuery;

    async fn asked(uri: &str) -> Result<Asked<ClientQuery>, StatusCode> {
        let (mut parts, ()) = Request::get(uri).body(()).unwrap().into_parts();
        Asked::from_request_parts(&mut parts, &()).await.map_err(|response| response.status())
    }

    #[tokio::test]
    async fn a_form_leaves_out_what_it_leaves_empty() {
        let form = asked("/clients?search=&state=REJECTED&type=&after=7&search=a%26b").await.unwrap();
        assert_eq!((form.query.search.as_deref(), form.query.after), (Some("a&b"), Some(7)));
        assert_eq!(form.at("/x"), "/x?state=REJECTED&after=7&search=a%26b");
        assert_eq!(form.behind("/x", "1.2 3"), "/x?state=REJECTED&search=a%26b&after=1.2%203");
        let none = asked("/clients?&").await.unwrap();
        assert_eq!((none.at("/x"), none.behind("/x", "1")), ("/x".to_owned(), "/x?after=1".to_owned()));
        for bad in ["/clients?state=GONE", "/clients?sttae=x", "/clients?search"] {
            let expected = if bad.ends_with("search") { Ok(()) } else { Err(StatusCode::BAD_REQUEST) };
            assert_eq!(asked(bad).await.map(drop), expected, "{bad}");
        }
    }
}
