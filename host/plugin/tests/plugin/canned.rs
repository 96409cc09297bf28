//! Guests that give one answer, whatever they are asked: the answer is written as JSON and laid out in
//! the guest's memory as the component model says.
//!
//! Records are mappings; what is left out is absent, empty or the first case. A case of a variant is
//! its name, or a mapping of its name to its value. JSON where a text belongs is that text.

use serde_json::{Value, json};
use wit_parser::{Resolve, SizeAlign, Type, TypeDefKind, abi::AbiVariant};

use crate::encode;

/// Where the answer begins; the heap follows it.
const BASE: usize = 65_536;

/// A guest of one interface with this answer to one of its functions. Others trap.
pub(crate) fn canned(interface: &str, function: &str, answer: &Value) -> Vec<u8> {
    canned_with(interface, function, answer, &json!({}))
}

/// The same, with more fields in its manifest.
pub(crate) fn canned_with(interface: &str, function: &str, answer: &Value, manifest: &Value) -> Vec<u8> {
    encode::encode(interface, &canned_text(interface, function, answer, manifest), &encode::wit())
}

fn canned_text(interface: &str, function: &str, answer: &Value, manifest: &Value) -> String {
    let mut resolve = Resolve::default();
    resolve.push_str("plugin.wit", &encode::wit()).unwrap();
    let mut sizes = SizeAlign::default();
    sizes.fill(&resolve);
    let (_, found) = resolve
        .interfaces
        .iter()
        .find(|(_, known)| known.name.as_deref() == Some(interface))
        .unwrap_or_else(|| panic!("no interface {interface}"));
    let mut functions = String::new();
    let mut memory = Layout { resolve: &resolve, sizes: &sizes, bytes: Vec::new() };
    for (name, function_type) in &found.functions {
        let signature = resolve.wasm_signature(AbiVariant::GuestExport, function_type);
        let parameters = "i32 ".repeat(signature.params.len());
        let body = if name == function {
            let ty = function_type.result.as_ref().unwrap();
            let at = memory.room(sizes.size(ty).size_wasm32(), sizes.align(ty).align_wasm32());
            memory.put(at, ty, answer);
            format!("(i32.const {})", BASE + at)
        } else {
            "(unreachable)".to_owned()
        };
        functions += &format!(
            "(func (export \"pintle:plugin/{interface}@0.1.0#{name}\") (param {parameters}) (result i32) {body})\n"
        );
    }
    let heap = BASE + memory.bytes.len().next_multiple_of(16);
    let data: String = memory.bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
    let mut whole = json!({"manifest": "pintle.dev/manifest/v1", "name": "canned", "version": "0.1.0"});
    whole.as_object_mut().unwrap().extend(manifest.as_object().unwrap().clone());
    format!(
        ";; manifest: {whole}\n;; world: include pintle:plugin/{interface}-plugin@0.1.0;\n;; memory: {}\n\
         ;; heap: {heap}\n(data (i32.const {BASE}) \"{data}\")\n{functions}",
        heap / 65_536 + 4
    )
}

struct Layout<'a> {
    resolve: &'a Resolve,
    sizes: &'a SizeAlign,
    bytes: Vec<u8>,
}

