//! `#[derive(Tree)]` for the containers of the crate `defn`, which re-exports it and documents it.
#![forbid(unsafe_code)]

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{
    Data, DeriveInput, Error, Field, Fields, GenericParam, Generics, Ident, Result, TypeParam,
    parse_macro_input,
};

/// Makes a struct or an enum that is generic over its leaves a container: a `Tree`. The first type parameter is the
/// leaf. Every field is a leaf or a container, but for those marked `#[tree(static)]`, which are values.
///
/// # Errors
/// A type without a type parameter, unions, and attributes that are not `#[tree(static)]`.
#[proc_macro_derive(Tree, attributes(tree))]
pub fn derive_tree(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    tree(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn tree(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let leaf = leaf(input)?;
    let (bounded, own) =
        (with_bound(&input.generics, &leaf.ident), arguments(&input.generics, &leaf.ident, None));
    let other = format_ident!("__Leaf");
    let others = arguments(&input.generics, &leaf.ident, Some(&other));
    let where_clause = &input.generics.where_clause;
    let arms = match &input.data {
        Data::Struct(data) => vec![arm(&quote!(#name), &data.fields, None)?],
        Data::Enum(data) => {
            let arm = |(index, variant): (usize, &syn::Variant)| {
                let path = &variant.ident;
                arm(&quote!(#name::#path), &variant.fields, Some(index))
            };
            data.variants.iter().enumerate().map(arm).collect::<Result<_>>()?
        }
        Data::Union(_) => return Err(Error::new_spanned(name, "a union is no container of tensors")),
    };
    let leaf = &leaf.ident;
    Ok(quote! {
        #[automatically_derived]
        impl<#bounded> ::defn::Tree<#leaf> for #name<#own> #where_clause {
            type Of<#other: ::defn::Leaf> = #name<#others>;

            fn visit<#other: ::defn::Leaf>(
                &self,
                visit: &mut ::defn::Visit<'_, #leaf, #other>,
            ) -> #name<#others> {
                match self {
                    #(#arms)*
                }
            }
        }
    })
}

/// The type parameter of the leaves.
fn leaf(input: &DeriveInput) -> Result<&TypeParam> {
    let text = "a container is generic over its leaves: give it a type parameter, as in struct Layer<T>";
    input.generics.type_params().next().ok_or_else(|| Error::new_spanned(&input.ident, text))
}

/// The parameters with their bounds, of which the leaves' has the one of leaves.
fn with_bound(generics: &Generics, leaf: &Ident) -> TokenStream {
    let params = generics.params.iter().map(|param| match param {
        GenericParam::Type(param) if param.ident == *leaf => quote!(#leaf: ::defn::Leaf),
        GenericParam::Type(param) => {
            let (ident, colon, bounds) = (&param.ident, &param.colon_token, &param.bounds);
            quote!(#ident #colon #bounds)
        }
        GenericParam::Const(param) => {
            let (ident, ty) = (&param.ident, &param.ty);
            quote!(const #ident: #ty)
        }
        GenericParam::Lifetime(param) => quote!(#param),
    });
    quote!(#(#params),*)
}

/// The parameters as arguments, with another type in place of the leaves.
fn arguments(generics: &Generics, leaf: &Ident, other: Option<&Ident>) -> TokenStream {
    let arguments = generics.params.iter().map(|param| match param {
        GenericParam::Type(param) if param.ident == *leaf => {
            let ident = other.unwrap_or(leaf);
            quote!(#ident)
        }
        GenericParam::Type(param) => {
            let ident = &param.ident;
            quote!(#ident)
        }
        GenericParam::Const(param) => {
            let ident = &param.ident;
            quote!(#ident)
        }
        GenericParam::Lifetime(param) => {
            let lifetime = &param.lifetime;
            quote!(#lifetime)
        }
    });
    quote!(#(#arguments),*)
}

/// The arm of a struct, or of the variant of an enum at an index.
fn arm(path: &TokenStream, fields: &Fields, variant: Option<usize>) -> Result<TokenStream> {
    let mut bindings = Vec::new();
    let mut values = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let binding = format_ident!("__field{at}");
        let value = match is_static(field)? {
            true => quote!(::defn::Visit::keep(visit, #binding)),
            false => {
                let part =
                    field.ident.as_ref().map_or_else(|| at.to_string(), |name| name.unraw().to_string());
                quote!(::defn::Visit::part(visit, #part, #binding))
            }
        };
        match &field.ident {
            Some(name) => {
                bindings.push(quote!(#name: #binding));
                values.push(quote!(#name: #value));
            }
            None => {
                bindings.push(quote!(#binding));
                values.push(value);
            }
        }
    }
    let variant = variant.map(|index| quote!(::defn::Visit::variant(visit, #index);));
    Ok(match fields {
        Fields::Named(_) => quote!(#path { #(#bindings),* } => { #variant #path { #(#values),* } }),
        Fields::Unnamed(_) => quote!(#path(#(#bindings),*) => { #variant #path(#(#values),*) }),
        Fields::Unit => quote!(#path => { #variant #path }),
    })
}

/// Whether a field is marked as a value that is no leaf.
fn is_static(field: &Field) -> Result<bool> {
    let mut is_static = false;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("tree")) {
        attribute.parse_args_with(|input: syn::parse::ParseStream<'_>| {
            let word = input.call(Ident::parse_any)?;
            if word != "static" {
                return Err(Error::new_spanned(word, "the only mark of a field is #[tree(static)]"));
            }
            is_static = true;
            Ok(())
        })?;
    }
    Ok(is_static)
}
