//! The objects of a chart that have methods, as far as the programs use them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pintle_template::function::{Ctx, FnError, Param, Signature};
use pintle_template::value::object::{GoObject, Shape, object_value};
use pintle_template::value::{Entries, Value, as_text, bytes_value, map_value, string_list};
use pintle_template::yaml;

const STRING: Signature = Signature::fixed(&[Param::String]);
const NONE: Signature = Signature::fixed(&[]);

/// `.Files`: two files.
pub(crate) fn files() -> Value {
    object_value(Files(vec![("f/a.txt", "alpha\nbeta\n"), ("f/b.txt", "bee")]))
}

/// `.Capabilities` of Kubernetes 1.36.0.
pub(crate) fn capabilities() -> Value {
    object_value(Capabilities)
}

#[derive(Debug)]
struct Files(Vec<(&'static str, &'static str)>);

impl Files {
    fn text(&self, name: &str) -> &'static str {
        self.0.iter().find(|(own, _)| *own == name).map_or("", |(_, text)| text)
    }

    /// The files as YAML of their base names.
    fn document(&self, value: impl Fn(&str) -> Value) -> Result<Value, FnError> {
        let base = |name: &'static str| name.rsplit('/').next().unwrap_or(name);
        let entries: Entries = self.0.iter().map(|(name, text)| (base(name).into(), value(text))).collect();
        let text = yaml::emit(&map_value(entries)).map_err(|err| FnError::new(err.to_string()))?;
        Ok(Value::from(text.trim_end_matches('\n')))
    }
}

impl GoObject for Files {
    fn type_name(&self) -> &'static str {
        "engine.files"
    }

    fn shape(&self) -> Shape {
        Shape::Map
    }

    fn field(&self, name: &str) -> Option<Value> {
        let file = self.0.iter().find(|(own, _)| *own == name);
        file.map(|(_, text)| bytes_value(text.as_bytes()))
    }

    fn zero(&self) -> Value {
        bytes_value(&[][..])
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Get" | "GetBytes" | "Glob" | "Lines" => Some(STRING),
            "AsConfig" | "AsSecrets" => Some(NONE),
            _ => None,
        }
    }

    fn call(&self, name: &str, _: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
        let arg = args.first().and_then(as_text).unwrap_or_default();
        match name {
            "Get" => Ok(Value::from(self.text(&arg))),
            "GetBytes" => Ok(bytes_value(self.text(&arg).as_bytes())),
            "Lines" => Ok(string_list(self.text(&arg).trim_end_matches('\n').split('\n'))),
            "Glob" => {
                let folder = arg.trim_end_matches('*');
                let found = self.0.iter().filter(|(name, _)| name.starts_with(folder));
                Ok(object_value(Files(found.copied().collect())))
            }
            "AsConfig" => self.document(|text| Value::from(text)),
            _ => self.document(|text| Value::from(STANDARD.encode(text))),
        }
    }

    fn entries(&self) -> Vec<(Value, Value)> {
        let entry = |(name, text): &(&str, &str)| (Value::from(*name), bytes_value(text.as_bytes()));
        self.0.iter().map(entry).collect()
    }
}

#[derive(Debug)]
struct Capabilities;

impl GoObject for Capabilities {
    fn type_name(&self) -> &'static str {
        "*common.Capabilities"
    }

    fn shape(&self) -> Shape {
        Shape::Pointer
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "KubeVersion" => Some(object_value(KubeVersion)),
            "APIVersions" => Some(object_value(ApiVersions)),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct KubeVersion;

impl GoObject for KubeVersion {
    fn type_name(&self) -> &'static str {
        "common.KubeVersion"
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Version" => Some("v1.36.0".into()),
            "Major" => Some("1".into()),
            "Minor" => Some("36".into()),
            _ => None,
        }
    }

    fn method(&self, name: &str) -> Option<Signature> {
        matches!(name, "GitVersion" | "String").then_some(NONE)
    }

    fn call(&self, _: &str, _: &mut Ctx<'_>, _: &[Value]) -> Result<Value, FnError> {
        Ok("v1.36.0".into())
    }

    fn text(&self) -> Option<String> {
        Some("v1.36.0".to_owned())
    }
}

#[derive(Debug)]
struct ApiVersions;

impl GoObject for ApiVersions {
    fn type_name(&self) -> &'static str {
        "common.VersionSet"
    }

    fn shape(&self) -> Shape {
        Shape::Slice
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "Has").then_some(STRING)
    }

    fn call(&self, _: &str, _: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
        Ok(Value::from(args.first().and_then(Value::as_str) == Some("apps/v1")))
    }

    fn entries(&self) -> Vec<(Value, Value)> {
        vec![(Value::from(0), "apps/v1".into())]
    }
}
