//! `kube-read`: objects, within the grants, answered from facts and recorded.

mod listed;

use pintle_api::{Answer, Object, ObjectRef, Query, plugin::Identity};
use wasmtime::component::{HasData, Linker};

use crate::{
    bindings::pintle::plugin::{
        kube_read::{self, Page},
        types::{ObjectQuery, ObjectRef as GuestRef, ReadError},
    },
    call::Called,
    grants::{Denial, Scope},
    input, limits,
    mask::{FieldPath, Mask},
    memo::{self, Asked, Hash, Question},
    reads::Reads,
    selector::Selector,
    state::State,
};
use listed::Gathered;
pub(crate) use listed::Listed;

/// What a call of this ability works on.
pub(crate) struct KubeRead<'a> {
    pub(crate) reads: &'a mut Reads,
    pub(crate) scope: &'a Scope,
    pub(crate) called: &'a mut Called,
    pub(crate) asked: &'a mut Asked,
}

impl HasData for KubeRead<'static> {
    type Data<'a> = KubeRead<'a>;
}

pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    kube_read::add_to_linker::<State, KubeRead<'static>>(linker, |state| KubeRead {
        reads: &mut state.reads,
        scope: &state.scope,
        called: &mut state.called,
        asked: &mut state.asked,
    })
}

impl kube_read::Host for KubeRead<'_> {
    async fn get(
        &mut self,
        target: GuestRef,
        fields: Vec<String>,
    ) -> wasmtime::Result<Result<String, ReadError>> {
        self.reads.count_object()?;
        let target = reference(target);
        let read = self.read_one(&target, &fields);
        self.asked.note(Question::Get(target, fields), hash_of_one(&read));
        let text = match read {
            Ok(text) => text,
            Err(error) => return Ok(Err(self.noted(error))),
        };
        self.reads.count_bytes(text.len())?;
        Ok(Ok(text))
    }

    async fn find(
        &mut self,
        query: ObjectQuery,
        fields: Vec<String>,
        max_items: u32,
        token: Option<String>,
    ) -> wasmtime::Result<Result<Page, ReadError>> {
        self.reads.count_object()?;
        let read = self.read_page(query.clone(), &fields, max_items, token.as_deref());
        self.asked.note(Question::Find(query, fields, max_items, token), hash_of_page(&read));
        let page = match read {
            Ok(page) => page,
            Err(error) => return Ok(Err(self.noted(error))),
        };
        self.reads.count_bytes(page.items.iter().map(String::len).sum())?;
        Ok(Ok(page))
    }
}

fn hash_of_one(read: &Result<String, ReadError>) -> Hash {
    memo::hash_read(read.as_ref().map(|text| vec![text.as_str()]))
}

fn hash_of_page(read: &Result<Page, ReadError>) -> Hash {
    memo::hash_read(
        read.as_ref().map(|page| page.items.iter().map(String::as_str).chain(page.next.as_deref()).collect()),
    )
}

// === impl KubeRead ===

