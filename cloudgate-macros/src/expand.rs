//! What code stands beside a handler, so that the app finds and calls it?

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::LitStr;
use syn::ext::IdentExt;
use syn::spanned::Spanned;

use crate::attr::{Attribute, Route};
use crate::handler::{Argument, Handler};
use crate::mistakes::Mistakes;
use crate::options::{Options, Thread};

/// The user's item, unchanged, and beside it either the route or the mistakes.
pub(crate) fn route(
    attribute: Attribute,
    arguments: TokenStream,
    item: &TokenStream,
) -> TokenStream {
    let mut mistakes = Mistakes::default();
    let route = crate::attr::parse(attribute, arguments, &mut mistakes);
    let handler = crate::handler::parse(item.clone(), attribute.name(), &mut mistakes);
    if let Some(handler) = &handler {
        if route.options.thread == Thread::Blocking {
            crate::handler::check_blocking(handler, &mut mistakes);
        }
        crate::fit::check_body(handler, &mut mistakes);
        if let Some(pattern) = &route.pattern {
            crate::fit::check_path(handler, pattern, &route.options, &mut mistakes);
        }
    }
    let beside = match (handler, &route.pattern) {
        (Some(handler), Some(pattern)) if mistakes.is_empty() => block(&route, pattern, &handler),
        _ => mistakes.into_compile_errors(),
    };
    quote!(#item #beside)
}

/// Everything generated stays inside of one `const _`, and no item in it has a name that a handler would have:
/// the handler is called by its name, and an item of the block would hide it.
fn block(route: &Route, pattern: &LitStr, handler: &Handler) -> TokenStream {
    let attributes = &handler.attributes;
    let methods = &route.methods;
    let name = handler.name.unraw().to_string();
    let call = call(handler, route.options.thread);
    let needs = needs(handler);
    // The caret stands under the pattern: `assert_valid` is `#[track_caller]`, and the whole call has the literal's span.
    let check = quote_spanned!(pattern.span()=> const _: () = ::cloudgate::__private::assert_valid(#pattern););
    let check_host = route.options.host.as_ref().map(|host| {
        quote_spanned!(host.span()=> const _: () = ::cloudgate::__private::assert_valid_host(#host);)
    });
    let options = options(&route.options);
    // Both functions are closures in one body, because the compiler reports an error once for each body: a type that is no
    // extractor would be reported twice, for the call and for the needs.
    quote! {
        #(#attributes)*
        const _: () = {
            #check
            #check_host

            #[::cloudgate::__private::linkme::distributed_slice(::cloudgate::__private::ROUTES)]
            #[linkme(crate = ::cloudgate::__private::linkme)]
            static __CLOUDGATE_ROUTE: ::cloudgate::__private::RouteEntry = ::cloudgate::__private::RouteEntry {
                methods: &[#(#methods),*],
                pattern: #pattern,
                handler: #call,
                needs: #needs,
                options: #options,
                name: ::core::concat!(::core::module_path!(), "::", #name),
                file: ::core::file!(),
                line: ::core::line!(),
            };
        };
    }
}

/// What the attribute says besides methods and pattern, as a constant.
fn options(options: &Options) -> TokenStream {
    let Options {
        body_limit,
        timeout,
        host,
        params,
        private,
        thread: _,
        wrap,
    } = options;
    let mut fields = Vec::new();
    if let Some(bytes) = body_limit {
        fields.push(quote!(body_limit = ::core::option::Option::Some(#bytes)));
    }
    if let Some(timeout) = timeout {
        let (seconds, nanos) = (timeout.as_secs(), timeout.subsec_nanos());
        fields.push(quote! {
            timeout = ::core::option::Option::Some(::core::time::Duration::new(#seconds, #nanos))
        });
    }
    if let Some(host) = host {
        fields.push(quote!(host = ::core::option::Option::Some(#host)));
    }
    if !params.is_empty() {
        fields.push(quote!(required = &[#(#params),*]));
    }
    if *private {
        fields.push(quote!(private = true));
    }
    if !wrap.is_empty() {
        // The caret stands under the whole expression: the call around it begins with a token of its place.
        let each = wrap.iter().map(|middleware| {
            let (start, _) = ends(middleware);
            let make = quote_spanned!(start=> ::cloudgate::__private::BoxedMiddleware::new);
            quote!(|| #make(#middleware))
        });
        fields.push(quote!(wrap = &[#(#each),*]));
    }
    let none = quote!(::cloudgate::__private::RouteOptions::NONE);
    if fields.is_empty() {
        return none;
    }
    // Not `..NONE`: where every field is set, lints in the user's program would call that needless.
    let options = local("options");
    quote!({
        let mut #options = #none;
        #(#options.#fields;)*
        #options
    })
}

/// The adapter from the router's one signature to the handler's own.
///
/// An error about an expression is shown from its first token to its last. So that carets stand under the whole type of the
/// request argument and of the return value, their expressions begin and end with a token that has a place in that type:
/// `&mut *(request)`, and `(returned,).0`.
fn call(handler: &Handler, thread: Thread) -> TokenStream {
    let request = local("request");
    let mut extractions = TokenStream::new();
    let mut values = Vec::new();
    for (index, argument) in handler.arguments.iter().enumerate() {
        match argument {
            Argument::Extracted(ty) => {
                let value = local(&format!("argument_{index}"));
                let extract = match thread {
                    Thread::Worker => {
                        quote_spanned!(ty.span()=> ::cloudgate::__private::extract::<#ty>)
                    }
                    Thread::Blocking => {
                        quote_spanned!(ty.span()=> ::cloudgate::__private::extract_to_send::<#ty>)
                    }
                };
                let response = local("response");
                extractions.extend(quote! {
                    let #value = match #extract(#request) {
                        ::core::result::Result::Ok(#value) => #value,
                        ::core::result::Result::Err(#response) => return #response,
                    };
                });
                values.push(match thread {
                    Thread::Worker => quote!(#value),
                    Thread::Blocking => quote!(#value.open()),
                });
            }
            // Every extraction stands before the call, so the handler gets the request after them, whatever its position.
            Argument::Request(ty) => {
                let (start, end) = ends(ty);
                let reborrow = quote_spanned!(start=> &mut *);
                let request = parenthesized(quote!(#request), end);
                values.push(quote!(#reborrow #request));
            }
        }
    }
    let name = &handler.name;
    let reply = match &handler.returns {
        None => quote!(::cloudgate::__private::reply(#name(#(#values),*))),
        Some(ty) => {
            let (start, end) = ends(ty);
            let reply = quote_spanned!(start=> ::cloudgate::__private::reply);
            let returned = parenthesized(quote!(#name(#(#values),*),), start);
            let field = quote_spanned!(end=> .0);
            quote!(#reply(#returned #field))
        }
    };
    // The reply is made on that thread too: it may be large, and need not be able to leave it.
    let response = match thread {
        Thread::Worker => reply,
        Thread::Blocking => quote!(::cloudgate::__private::on_a_thread(move || #reply)),
    };
    quote! {
        |#request: &mut ::cloudgate::Request<'_>| -> ::cloudgate::Response {
            #extractions
            #response
        }
    }
}

fn needs(handler: &Handler) -> TokenStream {
    let needs = local("needs");
    let each = handler
        .arguments
        .iter()
        .filter_map(|argument| match argument {
            Argument::Extracted(ty) => {
                Some(quote_spanned!(ty.span()=> ::cloudgate::__private::needs::<#ty>))
            }
            Argument::Request(_) => None,
        });
    quote!(|#needs| { #(#each(#needs);)* })
}

/// A name that the user's code neither sees nor hides: local variables of a macro are hygienic.
fn local(name: &str) -> Ident {
    format_ident!("{name}", span = Span::mixed_site())
}

fn parenthesized(tokens: TokenStream, place: Span) -> Group {
    let mut group = Group::new(Delimiter::Parenthesis, tokens);
    group.set_span(place);
    group
}

/// The places of the first and the last token.
fn ends(tokens: &impl ToTokens) -> (Span, Span) {
    let mut tokens = tokens.to_token_stream().into_iter();
    let first = tokens.next();
    let last = tokens.last();
    let start = first.as_ref().map_or_else(Span::call_site, TokenTree::span);
    (start, last.as_ref().map_or(start, TokenTree::span))
}
