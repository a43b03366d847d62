//! Whether two constraints can hold at once.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ptr;

use crate::admitted::Admitted;
use crate::constraint::Node;
use crate::range::integer;
use crate::ranges::Ranges;
use crate::steps::{look_up, spend};
use crate::values::Values;
use crate::{Constraint, DynamicParameters, IntRange};

/// Whether parameters exist that satisfy two constraints at once, so that two variants would both be meant for one subscriber.
///
/// ```
/// use xds_matcher::{Constraint, Overlap};
///
/// let a: Constraint = "env=prod or env=test".parse().unwrap();
/// let b: Constraint = "env=qa or env=test".parse().unwrap();
/// let Overlap::Overlapping(both) = a.overlap(&b) else { panic!() };
/// assert_eq!(both.to_string(), "{env=test}");
///
/// let c: Constraint = "not exists(env)".parse().unwrap();
/// assert_eq!(a.overlap(&c), Overlap::Disjoint);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Overlap {
    /// No parameters satisfy both.
    Disjoint,
    /// These do.
    Overlapping(DynamicParameters),
    /// Not decided within [`Overlap::STEPS`].
    Unknown,
}

impl Overlap {
    /// How many nodes, ranges and texts of the constraints are looked at, at most, before the answer is [`Overlap::Unknown`]: some
    /// milliseconds, and some tens of them for constraints as large as [`MAX_NODES`](crate::MAX_NODES) allows. A long text counts once
    /// for each 128 bytes of it that may be compared. Only constraints that combine many keys in ways no person would write come
    /// near, or megabytes of values.
    pub const STEPS: usize = 1 << 20;
}

/// A constraint that questions are asked about.
pub(crate) struct Subject<'a> {
    node: &'a Node,
    cost: usize,
    admitted: Admitted<'a>,
}

impl<'a> Subject<'a> {
    pub(crate) fn new(constraint: &'a Constraint) -> Self {
        let (node, cost) = (constraint.node(), constraint.cost());
        // What is more is not looked at either.
        Self { node, cost, admitted: Admitted::by(node, cost.min(Overlap::STEPS / 32)) }
    }

    pub(crate) fn admitted(&self) -> &Admitted<'a> {
        &self.admitted
    }

    /// The keys mentioned anywhere, sorted.
    pub(crate) fn keys(&self) -> BTreeSet<&'a str> {
        let mut keys = BTreeSet::new();
        self.node.for_each_leaf(&mut |leaf| keys.extend(leaf.key()));
        keys
    }
}

/// Which parameters a question is about.
#[derive(Clone, Copy)]
pub(crate) enum Scope<'a> {
    All,
    With { key: &'a str, value: &'a str },
    Without { key: &'a str },
}

pub(crate) fn overlap(a: &Constraint, b: &Constraint) -> Overlap {
    satisfy(&[&Subject::new(a), &Subject::new(b)], Scope::All, &mut Overlap::STEPS.clone())
}

/// Parameters within `scope` that satisfy all the subjects. Uses up `steps`.
pub(crate) fn satisfy<'a>(subjects: &[&Subject<'a>], scope: Scope<'a>, steps: &mut usize) -> Overlap {
    // Most pairs of variants differ in the values of some key, which needs no search.
    let scoped = match scope {
        Scope::All => Admitted::default(),
        Scope::With { key, value } => Admitted::only(key, Some(value)),
        Scope::Without { key } => Admitted::only(key, None),
    };
    *steps = steps.saturating_sub(1);
    let all: Vec<&Admitted<'a>> = subjects.iter().map(|subject| &subject.admitted).chain([&scoped]).collect();
    let excluded =
        all.iter().enumerate().any(|(i, one)| all.iter().skip(i + 1).any(|other| one.excludes(other, steps)));
    if excluded {
        return Overlap::Disjoint;
    }
    // What it takes to compile them.
    if !spend(steps, subjects.iter().map(|subject| subject.cost).sum()) {
        return Overlap::Unknown;
    }
    let mut search = Search::default();
    let conjunction = all_of(subjects.iter().map(|subject| search.compile(subject.node, false)).collect());
    search.run(&conjunction, &all, steps)
}

/// A depth-first search over the keys: each takes every value that could make a difference, and a branch ends as soon as
/// the keys chosen so far decide the expression. Exact, because a leaf cannot tell apart two values that no leaf mentions.
#[derive(Default)]
struct Search<'a> {
    keys: Vec<Mentions<'a>>,
    index: BTreeMap<&'a str, usize>,
}

/// What the leaves say about one key.
struct Mentions<'a> {
    key: &'a str,
    texts: BTreeSet<&'a str>,
    /// The bounds of all ranges, as the first integer that is on their far side.
    bounds: BTreeSet<u64>,
    ranges: Vec<IntRange>,
}

/// A value of a key, or its absence, up to what leaves can tell apart.
#[derive(Clone, Copy)]
enum Atom<'a> {
    Absent,
    /// As the mentions have it, so that equal ones are one; and the integer that it spells.
    Text(&'a str, Option<u64>),
    /// An integer in a spelling that no leaf mentions.
    Integer(u64),
    /// Mentioned nowhere, and no integer of any range.
    Other,
}