impl Layout<'_> {
    fn room(&mut self, size: usize, align: usize) -> usize {
        let at = self.bytes.len().next_multiple_of(align.max(1));
        self.bytes.resize(at + size, 0);
        at
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn number(&mut self, at: usize, number: usize) {
        self.write(at, &u32::try_from(number).unwrap().to_le_bytes());
    }

    fn put(&mut self, at: usize, ty: &Type, value: &Value) {
        match ty {
            Type::String => self.text(at, value),
            Type::Bool | Type::U8 => self.write(at, &[value.as_u64().unwrap_or(0) as u8]),
            Type::U32 => self.number(at, value.as_u64().unwrap_or(0) as usize),
            Type::U64 => self.write(at, &value.as_u64().unwrap_or(0).to_le_bytes()),
            Type::Id(id) => {
                let kind = &self.resolve.types[*id].kind;
                self.put_kind(at, kind, value);
            }
            other => panic!("no interface of ours has {other:?}"),
        }
    }

    fn text(&mut self, at: usize, value: &Value) {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            json => json.to_string(),
        };
        let place = self.room(text.len(), 1);
        self.write(place, text.as_bytes());
        self.number(at, BASE + place);
        self.number(at + 4, text.len());
    }

    fn put_kind(&mut self, at: usize, kind: &TypeDefKind, value: &Value) {
        match kind {
            TypeDefKind::Type(ty) => self.put(at, ty, value),
            TypeDefKind::Record(record) => {
                let fields: Vec<_> = record.fields.iter().map(|field| (&*field.name, field.ty)).collect();
                let allowed: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
                let odd =
                    value.as_object().into_iter().flatten().find(|(key, _)| !allowed.contains(&&***key));
                assert!(odd.is_none(), "{odd:?} is none of {allowed:?}");
                self.put_all(at, &fields.iter().map(|(name, ty)| (*ty, &value[*name])).collect::<Vec<_>>());
            }
            TypeDefKind::Tuple(tuple) => {
                let parts: Vec<_> =
                    tuple.types.iter().enumerate().map(|(at, ty)| (*ty, &value[at])).collect();
                self.put_all(at, &parts);
            }
            TypeDefKind::Enum(cases) => {
                let named = value.as_str().map(|name| {
                    cases.cases.iter().position(|case| case.name == name).unwrap_or_else(|| panic!("{name}"))
                });
                self.write(at, &[named.unwrap_or(0) as u8]);
            }
            TypeDefKind::Variant(variant) => {
                let cases = variant.cases.iter().map(|case| (&*case.name, case.ty)).collect::<Vec<_>>();
                self.put_case(at, &cases, value);
            }
            TypeDefKind::Option(ty) => {
                let cases = [("none", None), ("some", Some(*ty))];
                let value = if value.is_null() { json!("none") } else { json!({"some": value}) };
                self.put_case(at, &cases, &value);
            }
            TypeDefKind::Result(result) => {
                self.put_case(at, &[("ok", result.ok), ("err", result.err)], value);
            }
            TypeDefKind::List(ty) => self.put_list(at, ty, value),
            other => panic!("no interface of ours has a {}", other.as_str()),
        }
    }

    fn put_all(&mut self, at: usize, parts: &[(Type, &Value)]) {
        let offsets = self.sizes.field_offsets(parts.iter().map(|(ty, _)| ty));
        let offsets: Vec<usize> = offsets.into_iter().map(|(offset, _)| offset.size_wasm32()).collect();
        for ((ty, value), offset) in parts.iter().zip(offsets) {
            self.put(at + offset, ty, value);
        }
    }

    fn put_case(&mut self, at: usize, cases: &[(&str, Option<Type>)], value: &Value) {
        let (name, payload) = match value {
            Value::String(name) => (name.as_str(), &Value::Null),
            Value::Object(map) => map.iter().next().map(|(name, value)| (name.as_str(), value)).unwrap(),
            _ => (cases[0].0, &Value::Null),
        };
        let case = cases.iter().position(|(case, _)| *case == name).unwrap_or_else(|| panic!("{name}"));
        self.write(at, &[case as u8]);
        let Some(ty) = cases[case].1 else { return };
        let types = cases.iter().map(|(_, ty)| ty.as_ref());
        let offset = self.sizes.payload_offset(wit_parser::Int::U8, types).size_wasm32();
        self.put(at + offset, &ty, payload);
    }

    fn put_list(&mut self, at: usize, ty: &Type, value: &Value) {
        let elements = value.as_array().cloned().unwrap_or_default();
        let (size, align) = (self.sizes.size(ty).size_wasm32(), self.sizes.align(ty).align_wasm32());
        let place = self.room(size * elements.len(), align);
        for (index, element) in elements.iter().enumerate() {
            self.put(place + index * size, ty, element);
        }
        self.number(at, BASE + place);
        self.number(at + 4, elements.len());
    }
}
