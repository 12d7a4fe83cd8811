//! Do the examples of the guide compile and do what it says?
//!
//! Each chapter is the documentation of an item that only the documentation tests see, so
//! `cargo test` runs its examples. They are one program: no two `#[route]`s of the guide may answer
//! the same requests, or every example with `App::gather()` fails and says which two it is.

macro_rules! chapters {
    ($($name:ident $file:literal)*) => {
        $(
            #[doc = include_str!(concat!("../../docs/guide/", $file))]
            struct $name;
        )*
    };
}

chapters! {
    FirstApp "01-first-app.md"
    Routes "02-routes.md"
    Arguments "03-arguments.md"
    Replies "04-replies.md"
    SharedState "05-shared-state.md"
    Middleware "06-middleware.md"
    Waiting "07-waiting.md"
    SeveralApps "08-several-apps.md"
    FilesAndUploads "09-files-and-uploads.md"
    Testing "10-testing.md"
    Running "11-running.md"
    StartErrors "12-start-errors.md"
    FromExpress "from-express.md"
    FromAxum "from-axum.md"
    FromActixWeb "from-actix-web.md"
}
