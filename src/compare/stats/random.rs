//! Random numbers from a fixed seed. Does not know what is drawn.

/// Where all draws start, so that the same input always gives the same answer.
pub(super) const SEED: u64 = 0x6576_616c_7761_7665;

/// Sebastiano Vigna's SplitMix64: a 64-bit counter, mixed. Good enough for draws, and the same on every machine.
pub(super) struct SplitMix64(pub(super) u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Two numbers of 32 bits.
    pub(super) fn halves(&mut self) -> (u32, u32) {
        let both = self.next();
        ((both >> 32) as u32, both as u32)
    }

    /// A number from 0 to below 1: the upper 53 bits.
    pub(super) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / 9_007_199_254_740_992.0
    }
}
