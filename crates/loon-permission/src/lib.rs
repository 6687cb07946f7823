//! Permission by parse: shell lines, paths and URLs become subjects, rules become decisions with reasons. Pure: runs and reads nothing.
