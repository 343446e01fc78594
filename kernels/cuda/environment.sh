# For building what has the tag nvidia, in a shell at the module's root, after
# make -C kernels/cuda trampoline include.
export CGO_ENABLED=1 CGO_CFLAGS="-O2 -I$PWD/bin/cuda/include" CGO_LDFLAGS="-L$PWD/bin/cuda"
