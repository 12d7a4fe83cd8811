//! Which module tree do the files below a folder make?
//!
//! For `modules!("api")` and the files `api/users.rs`, `api/tests/mod.rs` and `api/tests/simple.rs`:
//!
//! ```text
//! #[path = "/absolute/path/of/api"]
//! pub(crate) mod api {
//!     #[path = "tests/mod.rs"] mod tests_mod;
//!     pub(crate) mod tests {
//!         pub(crate) use super::tests_mod::*;
//!         pub(crate) mod simple;
//!     }
//!     pub(crate) mod users;
//! }
//! ```
//!
//! Only the outermost module has an absolute path: on a module with a body `#[path]` names the folder of the modules inside.
//! rust-analyzer puts the path of a module together as text, so that an absolute path further inside would lead it nowhere.
//!
//! A folder's own file, `tests/mod.rs` or `tests.rs` beside the folder, is a module of its own, whose items the folder's module
//! re-exports. `include!` would put the items at their very place, but it refuses files that open with `//!` or `#![…]`.
//! The module stands beside the folder's, not inside: `super` in it then means what it means in any such file.

use std::path::{Component, Path};

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::LitStr;
use syn::ext::IdentExt;

use crate::folder::{Folder, Module, bad_name, module_name};
use crate::mistakes::Mistakes;

