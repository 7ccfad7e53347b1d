//! Compiles the eBPF program of the recorder of calls.

#[path = "compile.rs"]
mod compile;

fn main() {
    compile::Program {
        source: "src/record/bpf/calls.bpf.c",
        headers: &["src/record/bpf/kernel.h", "src/record/bpf/faults.h"],
        command: "iosonar files record --with ebpf",
        processors: &["x86_64", "aarch64"],
    }
    .build();
}
