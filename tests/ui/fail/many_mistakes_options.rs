//! Several mistakes in one attribute and its function.

use cloudgate::{Json, Path, get};

#[get(POST, "/shops/{shop}/items/{item}", body_limit = "10 mb", timout = 5, wrap())]
fn item(Path(_): Path<u64>, Json(_): Json<u8>, _text: String) {}

fn main() {}
