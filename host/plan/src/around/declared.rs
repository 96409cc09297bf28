//! Which plugins are called around what.

use pintle_api::{Blocker, Verdict, names};

use super::{Declared, Reference, Role, Site};
use crate::{Input, Named, PoolInput, Rendered, gate::parse_plugins};

/// Plugins that the objects of a rendering name, in the order of the objects. The same plugin with the same
/// arguments on two objects is one.
///
/// # Errors
/// When an annotation cannot be read: nothing of the state is touched before the chart is mended.
pub(crate) fn of_state(
    state: &str,
    pool: &PoolInput,
    objects: &[Rendered],
) -> Result<Vec<Declared>, Verdict> {
    let (mut declared, mut broken) = (Vec::<Declared>::new(), Vec::new());
    for rendered in objects {
        for (annotation, is_pre) in [(names::PRE, true), (names::POST, false)] {
            let Some(text) = rendered.object.annotation(annotation) else { continue };
            match parse_plugins(annotation, text) {
                Ok(named) => named.into_iter().for_each(|named| {
                    add(&mut declared, site(named, state, &pool.pool), is_pre);
                }),
                Err(err) => {
                    let message = format!("{}: {err}", rendered.source);
                    broken.push(Blocker::new("HookInvalid", message).on(rendered.object.reference()));
                }
            }
        }
    }
    if broken.is_empty() { Ok(declared) } else { Err(Verdict::Fatal(broken)) }
}

fn add(declared: &mut Vec<Declared>, site: Site, is_pre: bool) {
    let at = declared.iter().position(|other| other.site == site).unwrap_or_else(|| {
        declared.push(Declared { site, pre: false, post: false, missing: None });
        declared.len() - 1
    });
    if let Some(found) = declared.get_mut(at) {
        found.pre |= is_pre;
        found.post |= !is_pre;
    }
}

/// Plugins that are called around the whole release, in order, each once.
pub(crate) fn of_release(references: &[Reference]) -> Vec<Declared> {
    let mut declared = Vec::<Declared>::new();
    for Reference { named, config, missing } in references {
        let site = Site { config: config.clone(), ..site(named.clone(), "", "") };
        if declared.iter().all(|other| other.site != site) {
            declared.push(Declared { site, pre: true, post: true, missing: *missing });
        }
    }
    declared
}

fn site(named: Named, state: &str, pool: &str) -> Site {
    let Named { plugin, args } = named;
    let (config, state, pool) = (String::new(), state.to_owned(), pool.to_owned());
    Site { role: Role::Hook, plugin, config, args, state, pool }
}

/// Every site of the release; nothing when a part of it cannot be rendered or read, since then nobody knows.
pub(crate) fn declare(input: &Input<'_>) -> Option<Vec<Declared>> {
    let mut all = of_release(input.around);
    for state in input.states {
        for pool in &state.pools {
            all.extend(of_state(&state.name, pool, pool.objects.as_ref().ok()?).ok()?);
        }
    }
    Some(all)
}