/// In negation normal form, without constants inside, keys numbered, leaves before lists: deciding a leaf's key first cuts
/// off most branches at once.
enum Expr<'a> {
    Constant(bool),
    Leaf { key: usize, test: Test<'a>, negate: bool },
    All(Vec<Self>),
    Any(Vec<Self>),
}

enum Test<'a> {
    Exists,
    Value(&'a str),
    In(Ranges),
}

enum Verdict {
    Decided(bool),
    /// Depends on this key first.
    Open(usize),
}

impl<'a> Search<'a> {
    fn compile(&mut self, node: &'a Node, negate: bool) -> Expr<'a> {
        let (key, mut test) = match node {
            Node::True => return Expr::Constant(!negate),
            Node::Not(inner) => return self.compile(inner, !negate),
            Node::And(nodes) | Node::Or(nodes) => {
                let list = nodes.iter().map(|node| self.compile(node, negate)).collect();
                return if matches!(node, Node::And(_)) == negate { any_of(list) } else { all_of(list) };
            }
            Node::Exists { key } => (key, Test::Exists),
            Node::Value { key, value } => (key, Test::Value(value)),
            Node::IntIn { key, ranges } => (key, Test::In(Ranges::of(ranges))),
        };
        let key = self.mention(key, &mut test);
        Expr::Leaf { key, test, negate }
    }

    fn mention(&mut self, key: &'a str, test: &mut Test<'a>) -> usize {
        let at = *self.index.entry(key).or_insert_with(|| {
            let nothing = Mentions { key, texts: BTreeSet::new(), bounds: BTreeSet::new(), ranges: Vec::new() };
            self.keys.push(nothing);
            self.keys.len() - 1
        });
        if let Some(mentions) = self.keys.get_mut(at) {
            match test {
                Test::Exists => {}
                Test::Value(value) => match mentions.texts.get(value) {
                    Some(same) => *value = same,
                    None => _ = mentions.texts.insert(value),
                },
                Test::In(ranges) => {
                    let bounds = ranges.as_slice().iter().flat_map(|r| [Some(r.start()), r.end().checked_add(1)]);
                    mentions.bounds.extend(bounds.flatten());
                    mentions.ranges.extend_from_slice(ranges.as_slice());
                }
            }
        }
        at
    }

    fn run(&self, expr: &Expr<'a>, admitted: &[&Admitted<'a>], steps: &mut usize) -> Overlap {
        let atoms: Vec<Vec<Atom<'a>>> = self.keys.iter().map(|mentions| mentions.atoms(admitted, steps)).collect();
        let mut chosen: Vec<Option<Atom<'a>>> = alloc::vec![None; atoms.len()];
        // The keys in the order they were chosen, each with the number of atoms tried.
        let mut path: Vec<(usize, usize)> = Vec::new();
        loop {
            match expr.evaluate(&chosen, steps) {
                _ if *steps == 0 => return Overlap::Unknown,
                Verdict::Decided(true) => {
                    let parameters = self.parameters(&chosen, admitted, steps);
                    return parameters.map_or(Overlap::Unknown, Overlap::Overlapping);
                }
                Verdict::Decided(false) => {}
                Verdict::Open(key) => path.push((key, 0)),
            }
            loop {
                let Some((key, tried)) = path.last_mut() else { return Overlap::Disjoint };
                let next = atoms.get(*key).and_then(|atoms| atoms.get(*tried)).copied();
                *tried += 1;
                if let Some(slot) = chosen.get_mut(*key) {
                    *slot = next;
                }
                if next.is_some() {
                    break;
                }
                path.pop();
            }
        }
    }

