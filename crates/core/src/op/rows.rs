//! Declaration of ops as rows: variants, names, operands, attributes and traits.
//!
//! The rows are declarative macros: no code generator runs before the compiler.

/// The traits that the op's row declares, or the value of an op that has no row.
pub(crate) enum Row<T, O> {
    /// The traits of the row.
    Declared(T),
    /// The value of an op without a row.
    Other(O),
}

/// Declares an enum of ops by rows. A row is one op: its meaning, its public name, its operands, its attributes and
/// its traits. The macro derives from it the variant, the public name, the printed and parsed text, the checks of a
/// parsed graph, and the op with shifted axes. Each column is declared once, so that no consumer repeats it.
///
/// ```text
/// /// What the op computes.
/// Variant = "name" (operand, other at 2; list) {
///     /// What the attribute says.
///     kind attribute (rule in operand): Type,
/// } => traits;
/// ```
///
/// - `= "name"`, or `by leaf: Leaf` if each entry of a leaf enum is an op with its own name;
/// - operands in their order; `at` gives the position of an operand among the public arguments if that is not before
///   the attributes; after a semicolon the list of operands that ends the inputs;
/// - the kind of an attribute: `attribute` (public by position), `option` (public by name), or `result` (not public,
///   because the result's type determines it);
/// - a rule of [`crate::verify::attributes`] that checks the attribute against the type of an operand;
/// - traits: an expression that may use the attributes.
///
/// `others` are variants without a row, each with the value that [`Row::Other`] holds for it.
macro_rules! rows {
    (
        $(#[$enum_doc:meta])*
        pub enum $enum:ident: $traits:ty {
            others: $other_ty:ty {$(
                $(#[$other_doc:meta])*
                $other:ident $(($other_payload:ident: $other_payload_ty:ty))? $({
                    $($(#[$other_field_doc:meta])* $other_field:ident: $other_field_ty:ty,)*
                })? => $other_value:expr;
            )*}
            units {$(
                $(#[$unit_doc:meta])*
                $unit:ident = $unit_name:literal ($($unit_operand:ident),*) => $unit_traits:expr;
            )*}
            tuples {$(
                $(#[$tuple_doc:meta])*
                $tuple:ident($payload:ident: $payload_ty:ty) = $tuple_name:literal ($($tuple_operand:ident),*)
                    => $tuple_traits:expr;
            )*}
            structs {$(
                $(#[$doc:meta])*
                $variant:ident $(= $name:literal)? $(by $(#[$leaf_doc:meta])* $leaf:ident: $leaf_ty:ident)?
                    ($($operand:ident $(at $position:literal)?),* $(; $list:ident)?) {
                    $($(#[$field_doc:meta])* $kind:ident $field:ident $(($rule:ident in $of:ident))?: $ty:ty,)*
                } => $row_traits:expr;
            )*}
        }
    ) => {
        $(#[$enum_doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum $enum {
            $($(#[$other_doc])* $other $(($other_payload_ty))? $({
                $($(#[$other_field_doc])* $other_field: $other_field_ty,)*
            })?,)*
            $($(#[$unit_doc])* $unit,)*
            $($(#[$tuple_doc])* $tuple($payload_ty),)*
            $(
                $(#[$doc])*
                $variant {
                    $($(#[$leaf_doc])* $leaf: $leaf_ty,)?
                    $($(#[$field_doc])* $field: $ty,)*
                },
            )*
        }

        impl $enum {
            /// The public names of the rows, in their order.
            pub(crate) fn row_names() -> Vec<&'static str> {
                let named = [$($unit_name,)* $($tuple_name,)* $($($name,)?)*];
                let leaves: [Vec<&'static str>; _] = [$($($leaf_ty::ALL.iter().map(|op| op.name()).collect(),)?)*];
                named.into_iter().chain(leaves.into_iter().flatten()).collect()
            }

            /// An example of each row without a payload, or of each of its leaves, for operands of the type `x`, with
            /// its number of operands. It need not be legal for them.
            pub(crate) fn row_examples(x: &$crate::shape::TensorType) -> Vec<($enum, usize)> {
                #[allow(unused_imports)]
                use $crate::op::examples::Example;
                let _ = x;
                // A list of operands gets two.
                let count = |names: &[&str], list: Option<&str>| names.len() + if list.is_some() { 2 } else { 0 };
                #[allow(unused_mut)]
                let mut examples = vec![$(($enum::$unit, count(&[$(stringify!($unit_operand)),*], None))),*];
                $(
                    for leaf in $crate::op::rows::rows!(@leaves $($leaf_ty)?) {
                        let _ = leaf;
                        let example = $enum::$variant {
                            $($leaf: *leaf,)?
                            $($field: Example::example(x),)*
                        };
                        let list = $crate::op::rows::rows!(@list $($list)?);
                        examples.push((example, count(&[$(stringify!($operand)),*], list)));
                    }
                )*
                examples
            }

            /// The public name, if the op has a row.
            pub(crate) const fn row_name(&self) -> Option<&'static str> {
                match self {
                    $($enum::$unit => Some($unit_name),)*
                    $($enum::$tuple(_) => Some($tuple_name),)*
                    $($enum::$variant { $($leaf,)? .. } => Some($crate::op::rows::rows!(@name $($name)? $($leaf)?)),)*
                    $($enum::$other { .. } => None,)*
                }
            }

            /// The traits of an op that has a row, or the value of an op without one.
            pub(crate) const fn row(&self) -> $crate::op::rows::Row<$traits, $other_ty> {
                use $crate::op::rows::Row;
                match self {
                    $($enum::$unit => Row::Declared($unit_traits),)*
                    $($enum::$tuple($payload) => {
                        let _ = $payload;
                        Row::Declared($tuple_traits)
                    })*
                    $($enum::$variant { $($leaf,)? $($field),* } => {
                        $(let _ = $leaf;)?
                        $(let _ = $field;)*
                        Row::Declared($row_traits)
                    })*
                    $($enum::$other $(($other_payload))? $({ $($other_field),* })? => Row::Other($other_value),)*
                }
            }

            /// The operands and attributes, if the op has a row.
            pub(crate) fn row_arguments(&self) -> Option<$crate::form::Arguments> {
                use $crate::form::ArgumentWriter;
                match self {
                    $($enum::$unit => Some(ArgumentWriter::new(&[$(stringify!($unit_operand)),*], None).finish()),)*
                    $($enum::$tuple($payload) => {
                        let mut writer = ArgumentWriter::new(&[$(stringify!($tuple_operand)),*], None);
                        writer.option(stringify!($payload), $payload);
                        Some(writer.finish())
                    })*
                    $($enum::$variant { $($leaf,)? $($field),* } => {
                        $(let _ = $leaf;)?
                        let list = $crate::op::rows::rows!(@list $($list)?);
                        #[allow(unused_mut)]
                        let mut writer = ArgumentWriter::new(&[$(stringify!($operand)),*], list);
                        $(writer.$kind(stringify!($field), $field);)*
                        $($(writer.move_operand(stringify!($operand), $position);)?)*
                        Some(writer.finish())
                    })*
                    $($enum::$other { .. } => None,)*
                }
            }

            /// The op with the reader's name, or `None` if the name is not a row's.
            pub(crate) fn read_row(reader: &$crate::form::Reader<'_>) -> std::result::Result<Option<$enum>, String> {
                $(if reader.is_named($unit_name) {
                    return Ok(Some($enum::$unit));
                })*
                $(if reader.is_named($tuple_name) {
                    return Ok(Some($enum::$tuple(reader.attribute(stringify!($payload))?)));
                })*
                $(if $crate::op::rows::rows!(@is_named reader $($name)? $($leaf_ty)?) {
                    return Ok(Some($enum::$variant {
                        $($leaf: reader.leaf_of_name($leaf_ty::ALL, $leaf_ty::name)?,)?
                        $($field: $crate::op::rows::rows!(@read reader $kind $field),)*
                    }));
                })*
                Ok(None)
            }

            /// Checks the number of operands and the attributes, if the op has a row.
            ///
            /// # Errors
            /// A sentence about the first error.
            pub(crate) fn check_row(&self, types: &[&$crate::shape::TensorType]) -> std::result::Result<(), String> {
                #[allow(unused_imports)]
                use $crate::verify::attributes as rules;
                match self {
                    $($enum::$unit => rules::exactly(types, [$(stringify!($unit_operand)),*].len())?,)*
                    $($enum::$tuple($payload) => {
                        rules::exactly(types, [$(stringify!($tuple_operand)),*].len())?;
                        rules::check($payload, types)?;
                    })*
                    $($enum::$variant { $($leaf,)? $($field),* } => {
                        $(let _ = $leaf;)?
                        $(let _ = $field;)*
                        let operands: &[&str] = &[$(stringify!($operand)),*];
                        let list = $crate::op::rows::rows!(@list $($list)?);
                        if list.is_none() {
                            let more = 0 $(+ $crate::op::rows::rows!(@operands $kind $field types))*;
                            rules::exactly(types, operands.len() + more)?;
                        }
                        $($(rules::$rule($field, types, rules::position(operands, list, stringify!($of)))?;)?)*
                    })*
                    $($enum::$other { .. } => {})*
                }
                Ok(())
            }

            /// The op after `lead` new leading axes were inserted into its operands, if it has a row. Attributes that
            /// name axes still name the same axes.
            pub(crate) fn row_with_leading_axes(&self, lead: usize) -> Option<$enum> {
                match self {
                    $($enum::$unit => Some($enum::$unit),)*
                    $($enum::$tuple(_) => None,)*
                    $($enum::$variant { $($leaf,)? $($field),* } => Some($enum::$variant {
                        $($leaf: *$leaf,)?
                        $($field: $crate::op::rows::rows!(@shifted $kind $field lead),)*
                    }),)*
                    $($enum::$other { .. } => None,)*
                }
            }
        }
    };

    (@name $name:literal) => { $name };
    (@name $leaf:ident) => { $leaf.name() };
    (@is_named $reader:ident $name:literal) => { $reader.is_named($name) };
    (@is_named $reader:ident $leaf:ident) => { $leaf::ALL.iter().any(|op| $reader.is_named(op.name())) };
    (@leaves) => { [()] };
    (@leaves $leaf:ident) => { $leaf::ALL };
    (@list) => { None::<&'static str> };
    (@list $list:ident) => { Some(stringify!($list)) };
    (@read $reader:ident result $field:ident) => { $reader.result().$field()? };
    (@read $reader:ident $kind:ident $field:ident) => { $reader.attribute(stringify!($field))? };
    (@operands result $field:ident $types:ident) => { 0 };
    (@operands $kind:ident $field:ident $types:ident) => { $crate::form::Attribute::operands($field, $types) };
    (@shifted result $field:ident $lead:ident) => { $field.clone() };
    (@shifted $kind:ident $field:ident $lead:ident) => { $crate::form::Attribute::shifted($field, $lead) };
}
pub(crate) use rows;
