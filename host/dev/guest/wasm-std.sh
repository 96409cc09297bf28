#!/bin/bash
# wasm-std.sh FOLDER: a Rust compiler with a std for wasm32-unknown-unknown, on Debian, for machines where
# `rustup target add` reaches nothing. Compiler and source of std come from two Debian packages of one version,
# which are unpacked below FOLDER and not installed; cargo and the linkers are those of the active toolchain.
set -euo pipefail

folder=$(realpath -m "${1:?usage: $0 FOLDER}")
target=wasm32-unknown-unknown
sysroot=$(rustc --print sysroot)
host=$(rustc -vV | sed -n 's/^host: //p')
work=$folder.work
trap 'rm -rf "$work"' EXIT
rm -rf "$work"
mkdir -p "$work/packages" "$work/root" "$work/source"

# The lists of a fresh container are empty. Only the superuser can fill them; otherwise the next step says what lacks.
apt-cache show rustc-web >"$work/known" 2>&1 || apt-get -qq update || true
dependency() { apt-cache depends "$1" | sed -n "s/^ *Depends: \($2.*\)/\1/p" | head -n 1; }
std=$(dependency libstd-rust-web-dev libstd-rust-web)
llvm=$(dependency "$std" libllvm)
(cd "$work/packages" && apt-get -qq -o APT::Sandbox::User=root download \
    rustc-web rust-web-src libstd-rust-web-dev "$std" "$llvm")

for package in "$work"/packages/*.deb; do
    case $package in
    */rust-web-src_*) dpkg-deb --fsys-tarfile "$package" |
        tar -x -C "$work/source" --strip-components=4 --wildcards './usr/src/rustc-*/library/*' ;;
    *) dpkg-deb -x "$package" "$work/root" ;;
    esac
done

new=$work/toolchain
mkdir -p "$new"/{bin,libexec} "$new/lib/rustlib/$host/bin" "$new/lib/rustlib/$target/lib"
cp -a "$work/root/usr/bin/rustc" "$new/libexec/"
cp -a "$work/root/usr/lib/rustlib/$host" "$new/lib/rustlib/"
find "$work/root/usr/lib" -name '*.so*' -type f -exec cp {} "$new/lib/" \;
ln -s "$sysroot/bin/cargo" "$new/bin/cargo"
for linker in rust-lld wasm-component-ld; do
    ln -sf "$sysroot/lib/rustlib/$host/bin/$linker" "$new/lib/rustlib/$host/bin/$linker"
done
cat >"$new/bin/rustc" <<'RUSTC'
#!/bin/sh
here=$(dirname "$(dirname "$(readlink -f "$0")")")
LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$here/libexec/rustc" --sysroot "$here" "$@"
RUSTC
chmod +x "$new/bin/rustc"

# std names its vendored crates only for builds of itself, hence the unstable flags; guests are compiled without them.
separator=$'\x1f'
flags="-Zforce-unstable-if-unmarked${separator}-Cembed-bitcode=yes${separator}--remap-path-prefix=$work/source=rust-src"
(cd "$work/source/library" &&
    env -u RUSTFLAGS -u CARGO_BUILD_TARGET RUSTC="$new/bin/rustc" RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$work/target" \
        CARGO_ENCODED_RUSTFLAGS="$flags" __CARGO_DEFAULT_LIB_METADATA=wasm-std \
        CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_PANIC=abort \
        "$new/bin/cargo" build --quiet --release --offline -Zavoid-dev-deps --target "$target" \
        --config 'source.crates-io.replace-with="vendored"' --config 'source.vendored.directory="vendor"' \
        --manifest-path sysroot/Cargo.toml --no-default-features --features compiler-builtins-mem)
cp "$work/target/$target/release/deps/"*.rlib "$new/lib/rustlib/$target/lib/"
rm -rf "$folder"
mv "$new" "$folder"
