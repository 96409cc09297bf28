//! Maps within themselves: legal in a template, and a leak where values are counted.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use super::{Value, address, as_list, as_map};

/// Removes, in everything `root` reaches, the entries that lead back to a map above them.
///
/// The owner of the values of a chart calls it after the last file was rendered: templates may run
/// `set $ "root" $`, and such values would never be freed.
pub fn break_cycles(root: &Value) {
    let mut walk = Walk { path: Vec::new(), done: HashSet::new() };
    walk.visit(root);
}

/// Empties maps that contain themselves and that nothing in `kept` reaches.
pub(crate) fn break_own(maps: Vec<Value>, kept: &Value) {
    if !has_cycle(&maps) {
        return;
    }
    let cyclic: Vec<Value> = maps.into_iter().filter(|map| reaches(map, map)).collect();
    let reachable = reachable(kept);
    for value in cyclic {
        let is_kept = key(&value).is_some_and(|key| reachable.contains(&key));
        if let (Some(map), false) = (as_map(&value), is_kept) {
            let entries = std::mem::take(&mut **map.write());
            drop(entries);
        }
    }
}

fn key(value: &Value) -> Option<usize> {
    address(value.as_object()?).map(|pointer| pointer.addr())
}

fn children(value: &Value) -> Vec<Value> {
    if let Some(map) = as_map(value) {
        // What is frozen leads nowhere but down.
        match map.frozen() {
            Some(_) => Vec::new(),
            None => map.read().values().filter(|value| key(value).is_some()).cloned().collect(),
        }
    } else if let Some(list) = as_list(value) {
        list.items().iter().filter(|value| key(value).is_some()).cloned().collect()
    } else {
        Vec::new()
    }
}

fn reachable(root: &Value) -> HashSet<usize> {
    let mut seen = HashSet::new();
    let mut pending = vec![root.clone()];
    while let Some(value) = pending.pop() {
        if key(&value).is_some_and(|key| seen.insert(key)) {
            pending.extend(children(&value));
        }
    }
    seen
}

/// Whether one of the maps leads to something that contains itself: one walk for all of them.
fn has_cycle(maps: &[Value]) -> bool {
    // Whether the walk is still within a map or list that it came by.
    let mut within: HashMap<usize, bool, RandomState> = HashMap::default();
    let mut pending: Vec<(usize, Vec<Value>)> = vec![(0, maps.to_vec())];
    while let Some((around, values)) = pending.last_mut() {
        let Some(value) = values.pop() else {
            within.insert(*around, false);
            pending.pop();
            continue;
        };
        let Some(key) = key(&value) else { continue };
        match within.get(&key) {
            Some(true) => return true,
            Some(false) => {}
            None => {
                within.insert(key, true);
                pending.push((key, children(&value)));
            }
        }
    }
    false
}

/// Whether something in `from` leads to `to`.
fn reaches(from: &Value, to: &Value) -> bool {
    let Some(target) = key(to) else { return false };
    let mut seen = HashSet::new();
    let mut pending = children(from);
    while let Some(value) = pending.pop() {
        match key(&value) {
            Some(key) if key == target => return true,
            Some(key) if seen.insert(key) => pending.extend(children(&value)),
            _ => {}
        }
    }
    false
}

struct Walk {
    path: Vec<usize>,
    done: HashSet<usize>,
}

impl Walk {
    fn visit(&mut self, value: &Value) {
        let Some(own) = key(value) else { return };
        if !self.done.insert(own) {
            return;
        }
        self.path.push(own);
        if let Some(map) = as_map(value).filter(|map| map.frozen().is_none()) {
            map.write().retain(|_, value| !self.leads_up(value));
        }
        for child in children(value) {
            crate::stack::grown(|| self.visit(&child));
        }
        self.path.pop();
    }

    /// Whether a value is a map on the path, or a list that holds one: lists cannot be cut, so their
    /// owner is.
    fn leads_up(&self, value: &Value) -> bool {
        key(value).is_some_and(|key| self.path.contains(&key))
            || as_list(value).is_some_and(|list| list.items().iter().any(|item| self.leads_up(item)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use std::sync::Weak;

    use super::*;
    use crate::value::{Entries, Map, list_value, map_value};

    fn weak(value: &Value) -> Weak<Map> {
        std::sync::Arc::downgrade(&value.downcast_object::<Map>().unwrap())
    }

    #[test]
    fn a_map_within_itself_is_freed_after_breaking() {
        let root = map_value(Entries::new());
        let inner = map_value(Entries::from([("up".into(), list_value(vec![root.clone()]))]));
        as_map(&root).unwrap().insert("self", root.clone());
        as_map(&root).unwrap().insert("inner", inner);
        as_map(&root).unwrap().insert("n", Value::from(1));
        let weak = weak(&root);
        break_cycles(&root);
        assert_eq!(as_map(&root).unwrap().keys().len(), 2);
        drop(root);
        assert!(weak.upgrade().is_none());
    }

    #[test]
    fn a_map_of_the_template_is_freed_and_a_kept_one_is_not_touched() {
        let kept = map_value(Entries::new());
        as_map(&kept).unwrap().insert("self", kept.clone());
        let own = map_value(Entries::new());
        as_map(&own).unwrap().insert("self", own.clone());
        let weak = weak(&own);
        break_own(vec![own, kept.clone()], &kept);
        assert!(weak.upgrade().is_none());
        assert!(as_map(&kept).unwrap().contains_key("self"));
        break_cycles(&kept);
    }
}
