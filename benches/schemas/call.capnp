# What a program did to its heap. From this the Debian package `capnproto` and the crate `capnpc`, whose folder holds
# rust.capnp, make code: `capnp compile -I FOLDER --no-standard-import -orust:../src/peers/capnp call.capnp`.
@0xd1c5b8b0a3a94f21;

using Rust = import "/rust.capnp";
$Rust.parentModule("peers::capnp");

struct Call {
  union {
    alloc :group { size @0 :UInt64; address @1 :UInt64; }
    realloc :group { old @2 :UInt64; new @3 :UInt64; }
    free :group { address @4 :UInt64; }
  }
}

# Some thousand calls.
struct Batch {
  calls @0 :List(Call);
}
