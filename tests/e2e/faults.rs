//! What goes wrong with disks, files and processes, done to journals that the real `loon` wrote: what
//! was acknowledged is there afterwards, what is damaged is said to be, and nothing panics.

mod cuts;
mod damage;
mod disk;
mod race;
