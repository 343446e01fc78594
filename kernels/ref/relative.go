package ref

import "math"

// RelativeBucket numbers the distance from a token to another one, negative
// if that comes before it: half of the buckets are for either direction, a
// quarter for single distances, and the rest widen logarithmically up to 128.
// The logarithm is float32's. (Raffel et al., arXiv:1910.10683.)
func RelativeBucket(distance, buckets int) int {
	const farthest = 128
	half := buckets / 2
	exact := half / 2
	first, n := 0, -distance
	if n < 0 {
		first, n = half, -n
	}
	if n < exact {
		return first + n
	}
	log := float32(math.Log(float64(float32(n)/float32(exact)))) / float32(math.Log(farthest/float64(exact)))
	return first + min(half-1, exact+int(log*float32(half-exact)))
}
