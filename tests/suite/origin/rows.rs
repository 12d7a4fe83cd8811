//! Which answer does each request for a file have?
//!
//! The rule or the server that it is from; the request line; its fields; status, fields and body of the answer.
//! `!` is in front of a field that must not be there, `=` in front of the body. `{tag}` and `{date}` are the validators of
//! what is asked for. Numbers alone are sections of RFC 9110 or, with names, of RFC 3986. Where others answer otherwise,
//! a comment says why.

pub const CONDITIONS: &str = r#"
# If-Match.
13.1.1, * :: GET /ten.bin :: If-Match: * :: 200 | = 0123456789
13.1.1, one of a list :: GET /ten.bin :: If-Match: "x", {tag} :: 200
13.1.1, two lines are one list :: GET /ten.bin :: If-Match: "x" | If-Match: {tag} :: 200
13.1.1, strong comparison :: GET /ten.bin :: If-Match: W/{tag} :: 412 | !etag
13.1.1, none :: GET /ten.bin :: If-Match: "x" :: 412
13.1.1, HEAD too :: HEAD /ten.bin :: If-Match: "x" :: 412
13.1.1, no representation :: GET /none.bin :: If-Match: * :: 404
# If-None-Match.
13.1.2, * :: GET /ten.bin :: If-None-Match: * :: 304
13.1.2, one :: GET /ten.bin :: If-None-Match: {tag} :: 304 | etag: {tag}
13.1.2, weak comparison :: GET /ten.bin :: If-None-Match: W/{tag} :: 304
13.1.2, one of a list :: GET /ten.bin :: If-None-Match: "a", {tag} :: 304
13.1.2, a comma within a tag :: GET /ten.bin :: If-None-Match: "a,b",{tag} :: 304
13.1.2, empty members of a list :: GET /ten.bin :: If-None-Match: , ,{tag} :: 304
13.1.2, HEAD too :: HEAD /ten.bin :: If-None-Match: {tag} :: 304 | !content-type
13.1.2, none :: GET /ten.bin :: If-None-Match: "x" :: 200
8.8.3, a tag has quotes :: GET /ten.bin :: If-None-Match: x :: 200
13.1.2, no representation :: GET /none.bin :: If-None-Match: * :: 404
# The dates.
13.1.3, the same :: GET /ten.bin :: If-Modified-Since: {date} :: 304
13.1.3, later :: GET /ten.bin :: If-Modified-Since: {future} :: 304
13.1.3, earlier :: GET /ten.bin :: If-Modified-Since: {past} :: 200
13.1.3, MUST ignore beside If-None-Match :: GET /ten.bin :: If-Modified-Since: {date} | If-None-Match: "x" :: 200
13.1.3, MUST ignore what is no date :: GET /ten.bin :: If-Modified-Since: yesterday :: 200
13.1.3, no list :: GET /ten.bin :: If-Modified-Since: {date}, {date} :: 200
5.6.7, RFC 850 :: GET /ten.bin :: If-Modified-Since: Saturday, 01-Jan-00 00:00:00 GMT :: 200
5.6.7, asctime :: GET /ten.bin :: If-Modified-Since: Fri Jan  1 00:00:00 2100 :: 304
13.1.4, the same :: GET /ten.bin :: If-Unmodified-Since: {date} :: 200
13.1.4, earlier :: GET /ten.bin :: If-Unmodified-Since: {past} :: 412
13.1.4, MUST ignore beside If-Match :: GET /ten.bin :: If-Unmodified-Since: {past} | If-Match: {tag} :: 200
13.1.4, MUST ignore what is no date :: GET /ten.bin :: If-Unmodified-Since: tomorrow :: 200
# Their order.
13.2.2, If-Match first :: GET /ten.bin :: If-Match: "x" | If-None-Match: {tag} :: 412
13.2.2, then If-None-Match :: GET /ten.bin :: If-Match: {tag} | If-None-Match: {tag} :: 304
13.2.2, If-Range last :: GET /ten.bin :: If-None-Match: {tag} | If-Range: {tag} | Range: bytes=0-1 :: 304 | !content-range
# Go says 404 or 405 here as well: there is no 412 for what would not be 200 anyway.
13.2.1, MUST ignore where the answer is no 2xx :: POST /ten.bin :: If-Match: "x" :: 405
13.2.1, the same :: GET /docs :: If-Match: "x" :: 308
13.2.1, the same :: OPTIONS /ten.bin :: If-None-Match: * :: 204
# What a 304 has.
15.4.5, MUST have what a 200 would have :: GET /words.txt :: If-None-Match: {tag} :: 304 | etag: {tag} | last-modified: {date} | cache-control: no-cache | vary: Accept-Encoding
15.4.5, nothing of a body :: GET /words.txt :: If-None-Match: {tag} :: 304 | !content-length | !content-type | !accept-ranges | = 
13.1.2, large :: GET /large.bin :: If-None-Match: {tag} :: 304
13.1.2, empty :: GET /empty.bin :: If-None-Match: {tag} :: 304
"#;

