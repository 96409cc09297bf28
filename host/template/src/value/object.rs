//! Go values that are neither maps nor lists: structs, and types with methods.
//!
//! `.Files`, `.Capabilities`, versions, certificates and times implement
//! [`GoObject`]; the executor asks it for fields and methods as Go's reflection
//! would.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr};
use minijinja::{State, Value};

use crate::function::{Ctx, FnError, Signature};

/// The Go kind an object has for `kindOf`, `range`, `len` and `index`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// A struct: always true, not iterable; an unknown field is an error.
    #[default]
    Struct,
    /// A pointer to a struct: the same, but `kindOf` says `ptr`.
    Pointer,
    /// A map with string keys and methods; an unknown field is the zero value.
    Map,
    /// A slice with methods.
    Slice,
    /// A Go func, which only `call` runs: through [`GoObject::call`] with an empty name.
    Func,
    /// A complex number.
    Complex,
}

/// A Go value of a named type, with fields and methods.
pub trait GoObject: Any + Debug + Send + Sync {
    /// The type's name as `%T` prints it, `chart.Files` or `*semver.Version`.
    fn type_name(&self) -> &'static str;

    /// The Go kind.
    fn shape(&self) -> Shape {
        Shape::Struct
    }

    /// The field or map entry of that name.
    fn field(&self, name: &str) -> Option<Value> {
        let _ = name;
        None
    }

    /// What a missing entry of a [`Shape::Map`] is.
    fn zero(&self) -> Value {
        Value::from(())
    }

    /// The parameters of the method of that name; `None` where there is no such method.
    fn method(&self, name: &str) -> Option<Signature> {
        let _ = name;
        None
    }

    /// The result of a method, whose arguments already fit its signature.
    ///
    /// # Errors
    /// When the method fails; the text is what Go's would say.
    fn call(&self, name: &str, ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
        let (_, _) = (ctx, args);
        Err(FnError::new(format!("no method {name}")))
    }

    /// Keys and values in the order Go ranges over them; for a slice the keys are indexes.
    ///
    /// For a struct these are its exported fields, which printing and JSON use.
    fn entries(&self) -> Vec<(Value, Value)> {
        Vec::new()
    }

    /// What `String()` of the type returns; `None` where it has none.
    fn text(&self) -> Option<String> {
        None
    }

    /// Go's truth: structs and pointers are true, maps and slices with items.
    fn is_true(&self) -> bool {
        match self.shape() {
            Shape::Map | Shape::Slice => !self.entries().is_empty(),
            Shape::Struct | Shape::Pointer | Shape::Func | Shape::Complex => true,
        }
    }
}

/// The carrier of a [`GoObject`] in a [`Value`].
#[derive(Clone, Debug)]
struct Carrier(Arc<dyn GoObject>);

/// A value of this object.
pub fn object_value(object: impl GoObject) -> Value {
    Value::from_object(Carrier(Arc::new(object)))
}

/// The object in a value.
pub fn as_object(value: &Value) -> Option<&dyn GoObject> {
    value.downcast_object_ref::<Carrier>().map(|carrier| &*carrier.0)
}

/// The object of type `T` in a value.
pub fn downcast<T: GoObject>(value: &Value) -> Option<&T> {
    let object: &dyn Any = as_object(value)?;
    object.downcast_ref()
}

impl Object for Carrier {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        match self.0.shape() {
            Shape::Map | Shape::Struct | Shape::Pointer => ObjectRepr::Map,
            Shape::Slice => ObjectRepr::Seq,
            Shape::Func | Shape::Complex => ObjectRepr::Plain,
        }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match key.as_str() {
            Some(name) => crate::jinja::field_of(&*self.0, name),
            None => self.0.entries().into_iter().nth(key.as_usize()?).map(|(_, value)| value),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match self.0.shape() {
            Shape::Slice => Enumerator::Seq(self.0.entries().len()),
            Shape::Func | Shape::Complex => Enumerator::NonEnumerable,
            Shape::Map | Shape::Struct | Shape::Pointer => {
                Enumerator::Values(self.0.entries().into_iter().map(|(key, _)| key).collect())
            }
        }
    }

    fn is_true(self: &Arc<Self>) -> bool {
        self.0.is_true()
    }

    fn call_method(
        self: &Arc<Self>,
        state: &mut State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value, minijinja::Error> {
        crate::jinja::call_method(&*self.0, state, method, args)
    }
}
