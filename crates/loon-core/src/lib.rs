//! The session: turn loop, prompt, guidance, steering and the runtime both front ends talk to.
