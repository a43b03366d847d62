use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::DynamicParameters;
use crate::admitted::Admitted;
use crate::constraint::Node;
use crate::range::holds_integer;

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
pub enum Overlap {
    /// No parameters satisfy both.
    Disjoint,
    /// These do.
    Overlapping(DynamicParameters),
    /// Not decided within [`Overlap::STEPS`].
    Unknown,
}

impl Overlap {
    /// How many leaves are looked at, at most, before the answer is [`Overlap::Unknown`]: some milliseconds.
    /// Only constraints that combine many keys in ways no person would write come near.
    pub const STEPS: usize = 1 << 20;
}

/// Which parameters a question is about.
#[derive(Clone, Copy)]
pub(crate) enum Scope<'a> {
    All,
    With { key: &'a str, value: &'a str },
    Without { key: &'a str },
}

pub(crate) fn overlap(a: &Node, b: &Node) -> Overlap {
    let (admitted_a, admitted_b) = (Admitted::by(a), Admitted::by(b));
    satisfy(&[(a, &admitted_a), (b, &admitted_b)], Scope::All, &mut Overlap::STEPS.clone())
}

/// Parameters within `scope` that satisfy all the nodes. Uses up `steps`.
pub(crate) fn satisfy<'a>(nodes: &[(&'a Node, &Admitted<'a>)], scope: Scope<'a>, steps: &mut usize) -> Overlap {
    let compared = nodes.iter().map(|(_, admitted)| admitted.size()).min().unwrap_or_default();
    *steps = steps.saturating_sub(1 + compared);
    // Most pairs of variants differ in the exact value of some key, which needs no search.
    let scoped = match scope {
        Scope::All => Admitted::default(),
        Scope::With { key, value } => Admitted::only(key, Some(value)),
        Scope::Without { key } => Admitted::only(key, None),
    };
    let all = || nodes.iter().map(|(_, admitted)| *admitted).chain([&scoped]);
    if Admitted::exclude_each_other(all()) {
        return Overlap::Disjoint;
    }
    let admitted = Admitted::all(all());
    let mut search = Search::default();
    let conjunction = Expr::All(nodes.iter().map(|(node, _)| search.compile(node, false)).collect());
    *steps = steps.saturating_sub(search.leaves);
    search.run(&conjunction, &admitted, steps)
}

/// A depth-first search over the keys: each takes every value that could make a difference, and a branch ends as soon as
/// the keys chosen so far decide the expression. Exact, because a leaf cannot tell apart two values that no leaf mentions.
#[derive(Default)]
struct Search<'a> {
    keys: Vec<Mentions<'a>>,
    index: BTreeMap<&'a str, usize>,
    leaves: usize,
}

/// What the leaves say about one key.
struct Mentions<'a> {
    key: &'a str,
    texts: BTreeSet<&'a str>,
    /// One integer of every interval that no range's bound divides.
    integers: BTreeSet<u64>,
}

/// A value of a key, or its absence, up to what leaves can tell apart.
#[derive(Clone, Copy)]
enum Atom<'a> {
    Absent,
    Text(&'a str),
    /// An integer in a spelling that no leaf mentions.
    Integer(u64),
    /// Mentioned nowhere, and no integer.
    Other,
}

/// In negation normal form, keys numbered, leaves before lists: deciding a leaf's key first cuts off most branches at once.
enum Expr<'a> {
    Constant(bool),
    Leaf { key: usize, leaf: &'a Node, negate: bool },
    All(Vec<Self>),
    Any(Vec<Self>),
}

enum Verdict {
    Decided(bool),
    /// Depends on this key first.
    Open(usize),
}

