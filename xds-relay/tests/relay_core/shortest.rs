//! The shortest history that still fails.

/// Leaves out steps one by one.
pub(crate) fn shortest<S: Clone>(steps: &[S], fails: impl Fn(&[S]) -> bool) -> Vec<S> {
    let (mut least, mut at) = (steps.to_vec(), 0);
    while at < least.len() {
        let mut shorter = least.clone();
        shorter.remove(at);
        if fails(&shorter) {
            least = shorter;
        } else {
            at += 1;
        }
    }
    least
}
