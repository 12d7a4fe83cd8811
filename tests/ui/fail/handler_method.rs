//! A method of a type.

use cloudgate::route;

struct Orders;

impl Orders {
    #[route("/orders")]
    fn list(&self) {}
}

fn main() {}
