//! Do the arguments of a handler fit its pattern, and each other?
//!
//! A macro sees names, not types. So only what the names of cloudgate's own types settle is a mistake here: what a type alias or a type
//! of the user's stands for is unknown, and is never judged.

use syn::{GenericArgument, Ident, LitStr, PathArguments, Type};

use crate::handler::{Argument, Handler, last_name};
use crate::mistakes::Mistakes;
use crate::options::Options;

/// Notes parameters that no argument takes, and `Path` arguments of another number of values than the pattern has.
pub(crate) fn check_path(
    handler: &Handler,
    pattern: &LitStr,
    options: &Options,
    mistakes: &mut Mistakes,
) {
    let text = pattern.value();
    let Some(parameters) = parameters(&text) else {
        return;
    };
    for argument in &handler.arguments {
        if let Argument::Extracted(ty) = argument {
            check_count(ty, &parameters, mistakes);
        }
    }
    // A middleware may read them from the request.
    if !options.wrap.is_empty() || handler.arguments.iter().any(may_see_the_path) {
        return;
    }
    // As with variables: the underscore says that nobody needs it.
    let lost: Vec<&str> = parameters
        .iter()
        .copied()
        .filter(|name| !name.starts_with('_'))
        .collect();
    let Some(first) = lost.first() else { return };
    let those = match lost.len() {
        1 => format!("the parameter `{first}`"),
        _ => format!("the parameters {}", listed(&lost)),
    };
    let star = if text.contains(&format!("{{*{first}}}")) {
        "*"
    } else {
        ""
    };
    mistakes.on(
        pattern,
        format_args!(
            "no argument takes {those}: add {} or `request: &mut Request`; one that nobody needs is named with an underscore, {{{star}_{first}}}",
            argument_for(&parameters)
        ),
    );
}

/// Notes a second argument that reads the body.
pub(crate) fn check_body(handler: &Handler, mistakes: &mut Mistakes) {
    let mut taken: Option<&Ident> = None;
    for argument in &handler.arguments {
        let Argument::Extracted(ty) = argument else {
            continue;
        };
        let Some(name) = last_name(inner(ty)).filter(|name| is_among(name, &BODY)) else {
            continue;
        };
        match taken {
            None => taken = Some(name),
            Some(first) => mistakes.on(
                ty,
                format_args!(
                    "the body can be taken once, and `{first}` takes it: leave one of the two out, or take `Bytes` alone and read both from it"
                ),
            ),
        }
    }
}

/// Arguments that read the body of a request.
const BODY: [&str; 6] = ["Bytes", "Event", "Form", "Json", "Multipart", "String"];

/// Arguments in which no part of the path is.
// Not `Headers`, `Method` and `Version`: a type of the user's may well have such a name, and be made of the path.
const WITHOUT_PATH: [&str; 13] = [
    "Bytes",
    "ClientAddr",
    "Cookies",
    "Extension",
    "Form",
    "Json",
    "LastEventId",
    "Multipart",
    "PrivateCookies",
    "Query",
    "SignedCookies",
    "State",
    "String",
];

/// Types whose values are made of one part of the path.
const SINGLE: [&str; 17] = [
    "String", "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8",
    "u16", "u32", "u64", "u128", "usize",
];

fn is_among(name: &Ident, names: &[&str]) -> bool {
    names.iter().any(|known| name == known)
}

/// The names of a pattern's parameters; `None` where it has mistakes, which the library's check reports.
fn parameters(pattern: &str) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    let mut segments = pattern.strip_prefix('/')?.split('/').peekable();
    while let Some(segment) = segments.next() {
        let braced = segment
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        match braced {
            Some(name) => {
                let (name, last) = match name.strip_prefix('*') {
                    Some(name) => (name, segments.peek().is_none()),
                    None => (name, true),
                };
                let wrong = name.is_empty() || name.contains(['{', '}', '*']);
                if wrong || !last || names.contains(&name) {
                    return None;
                }
                names.push(name);
            }
            None if segment.contains(['{', '}']) || segment.starts_with([':', '*']) => return None,
            None => {}
        }
    }
    Some(names)
}

