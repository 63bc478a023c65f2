//! The bodies of the fuzz targets; `fuzz/` calls them, and so does a test on the stable toolchain.
