//! Our CustomResourceDefinitions, generated from the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube_core::CustomResourceExt;

use crate::{
    plugin::Plugin, plugin_policy::PluginPolicy, preflight::PreflightValidation,
    special_resource::SpecialResource, special_resource_module::SpecialResourceModule, watch::Watch,
};

/// Every definition the operator serves or accepts, in the order they are to be applied.
#[must_use]
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut definitions = vec![
        SpecialResource::crd(),
        SpecialResourceModule::crd(),
        PreflightValidation::crd(),
        Plugin::crd(),
        PluginPolicy::crd(),
        Watch::crd(),
    ];
    definitions.iter_mut().for_each(drop_defaults);
    definitions
}

/// The server fills in no defaults of ours: an object a user wrote stays as it was written. SRO's
/// one default stays, since objects in clusters carry it.
fn drop_defaults(definition: &mut CustomResourceDefinition) {
    for version in &mut definition.spec.versions {
        if let Some(schema) = version.schema.as_mut().and_then(|s| s.open_api_v3_schema.as_mut()) {
            drop_defaults_below(schema);
        }
    }
}

fn drop_defaults_below(schema: &mut JSONSchemaProps) {
    schema.default = None;
    if let Some(properties) = &mut schema.properties {
        for (name, property) in properties {
            let default = property.default.take();
            drop_defaults_below(property);
            if name == "insecure_skip_tls_verify" {
                property.default = default;
            }
        }
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        drop_defaults_below(items);
    }
}