pub const RANGES: &str = r#"
14.2, first and last :: GET /ten.bin :: Range: bytes=2-4 :: 206 | content-range: bytes 2-4/10 | content-length: 3 | = 234
14.1.2, one byte :: GET /ten.bin :: Range: bytes=0-0 :: 206 | content-range: bytes 0-0/10 | = 0
14.1.2, open :: GET /ten.bin :: Range: bytes=7- :: 206 | content-range: bytes 7-9/10 | = 789
14.1.2, all of it, as browsers ask for films :: GET /ten.bin :: Range: bytes=0- :: 206 | content-range: bytes 0-9/10
14.1.2, suffix :: GET /ten.bin :: Range: bytes=-3 :: 206 | content-range: bytes 7-9/10 | = 789
14.1.2, suffix longer than it is :: GET /ten.bin :: Range: bytes=-50 :: 206 | content-range: bytes 0-9/10
14.1.2, last behind the end :: GET /ten.bin :: Range: bytes=8-50 :: 206 | content-range: bytes 8-9/10 | = 89
14.1.2, numbers that no integer holds :: GET /ten.bin :: Range: bytes=8-99999999999999999999999 :: 206 | content-range: bytes 8-9/10
14.1.2, the same, as the first :: GET /ten.bin :: Range: bytes=99999999999999999999999- :: 416
14.1, units are case-insensitive :: GET /ten.bin :: Range: BYTES=0-1 :: 206 | = 01
14.2, MUST ignore other units :: GET /ten.bin :: Range: lines=0-1 :: 200 | !content-range
14.2, MAY ignore what is invalid: last before first :: GET /ten.bin :: Range: bytes=5-2 :: 200
14.2, the same, as nginx does not (416) :: GET /ten.bin :: Range: bytes=a-b :: 200
14.2, no bytes :: GET /ten.bin :: Range: bytes= :: 200
14.2, twice, which is no list :: GET /ten.bin :: Range: bytes=0-1 | Range: bytes=2-3 :: 200
14.2, HEAD has none :: HEAD /ten.bin :: Range: bytes=0-1 :: 200 | content-length: 10 | accept-ranges: bytes
14.2, nor have other methods :: POST /ten.bin :: Range: bytes=0-1 :: 405
15.5.17, SHOULD tell the length :: GET /ten.bin :: Range: bytes=10- :: 416 | content-range: bytes */10 | accept-ranges: bytes
# Else a cache could take the error for a version: send leaves them out as well.
15.5.17, no validators of the file :: GET /ten.bin :: Range: bytes=10- :: 416 | !etag | !last-modified | !cache-control
14.1.2, nothing of a suffix :: GET /ten.bin :: Range: bytes=-0 :: 416 | content-range: bytes */10
14.1.2, one of two :: GET /ten.bin :: Range: bytes=50-60,0-1 :: 206 | content-range: bytes 0-1/10 | = 01
14.2, all of several behind the end :: GET /ten.bin :: Range: bytes=50-60,70- :: 416
15.3.7, MUST have what a 200 would have :: GET /ten.txt :: Range: bytes=0-1 :: 206 | etag: {tag} | last-modified: {date} | cache-control: no-cache | vary: Accept-Encoding
15.3.7, and the type :: GET /ten.txt :: Range: bytes=0-1 :: 206 | content-type: text/plain; charset=utf-8
14.3, SHOULD say what there is :: GET /ten.bin :: :: 200 | accept-ranges: bytes
# Empty files. send answers 200 to the first, Go and nginx 416: no byte of it is there.
14.1.2, of nothing :: GET /empty.bin :: Range: bytes=0- :: 200 | content-length: 0 | !content-range
14.1.2, the last of nothing :: GET /empty.bin :: Range: bytes=-1 :: 200 | content-length: 0
8.6, empty :: GET /empty.bin :: :: 200 | content-length: 0 | = 
8.6, empty, HEAD :: HEAD /empty.bin :: :: 200 | content-length: 0
# If-Range.
13.1.5, the same tag :: GET /ten.bin :: Range: bytes=0-1 | If-Range: {tag} :: 206 | = 01
13.1.5, another tag :: GET /ten.bin :: Range: bytes=0-1 | If-Range: "x" :: 200 | = 0123456789
13.1.5, MUST be strong :: GET /ten.bin :: Range: bytes=0-1 | If-Range: W/{tag} :: 200
13.1.5, no list :: GET /ten.bin :: Range: bytes=0-1 | If-Range: "x", {tag} :: 200
13.1.5, the date :: GET /ten.bin :: Range: bytes=0-1 | If-Range: {date} :: 206 | = 01
13.1.5, an exact match: earlier :: GET /ten.bin :: Range: bytes=0-1 | If-Range: {past} :: 200
# Go says 206 here.
13.1.5, an exact match: later :: GET /ten.bin :: Range: bytes=0-1 | If-Range: {future} :: 200
13.1.5, what is neither :: GET /ten.bin :: Range: bytes=0-1 | If-Range: x :: 200
13.1.5, behind the end of another version :: GET /ten.bin :: Range: bytes=50- | If-Range: "x" :: 200
13.1.5, MUST ignore without Range :: GET /ten.bin :: If-Range: "x" :: 200
# From the disk.
14.2, large :: GET /large.bin :: Range: bytes=300-302 :: 206 | content-range: bytes 300-302/1048583 | = 123
14.1.2, large, suffix :: GET /large.bin :: Range: bytes=-1 :: 206 | content-range: bytes 1048582-1048582/1048583
15.5.17, large :: GET /large.bin :: Range: bytes=1048583- :: 416 | content-range: bytes */1048583
# What is no file of the folder.
14.2, MUST ignore where it is not 200 :: GET /none.html :: Range: bytes=0-1 :: 404 | !content-range
14.2, MUST ignore where it is not 200 :: GET /docs :: Range: bytes=0-1 :: 308 | !content-range
14.2, the page of a folder :: GET /docs/ :: Range: bytes=0-3 :: 206 | = <h1>
# A part is of the coded bytes where they are what is selected.
14.2, of the selected representation :: GET /words.txt :: Accept-Encoding: gzip | Range: bytes=0-1 :: 206 | content-encoding: gzip | vary: Accept-Encoding
14.2, as Chromium asks for films :: GET /words.txt :: Accept-Encoding: identity;q=1, *;q=0 | Range: bytes=0-4 :: 206 | !content-encoding | = words
"#;

