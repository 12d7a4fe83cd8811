//! Which items and routes does the tree of `modules!` have?

use cloudgate::{App, Request, Status};

cloudgate::modules!("tests/ui/pass/api");

#[track_caller]
fn check(path: &str, text: &str) {
    let app = App::gather().state("a word");
    let response = app.call(&mut Request::get(path));
    assert_eq!(response.status(), Status::OK, "{path}");
    assert_eq!(response.text(), text, "{path}");
}

#[test]
fn every_file_below_the_folder_has_its_routes() {
    check("/api/own", "shared");
    check("/api/orders", "orders of type shared");
    check("/api/orders/items", "items of orders, shared");
    check("/api/type", "type shared");
}

#[test]
fn shared_items_are_items_of_the_folders_module() {
    assert_eq!(api::shared(), "shared");
    assert_eq!(api::orders::shared(), "orders");
    assert_eq!(api::r#type::text(), "type shared");
}
