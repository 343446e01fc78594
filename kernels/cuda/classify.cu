// A classifier's head: logits = out·norm(activation(dense·x)), each map with a
// bias; a null gain means that there is no normalisation. x is a pooled vector
// of up to 1024 floats, the maps are float too. A block has one sequence, a
// warp a row of a map at a time.
#include "device.cuh"

constexpr int widest_head = 1024, head_warps = 8;

__device__ __forceinline__ float dot_row(const float *w, const float *x, int width) {
	float sum = 0;
	for (int i = threadIdx.x % 32; i < width; i += 32) sum += w[i] * x[i];
	return warp_sum(sum);
}

// normalise_head is layer normalisation by the first warp.
__device__ __forceinline__ void normalise_head(float *x, const float *gain, const float *bias, float epsilon, int width) {
	float sum = 0, squares = 0;
	for (int i = threadIdx.x; i < width; i += 32) sum += x[i];
	float mean = warp_sum(sum) / width;
	for (int i = threadIdx.x; i < width; i += 32) squares += (x[i] - mean) * (x[i] - mean);
	float scale = rsqrtf(warp_sum(squares) / width + epsilon);
	for (int i = threadIdx.x; i < width; i += 32) x[i] = (x[i] - mean) * scale * gain[i] + bias[i];
}

extern "C" __global__ void __launch_bounds__(256) classify(float *logits, const float *x, const float *dense, const float *dense_bias, int activation,
                                                           const float *gain, const float *norm_bias, float epsilon, const float *out,
                                                           const float *out_bias, int labels, int width) {
	__shared__ float in[widest_head], middle[widest_head];
	int warp = threadIdx.x / 32;
	for (int i = threadIdx.x; i < width; i += 256) in[i] = x[(size_t)blockIdx.x * width + i];
	__syncthreads();
	for (int row = warp; row < width; row += head_warps) {
		float sum = dot_row(dense + (size_t)row * width, in, width);
		if (threadIdx.x % 32 == 0) middle[row] = activate(sum + dense_bias[row], activation);
	}
	__syncthreads();
	if (gain && warp == 0) normalise_head(middle, gain, norm_bias, epsilon, width);
	__syncthreads();
	for (int row = warp; row < labels; row += head_warps) {
		float sum = dot_row(out + (size_t)row * width, middle, width);
		if (threadIdx.x % 32 == 0) logits[(size_t)blockIdx.x * labels + row] = sum + out_bias[row];
	}
}
