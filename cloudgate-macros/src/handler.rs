//! Is the function below `#[route]` a handler, and what are its arguments?

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, FnArg, GenericArgument, GenericParam, Ident, Lit, Meta, PatType, PathArguments,
    ReturnType, Safety, Signature, Token, Type, TypeReference, Visibility,
};

use crate::mistakes::Mistakes;

/// What the generated code has to know of the user's function.
pub(crate) struct Handler {
    /// Those of the function's attributes that the generated code needs too: `#[cfg]` and `#[allow]`.
    pub(crate) attributes: Vec<TokenStream>,
    pub(crate) name: Ident,
    pub(crate) arguments: Vec<Argument>,
    /// `None` for a function that returns nothing.
    pub(crate) returns: Option<Type>,
}

pub(crate) enum Argument {
    /// A type that an extractor makes.
    Extracted(Type),
    /// The request itself, as a `&mut` reference.
    Request(Type),
}

/// Reads the function's signature and notes every mistake in it. `None` if the item is no function at all.
///
/// The body stays unread: the compiler reports its mistakes better, and an editor's half-written body is no reason to lose the route.
pub(crate) fn parse(
    item: TokenStream,
    attribute: &str,
    mistakes: &mut Mistakes,
) -> Option<Handler> {
    let read = (|input: ParseStream<'_>| {
        let attributes = input.call(Attribute::parse_outer)?;
        input.parse::<Visibility>()?;
        if !is_function(input)? {
            return Err(input.error(format_args!(
                "#[{attribute}] belongs on a function, such as `fn page() -> Response {{ … }}`"
            )));
        }
        let signature: Signature = input.parse()?;
        input.parse::<TokenStream>()?;
        Ok((attributes, signature))
    })
    .parse2(item);
    match read {
        Ok((attributes, signature)) => Some(check(&attributes, signature, mistakes)),
        Err(error) => {
            mistakes.push(error);
            None
        }
    }
}

fn is_function(input: ParseStream<'_>) -> syn::Result<bool> {
    let ahead = input.fork();
    ahead.parse::<Option<Token![const]>>()?;
    ahead.parse::<Option<Token![async]>>()?;
    ahead.parse::<Option<Token![unsafe]>>()?;
    if ahead.parse::<Option<Token![extern]>>()?.is_some() {
        ahead.parse::<Option<Lit>>()?;
    }
    Ok(ahead.peek(Token![fn]))
}

fn check(attributes: &[Attribute], signature: Signature, mistakes: &mut Mistakes) -> Handler {
    if let Some(keyword) = signature.asyncness {
        mistakes.on(
            keyword,
            "a handler cannot be async: write it as a plain `fn`, and put calls that wait, such as for a database, into `cloudgate::blocking`",
        );
    }
    if let Safety::Unsafe(keyword) = signature.safety {
        mistakes.on(keyword, "a handler cannot be unsafe: requests come from anyone; put `unsafe` around the lines that need it");
    }
    if let Some(abi) = &signature.abi {
        mistakes.on(
            abi,
            "a handler is a plain Rust function: leave `extern` out",
        );
    }
    for parameter in &signature.generics.params {
        match parameter {
            GenericParam::Lifetime(_) => {
                mistakes.on(parameter, "a handler names no lifetimes: leave this one out, or write `'_` where one is needed");
            }
            GenericParam::Type(_) | GenericParam::Const(_) => {
                mistakes.on(parameter, "a handler cannot be generic: nothing decides what this stands for; write the type itself");
            }
        }
    }
    if let Some(variadic) = &signature.variadic {
        mistakes.on(
            variadic,
            "a handler has a fixed number of arguments: leave `...` out",
        );
    }
    let arguments = check_arguments(signature.inputs, mistakes);
    let returns = match signature.output {
        ReturnType::Default => None,
        ReturnType::Type(_, returns) => {
            if let Type::Never(_) = *returns {
                mistakes.on(
                    &returns,
                    "a handler answers: give it a return type, such as `Response`",
                );
            }
            Some(*returns)
        }
    };
    Handler {
        attributes: attributes.iter().filter_map(shared_attribute).collect(),
        name: signature.ident,
        arguments,
        returns,
    }
}

