//! Which ready-made services are there?

pub mod files;
pub mod limits;
pub mod response_cache;
