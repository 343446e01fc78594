// Layer normalisation of x + residual (null: of x), a warp a row (Ba et al.,
// arXiv:1607.06450). width is even, 1024 at most. out may be x or residual.
#include "norm.cuh"

extern "C" __global__ void __launch_bounds__(128) layernorm(bf16 *out, const bf16 *x, const bf16 *residual, const float *gain, const float *bias,
                                                            float epsilon, int rows, int width) {
	int row = blockIdx.x * 4 + threadIdx.x / 32;
	if (row >= rows) return;
	size_t at = (size_t)row * width;
	Row sum = {};
	each(width, [&](int i, int column) {
		uint32_t pair = pair_at(x + at, column), other = residual ? pair_at(residual + at, column) : 0;
		sum.v[i] = make_float2(low_bf16(pair) + low_bf16(other), high_bf16(pair) + high_bf16(other));
	});
	normalise(out + at, sum, gain, bias, epsilon, width);
}
