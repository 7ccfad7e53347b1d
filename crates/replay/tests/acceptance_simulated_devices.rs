//! Simulated devices with five times the requests: the waiting times of queues.

#[path = "simulated_devices.rs"]
mod simulated_devices;
