//! Which attempt starts next, and when: all strategies as one state machine over simulated time. Starts nothing itself.