pub const NAMES_METHODS_AND_FIELDS: &str = r#"
# Names (RFC 3986 sections 2 and 3.3).
2.1, space :: GET /a%20b.txt :: :: 200 | = space
2.2, + is no space in a path :: GET /a+b.txt :: :: 200 | = plus
2.1, + encoded :: GET /a%2Bb.txt :: :: 200 | = plus
2.4, MUST NOT decode twice :: GET /a%2520b.txt :: :: 200 | = percent
3.3, ; has no meaning :: GET /a;b=c,d.txt :: :: 200 | = semicolon
2.1, ; encoded :: GET /a%3Bb%3dc%2Cd.txt :: :: 200 | = semicolon
3.4, ? and # encoded :: GET /a%3Fb%23c.txt :: :: 200 | = question
3.4, ? begins the query :: GET /a?b.txt :: :: 404
9112 3.2, no # in a target :: GET /a?b#c.txt :: :: 400
2.5, UTF-8 :: GET /na%C3%AFve-%E6%97%A5.txt :: :: 200 | = utf-8
2.1, digits in either case :: GET /na%c3%afve-%e6%97%a5.txt :: :: 200 | = utf-8
# No name of ours: names are UTF-8. nginx and send look for it and say 404.
2.5, Latin-1 is no UTF-8 :: GET /na%EFve.txt :: :: 400
2.2, sub-delims :: GET /~a'(b)!@$&*=.txt :: :: 200 | = sub-delims
2.3, unreserved encoded :: GET /%74en%2Etxt :: :: 200 | = 0123456789
2.1, no hex :: GET /%zz.txt :: :: 400
2.1, cut :: GET /ten.txt%2 :: :: 400
3.4, any query :: GET /ten.txt?v=1&/../x?y :: :: 200 | = 0123456789
3.4, an empty query :: GET /ten.txt? :: :: 200
Go, ServeDir: no file with a slash :: GET /ten.txt/ :: :: 404
nginx (404), send (404): no folder in a file :: GET /ten.txt/more :: :: 404
# nginx merges them; then one file has any number of addresses, and rules for paths do not hold.
serve-static (404) :: GET //ten.txt :: :: 400
serve-static (404) :: GET /docs//index.html :: :: 400
a name longer than the file system has :: GET /{long} :: :: 404
a path longer than the system opens :: GET /{longer} :: :: 404
9110 4.2, the target as a whole :: GET http://h/ten.txt :: :: 200
names have a case :: GET /TEN.txt :: :: 404
# Folders.
ServeDir, nginx, send: the index :: GET /docs/ :: :: 200 | = <h1>docs</h1>
# Go and nginx say 301, after which a client may change the method of what is not GET.
to the slash :: GET /docs :: :: 308 | location: /docs/
to the slash, HEAD :: HEAD /docs :: :: 308 | location: /docs/
to the slash, with its query :: GET /docs?a=b%20c&d :: :: 308 | location: /docs/?a=b%20c&d
to the slash, encoded as it was :: GET /docs/caf%C3%A9 :: :: 308 | location: /docs/caf%C3%A9/
to the slash, never to a host :: GET //docs :: :: 400 | !location
no index, no list :: GET /bare/ :: :: 404
no index, no slash :: GET /bare :: :: 404 | !location
# Go sends /index.html to /; a page has the same right to be asked for as another.
the index by its name :: GET /docs/index.html :: :: 200 | !location
# Methods.
9.3.2, HEAD as GET :: HEAD /ten.txt :: :: 200 | content-length: 10 | etag: {tag} | last-modified: {date}
9.3.2, HEAD as GET, coded :: HEAD /words.txt :: Accept-Encoding: gzip :: 200 | content-encoding: gzip
9.3.2, HEAD of what is missing :: HEAD /none.html :: :: 404
15.5.6, MUST have Allow :: POST /ten.txt :: Content-Length: 0 :: 405 | allow: GET, HEAD, OPTIONS
15.5.6, PUT :: PUT /ten.txt :: Content-Length: 1 :: 405 | allow: GET, HEAD, OPTIONS
15.5.6, DELETE :: DELETE /ten.txt :: :: 405 | allow: GET, HEAD, OPTIONS
9.3.7, OPTIONS :: OPTIONS /ten.txt :: :: 204 | allow: GET, HEAD, OPTIONS
send, ServeDir: nothing to be posted to :: POST /none.txt :: Content-Length: 0 :: 404
# Fields.
12.5.5, Vary :: GET /ten.txt :: :: 200 | vary: Accept-Encoding
12.5.5, Vary, whatever was asked for :: GET /words.txt :: Accept-Encoding: identity :: 200 | vary: Accept-Encoding | !content-encoding
8.4, coded :: GET /words.txt :: Accept-Encoding: gzip :: 200 | content-encoding: gzip | vary: Accept-Encoding | accept-ranges: bytes
12.5.3, refused :: GET /words.txt :: Accept-Encoding: gzip;q=0 :: 200 | !content-encoding
8.8.3.3, the tag of another form :: GET /words.txt :: Accept-Encoding: gzip | If-None-Match: {tag} :: 200
8.8.2.1, Last-Modified :: GET /large.bin :: :: 200 | last-modified: {date}
WHATWG, no sniffing :: GET /ten.bin :: :: 200 | x-content-type-options: nosniff | content-type: application/octet-stream
the page of 404 has no validators :: GET /none.html :: Accept: text/html :: 404 | !etag | !last-modified | !accept-ranges | vary: Accept-Encoding | = <h1>nothing here</h1>
the page of 404 is never 304 :: GET /none.html :: Accept: text/html | If-None-Match: * :: 404
the page of 404, HEAD :: HEAD /none.html :: Accept: text/html :: 404 | content-length: 21
"#;