fn check_arguments(inputs: Punctuated<FnArg, Token![,]>, mistakes: &mut Mistakes) -> Vec<Argument> {
    let mut arguments = Vec::new();
    let mut request_is_taken = false;
    for input in inputs {
        let PatType { attrs, ty, .. } = match input {
            FnArg::Typed(typed) => typed,
            FnArg::Receiver(receiver) => {
                mistakes.on(
                    receiver,
                    "a handler is a free function, without `self`: move it out of the `impl` and take shared values as `State(value): State<T>`",
                );
                continue;
            }
        };
        for attribute in attrs.iter().filter(|attribute| {
            attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr")
        }) {
            mistakes.on(
                attribute,
                "an argument of a handler is always there: put #[cfg] on the whole function",
            );
        }
        let Some(reference) = as_reference(&ty) else {
            check_owned(&ty, mistakes);
            arguments.push(Argument::Extracted(*ty));
            continue;
        };
        if reference.mutability.is_none() {
            mistakes.on(&ty, by_value(reference));
        } else if request_is_taken {
            mistakes.on(&ty, "a handler takes `&mut Request` at most once");
        } else {
            request_is_taken = true;
            arguments.push(Argument::Request(*ty));
        }
    }
    arguments
}

/// Notes what a handler cannot take when it runs on a thread of its own.
pub(crate) fn check_blocking(handler: &Handler, mistakes: &mut Mistakes) {
    for argument in &handler.arguments {
        if let Argument::Request(ty) = argument {
            mistakes.on(
                ty,
                "a `blocking` handler cannot take the request, which stays with its connection while the handler runs on another thread: \
                 take what it needs by value, such as `Event`, `Bytes` or `Json<T>`, or leave `blocking` out and put the part that takes \
                 long into `cloudgate::blocking`",
            );
        }
    }
}

fn by_value(reference: &TypeReference) -> &'static str {
    if last_name(&reference.elem).is_some_and(|name| name == "Request") {
        "a handler takes the request as `&mut Request`: reading its body changes it"
    } else {
        "a handler takes an argument by value: write it without the `&` (only `&mut Request` is a reference)"
    }
}

/// Notes what cannot be inside of a type that an extractor makes: `impl Trait`, and borrows from a request that is gone by then.
fn check_owned(ty: &Type, mistakes: &mut Mistakes) {
    match ty {
        Type::ImplTrait(_) => {
            mistakes.on(
                ty,
                "a handler's argument is one type: write the type itself instead of `impl …`",
            );
        }
        Type::Reference(reference)
            if reference
                .lifetime
                .as_ref()
                .is_none_or(|lifetime| lifetime.ident != "static") =>
        {
            mistakes.on(
                ty,
                format_args!(
                    "an argument owns its data, it cannot borrow it from the request: write {}",
                    owned(&reference.elem)
                ),
            );
        }
        Type::Array(array) => check_owned(&array.elem, mistakes),
        Type::Group(group) => check_owned(&group.elem, mistakes),
        Type::Paren(paren) => check_owned(&paren.elem, mistakes),
        Type::Tuple(tuple) => tuple.elems.iter().for_each(|ty| check_owned(ty, mistakes)),
        Type::Path(path) => {
            for segment in &path.path.segments {
                let PathArguments::AngleBracketed(generic) = &segment.arguments else {
                    continue;
                };
                for argument in &generic.args {
                    if let GenericArgument::Type(ty) = argument {
                        check_owned(ty, mistakes);
                    }
                }
            }
        }
        _ => {}
    }
}