fn may_see_the_path(argument: &Argument) -> bool {
    match argument {
        Argument::Request(_) => true,
        Argument::Extracted(ty) => {
            !last_name(inner(ty)).is_some_and(|name| is_among(name, &WITHOUT_PATH))
        }
    }
}

/// Notes a `Path<T>` whose `T` is of another number of values than the pattern has.
///
/// One in an `Option` or a `Result` is passed over: the function may have several routes, and take it where it is there.
fn check_count(ty: &Type, parameters: &[&str], mistakes: &mut Mistakes) {
    let Some(values) = last_name(ty)
        .filter(|name| *name == "Path")
        .and_then(|_| generic(ty))
    else {
        return;
    };
    let count = match ungrouped(values) {
        Type::Tuple(tuple) if !tuple.elems.is_empty() => tuple.elems.len(),
        single if last_name(single).is_some_and(|name| is_among(name, &SINGLE)) => 1,
        _ => return,
    };
    if count == parameters.len() {
        return;
    }
    let message = match parameters {
        [] => "the pattern has no parameter that this could take: write one into it, such as \"/orders/{id}\", or leave the argument out".to_owned(),
        [only] => format!(
            "the pattern has one parameter, `{only}`, and this takes {count}: write {}",
            argument_for(parameters)
        ),
        several => format!(
            "the pattern has {} parameters, {}, and this takes {}: take all of them by one argument, in the pattern's order, such as {}",
            several.len(),
            listed(several),
            if count == 1 { "one".to_owned() } else { count.to_string() },
            argument_for(several)
        ),
    };
    mistakes.on(values, message);
}

/// The argument that takes these parameters, as it could be written.
fn argument_for(parameters: &[&str]) -> String {
    match parameters {
        [only] => format!("`Path({only}): Path<String>`"),
        several => format!(
            "`Path(({})): Path<({})>`",
            several.join(", "),
            vec!["String"; several.len()].join(", ")
        ),
    }
}

/// `a`, `b` and `c`.
fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// What an `Option` or a `Result` is made of, and else the type itself.
fn inner(ty: &Type) -> &Type {
    let wrapped = last_name(ty)
        .filter(|name| is_among(name, &["Option", "Result"]))
        .and_then(|_| generic(ty));
    wrapped.map_or(ty, inner)
}

