//! Histories that nobody wrote down.

use xdstp_cache::Removals;

use crate::testing::Edit;
use crate::testing::history::{GLOB, History, OTHER, PLAIN, Step, TREE, member};

/// Anything, in any order.
pub(crate) fn drawn<S: Edit>(history: &mut History<S>, seed: u64) -> Step {
    let mut random = Random(seed);
    let mut versions = 0_u64;
    let (of, interests): (_, Vec<String>) = match seed % 2 {
        0 => (PLAIN, ["*", "a", "b", "c", "none"].map(str::to_owned).to_vec()),
        _ => (
            TREE,
            [GLOB.to_owned(), OTHER.to_owned(), member(GLOB, "a"), member(OTHER, "b"), member(GLOB, "none")].to_vec(),
        ),
    };
    let names: Vec<String> = match seed % 2 {
        0 => ["a", "b", "c", "d"].map(str::to_owned).to_vec(),
        _ => [member(GLOB, "a"), member(GLOB, "b"), member(OTHER, "a"), member(OTHER, "b")].to_vec(),
    };
    let mut readers = 0;
    for _ in 0..40 {
        let name = random.pick(&names);
        let reader = random.below(readers.max(1));
        match random.below(10) {
            0 | 1 => {
                versions += 1;
                history.put(of, name, &versions.to_string())?;
            }
            2 => history.remove(of, name)?,
            3 if readers < 3 => {
                history.open(of, &[random.pick(&interests)])?;
                readers += 1;
            }
            4 => history.subscribe(reader, random.pick(&interests))?,
            5 => {
                let wants = history.wants(reader);
                if !wants.is_empty() {
                    history.unsubscribe(reader, random.pick(&wants))?;
                }
            }
            6 => history.settle(reader)?,
            7 => history.settle_additions(reader)?,
            8 if random.below(8) == 0 => history.close(reader),
            _ => history.pull(reader, Removals::Include)?,
        }
    }
    Ok(())
}

/// Numbers that are the same for everybody: what is wrong is wrong again.
struct Random(u64);

impl Random {
    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    fn pick<'a>(&mut self, of: &'a [String]) -> &'a str {
        let at = self.below(of.len());
        of.get(at).map_or("", String::as_str)
    }
}