impl KubeRead<'_> {
    /// The hash of the answer that a question has now; nothing where it is no question of this ability.
    pub(crate) fn answer_now(&mut self, question: &Question) -> Option<Hash> {
        match question {
            Question::Get(target, fields) => Some(hash_of_one(&self.read_one(target, fields))),
            Question::Find(query, fields, most, token) => {
                Some(hash_of_page(&self.read_page(query.clone(), fields, *most, token.as_deref())))
            }
            Question::Owner | Question::Values | Question::Saved => None,
        }
    }

    fn read_one(&mut self, target: &ObjectRef, fields: &[String]) -> Result<String, ReadError> {
        let fields = paths(fields)?;
        let permit = self.scope.permit(target, &fields).map_err(denied)?;
        let object = found(self.reads.get(target, permit.identity()))?;
        let mask = permit.mask_of(&object).ok_or_else(|| denied(self.scope.deny_object(target)))?;
        self.text(&object, &mask.narrowed(&fields))
    }

    /// One page of the objects that a query finds within the grants, in the order of namespace and
    /// name. The token is the number of objects on the pages before: the lists behind it are the
    /// same for as long as the call lasts.
    fn read_page(
        &mut self,
        query: ObjectQuery,
        asked: &[String],
        max_items: u32,
        token: Option<&str>,
    ) -> Result<Page, ReadError> {
        let fields = paths(asked)?;
        let skip = token.map(str::parse::<usize>).transpose();
        let skip =
            skip.map_err(|_| ReadError::Denied("the token is not one of this call".into()))?.unwrap_or(0);
        let listed = match self.reads.take_listed(&query, asked, token.is_some()) {
            Some(listed) => listed,
            None => Listed::new(&query, asked, self.find_all(&query, &fields)?.narrowed(&fields)),
        };
        let most = limits::PAGE.min(if max_items == 0 { limits::PAGE } else { max_items as usize });
        let (mut items, mut bytes) = (Vec::new(), 0);
        for (object, mask) in listed.from(skip).take(most) {
            let text = self.text(object, mask)?;
            bytes += text.len();
            if bytes > limits::PAGE_BYTES && !items.is_empty() {
                break;
            }
            items.push(text);
        }
        let end = skip.saturating_add(items.len());
        let next = (end < listed.len() && !items.is_empty()).then(|| end.to_string());
        if next.is_some() {
            self.reads.keep_listed(listed);
        }
        Ok(Page { items, next })
    }

    fn find_all(&mut self, query: &ObjectQuery, fields: &[FieldPath]) -> Result<Gathered, ReadError> {
        let ObjectQuery { api_version, kind, namespace, name, label_selector } = query.clone();
        let selector = Selector::parse(label_selector.as_deref().unwrap_or_default())
            .map_err(|error| ReadError::Denied(error.to_string()))?;
        let query = Query { api_version, kind, namespace, label_selector };
        let wanted = Wanted { selector, name };
        let listings = self.scope.listings(&query, fields).map_err(denied)?;
        let mut all = Gathered::default();
        let mut not_yet = false;
        for listing in listings {
            let objects = match self.reads.list(&listing.query, listing.rule.identity()) {
                Answer::Missing => Vec::new(),
                Answer::NotYet => {
                    not_yet = true;
                    continue;
                }
                other => found(other)?,
            };
            let shown = objects.into_iter().filter(|object| wanted.has(object));
            all.add_all(shown.filter(|object| listing.rule.selects(object)), listing.rule.mask());
        }
        not_yet |= self.add_own(&query, &wanted, &mut all)?;
        if not_yet { found(Answer::NotYet) } else { Ok(all) }
    }

    /// Adds objects of the release, which need no grant; true when some are not known yet.
    fn add_own(&mut self, query: &Query, wanted: &Wanted, all: &mut Gathered) -> Result<bool, ReadError> {
        let mut not_yet = false;
        let own: Vec<&ObjectRef> = self.scope.own_of(query).collect();
        for target in
            own.into_iter().filter(|target| wanted.name.as_ref().is_none_or(|name| *name == target.name))
        {
            match self.reads.get(target, Identity::Owner) {
                Answer::Missing => {}
                Answer::NotYet => not_yet = true,
                other => {
                    let object = found(other)?;
                    if wanted.has(&object) {
                        all.add_all([object], &Mask::Whole);
                    }
                }
            }
        }
        Ok(not_yet)
    }

    fn text(&mut self, object: &Object, mask: &Mask) -> Result<String, ReadError> {
        let (text, is_clear) = input::shown_text(object, mask, self.scope)
            .map_err(|error| ReadError::Unavailable(error.to_string()))?;
        self.called.secret_values |= is_clear;
        if text.len() > limits::READ_BYTES { Err(ReadError::TooLarge(text.len() as u64)) } else { Ok(text) }
    }

    fn noted(&mut self, error: ReadError) -> ReadError {
        if matches!(error, ReadError::Unavailable(_)) {
            self.reads.note_unavailable();
        }
        error
    }
}

/// What the guest asks for, besides kind and namespace.
struct Wanted {
    selector: Selector,
    name: Option<String>,
}

impl Wanted {
    fn has(&self, object: &Object) -> bool {
        self.name.as_ref().is_none_or(|name| name == object.name()) && self.selector.selects(object)
    }
}

pub(super) fn found<T>(answer: Answer<T>) -> Result<T, ReadError> {
    match answer {
        Answer::Found(found) => Ok(found),
        Answer::Missing => Err(ReadError::NotFound),
        Answer::KindUnknown => Err(ReadError::KindUnknown),
        Answer::NotYet => {
            Err(ReadError::Unavailable("not known yet, the call is made again when it is".into()))
        }
        Answer::Denied(why) => Err(ReadError::Denied(why)),
    }
}

pub(super) fn denied(Denial(why): Denial) -> ReadError {
    ReadError::Denied(why)
}

pub(crate) fn reference(target: GuestRef) -> ObjectRef {
    let GuestRef { api_version, kind, namespace, name } = target;
    let namespace = namespace.filter(|namespace| !namespace.is_empty());
    ObjectRef { api_version, kind, namespace, name }
}

fn paths(fields: &[String]) -> Result<Vec<FieldPath>, ReadError> {
    FieldPath::parse_all(fields).map_err(|error| ReadError::Denied(error.to_string()))
}

#[cfg(test)]
mod tests;