/// The first type in the angle brackets.
fn generic(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ungrouped(ty) else {
        return None;
    };
    let PathArguments::AngleBracketed(generic) = &path.path.segments.last()?.arguments else {
        return None;
    };
    generic.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// A `macro_rules!` wraps the types it passes on into an invisible group.
fn ungrouped(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => ungrouped(&group.elem),
        Type::Paren(paren) => ungrouped(&paren.elem),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::{self, Attribute};

    fn check(route: &str, arguments: &str) -> Vec<String> {
        let mut mistakes = Mistakes::default();
        let route = attr::parse(Attribute::Route, route.parse().unwrap(), &mut mistakes);
        let item = format!("fn page({arguments}) {{}}").parse().unwrap();
        let handler = crate::handler::parse(item, "route", &mut mistakes).unwrap();
        assert!(mistakes.is_empty(), "{arguments}");
        check_body(&handler, &mut mistakes);
        check_path(
            &handler,
            &route.pattern.unwrap(),
            &route.options,
            &mut mistakes,
        );
        mistakes.messages()
    }

    #[track_caller]
    fn accepts(pattern: &str, arguments: &str) {
        assert_eq!(
            check(&format!("\"{pattern}\""), arguments),
            [""; 0],
            "{pattern} {arguments}"
        );
    }

    #[track_caller]
    fn refuses(pattern: &str, arguments: &str, start: &str) {
        let messages = check(&format!("\"{pattern}\""), arguments);
        assert_eq!(messages.len(), 1, "{pattern} {arguments}: {messages:#?}");
        assert!(
            messages[0].starts_with(start),
            "{pattern} {arguments}: {messages:#?}"
        );
    }

    #[test]
    fn every_parameter_may_be_taken() {
        for arguments in [
            "Path(id): Path<u64>",
            "_: Json<Order>, request: &mut Request",
            "event: Event",
            "id: Option<Path<u64>>",
            "id: Result<cloudgate::Path<u64>, Rejection>",
            "id: Id",
            "id: Option<Id>",
            "state: State<u8>, id: my::Own<u8>",
            "version: Version",
        ] {
            accepts("/orders/{id}", arguments);
        }
        accepts("/orders/{_id}", "");
        accepts("/{*_rest}", "State(pages): State<Pages>");
        accepts("/orders", "");
        assert_eq!(check("\"/{id}\", wrap(check_id)", ""), [""; 0]);
        for arguments in [
            "",
            "Json(order): Json<Order>",
            "_: Query<Page>, _: State<Db>, _: Extension<User>, _: cloudgate::ClientAddr, _: Option<String>",
        ] {
            refuses(
                "/orders/{id}",
                arguments,
                "no argument takes the parameter `id`: add `Path(id): Path<String>` or `request: &mut Request`; one that nobody needs is \
                 named with an underscore, {_id}",
            );
        }
        refuses(
            "/{a}/{_b}/{*c}",
            "",
            "no argument takes the parameters `a` and `c`: add `Path((a, _b, c)): Path<(String, String, String)>`",
        );
        assert!(check("\"/{*all}\"", "")[0].ends_with("{*_all}"));
    }

    #[test]
    fn a_path_has_as_many_values_as_its_pattern() {
        for (pattern, arguments) in [
            ("/{a}", "_: Path<String>"),
            ("/{a}", "_: Path<(u64,)>"),
            ("/{a}/{b}", "_: Path<(u64, std::string::String)>"),
            ("/{a}/{*b}", "_: (cloudgate::Path<(u64, String)>)"),
            // What these take, a macro cannot know.
            ("/{a}/{b}", "_: Path<Both>"),
            ("/{a}/{b}", "_: Path<Vec<u64>>"),
            ("/{a}/{b}", "_: Path"),
            ("/{a}", "_: Path<()>"),
            ("/", "_: Path<Filter>"),
            ("/", "_: Option<Path<u64>>"),
            ("/{a}/{b}", "_: Result<Path<u64>, Rejection>"),
            ("/{a}/{b}", "_: my::PathOf<u64>"),
        ] {
            accepts(pattern, arguments);
        }
        refuses(
            "/",
            "_: Path<u64>",
            "the pattern has no parameter that this could take",
        );
        refuses(
            "/a",
            "_: Path<(u64, u64)>",
            "the pattern has no parameter that this could take",
        );
        refuses(
            "/{a}/{*b}",
            "_: Path<u64>",
            "the pattern has 2 parameters, `a` and `b`, and this takes one: take all of them by one argument, in the pattern's order, such as \
             `Path((a, b)): Path<(String, String)>`",
        );
        refuses(
            "/{a}/{b}/{c}",
            "_: Path<(u64, u64)>",
            "the pattern has 3 parameters, `a`, `b` and `c`, and this takes 2",
        );
        refuses(
            "/{a}",
            "_: Path<(u64, u64)>",
            "the pattern has one parameter, `a`, and this takes 2: write `Path(a): Path<String>`",
        );
    }

    #[test]
    fn a_pattern_with_mistakes_is_left_to_the_librarys_check() {
        for pattern in [
            "/{id",
            "/:id",
            "/a/*",
            "/{a}{b}",
            "/{}",
            "/x{id}",
            "id",
            "{id}",
            "/{{id}}",
            "/{id}/{id}",
            "/{*id}/edit",
        ] {
            accepts(pattern, "_: Path<u64>");
            accepts(pattern, "");
        }
    }

    #[test]
    fn the_body_is_taken_once() {
        for arguments in [
            "_: Json<Order>, _: Query<Page>, request: &mut Request",
            "_: Option<Form<A>>",
            "_: Event, _: MyJson<A>, _: State<String>, _: Path<Names>",
            "_: Posted, _: Posted",
        ] {
            accepts("/", arguments);
        }
        for arguments in [
            "_: Event, _: Json<A>",
            "_: String, _: State<u8>, _: Bytes",
            "_: Option<Json<A>>, _: Form<A>",
            "_: Multipart, _: Result<Option<bytes::Bytes>, Rejection>",
            "_: String, _: String",
        ] {
            refuses("/", arguments, "the body can be taken once, and `");
        }
    }
}