fn owned(referenced: &Type) -> &'static str {
    match referenced {
        Type::Slice(_) => "a `Vec` instead of a slice",
        other if last_name(other).is_some_and(|name| name == "str") => "`String` instead of `&str`",
        _ => "the type without the `&`",
    }
}

pub(crate) fn last_name(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        Type::Group(group) => last_name(&group.elem),
        Type::Paren(paren) => last_name(&paren.elem),
        _ => None,
    }
}

/// A `macro_rules!` wraps the types it passes on into an invisible group.
fn as_reference(ty: &Type) -> Option<&TypeReference> {
    match ty {
        Type::Reference(reference) => Some(reference),
        Type::Group(group) => as_reference(&group.elem),
        Type::Paren(paren) => as_reference(&paren.elem),
        _ => None,
    }
}

/// The attribute as the generated block needs it, if it does: where the function is compiled out, so is its route.
fn shared_attribute(attribute: &Attribute) -> Option<TokenStream> {
    shared_meta(&attribute.meta).map(|meta| quote!(#[#meta]))
}

fn shared_meta(meta: &Meta) -> Option<TokenStream> {
    if meta.path().is_ident("cfg") || meta.path().is_ident("allow") {
        return Some(quote!(#meta));
    }
    let Meta::List(list) = meta else { return None };
    if !list.path.is_ident("cfg_attr") {
        return None;
    }
    let parts = list
        .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
        .ok()?;
    let mut parts = parts.iter();
    let condition = parts.next()?;
    let shared: Vec<TokenStream> = parts.filter_map(shared_meta).collect();
    (!shared.is_empty()).then(|| quote!(cfg_attr(#condition, #(#shared),*)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(item: &str) -> (Option<Handler>, Vec<String>) {
        let mut mistakes = Mistakes::default();
        let handler = parse(item.parse().unwrap(), "route", &mut mistakes);
        (handler, mistakes.messages())
    }

    /// `kinds`: `&` for the request, `=` for an extracted argument.
    #[track_caller]
    fn accepts(item: &str, kinds: &str) {
        let (handler, messages) = read(item);
        assert_eq!(messages, [""; 0], "{item}");
        let kind = |argument: &Argument| match argument {
            Argument::Request(_) => '&',
            Argument::Extracted(_) => '=',
        };
        assert_eq!(
            handler
                .unwrap()
                .arguments
                .iter()
                .map(kind)
                .collect::<String>(),
            kinds,
            "{item}"
        );
    }

    #[track_caller]
    fn refuses(item: &str, starts: &[&str]) {
        let (_, messages) = read(item);
        assert_eq!(messages.len(), starts.len(), "{item}: {messages:#?}");
        for (message, start) in messages.iter().zip(starts) {
            assert!(
                message.starts_with(start),
                "{item}: {message:?} does not start with {start:?}"
            );
        }
    }

    #[track_caller]
    fn shares(attributes: &str, want: &str) {
        let (handler, _) = read(&format!("{attributes} fn page() {{}}"));
        let shared = handler
            .unwrap()
            .attributes
            .into_iter()
            .collect::<TokenStream>()
            .to_string();
        assert_eq!(
            shared.replace(' ', ""),
            want.replace(' ', ""),
            "{attributes}"
        );
    }

    #[test]
    fn any_plain_function_is_a_handler() {
        accepts("fn page() {}", "");
        accepts("pub(crate) const fn page() -> &'static str { \"\" }", "");
        accepts("fn page(_: Event) -> Response { broken body = }", "=");
        accepts(
            "fn page(Path((a, b)): Path<(u64, String)>, request: &mut Request<'_>, _event: Event) {}",
            "=&=",
        );
        accepts("fn page(request: (&mut cloudgate::Request)) {}", "&");
        accepts(
            "fn page(State(text): State<&'static str>, State(call): State<fn(&str) -> bool>) -> impl IntoResponse {}",
            "==",
        );
    }

    #[test]
    fn each_mistake_has_its_message() {
        refuses("async fn page() {}", &["a handler cannot be async"]);
        refuses("unsafe fn page() {}", &["a handler cannot be unsafe"]);
        refuses(
            "extern \"C\" fn page() {}",
            &["a handler is a plain Rust function"],
        );
        refuses(
            "extern fn page() {}",
            &["a handler is a plain Rust function"],
        );
        refuses("fn page<T>() {}", &["a handler cannot be generic"]);
        refuses(
            "fn page<const N: usize>() {}",
            &["a handler cannot be generic"],
        );
        refuses(
            "fn page<'a>(request: &'a mut Request<'a>) {}",
            &["a handler names no lifetimes"],
        );
        refuses("fn page(&self) {}", &["a handler is a free function"]);
        refuses(
            "fn page(self: Box<Self>, _: Event) {}",
            &["a handler is a free function"],
        );
        refuses(
            "fn page(_: Event, ...) {}",
            &["a handler has a fixed number"],
        );
        refuses(
            "fn page(event: impl FromRequest) {}",
            &["a handler's argument is one type"],
        );
        refuses(
            "fn page(event: &Event) {}",
            &["a handler takes an argument by value"],
        );
        refuses(
            "fn page(text: &'static str) {}",
            &["a handler takes an argument by value"],
        );
        refuses(
            "fn page(request: &Request) {}",
            &["a handler takes the request as `&mut Request`"],
        );
        refuses(
            "fn page(a: &mut Request, b: &mut Request) {}",
            &["a handler takes `&mut Request` at most once"],
        );
        refuses(
            "fn page(Path(name): Path<&str>) {}",
            &["an argument owns its data, it cannot borrow it from the request: write `String`"],
        );
        refuses(
            "fn page(Json(x): Json<Vec<(u8, &[u8])>>) {}",
            &["an argument owns its data"],
        );
        refuses(
            "fn page(#[cfg(test)] event: Event) {}",
            &["an argument of a handler is always there"],
        );
    }

    #[test]
    fn a_blocking_handler_takes_no_request() {
        for (item, count) in [
            ("fn page(_: Event, Path(id): Path<u64>) {}", 0),
            ("fn page(_: Event, request: &mut Request<'_>) {}", 1),
        ] {
            let mut mistakes = Mistakes::default();
            let handler = parse(item.parse().unwrap(), "route", &mut mistakes).unwrap();
            check_blocking(&handler, &mut mistakes);
            let messages = mistakes.messages();
            assert_eq!(messages.len(), count, "{item}");
            for message in messages {
                assert!(message.starts_with("a `blocking` handler cannot take the request"));
            }
        }
    }

    #[test]
    fn only_a_function_can_be_a_handler() {
        for item in [
            "struct Page;",
            "mod page {}",
            "const PAGE: u8 = 0;",
            "static PAGE: u8 = 0;",
            "impl Page {}",
            "unsafe impl Send for Page {}",
            "extern crate page;",
        ] {
            refuses(item, &["#[route] belongs on a function"]);
        }
    }

    #[test]
    fn every_mistake_is_reported_at_once() {
        refuses(
            "async unsafe fn page<T>(a: &T, b: &mut Request, c: &mut Request) {}",
            &[
                "a handler cannot be async",
                "a handler cannot be unsafe",
                "a handler cannot be generic",
                "a handler takes an argument by value",
                "a handler takes `&mut Request` at most once",
            ],
        );
    }

    #[test]
    fn conditions_and_allowances_are_shared_with_the_generated_block() {
        shares(
            "#[cfg(unix)] #[allow(deprecated)] #[inline] #[doc = \"x\"]",
            "#[cfg(unix)] #[allow(deprecated)]",
        );
        shares(
            "#[cfg_attr(unix, cfg(test), inline)]",
            "#[cfg_attr(unix, cfg(test))]",
        );
        shares("#[cfg_attr(unix, inline)]", "");
    }
}
