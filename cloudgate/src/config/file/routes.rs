//! Would two services answer the same requests?

use std::collections::HashMap;

use super::GatewayFile;
use super::node::{Node, Place};
use super::reader::Reader;

/// What a service is asked for by.
type Route = (
    Vec<String>,
    String,
    bool,
    Vec<String>,
    Vec<(String, String)>,
);

/// Notes services that no request could reach, and a file without any.
pub(crate) fn check(file: &GatewayFile, node: &Node, reader: &mut Reader<'_>) {
    if node.lacks("services") {
        let wanted = "the file needs `services`: list at least one, with its `path` and `servers`";
        reader.wrong(node.at("services"), wanted);
    }
    let mut seen: HashMap<Route, usize> = HashMap::new();
    for (index, service) in file.services.iter().enumerate() {
        // A slash at the end of a prefix means nothing: `/orders/` takes what `/orders` takes.
        let path = match (service.exact, service.path.trim_end_matches('/')) {
            (false, "") => "/",
            (false, path) => path,
            (true, _) => &service.path,
        };
        let mut hosts: Vec<_> = service
            .hosts
            .iter()
            .map(|host| host.to_ascii_lowercase())
            .collect();
        hosts.sort();
        hosts.dedup();
        let mut methods: Vec<_> = service
            .methods
            .iter()
            .map(|method| method.as_str().to_owned())
            .collect();
        methods.sort();
        methods.dedup();
        let fields = service.headers.0.iter();
        let mut fields: Vec<_> = fields
            .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
            .collect();
        fields.sort();
        let route = (hosts, path.to_owned(), service.exact, methods, fields);
        let services = node.at("services");
        let here = services.item(index).at("path");
        match seen.get(&route) {
            Some(first) => {
                let line = match services.item(*first).at("path").place {
                    Place::File { line, .. } => line,
                    _ => 0,
                };
                let wanted = format!(
                    "this service would get no request: line {line} has the same path, hosts, methods and headers already"
                );
                reader.wrong(here, wanted);
            }
            None => {
                seen.insert(route, index);
            }
        }
    }
}