    /// The parameters of a solution; keys that did not matter are absent, unless they must have a value. `None` if the steps
    /// are used up.
    fn parameters(
        &self,
        chosen: &[Option<Atom<'a>>],
        admitted: &[&Admitted<'a>],
        steps: &mut usize,
    ) -> Option<DynamicParameters> {
        let required = admitted.iter().flat_map(|admitted| admitted.required_values());
        let required = required.map(|(key, value)| (String::from(key), String::from(value)));
        let solved = self.keys.iter().zip(chosen).filter_map(|(mentions, atom)| {
            let value = match (*atom)? {
                Atom::Absent => return None,
                Atom::Text(text, _) => text.into(),
                Atom::Integer(n) => {
                    let mut spelling = n.to_string();
                    while mentions.texts.contains(spelling.as_str())
                        && spend(steps, look_up(spelling.len(), mentions.texts.len()))
                    {
                        spelling.insert(0, '0');
                    }
                    spelling
                }
                Atom::Other => {
                    let mut spellings = (0..).map(|i| format!("other{i}"));
                    let mut is_free = |text: &String| {
                        !spend(steps, look_up(text.len(), mentions.texts.len()))
                            || !mentions.texts.contains(text.as_str())
                    };
                    spellings.find(&mut is_free).unwrap_or_default()
                }
            };
            Some((String::from(mentions.key), value))
        });
        let parameters = required.chain(solved).collect();
        if *steps == 0 { None } else { Some(parameters) }
    }
}

impl<'a> Mentions<'a> {
    /// The values that make a difference, of those that all admit.
    fn atoms(&self, admitted: &[&Admitted<'a>], steps: &mut usize) -> Vec<Atom<'a>> {
        let listed: Vec<&Values<'a>> = admitted.iter().filter_map(|admitted| admitted.values(self.key)).collect();
        let excepted: Vec<&Values<'a>> = admitted.iter().filter_map(|admitted| admitted.exceptions(self.key)).collect();
        let is_admitted = |value: Option<&str>| {
            listed.iter().all(|values| values.contains(value)) && !excepted.iter().any(|values| values.contains(value))
        };
        let count = listed.iter().chain(&excepted).map(|values| values.len()).sum();
        let mut texts: Vec<&'a str> = self.texts.iter().copied().collect();
        // Only a scope admits a text that no leaf mentions, and it has but one.
        texts.extend(listed.iter().filter_map(|values| values.only()?).filter(|text| !self.texts.contains(text)));
        texts.dedup();
        texts.retain(|text| spend(steps, look_up(text.len(), count)) && is_admitted(Some(text)));
        let mut atoms: Vec<_> = texts.into_iter().map(|text| Atom::Text(text, integer(text))).collect();
        // An integer that is in no range is like any other text.
        let in_some = Ranges::of(&self.ranges);
        let integers = self.bounds.iter().copied().filter(|n| {
            in_some.contains(*n)
                && listed.iter().all(|values| values.ranges().contains(*n))
                && !excepted.iter().any(|values| values.ranges().contains(*n))
        });
        atoms.extend(integers.map(Atom::Integer));
        if is_admitted(None) {
            atoms.push(Atom::Absent);
        }
        if listed.is_empty() {
            atoms.push(Atom::Other);
        }
        atoms
    }
}

fn all_of(list: Vec<Expr<'_>>) -> Expr<'_> {
    without_constants(list, false).map_or_else(Expr::Constant, Expr::All)
}

fn any_of(list: Vec<Expr<'_>>) -> Expr<'_> {
    without_constants(list, true).map_or_else(Expr::Constant, Expr::Any)
}

/// The children that matter, leaves first; or what the list is if none does, or one is `decisive`.
fn without_constants(mut list: Vec<Expr<'_>>, decisive: bool) -> Result<Vec<Expr<'_>>, bool> {
    if list.iter().any(|expr| matches!(expr, Expr::Constant(value) if *value == decisive)) {
        return Err(decisive);
    }
    list.retain(|expr| !matches!(expr, Expr::Constant(_)));
    list.sort_by_key(|expr| matches!(expr, Expr::All(_) | Expr::Any(_)));
    if list.is_empty() { Err(!decisive) } else { Ok(list) }
}

impl Expr<'_> {
    /// Every node looked at is a step, and every halving of a list of ranges.
    fn evaluate(&self, chosen: &[Option<Atom<'_>>], steps: &mut usize) -> Verdict {
        *steps = steps.saturating_sub(1);
        match self {
            Self::Constant(value) => Verdict::Decided(*value),
            Self::Leaf { key, test, negate } => match chosen.get(*key) {
                Some(Some(atom)) => {
                    if let Test::In(ranges) = test {
                        *steps =
                            steps.saturating_sub(ranges.len().checked_ilog2().map_or(0, |halvings| halvings as usize));
                    }
                    Verdict::Decided(atom.satisfies(test) != *negate)
                }
                _ => Verdict::Open(*key),
            },
            Self::All(list) => evaluate_list(list, false, chosen, steps),
            Self::Any(list) => evaluate_list(list, true, chosen, steps),
        }
    }
}

/// `decisive` is the value of one child that decides the list.
fn evaluate_list(list: &[Expr<'_>], decisive: bool, chosen: &[Option<Atom<'_>>], steps: &mut usize) -> Verdict {
    let mut open = None;
    for expr in list {
        match expr.evaluate(chosen, steps) {
            Verdict::Decided(value) if value == decisive => return Verdict::Decided(decisive),
            Verdict::Decided(_) => {}
            Verdict::Open(key) => _ = open.get_or_insert(key),
        }
        if *steps == 0 {
            break;
        }
    }
    open.map_or(Verdict::Decided(!decisive), Verdict::Open)
}

impl Atom<'_> {
    fn satisfies(self, test: &Test<'_>) -> bool {
        match (self, test) {
            (Self::Absent, _) => false,
            (_, Test::Exists) => true,
            (Self::Text(text, _), Test::Value(value)) => ptr::eq(text, *value),
            (Self::Text(_, Some(n)), Test::In(ranges)) => ranges.contains(n),
            (Self::Integer(n), Test::In(ranges)) => ranges.contains(n),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
