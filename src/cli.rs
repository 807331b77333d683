//! The commands: the only module that reads the environment, wires the others together, and prints.
