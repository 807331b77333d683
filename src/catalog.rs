//! Finds what a repository holds: pairs, changed files, the files of a workspace. Decides nothing about them.
