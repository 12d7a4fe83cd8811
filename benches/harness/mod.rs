//! What do the benchmarks that measure whole servers share?

pub(crate) mod ask;
pub(crate) mod child;
pub(crate) mod limit;
pub(crate) mod load;
pub(crate) mod machine;
pub(crate) mod measure;
