//! The peak of a model and what stands in memory at that moment.
//!
//!     bindgen onnxvram.h --allowlist-function 'onv_.*' --allowlist-type 'onv_.*' -o onnxvram.rs
//!     rustc --edition 2021 peak.rs -L FOLDER -l onnxvram # where libonnxvram.so is
//!     ./peak resnet50.onnx 256
//!
//! `static inline` functions of the header are no symbols, so their sized counterparts are called.
#[allow(dead_code, non_camel_case_types, non_upper_case_globals, non_snake_case)]
mod onnxvram {
    include!("onnxvram.rs");
}
use onnxvram::*;
use std::ffi::{CStr, CString};
use std::mem::{size_of, zeroed};

struct Analysis(*mut onv_analysis);

impl Drop for Analysis {
    fn drop(&mut self) {
        unsafe { onv_analysis_destroy(self.0) }
    }
}

fn text(pointer: *const std::os::raw::c_char) -> String {
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

impl Analysis {
    fn new(path: &str, batch: i64) -> Result<Analysis, String> {
        let path = CString::new(path).map_err(|_| "the path has a NUL".to_string())?;
        unsafe {
            let mut options: onv_options = zeroed();
            onv_options_init(&mut options, size_of::<onv_options>() as _);
            options.batch = batch;
            let mut analysis = std::ptr::null_mut();
            let mut error: onv_error = zeroed();
            let status = onv_analysis_new(path.as_ptr(), &options, &mut analysis, &mut error);
            if status == onv_status_ONV_OK { Ok(Analysis(analysis)) } else { Err(text(error.message.as_ptr())) }
        }
    }

    fn summary(&self) -> onv_summary {
        unsafe {
            let mut summary: onv_summary = zeroed();
            onv_analysis_summary_get(self.0, &mut summary, size_of::<onv_summary>() as _);
            summary
        }
    }

    /// What is live at the peak, the largest first.
    fn peak_tensors(&self) -> Vec<onv_tensor_info> {
        let mut found = Vec::new();
        unsafe {
            for i in 0..onv_analysis_peak_tensor_count(self.0) {
                let mut tensor: onv_tensor_info = zeroed();
                let row = onv_analysis_peak_tensor(self.0, i);
                onv_analysis_tensor_get(self.0, row, &mut tensor, size_of::<onv_tensor_info>() as _);
                found.push(tensor);
            }
        }
        found
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() < 2 {
        eprintln!("usage: {} MODEL.onnx [BATCH]", arguments[0]);
        std::process::exit(2);
    }
    let batch = arguments.get(2).map_or(0, |batch| batch.parse().expect("a number"));
    let analysis = Analysis::new(&arguments[1], batch).unwrap_or_else(|error| {
        eprintln!("{}: {}", arguments[1], error);
        std::process::exit(1)
    });
    let summary = analysis.summary();
    println!("weights {} bytes", summary.parameter_bytes);
    println!("peak    {} bytes at step {} of {}", summary.peak_bytes, summary.peak_step, summary.nodes);
    for tensor in analysis.peak_tensors().iter().take(3) {
        println!("        {} bytes: {} {}{}", tensor.bytes, text(tensor.name), text(tensor.dtype), text(tensor.shape));
    }
}
