//! Which ready-made services are there, and which middlewares?

pub mod access_log;
pub mod admin;
pub mod auth;
mod calendar;
pub(crate) mod coding;
pub mod compress;
pub mod cors;
pub mod files;
pub mod gateway;
pub mod https_only;
pub mod ip_filter;
pub mod limits;
pub mod metrics;
mod process;
pub mod readiness;
pub mod request_id;
pub mod response_cache;
pub mod security_headers;
#[cfg(any(test, feature = "cli"))]
pub(crate) mod swap;
pub mod trace_context;
mod vary;
