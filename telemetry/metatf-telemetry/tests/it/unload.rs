//! A host unloads a plug-in with telemetry, but threads, forks and the end of the process can still call its code.

use crate::common::{Scene, records, scenario, steps};
use std::ffi::{CStr, CString};
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// The environment variable that contains the path of the plug-in.
const PLUGIN: &str = "METATF_TEST_PLUGIN";

/// Runs the host.
#[test]
fn child() {
    let Some(scenario) = scenario() else { return };
    let path = CString::new(std::env::var(PLUGIN).unwrap()).unwrap();
    // SAFETY: this is a library of this repository, whose functions have these types.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null(), "{:?}", CStr::from_ptr(libc::dlerror()));
        let symbol = |name: &CStr| {
            let found = libc::dlsym(library, name.as_ptr());
            assert!(!found.is_null(), "{name:?}");
            found
        };
        let begin = std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> bool>(symbol(c"plugin_begin"));
        let emit = std::mem::transmute::<*mut libc::c_void, extern "C" fn(u32)>(symbol(c"plugin_emit"));
        let end = std::mem::transmute::<*mut libc::c_void, extern "C" fn()>(symbol(c"plugin_end"));
        // Use a separate thread, because a thread that uses more of the plug-in's standard library keeps the plug-in
        // loaded until the thread ends.
        assert!(std::thread::spawn(move || begin()).join().unwrap());
        let (emitted, wait_for_event) = mpsc::channel();
        let (unloaded, wait_for_unload) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            emit(0);
            emitted.send(()).unwrap();
            wait_for_unload.recv().unwrap();
        });
        wait_for_event.recv().unwrap();
        if scenario == "ended" {
            std::thread::spawn(move || end()).join().unwrap();
        }
        assert_eq!(libc::dlclose(library), 0);
        // Functions of the plug-in are called at the end of the thread, in a fork, and by the draining thread.
        unloaded.send(()).unwrap();
        thread.join().unwrap();
        let forked = libc::fork();
        if forked == 0 {
            libc::_exit(0);
        }
        let mut status = 1;
        assert_eq!((libc::waitpid(forked, &raw mut status, 0), status), (forked, 0));
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// Builds the plug-in, which is an example of this crate.
fn plugin() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--features", "drain", "--example", "unloaded", "--message-format", "json"]);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout).unwrap();
    let path = messages.split('"').find(|text| text.ends_with("/libunloaded.so"));
    path.unwrap_or_else(|| panic!("{messages}")).into()
}

#[test]
fn a_library_that_is_unloaded_leaves_its_host_alone() {
    let plugin = plugin();
    for scenario in ["ended", "runs"] {
        let scene = Scene::new("unload::child");
        scene.run(scenario, &[("METATF_TELEMETRY_CONTROL", "all"), (PLUGIN, plugin.to_str().unwrap())]);
        assert_eq!(steps(&records(&scene.trace())).into_values().collect::<Vec<_>>(), [1], "{scenario}");
        assert!(scene.buffers().is_empty(), "{scenario}");
    }
}