pub(crate) fn expand(input: TokenStream) -> TokenStream {
    let literal: LitStr = match syn::parse2(input) {
        Ok(literal) => literal,
        Err(_) => {
            let message = "modules! takes the name of one folder, as a string: modules!(\"api\")";
            return syn::Error::new(Span::call_site(), message).into_compile_error();
        }
    };
    // Cargo sets it for every compilation, and rust-analyzer does too.
    let Some(package) = std::env::var_os("CARGO_MANIFEST_DIR") else {
        let message = "modules! looks below the folder in CARGO_MANIFEST_DIR, which is not set: build with cargo";
        return syn::Error::new(literal.span(), message).into_compile_error();
    };
    let (tree, problems) = declare(Path::new(&package), &literal.value());
    let mut mistakes = Mistakes::default();
    for problem in problems {
        mistakes.on(&literal, problem);
    }
    let errors = mistakes.into_compile_errors();
    quote!(#tree #errors)
}

/// The tree as code, and what is wrong with it. What is right is declared in any case, or one wrong name would hide every module.
fn declare(package: &Path, folder: &str) -> (TokenStream, Vec<String>) {
    let relative = Path::new(folder);
    let is_inside = !folder.is_empty()
        && relative
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
    let name = relative.file_name().and_then(|name| name.to_str());
    let (true, Some(name)) = (is_inside, name) else {
        let problem = format!(
            "\"{folder}\" is no folder inside of the package: write its path from the folder of Cargo.toml on, such as \"api\""
        );
        return (TokenStream::new(), vec![problem]);
    };
    let Some(ident) = module_name(name) else {
        return (TokenStream::new(), vec![bad_name(folder, name, "")]);
    };
    let path = package.join(relative);
    let (root, problems) = Folder::read(&path, relative);
    let Some(path) = path.to_str() else {
        return (
            TokenStream::new(),
            vec![format!(
                "the path {} is not UTF-8: move the package",
                path.display()
            )],
        );
    };
    let own_file = root.has_own_file.then(|| format!("{path}/mod.rs"));
    let tree = declare_folder(&ident, Some(path), own_file, &root);
    (tree, problems)
}

fn declare_module(stem: &str, module: &Module) -> TokenStream {
    let name = &module.name;
    let Some(folder) = &module.folder else {
        return quote!(pub(crate) mod #name;);
    };
    let own_file = if module.file {
        Some(format!("{stem}.rs"))
    } else {
        folder.has_own_file.then(|| format!("{stem}/mod.rs"))
    };
    declare_folder(name, None, own_file, folder)
}

fn declare_folder(
    name: &Ident,
    path: Option<&str>,
    own_file: Option<String>,
    folder: &Folder,
) -> TokenStream {
    let path = path.map(|path| quote!(#[path = #path]));
    let modules = folder
        .modules
        .iter()
        .map(|(stem, module)| declare_module(stem, module));
    let Some(own_file) = own_file else {
        return quote!(#path pub(crate) mod #name { #(#modules)* });
    };
    let own = format_ident!("{}_mod", name.unraw());
    // `unused_imports`: a file with routes alone has nothing to re-export.
    quote! {
        #[path = #own_file]
        mod #own;
        #path
        pub(crate) mod #name {
            #[allow(unused_imports)]
            pub(crate) use super::#own::*;
            #(#modules)*
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::folder::MAX_DEPTH;

    /// A package folder with these files. A path that ends in `/` is a folder.
    fn package(files: &[(&str, &str)]) -> tempfile::TempDir {
        let package = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = package.path().join(path);
            if path.to_string_lossy().ends_with('/') {
                fs::create_dir_all(path).unwrap();
            } else {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
        }
        package
    }

    #[track_caller]
    fn declares(files: &[(&str, &str)], want: &str) {
        let package = package(files);
        let (tree, problems) = declare(package.path(), "api");
        assert_eq!(problems, [""; 0]);
        let want = want.replace("ROOT", &format!("{}/api", package.path().display()));
        let without_space = |text: String| text.replace([' ', '\n'], "");
        assert_eq!(without_space(tree.to_string()), without_space(want));
    }

    /// Each of `parts` occurs in the one problem.
    #[track_caller]
    fn refuses(files: &[(&str, &str)], folder: &str, parts: &[&str]) {
        let package = package(files);
        refuses_in(package.path(), folder, parts);
    }

    #[track_caller]
    fn refuses_in(package: &Path, folder: &str, parts: &[&str]) {
        let (_, problems) = declare(package, folder);
        assert_eq!(problems.len(), 1, "{problems:#?}");
        for part in parts {
            assert!(
                problems[0].contains(part),
                "{:?} does not contain {part:?}",
                problems[0]
            );
        }
    }

    #[test]
    fn it_takes_one_string() {
        for input in [quote!(), quote!(api), quote!("a", "b")] {
            let errors = expand(input).to_string();
            assert!(
                errors.contains("modules! takes the name of one folder"),
                "{errors}"
            );
        }
    }

    #[test]
    fn files_and_folders_become_modules_in_order() {
        declares(
            &[
                ("api/users.rs", ""),
                ("api/tests/simple.rs", ""),
                ("api/tests/full.rs", ""),
                ("api/type.rs", ""),
            ],
            r#"#[path = "ROOT"] pub(crate) mod api {
                pub(crate) mod tests { pub(crate) mod full; pub(crate) mod simple; }
                pub(crate) mod r#type;
                pub(crate) mod users;
            }"#,
        );
    }

    #[test]
    fn a_folders_own_file_is_reexported() {
        declares(
            &[
                ("api/mod.rs", "//! Shared."),
                ("api/a/mod.rs", ""),
                ("api/a/x.rs", ""),
                ("api/b.rs", ""),
                ("api/b/y.rs", ""),
            ],
            r#"#[path = "ROOT/mod.rs"] mod api_mod;
            #[path = "ROOT"] pub(crate) mod api {
                #[allow(unused_imports)] pub(crate) use super::api_mod::*;
                #[path = "a/mod.rs"] mod a_mod;
                pub(crate) mod a {
                    #[allow(unused_imports)] pub(crate) use super::a_mod::*;
                    pub(crate) mod x;
                }
                #[path = "b.rs"] mod b_mod;
                pub(crate) mod b {
                    #[allow(unused_imports)] pub(crate) use super::b_mod::*;
                    pub(crate) mod y;
                }
            }"#,
        );
    }

    #[test]
    fn other_files_are_passed_over() {
        declares(
            &[
                ("api/a.rs", ""),
                ("api/.hidden.rs", ""),
                ("api/.git/b.rs", ""),
                ("api/README.md", ""),
                ("api/my-assets/x.png", ""),
                ("api/empty/", ""),
            ],
            r#"#[path = "ROOT"] pub(crate) mod api { pub(crate) mod a; }"#,
        );
    }

    #[test]
    fn the_last_name_of_the_path_names_the_module() {
        let package = package(&[("src/routes/a.rs", "")]);
        let (tree, problems) = declare(package.path(), "src/routes");
        assert_eq!(problems, [""; 0]);
        assert!(
            tree.to_string()
                .contains("mod routes { pub (crate) mod a ; }"),
            "{tree}"
        );
    }

    #[test]
    fn a_name_that_is_no_module_name_is_refused_with_a_better_one() {
        refuses(
            &[("api/my-file.rs", "")],
            "api",
            &[
                "api/my-file.rs cannot be a module",
                "rename it to my_file.rs",
            ],
        );
        refuses(
            &[("api/a/[id].rs", "")],
            "api",
            &["api/a/[id].rs", "rename it to id.rs"],
        );
        refuses(&[("api/404.rs", "")], "api", &["rename it to _404.rs"]);
        refuses(
            &[("api/my-folder/a.rs", "")],
            "api",
            &["api/my-folder cannot", "rename it to my_folder"],
        );
        refuses(&[("api/a .rs", "")], "api", &["rename it to a.rs"]);
        refuses(
            &[("api/self.rs", "")],
            "api",
            &["api/self.rs cannot be a module"],
        );
        refuses(
            &[("my-api/a.rs", "")],
            "my-api",
            &["my-api cannot be a module", "rename it to my_api"],
        );
    }

    #[test]
    fn one_wrong_name_hides_no_other_module() {
        let package = package(&[("api/my-file.rs", ""), ("api/good.rs", "")]);
        let (tree, problems) = declare(package.path(), "api");
        assert_eq!(problems.len(), 1);
        assert!(tree.to_string().contains("mod good"), "{tree}");
    }

    #[test]
    fn the_folder_has_to_be_there_inside_of_the_package_and_to_hold_modules() {
        let package = package(&[("empty/", ""), ("file", ""), ("src/main.rs", "")]);
        let missing = package.path().join("api").display().to_string();
        refuses_in(
            package.path(),
            "api",
            &["looked for the folder", &missing, "create it"],
        );
        refuses_in(
            package.path(),
            "empty",
            &["holds no .rs file", "empty/hello.rs"],
        );
        refuses_in(package.path(), "file", &["it is a file"]);
        refuses_in(
            package.path(),
            "src",
            &["the crate's own source folder", "main.rs"],
        );
        for outside in ["", ".", "..", "../api", "/tmp", "api/../.."] {
            refuses_in(
                package.path(),
                outside,
                &["no folder inside of the package"],
            );
        }
    }

    #[test]
    fn an_own_file_declares_none_of_the_files() {
        refuses(
            &[("api/mod.rs", "mod users;"), ("api/users.rs", "")],
            "api",
            &["api/mod.rs declares `mod users;`", "remove that line"],
        );
        refuses(
            &[("api/a.rs", "pub mod r#type;"), ("api/a/type.rs", "")],
            "api",
            &["api/a.rs declares `mod type;`"],
        );
        refuses(
            &[("api/a.rs", ""), ("api/a/mod.rs", "")],
            "api",
            &["api/a.rs and api/a/mod.rs are the same module"],
        );
        // A module with a body is the file's own matter, and so is a file the compiler will refuse anyway.
        declares(
            &[("api/mod.rs", "mod tests {}"), ("api/a.rs", "not rust {")],
            r#"#[path = "ROOT/mod.rs"] mod api_mod;
            #[path = "ROOT"] pub(crate) mod api {
                #[allow(unused_imports)] pub(crate) use super::api_mod::*;
                pub(crate) mod a;
            }"#,
        );
    }

    #[test]
    fn depth_has_a_limit() {
        let nested = |depth| format!("api/{}x.rs", "d/".repeat(depth));
        let (_, problems) = declare(package(&[(&nested(MAX_DEPTH), "")]).path(), "api");
        assert_eq!(problems, [""; 0]);
        refuses(
            &[(&nested(MAX_DEPTH + 1), "")],
            "api",
            &["nested more than 16 folders deep"],
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_inside() {
        use std::os::unix::fs::symlink;

        let package = package(&[("api/a.rs", ""), ("outside.rs", ""), ("api/d/b.rs", "")]);
        let link = package.path().join("api/link.rs");

        symlink(package.path().join("api/a.rs"), &link).unwrap();
        let (tree, problems) = declare(package.path(), "api");
        assert_eq!(problems, [""; 0]);
        assert!(tree.to_string().contains("mod link"), "{tree}");

        fs::remove_file(&link).unwrap();
        symlink(package.path().join("outside.rs"), &link).unwrap();
        refuses_in(
            package.path(),
            "api",
            &["the link api/link.rs leads out of the folder"],
        );

        fs::remove_file(&link).unwrap();
        symlink(package.path().join("nowhere.rs"), &link).unwrap();
        refuses_in(
            package.path(),
            "api",
            &["the link api/link.rs leads nowhere"],
        );

        fs::remove_file(&link).unwrap();
        symlink(
            package.path().join("api"),
            package.path().join("api/d/loop"),
        )
        .unwrap();
        refuses_in(package.path(), "api", &["the link api/d/loop leads back"]);
    }
}