impl<'a> Search<'a> {
    fn compile(&mut self, node: &'a Node, negate: bool) -> Expr<'a> {
        match (node, negate) {
            (Node::True, _) => Expr::Constant(!negate),
            (Node::Not(inner), _) => self.compile(inner, !negate),
            (Node::And(nodes), false) | (Node::Or(nodes), true) => Expr::All(self.compile_list(nodes, negate)),
            (Node::And(nodes), true) | (Node::Or(nodes), false) => Expr::Any(self.compile_list(nodes, negate)),
            (leaf, _) => Expr::Leaf { key: self.mention(leaf), leaf, negate },
        }
    }

    fn compile_list(&mut self, nodes: &'a [Node], negate: bool) -> Vec<Expr<'a>> {
        let mut list: Vec<_> = nodes.iter().map(|node| self.compile(node, negate)).collect();
        list.sort_by_key(|expr| matches!(expr, Expr::All(_) | Expr::Any(_)));
        list
    }

    fn mention(&mut self, leaf: &'a Node) -> usize {
        self.leaves += 1;
        let name = leaf.key().unwrap_or_default();
        let at = *self.index.entry(name).or_insert_with(|| {
            self.keys.push(Mentions { key: name, texts: BTreeSet::new(), integers: BTreeSet::new() });
            self.keys.len() - 1
        });
        if let Some(mentions) = self.keys.get_mut(at) {
            match leaf {
                Node::Value { value, .. } => _ = mentions.texts.insert(value),
                Node::IntIn { ranges, .. } => {
                    let bounds =
                        ranges.iter().flat_map(|r| [Some(r.start()), r.start().checked_sub(1), r.end().checked_add(1)]);
                    mentions.integers.extend(bounds.flatten());
                }
                _ => {}
            }
        }
        at
    }

    fn run(&self, expr: &Expr<'a>, admitted: &Admitted<'a>, steps: &mut usize) -> Overlap {
        let atoms: Vec<Vec<Atom<'a>>> = self.keys.iter().map(|mentions| mentions.atoms(admitted)).collect();
        let mut chosen: Vec<Option<Atom<'a>>> = alloc::vec![None; atoms.len()];
        // The keys in the order they were chosen, each with the number of atoms tried.
        let mut path: Vec<(usize, usize)> = Vec::new();
        loop {
            match expr.evaluate(&chosen, steps) {
                _ if *steps == 0 => return Overlap::Unknown,
                Verdict::Decided(true) => return Overlap::Overlapping(self.parameters(&chosen, admitted)),
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

    /// The parameters of a solution; keys that did not matter are absent, unless they must have a value.
    fn parameters(&self, chosen: &[Option<Atom<'a>>], admitted: &Admitted<'a>) -> DynamicParameters {
        let required = admitted.required_values().map(|(key, value)| (String::from(key), String::from(value)));
        let solved = self.keys.iter().zip(chosen).filter_map(|(mentions, atom)| {
            let value = match (*atom)? {
                Atom::Absent => return None,
                Atom::Text(text) => text.into(),
                Atom::Integer(n) => {
                    let mut spelling = n.to_string();
                    while mentions.texts.contains(spelling.as_str()) {
                        spelling.insert(0, '0');
                    }
                    spelling
                }
                Atom::Other => {
                    let mut spellings = (0..).map(|i| format!("other{i}"));
                    spellings.find(|text| !mentions.texts.contains(text.as_str())).unwrap_or_default()
                }
            };
            Some((String::from(mentions.key), value))
        });
        required.chain(solved).collect()
    }
}

impl<'a> Mentions<'a> {
    fn atoms(&self, admitted: &Admitted<'a>) -> Vec<Atom<'a>> {
        if let Some(values) = admitted.values(self.key) {
            return values.iter().map(|value| value.map_or(Atom::Absent, Atom::Text)).collect();
        }
        let texts = self.texts.iter().copied().map(Atom::Text);
        let integers = self.integers.iter().copied().map(Atom::Integer);
        texts.chain(integers).chain([Atom::Absent, Atom::Other]).collect()
    }
}

impl Expr<'_> {
    fn evaluate(&self, chosen: &[Option<Atom<'_>>], steps: &mut usize) -> Verdict {
        match self {
            Self::Constant(value) => Verdict::Decided(*value),
            Self::Leaf { key, leaf, negate } => {
                *steps = steps.saturating_sub(1);
                match chosen.get(*key) {
                    Some(Some(atom)) => Verdict::Decided(atom.satisfies(leaf) != *negate),
                    _ => Verdict::Open(*key),
                }
            }
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
    }
    open.map_or(Verdict::Decided(!decisive), Verdict::Open)
}

impl Atom<'_> {
    fn satisfies(self, leaf: &Node) -> bool {
        match (self, leaf) {
            (Self::Absent, _) => false,
            (_, Node::Exists { .. }) => true,
            (Self::Text(text), Node::Value { value, .. }) => *text == **value,
            (Self::Text(text), Node::IntIn { ranges, .. }) => holds_integer(ranges, text),
            (Self::Integer(n), Node::IntIn { ranges, .. }) => ranges.iter().any(|range| range.contains(n)),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Constraint;

    fn overlap(a: &str, b: &str) -> Overlap {
        let (a, b): (Constraint, Constraint) = (a.parse().unwrap(), b.parse().unwrap());
        let overlap = a.overlap(&b);
        if let Overlap::Overlapping(both) = &overlap {
            assert!(a.matches(both) && b.matches(both), "{both} satisfies both");
        }
        overlap
    }

    #[test]
    fn values_absence_and_everything_else_are_told_apart() {
        for (a, b) in [
            ("a=1", "a=2"),
            ("exists(a)", "not exists(a)"),
            ("a=1 and b=1", "a=1 and b=2"),
            ("exists(a) and not a=1", "a=1"),
            ("n in 1..3", "n in 4..6"),
            ("n in 5", "n=6"),
            ("false", "true"),
            ("(a=1 and b=1) or (a=2 and b=2)", "(a=1 and b=2) or (a=2 and b=1)"),
        ] {
            assert_eq!(overlap(a, b), Overlap::Disjoint, "{a} | {b}");
        }
        for (a, b) in [
            ("not a=1", "not a=2"),
            ("not a=1 and exists(a)", "not a=2"),
            ("n in 1..3", "n in 3..6"),
            ("n in 5", "not n=5"),
            ("n in 1..", "not n in 0..3"),
            ("n in 5", "n=005"),
            ("exists(n) and not n in 0..", "not n=other0"),
            ("true", "all()"),
        ] {
            assert!(matches!(overlap(a, b), Overlap::Overlapping(_)), "{a} | {b}");
        }
    }

    #[test]
    fn a_question_that_takes_too_long_is_answered_unknown() {
        // Nine values in eight keys' places, all different: no search by cases decides this quickly.
        let pigeons = (0..9).map(|pigeon| {
            let holes = (0..8).map(|hole| Constraint::value(format!("{pigeon}.{hole}"), "in"));
            Constraint::any(holes).unwrap()
        });
        let alone = (0..8).flat_map(|hole| {
            (0..9).flat_map(move |one| {
                (0..one).map(move |other| {
                    let both = [one, other].map(|pigeon| Constraint::value(format!("{pigeon}.{hole}"), "in"));
                    Constraint::all(both).unwrap().negate().unwrap()
                })
            })
        });
        let (a, b) = (Constraint::all(pigeons).unwrap(), Constraint::all(alone).unwrap());
        assert_eq!(a.overlap(&b), Overlap::Unknown);
    }
}
