//! Records the calls of a program, with strace or with programs in the kernel.
