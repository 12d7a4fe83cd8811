//! How does a handler ask for the certificate of its client?

use super::extract::FromRequest;
use super::rejection::Rejection;
use crate::message::{Certificate, Request};

/// The certificate by which the client has said who it is; a client without one gets a 403.
///
/// The server has to ask for it: see [`ClientCa`](crate::ClientCa). Take an `Option` of it where it may be missing.
///
/// ```
/// use cloudgate::{ClientCertificate, FromRequest, Request, route};
///
/// #[route("/certificate")]
/// fn me(ClientCertificate(me): ClientCertificate) -> String {
///     format!("{}, until {:?}", me.subject(), me.valid_until())
/// }
///
/// let error = ClientCertificate::from_request(&mut Request::get("/certificate")).unwrap_err();
/// assert_eq!(error.status(), 403);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate(pub Certificate);

impl FromRequest for ClientCertificate {
    type Rejection = Rejection;

    fn from_request(request: &mut Request<'_>) -> Result<ClientCertificate, Rejection> {
        match request.client_certificate() {
            Some(certificate) => Ok(ClientCertificate(certificate.clone())),
            None => Err(Rejection::NoCertificate),
        }
    }
}
