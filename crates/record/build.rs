//! Compiles the eBPF program of the recorder of requests.

#[path = "compile.rs"]
mod compile;

fn main() {
    compile::Program {
        source: "src/bpf/record.bpf.c",
        headers: &["src/bpf/kernel.h"],
        command: "iosonar record",
        processors: &[],
    }
    .build();
}
