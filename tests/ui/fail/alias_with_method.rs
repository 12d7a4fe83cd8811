//! A method in an attribute that stands for one already.

use cloudgate::{get, post};

#[get(POST, "/orders")]
fn orders() {}

#[post("/orders", POST)]
fn order() {}

fn main() {}
